//! Policies whose expressions cost little by upstream's count: lists that have one list a thousand times, and
//! the same again, compared, searched, flattened, written and copied.

use super::put_in_force;
use crate::prelude::*;

const NAME: &str = "policies-shared-values";

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    // Bytes of the object.
    size: Sizes { full: 1 << 20, ten: 1 << 10 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[422, 429]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move {
        let cube =
            "[lists.range(1000)].map(a, lists.range(1000).map(i, a)).map(b, lists.range(1000).map(i, b))";
        let validations = [
            format!("{cube}.all(c, c != c)"),
            format!("{cube}.all(c, c.indexOf([]) == -1)"),
            format!("{cube}.all(c, c.flatten(9).size() == 0)"),
            format!("google.protobuf.ListValue{{values: {cube}}}.size() == 0"),
            format!("'%s'.format([{cube}]) == ''"),
            "'%s'.format([lists.range(5000).transformMap(i, v, object.data.x)]) == ''".to_owned(),
        ];
        let validations: Vec<&str> = validations.iter().map(|text| &**text).collect();
        put_in_force(&stage, NAME, 2, &validations).await
    })
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move {
        let members = format!(r#""data":{{"last":"1","x":"{}"}}"#, "x".repeat(size));
        let create = move |index: usize| {
            Request::post(config_maps(NAME), JSON, config_map(&format!("c{index}"), &members))
        };
        stage.each(2, 2, create).await
    })
}
