//! Rows on webhooks that convert badly: what they do to who reads what they make, and to everybody else.

mod cut_off;
mod fewer;
mod flood;
mod hanging;
mod lying_about_length;
mod refusing;
mod renaming;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![cut_off, fewer, flood, hanging, lying_about_length, refusing, renaming];
