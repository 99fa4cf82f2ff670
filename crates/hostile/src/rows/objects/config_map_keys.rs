//! A ConfigMap of hundreds of thousands of keys.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-config-map-keys",
    who: Who::Admin,
    size: Sizes { full: 200_000, ten: 2_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#""{index:x}":"""#));
    let twins = joined(size / 10, ",", |index| format!(r#""b{index:x}":"""#));
    let members = format!(r#""data":{{{all}}},"binaryData":{{{twins}}}"#);
    Request::post(CONFIG_MAPS, JSON, config_map("objects-config-map-keys", &members))
}
