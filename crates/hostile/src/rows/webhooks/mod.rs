//! Rows on webhooks that fail, lie, or want too much: what they do to who writes, and to everybody else.

mod another_uid;
mod calling_back;
mod cut_off;
mod dead;
mod flood;
mod hanging;
mod hanging_large;
mod lying_about_length;
mod slow;
mod wild_patches;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    another_uid,
    calling_back,
    cut_off,
    dead,
    flood,
    hanging,
    hanging_large,
    lying_about_length,
    slow,
    wild_patches,
];
