//! Rows on servers behind APIServices that answer badly: what they do to who asks them, and to everybody
//! else.

mod dying_watch;
mod endless_documents;
mod flood;
mod hanging;
mod long_head;
mod lying_about_length;

use crate::row::Rows;

pub(super) const ROWS: Rows =
    rows![dying_watch, endless_documents, flood, hanging, long_head, lying_about_length];
