//! Continue tokens that no server has given out: of other resources, of times before there was one, and of
//! none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-continue-forged",
    who: Who::Admin,
    size: Sizes { full: 2_000, ten: 100 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 410, 504]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(61, size, |index| Request::get(path(index))).await })
}

fn path(index: usize) -> String {
    use base64::Engine as _;
    let start = ["../secrets/x", "/", "hostile/a\\u0000", "a/b/c/d", "", "zzz", "hostile/../../", "\\ud800"];
    let rv = ["0", "-1", "9223372036854775807", "1", "18446744073709551615", "\"1\"", "1e3", "null"];
    let text = format!(
        r#"{{"v":"meta.k8s.io/v1","rv":{},"start":"{}"}}"#,
        rv[index % rv.len()],
        start[index / rv.len() % start.len()]
    );
    let token = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
    format!("/api/v1/namespaces/hostile/configmaps?limit=1&continue={token}")
}
