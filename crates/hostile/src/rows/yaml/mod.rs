//! Rows on YAML: what aliases, merges and depth become.

mod alias_of_itself;
mod aliases_nested_small;
mod aliases_of_a_long_text;
mod anchors_in_turn;
mod anchors_redefined;
mod billion_laughs;
mod blank_lines;
mod deep_dashes;
mod deep_keys;
mod deep_lists;
mod directives;
mod documents;
mod duplicate_keys;
mod escapes;
mod many_anchors;
mod merge_keys;
mod simple_keys;
mod tags;
mod utf16;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    alias_of_itself,
    aliases_nested_small,
    aliases_of_a_long_text,
    anchors_in_turn,
    anchors_redefined,
    billion_laughs,
    blank_lines,
    deep_dashes,
    deep_keys,
    deep_lists,
    directives,
    documents,
    duplicate_keys,
    escapes,
    many_anchors,
    merge_keys,
    simple_keys,
    tags,
    utf16,
];
