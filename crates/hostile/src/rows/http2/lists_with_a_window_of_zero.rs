//! LISTs of large objects on one connection, which has no window to take them.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "http2-lists-with-a-window-of-zero",
    who: Who::Admin,
    size: Sizes { full: 100, ten: 20 },
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
        .many(10),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let text = "x".repeat(size * 9_000);
        for index in 0..10 {
            let made = config_map(&format!("http2-lists-{index}"), &format!(r#""data":{{"k":"{text}"}}"#));
            stage.make(Request::post(CONFIG_MAPS, JSON, made)).await?;
        }
        Ok(())
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let mut http2 = stage.silent_http2().await?;
        http2.begin_with(&[(http2::WINDOW, 0)]).await;
        let streams: Vec<u8> =
            (0..size).flat_map(|index| http2.get(http2::stream(index), CONFIG_MAPS)).collect();
        http2.write(&streams).await;
        tokio::time::sleep(stage.limit(Duration::from_secs(5))).await;
        Ok(http2.hear(size, stage.patience()).await)
    })
}
