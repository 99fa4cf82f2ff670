//! Anchors in turn, each a list of the one before: an alias is one level deep where it stands, and what it
//! stands for is as deep as all that came before.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "yaml-anchors-in-turn",
    size: Sizes { full: 90_000, ten: 900 },
    act: Act::Request(request),
    law: Law::says(REFUSED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let other = |index: usize| if index.is_multiple_of(2) { ("a", "b") } else { ("b", "a") };
    let body = joined(size, "", |index| match (index, other(index)) {
        (0, (name, _)) => format!("- &{name} []\n"),
        (_, (name, before)) => format!("- &{name} [*{before}]\n"),
    });
    Request::review(YAML, body)
}
