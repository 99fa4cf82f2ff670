//! Rows on JSON: depth, width, and texts and numbers that are odd.

mod deep_arrays;
mod deep_objects;
mod duplicate_members;
mod empty_objects;
mod escaped_names;
mod exponents;
mod invalid_utf8;
mod long_number;
mod many_members;
mod surrogates;
mod unknown_fields;
mod warnings;
mod whitespace;
mod wide_objects;
mod without_end;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    deep_arrays,
    deep_objects,
    duplicate_members,
    empty_objects,
    escaped_names,
    exponents,
    invalid_utf8,
    long_number,
    many_members,
    surrogates,
    unknown_fields,
    warnings,
    whitespace,
    wide_objects,
    without_end,
];
