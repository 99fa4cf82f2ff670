//! LISTs of everything there is, and what each has at least.
//!
//! In: a server, and what was sent to it. Out: how LISTs went. Never: a list of a part.

use crate::lab::Lab;
use crate::load::Load;
use crate::server::Instance;
use crate::{Error, lists};

/// At most what `kind`, `apiVersion`, and the braces of a patch take in what is sent.
const TYPE_BYTES: usize = 100;

/// Bytes that a LIST of all objects has at least: what was sent is stored whole, but for the types that a
/// list says once.
pub fn least_list(lab: &Lab, load: &Load) -> usize {
    load.sent.saturating_sub(lab.size * TYPE_BYTES)
}

/// Lets `count` clients LIST at once.
pub async fn lists_at_once(
    lab: &Lab,
    server: &Instance,
    count: usize,
    least: usize,
) -> Result<lists::Storm, Error> {
    lists::wave(&Lab { listers: count, ..lab.clone() }, server, least).await
}
