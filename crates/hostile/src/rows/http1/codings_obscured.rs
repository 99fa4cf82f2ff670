//! Transfer codings that are nearly `chunked`: who takes them for it, and who does not, read different
//! requests.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-codings-obscured",
    from: "RFC 9112, 6.1",
    who: Who::Anonymous,
    act: Act::Scene(scene),
    law: Law::says(&[400, 401, 403, 405, 408, 501]).or(&[Said::Closed]),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        let codings = [
            "xchunked",
            "chunked, identity",
            "identity",
            "gzip, chunked, gzip",
            "chunked\r\nTransfer-Encoding: x",
        ];
        for coding in codings {
            let mut wire = stage.connect().await?;
            let request = format!(
                "POST /api/v1/pods HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n"
            );
            wire.write(request.as_bytes()).await;
            tally.merge(wire.hear_within(stage.patience()).await.into());
        }
        Ok(tally)
    })
}
