//! Rows on definitions, and objects of what they define.

mod any_of;
mod costly_rules;
mod deep;
mod deep_objects;
mod deep_rules;
mod default_in_a_list;
mod enums;
mod list_keys;
mod pattern_backtracks;
mod pattern_of_a_megabyte;
mod pattern_repeats;
mod patterns;
mod printer_columns;
mod printer_paths;
mod pruning;
mod references;
mod rules;
mod rules_that_make_texts;
mod rules_that_multiply;
mod selectable_fields;
mod short_names;
mod storm;
mod versions;
mod wide;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    any_of,
    costly_rules,
    deep,
    deep_objects,
    deep_rules,
    default_in_a_list,
    enums,
    list_keys,
    pattern_backtracks,
    pattern_of_a_megabyte,
    pattern_repeats,
    patterns,
    printer_columns,
    printer_paths,
    pruning,
    references,
    rules,
    rules_that_make_texts,
    rules_that_multiply,
    selectable_fields,
    short_names,
    storm,
    versions,
    wide,
];
