//! A length as well as chunks, and a request hidden behind the shorter of them: there is one answer, not two.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-length-and-chunks",
    from: "RFC 9112, 6.1",
    act: Act::Scene(scene),
    law: Law::says(&[201, 400]).or(&[Said::Closed]).at_most(1),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        let token = wire.token.unwrap_or_default();
        let hidden = "0\r\n\r\nGET /livez HTTP/1.1\r\nHost: a\r\n\r\n";
        let bytes = format!(
            "POST {REVIEWS} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nContent-Type: {JSON}\r\nContent-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n{hidden}",
            7 + hidden.len()
        );
        wire.write(bytes.as_bytes()).await;
        Ok(wire.hear_all(stage.patience(), stage.push()).await)
    })
}
