//! Limits, revisions and timeouts that are negative, huge, or no numbers.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-limits-and-times",
    who: Who::Admin,
    size: Sizes { full: 1_000, ten: 50 },
    act: Act::Scene(scene),
    law: Law::says(&[200, 400, 422, 504]).many(10),
    ..Row::BASE
};

fn scene(stage: Stage, size: usize) -> Scene {
    Box::pin(async move { stage.each(8, size, |index| Request::get(path(index))).await })
}

fn path(index: usize) -> String {
    let numbers = [
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551616",
        "1e9",
        "0x10",
        "",
        "%00",
    ];
    let names =
        ["limit", "timeoutSeconds", "timeout", "resourceVersionMatch", "pretty", "allowWatchBookmarks"];
    let (number, name) = (numbers[index % numbers.len()], names[index / numbers.len() % names.len()]);
    format!("/api/v1/namespaces/hostile/configmaps?{name}={number}")
}
