//! A server behind an APIService that has no end when it says what it serves: discovery is asked for
//! meanwhile.

use crate::behind::Behind;
use crate::prelude::*;

const NAME: &str = "aggregated-endless-documents";
const BEHIND: Behind = Behind { has_endless_documents: true, ..Behind::new(NAME) };

pub(super) const ROW: Row = Row {
    name: NAME,
    who: Who::Admin,
    size: Sizes { full: 500, ten: 20 },
    prepare: Some(prepare),
    act: Act::Scene(scene),
    law: Law::says(&[200]).many(60),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    Box::pin(async move { BEHIND.start(&stage).await })
}

fn discovery() -> Request {
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    Request::get("/apis").header("Accept", accept)
}

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(16, size, |_index| discovery()).await })
}
