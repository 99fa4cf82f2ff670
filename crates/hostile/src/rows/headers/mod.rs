//! Rows on headers: who a request is made as, what it takes, and how long it is.

mod accept_broken;
mod accept_encodings;
mod accept_entries;
mod front_proxy;
mod if_none_match;
mod impersonate_extra;
mod impersonate_groups;
mod impersonate_no_utf8;
mod impersonate_nobody;
mod impersonate_utf8;
mod impersonate_without_right;
mod one_of_a_mebibyte;
mod ranges;
mod same_name;
mod thousand;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    accept_broken,
    accept_encodings,
    accept_entries,
    front_proxy,
    if_none_match,
    impersonate_extra,
    impersonate_groups,
    impersonate_no_utf8,
    impersonate_nobody,
    impersonate_utf8,
    impersonate_without_right,
    one_of_a_mebibyte,
    ranges,
    same_name,
    thousand,
];
