//! Rows on audit logs that take nothing, or much: what that does to who writes, and to everybody else.

mod dead_webhook;
mod full_disk;
mod slow_lists;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![dead_webhook, full_disk, slow_lists];
