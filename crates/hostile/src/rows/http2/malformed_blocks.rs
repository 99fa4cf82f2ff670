//! Header blocks with an index of 0, an index beyond the table, numbers without an end, texts that are cut
//! off, wrong Huffman codes, and tables larger than allowed.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-malformed-blocks",
    from: "RFC 7541, 2.3",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[]).or(&[
        Said::Away(http2::COMPRESSION_ERROR),
        Said::Away(http2::PROTOCOL_ERROR),
        Said::Closed,
    ]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let blocks: [&[u8]; 7] = [
            &[0x80],
            &[0xff, 0x80, 0x08],
            &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[0x00, 0x7f, 0xff, 0xff, 0xff, 0x07, b'a'],
            &[0x00, 0x01, b'a', 0x84, 0xff, 0xff, 0xff, 0xff],
            &[0x3f, 0xff, 0xff, 0xff, 0xff, 0x0f],
            &[0x88, 0x3f, 0xe1, 0x1f],
        ];
        let mut tally = Tally::default();
        for block in blocks {
            let mut http2 = stage.http2().await?;
            http2
                .write(&http2::frame(http2::HEADERS, http2::END_HEADERS | http2::END_STREAM, 1, block))
                .await;
            tally.merge(http2.hear(1, stage.patience()).await);
        }
        Ok(tally)
    })
}
