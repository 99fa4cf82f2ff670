//! LISTs of large objects on one connection, which has no window to take them, while all that is answered is
//! noted: a copy of each would wait for its reader.

use crate::prelude::*;

const NAME: &str = "audit-slow-lists";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 100, ten: 20 },
    beside: Beside::AuditedWhole,
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[200, 429])
        .or(&[
            // While there is no room, who takes nothing loses their answer.
            Said::StreamReset(http2::CANCEL),
            Said::Away(http2::ENHANCE_YOUR_CALM),
            Said::Closed,
            Said::Open,
        ])
        .needs(200)
        .many(20),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let path = namespace_of(&stage, NAME).await?;
        // 20 MB of them at full size, of which a hundred copies are more than the server may have.
        let data = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(size * 9_000));
        for index in 0..22 {
            stage.make(Request::post(path.clone(), JSON, config_map(&format!("c{index}"), &data))).await?;
        }
        Ok(())
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.silent_http2().await?;
        http2.begin_with(&[(http2::WINDOW, 0)]).await;
        let path = config_maps(NAME);
        let streams: Vec<u8> = (0..size).flat_map(|index| http2.get(http2::stream(index), &path)).collect();
        http2.write(&streams).await;
        tokio::time::sleep(stage.limit(Duration::from_secs(5))).await;
        Ok(http2.hear(size, stage.patience()).await)
    })
}
