//! Tokens of an issuer that is believed, each of another key that nobody knows: whoever looks for each of
//! them at the issuer asks it as often as somebody without credentials likes, and gets ten megabytes a time.

use crate::issuer::ISSUER;
use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-of-an-issuer",
    who: Who::Anonymous,
    size: Sizes { full: 2_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[401]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        stage
            .each(8, size, |index| {
                Request::get("/api").header("Authorization", format!("Bearer {}", token(index)))
            })
            .await
    })
}

fn token(index: usize) -> String {
    use base64::Engine as _;
    let coded = |text: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let claims = format!(
        r#"{{"iss":"{ISSUER}","sub":"system:admin","aud":"hostile","groups":["system:masters"],"exp":99999999999}}"#
    );
    format!(
        "{}.{}.{}",
        coded(format!(r#"{{"alg":"RS256","kid":"k{index}"}}"#).as_bytes()),
        coded(claims.as_bytes()),
        coded(&[index as u8; 256])
    )
}
