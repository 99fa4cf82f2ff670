//! Tokens that are signed by nobody, by a secret that everybody knows, and by keys that they bring along.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-algorithm-none",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[401]).many(2),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(1, 12, |index| {
                Request::get("/api").header("Authorization", format!("Bearer {}", token(index)))
            })
            .await
    })
}

fn token(index: usize) -> String {
    use base64::Engine as _;
    let coded = |text: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let algorithm = ["none", "None", "HS256", "RS256", "ES256", ""][index % 6];
    let key = r#""jwk":{"kty":"oct","k":"AAAA"},"jku":"https://127.0.0.1:1/","kid":"../../etc/passwd""#;
    let head = coded(format!(r#"{{"alg":"{algorithm}",{key}}}"#));
    let claims = coded(
        r#"{"iss":"https://kubernetes.default.svc","sub":"system:serviceaccount:kube-system:x","aud":["https://kubernetes.default.svc"],"exp":99999999999}"#.into(),
    );
    let signature = if index < 6 { "" } else { "AAAA" };
    format!("{head}.{claims}.{signature}")
}
