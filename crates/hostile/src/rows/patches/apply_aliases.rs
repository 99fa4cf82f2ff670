//! A server-side apply in YAML, of lists that each name the one before ten times.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-apply-aliases",
    from: "CVE-2019-11253",
    who: Who::Admin,
    size: Sizes { full: 10, ten: 10 },
    prepare: Some(prepare),
    act: Act::Request(request),
    law: Law::says(APPLY_REFUSED),
    ..Row::BASE
};

fn prepare(stage: Stage, _size: usize) -> Prepared {
    let made = config_map("patches-apply-aliases", "");
    Box::pin(async move { stage.make(Request::post(CONFIG_MAPS, JSON, made)).await })
}

fn request(size: usize) -> Request {
    let levels = joined(size, "", |level| {
        let item = if level == 0 { "lol".to_owned() } else { format!("*l{}", level - 1) };
        format!("l{level}: &l{level} [{}]\n", joined(10, ", ", |_| item.clone()))
    });
    let path = format!("{CONFIG_MAPS}/patches-apply-aliases?fieldManager=m");
    Request::patch(path, APPLY_PATCH, format!("apiVersion: [1]\nkind: ConfigMap\n{levels}"))
}
