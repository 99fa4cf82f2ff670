//! The same of volumes, beside one container.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-empty-volumes",
    who: Who::Admin,
    size: Sizes { full: 1_400_000, ten: 14_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let container = field(2, &[field(1, b"c"), field(2, b"i")].concat());
    let spec = [[0x0a, 0].repeat(size), container].concat();
    let pod = [named("protobuf-empty-volumes"), field(2, &spec)].concat();
    Request::post(PODS, PROTOBUF, unknown("v1", "Pod", &pod))
}
