//! A schema in a schema in a schema: the one type that nests without an end.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "protobuf-deep-messages",
    who: Who::Admin,
    size: Sizes { full: 500_000, ten: 20_000 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    // JSONSchemaProps.not is its field 28, the version's schema its field 4, the spec's versions its field 7.
    let schema = nested(28, size);
    let version = [field(1, b"v1"), vec![0x10, 1, 0x18, 1], field(4, &field(1, &schema))].concat();
    let definition = [named("deeps.hostile.dev"), field(2, &field(7, &version))].concat();
    let body = unknown("apiextensions.k8s.io/v1", "CustomResourceDefinition", &definition);
    Request::post(DEFINITIONS, PROTOBUF, body)
}
