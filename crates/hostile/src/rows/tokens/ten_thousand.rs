//! Ten thousand tokens that look right, each another one: who remembers those that are not has much to
//! remember.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-ten-thousand",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 200 },
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
        r#"{{"iss":"https://kubernetes.default.svc","sub":"system:serviceaccount:a:b{index}","exp":99999999999,"jti":"{}"}}"#,
        "x".repeat(1_000)
    );
    format!(
        "{}.{}.{}",
        coded(br#"{"alg":"RS256","kid":"k"}"#),
        coded(claims.as_bytes()),
        coded(&[index as u8; 256])
    )
}
