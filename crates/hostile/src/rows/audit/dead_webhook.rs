//! An audit webhook that is not there, while large objects are written: what is noted of them waits for it.
//! Who reads meanwhile is answered as ever.

use crate::prelude::*;

const NAME: &str = "audit-dead-webhook";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 400, ten: 10 },
    beside: Beside::DeadAuditWebhook,
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[200, 201, 429]).needs(200).many(60),
    ..Row::BASE
};

/// An object that an answer takes room for, and one that it does not.
const READ: [(&str, usize); 2] = [("large", 100 << 10), ("small", 100)];

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move {
        let path = namespace_of(&stage, NAME).await?;
        for (name, bytes) in READ {
            let data = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(bytes));
            stage.make(Request::post(path.clone(), JSON, config_map(name, &data))).await?;
        }
        Ok(())
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let data = format!(r#""data":{{"k":"{}"}}"#, "x".repeat(256 << 10));
        let create = move |index: usize| {
            Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), &data))
        };
        let read = |index: usize| Request::get(format!("{}/{}", config_maps(NAME), READ[index % 2].0));
        let (made, read) = tokio::try_join!(stage.each(16, size, create), stage.each(2, size, read))?;
        if let Some(said) = read.all().find(|said| *said != Said::Status(200)) {
            return Err(Error::Answer { what: "a read".into(), answer: said.to_string() });
        }
        let mut tally = read;
        tally.merge(made);
        Ok(tally)
    })
}
