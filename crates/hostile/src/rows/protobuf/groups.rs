//! Groups in groups, which nobody has used in fifteen years: who skips them does so by calling themself.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-groups",
    from: "CVE-2021-3121",
    who: Who::Admin,
    size: Sizes { full: 3_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(&[400, 413]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &vec![0x7b; size]))
}
