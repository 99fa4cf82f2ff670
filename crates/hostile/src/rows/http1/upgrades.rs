//! Upgrades to what is not served, with a request hidden behind each: a connection that is taken for upgraded
//! runs it unseen.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http1-upgrades",
    from: "CVE-2018-1002105",
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 403, 404]).or(&[Said::Closed]).at_most(6),
    ..Row::BASE
};

fn scene(stage: Stage, _size: usize) -> Scene {
    Box::pin(async move {
        let mut tally = Tally::default();
        for upgrade in ["h2c", "SPDY/3.1", "websocket"] {
            let mut wire = stage.connect().await?;
            let token = wire.token.unwrap_or_default();
            let bytes = format!(
                "GET /api/v1/namespaces/hostile/pods/none/exec?command=a HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: {upgrade}\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\nGET /api/v1/secrets HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n"
            );
            wire.write(bytes.as_bytes()).await;
            tally.merge(wire.hear_all(stage.patience(), stage.push()).await);
        }
        Ok(tally)
    })
}
