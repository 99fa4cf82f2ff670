//! A container that mounts twenty thousand volumes, of which none is there.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "objects-mounts",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let all = joined(size, ",", |index| format!(r#"{{"name":"v{index}","mountPath":"/{index}"}}"#));
    let volumes = joined(size, ",", |index| format!(r#"{{"name":"w{index}","emptyDir":{{}}}}"#));
    let more = format!(
        r#""volumes":[{volumes}],"initContainers":[{{"name":"d","image":"i","volumeMounts":[{all}]}}]"#
    );
    Request::post(PODS, JSON, pod("objects-mounts", &more))
}
