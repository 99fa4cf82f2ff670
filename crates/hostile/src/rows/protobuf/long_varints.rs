//! Numbers of eleven bytes.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-long-varints",
    who: Who::Admin,
    size: Sizes { full: 250_000, ten: 2_500 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let number = [vec![0x78], vec![0x80; 10], vec![0x01]].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &number.repeat(size)))
}
