//! Thirty policies, each of which goes through an object as often as its own budget lets it, for each of
//! several writes at once.

use super::put_in_force;
use crate::prelude::*;

const NAME: &str = "policies-costly-expressions";
const POLICIES: usize = 30;

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    // Keys of the object.
    size: Sizes { full: 2_000, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[422, 429]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move {
        let costly = "object.data.all(a, object.data.all(b, object.data.all(c, a + b != c)))";
        put_in_force(&stage, NAME, POLICIES, &[costly]).await
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let data = joined(size, ",", |key| format!(r#""k{key}":"v""#));
        let create = move |index: usize| {
            let members = format!(r#""data":{{"last":"1",{data}}}"#);
            Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), &members))
        };
        stage.each(4, 4, create).await
    })
}
