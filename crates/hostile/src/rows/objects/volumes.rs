//! A pod with tens of thousands of volumes of the same name.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-volumes",
    who: Who::Admin,
    size: Sizes { full: 60_000, ten: 600 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |_| r#"{"name":"v","emptyDir":{}}"#.to_owned());
    Request::post(PODS, JSON, pod("objects-volumes", &format!(r#""volumes":[{all}]"#)))
}
