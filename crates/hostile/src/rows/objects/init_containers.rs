//! Tens of thousands of containers, all with the same name and ports.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-init-containers",
    who: Who::Admin,
    size: Sizes { full: 30_000, ten: 300 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let one = r#"{"name":"d","image":"i","ports":[{"containerPort":1,"hostPort":1}]}"#;
    let all = joined(size, ",", |_| one.to_owned());
    Request::post(PODS, JSON, pod("objects-init-containers", &format!(r#""initContainers":[{all}]"#)))
}
