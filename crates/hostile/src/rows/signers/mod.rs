//! Rows on somebody who signs service accounts' tokens, and hangs or says too much once the server has
//! started: what that does to who wants tokens or shows some, and to everybody else.

mod flood;
mod hanging;
mod unknown_keys;

use crate::prelude::*;
use crate::row::Rows;

pub(super) const ROWS: Rows = rows![flood, hanging, unknown_keys];

/// Asks for so many tokens on so many connections, each for no longer than it is waited for.
fn tokens(stage: Stage, connections: usize, size: usize) -> Scene {
    const PATH: &str = "/api/v1/namespaces/hostile/serviceaccounts/default/token?timeout=5s";
    const BODY: &str = r#"{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}"#;
    Box::pin(async move { stage.each(connections, size, |_| Request::post(PATH, JSON, BODY)).await })
}
