//! Texts that are no UTF-8.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-invalid-utf8",
    who: Who::Admin,
    size: Sizes { full: 2_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let entry = field(2, &[field(1, b"k"), field(2, &vec![0xff; size])].concat());
    let map = [named("protobuf-invalid-utf8"), entry].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &map))
}
