//! A webhook that, before it answers, has the server make another object that it is asked about, and so on:
//! each call waits for the next.

use serde_json::json;
use tokio::task::JoinSet;

use crate::hooked::{ANSWER, Hooked};
use crate::prelude::*;

const NAME: &str = "webhooks-calling-back";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    // How deep it goes.
    size: Sizes { full: 300, ten: 10 },
    act: Act::Scene(scene),
    law: Law::says(&[429, 500, 504]).many(60),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let hooked = Hooked { timeout_seconds: 2, ..Hooked::new(NAME) };
        let hook = hooked.start(&stage, json!({ "hang": true })).await?;
        let (mut calls, patience) = (JoinSet::new(), stage.push());
        for index in 0..size {
            let stage = stage.clone();
            calls.spawn(async move {
                let body = config_map(&format!("c{index}"), "");
                stage.ask(&Request::post(config_maps(NAME), JSON, body)).await
            });
            // The call that this is one from within: it does not end before that, or before its time.
            let asked = async {
                while !hook.asked().iter().any(|asked| asked.review["request"]["name"] == format!("c{index}"))
                {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            let _gave_up = tokio::time::timeout(patience, asked).await;
        }
        hook.answers(ANSWER, json!({ "allowed": true }));
        let mut tally = Tally::default();
        while let Some(ended) = calls.join_next().await {
            tally.merge(ended.map_err(|e| Error::Connection(e.to_string()))??.into());
        }
        Ok(tally)
    })
}
