//! A map of half a million entries, all with the same key.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-equal-map-keys",
    who: Who::Admin,
    size: Sizes { full: 430_000, ten: 4_300 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let entry = field(2, &[field(1, b"k"), field(2, b"")].concat());
    let map = [named("protobuf-equal-map-keys"), entry.repeat(size)].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &map))
}
