//! A pod with tens of thousands of tolerations.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-tolerations",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 600 },
    act: Act::Request(request),
    law: Law::says(JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#"{{"key":"k{index}","operator":"Exists"}}"#));
    Request::post(PODS, JSON, pod("objects-tolerations", &format!(r#""tolerations":[{all}]"#)))
}
