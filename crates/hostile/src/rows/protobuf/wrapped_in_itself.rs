//! A wrapper whose content is a wrapper, and so on; and one that says that it is compressed.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-wrapped-in-itself",
    who: Who::Admin,
    size: Sizes { full: 400_000, ten: 4_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let types = field(1, &[field(1, b"v1"), field(2, b"ConfigMap")].concat());
    let body = [b"k8s\0".to_vec(), types, nested(2, size), field(3, b"gzip")].concat();
    Request::post(CONFIG_MAPS, PROTOBUF, body)
}
