//! Host aliases that are no addresses: an error each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-host-aliases",
    who: Who::Admin,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |_| r#"{"ip":"1.2.3"}"#.to_owned());
    Request::post(PODS, JSON, pod("objects-host-aliases", &format!(r#""hostAliases":[{all}]"#)))
}
