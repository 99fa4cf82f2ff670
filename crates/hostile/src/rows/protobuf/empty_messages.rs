//! A pod of a million containers, two bytes each.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-empty-messages",
    who: Who::Admin,
    size: Sizes { full: 1_400_000, ten: 14_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let spec = [0x12, 0].repeat(size);
    let pod = [named("protobuf-empty-messages"), field(2, &spec)].concat();
    Request::post(PODS, PROTOBUF, unknown("v1", "Pod", &pod))
}
