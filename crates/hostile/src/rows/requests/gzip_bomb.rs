//! A compressed body that is a hundred megabytes of blanks.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "requests-gzip-bomb",
    size: Sizes { full: 100_000_000, ten: 1_000_000 },
    act: Act::Request(request),
    law: Law::says(&[400, 413, 415]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    use std::io::Write as _;
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let blanks = vec![b' '; 100_000];
    let coded =
        (0..size / blanks.len()).try_for_each(|_| coder.write_all(&blanks)).and_then(|()| coder.finish());
    Request::review(JSON, coded.unwrap_or_default()).header("Content-Encoding", "gzip")
}
