//! A server-side apply with the same item ten thousand times, by the same key. Of a list with an item twice
//! kube-apiserver says 500, and so do we.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-apply-key-of-a-list",
    who: Who::Admin,
    size: Sizes { full: 20_000, ten: 200 },
    act: Act::Request(request),
    law: Law::says(&[400, 413, 415, 422, 429, 500]),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let containers = joined(size, "", |_| "  - {name: c, image: i}\n".to_owned());
    let body = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: patches-apply-key-of-a-list}}\nspec:\n  containers:\n{containers}"
    );
    Request::patch(format!("{PODS}/patches-apply-key-of-a-list?fieldManager=m"), APPLY_PATCH, body)
}
