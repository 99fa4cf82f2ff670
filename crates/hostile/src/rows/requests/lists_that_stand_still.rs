//! LISTs of a gigabyte by one user who reads none of them.

use tokio::task::JoinSet;

use crate::prelude::*;

const NAMESPACE: &str = "requests-lists-that-stand-still";

pub(super) const ROW: Row = Row {
    name: NAMESPACE,
    // Who has no rights reads nothing. An administrator has no turns to wait for: the memory law holds alone.
    who: Who::Admin,
    // So many objects of so many kilobytes, read by half as many.
    size: Sizes { full: 1_000, ten: 40 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    // Who waits for a turn has heard nothing; who takes nothing while there is no room loses their answer.
    law: Law::says(&[200, 429]).or(&[Said::Closed, Said::Open]).needs(200).many(30),
    ..Row::BASE
};

fn prepare(stage: Stage, size: usize) -> Prepared {
    Box::pin(async move {
        let path = namespace_of(&stage, NAMESPACE).await?;
        let data = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(size * 1_000));
        let object = move |index| Request::post(path.clone(), JSON, config_map(&format!("x-{index}"), &data));
        let made = stage.of(Who::Admin).each(4, size, object).await?;
        // On a server that an earlier run was on they are there.
        match made.all().find(|said| !matches!(said, Said::Status(201 | 409))) {
            None => Ok(()),
            Some(said) => Err(Error::Answer { what: "prepare".into(), answer: said.to_string() }),
        }
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let readers = stage
            .open(size / 2, |stage: Stage, _index| async move {
                let mut wire = stage.connect_narrow().await?;
                let list = Request::get(config_maps(NAMESPACE)).bytes(&wire.host, wire.token);
                wire.write(&list).await;
                Ok(wire)
            })
            .await;
        tokio::time::sleep(stage.limit(Duration::from_secs(10))).await;
        let mut hearing = JoinSet::new();
        for mut wire in readers {
            let patience = stage.patience();
            hearing.spawn(async move {
                let heard = tokio::time::timeout(patience, wire.hear_head()).await;
                heard.unwrap_or_else(|_| Heard::none())
            });
        }
        Ok(hearing.join_all().await.into_iter().fold(Tally::default(), |mut tally, heard| {
            tally.merge(heard.into());
            tally
        }))
    })
}
