//! A pod with a hundred thousand scheduling gates, no two of which may be alike.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-scheduling-gates",
    who: Who::Admin,
    size: Sizes { full: 120_000, ten: 1_200 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let gates = joined(size, ",", |index| format!(r#"{{"name":"g{index}"}}"#));
    // The last one is there twice: it is refused at any size, and only when all have been compared.
    let gates = format!(r#""schedulingGates":[{gates},{{"name":"g0"}}]"#);
    Request::post(PODS, JSON, pod("objects-scheduling-gates", &gates))
}
