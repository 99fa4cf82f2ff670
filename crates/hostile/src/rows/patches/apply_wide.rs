//! A server-side apply of as many fields as a body holds, each owned by itself.

use crate::prelude::*;

pub(super) const ROW: Row = Row {
    name: "patches-apply-wide",
    who: Who::Admin,
    size: Sizes { full: 150_000, ten: 1_500 },
    act: Act::Request(request),
    law: Law::says(APPLY_JUDGED),
    ..Row::BASE
};

fn request(size: usize) -> Request {
    let fields = joined(size, "", |index| format!("  k{index:06}: \"\"\n"));
    let body =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: patches-apply-wide}}\ndata:\n{fields}");
    Request::patch(format!("{CONFIG_MAPS}/patches-apply-wide?fieldManager=m"), APPLY_PATCH, body)
}
