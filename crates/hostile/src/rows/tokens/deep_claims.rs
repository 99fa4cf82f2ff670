//! A token whose claims are brackets in brackets.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tokens-deep-claims",
    who: Who::Anonymous,
    size: Sizes { full: 10_000, ten: 3_000 },
    act: Act::Request(request),
    law: Law::says(HEADS),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    use base64::Engine as _;
    let coded = |text: String| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    let deep = format!(r#"{{"iss":{}"#, "[".repeat(size));
    let token = format!("{}.{}.AAAA", coded(r#"{"alg":"RS256"}"#.into()), coded(deep));
    Request::get("/api").header("Authorization", format!("Bearer {token}"))
}
