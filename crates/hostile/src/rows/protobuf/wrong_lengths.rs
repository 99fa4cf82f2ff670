//! Lengths that are more than there is, up to 2^63.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-wrong-lengths",
    who: Who::Admin,
    size: Sizes { full: 3, ten: 3 },
    act: Act::Request(request),
    law: Law::says(&[400]),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    let lengths = [&[0x0a][..], &varint(u64::MAX), &[0x0a], &varint(1 << 62), b"x"].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &lengths))
}
