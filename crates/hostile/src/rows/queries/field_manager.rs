//! A field manager of tens of kilobytes, and a dry run that is none.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "queries-field-manager",
    who: Who::Admin,
    size: Sizes { full: 50_000, ten: 5_000 },
    act: Act::Request(request),
    law: Law::says(&[400, 413, 414, 422, 431]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let path = format!("{CONFIG_MAPS}?fieldManager={}&dryRun=All,{}", "m".repeat(size), "x,".repeat(100));
    Request::post(path, JSON, config_map("queries-field-manager", ""))
}
