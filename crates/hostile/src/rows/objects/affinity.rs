//! Affinity terms by the ten thousand, each with a selector of its own.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-affinity",
    who: Who::Admin,
    size: Sizes { full: 30_000, ten: 300 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| {
        format!(r#"{{"topologyKey":"a","labelSelector":{{"matchLabels":{{"a":"{index}"}}}}}}"#)
    });
    let terms = format!(r#""requiredDuringSchedulingIgnoredDuringExecution":[{all}]"#);
    Request::post(
        PODS,
        JSON,
        pod("objects-affinity", &format!(r#""affinity":{{"podAffinity":{{{terms}}}}}"#)),
    )
}
