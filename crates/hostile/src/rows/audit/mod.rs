//! Rows on audit logs that take nothing: what that does to who writes, and to everybody else.

mod dead_webhook;
mod full_disk;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![dead_webhook, full_disk];
