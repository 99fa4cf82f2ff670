//! Tokens that name keys which nobody knows, by somebody without any: a signer that hangs is asked for them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_hook::signer::SignerMischief;

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "signers-unknown-keys",
    who: Who::Anonymous,
    size: Sizes { full: 400, ten: 12 },
    beside: Beside::Signer(SignerMischief::Hangs),
    act: Act::Scene(scene),
    law: Law::says(&[401]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    let ask = |index| Request::get("/api").header("Authorization", format!("Bearer {}", token(index)));
    Box::pin(async move { stage.each(200, size, ask).await })
}

/// Of our server and of the rival, each of which knows tokens of its own issuer alone.
const ISSUERS: [&str; 2] = ["https://kubernetes.default.svc.cluster.local", "https://kubernetes.default.svc"];

fn token(index: usize) -> String {
    let coded = |text: String| URL_SAFE_NO_PAD.encode(text);
    let head = coded(format!(r#"{{"alg":"ES256","kid":"{index}","typ":"JWT"}}"#));
    let issuer = ISSUERS[index % 2];
    let claims =
        format!(r#"{{"iss":"{issuer}","sub":"system:serviceaccount:kube-system:x","aud":["{issuer}"]}}"#);
    format!("{head}.{}.AAAA", coded(claims))
}
