//! Rows on protobuf: lengths, groups, and messages of two bytes.

mod deep_messages;
mod empty_messages;
mod empty_volumes;
mod equal_map_keys;
mod groups;
mod invalid_utf8;
mod long_varints;
mod map_entries;
mod negative_skip;
mod wrapped_in_itself;
mod wrong_lengths;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    deep_messages,
    empty_messages,
    empty_volumes,
    equal_map_keys,
    groups,
    invalid_utf8,
    long_varints,
    map_entries,
    negative_skip,
    wrapped_in_itself,
    wrong_lengths,
];
