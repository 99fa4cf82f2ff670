//! A map of a quarter of a million entries without values.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-map-entries",
    who: Who::Admin,
    size: Sizes { full: 250_000, ten: 2_500 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let entries = (0..size).flat_map(|index| field(2, &field(1, format!("{index:x}").as_bytes())));
    let map = [named("protobuf-map-entries"), entries.collect()].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &map))
}
