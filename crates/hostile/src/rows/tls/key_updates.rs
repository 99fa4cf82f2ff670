//! New keys, again and again, each time asking for new ones in return.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "tls-key-updates",
    who: Who::Anonymous,
    size: Sizes { full: 100_000, ten: 1_000 },
    act: Act::Scene(scene),
    law: Law::says(&[200]).or(&[Said::Closed]).many(5),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut wire = stage.connect().await?;
        for index in 0..size {
            if wire.io.get_mut().1.refresh_traffic_keys().is_err() {
                break;
            }
            if index % 10 == 0 && !wire.pour(b"", 1, stage.push()).await {
                break;
            }
        }
        let heard = tokio::time::timeout(stage.patience(), wire.ask(&Request::get("/livez"))).await;
        Ok(heard.unwrap_or_else(|_| Heard { said: Said::Closed, text: String::new() }).into())
    })
}
