//! An unknown field whose length is negative for who counts in signed numbers.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-negative-skip",
    from: "CVE-2021-3121",
    who: Who::Admin,
    act: Act::Request(request),
    law: Law::says(&[400]),
    ..Row::BASE
};

fn request(_size: usize) -> Request {
    let field = [varint(15 << 3 | 2), vec![0xff; 9], vec![0x01]].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, unknown("v1", "ConfigMap", &field))
}
