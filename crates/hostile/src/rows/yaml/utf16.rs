//! A document in UTF-16 with a byte order mark, half of it surrogates without their other half.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-utf16",
    size: Sizes { full: 1_000_000, ten: 10_000 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let head: Vec<u8> =
        format!("\u{feff}{REVIEW_YAML}x: ").encode_utf16().flat_map(u16::to_le_bytes).collect();
    Request::review(YAML, [head, [0x00, 0xd8].repeat(size)].concat())
}
