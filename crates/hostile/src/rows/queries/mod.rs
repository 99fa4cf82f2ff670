//! Rows on paths and queries: selectors, continue tokens, numbers.

mod continue_forged;
mod continue_huge;
mod field_escapes;
mod field_manager;
mod field_requirements;
mod include_object;
mod label_brackets;
mod label_requirements;
mod label_values;
mod limits_and_times;
mod livez_excludes;
mod many_parameters;
mod name_of_64_kib;
mod name_with_nul;
mod path_dots;
mod percent_broken;
mod percent_floods;
mod revisions_of_the_future;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    continue_forged,
    continue_huge,
    field_escapes,
    field_manager,
    field_requirements,
    include_object,
    label_brackets,
    label_requirements,
    label_values,
    limits_and_times,
    livez_excludes,
    many_parameters,
    name_of_64_kib,
    name_with_nul,
    path_dots,
    percent_broken,
    percent_floods,
    revisions_of_the_future,
];
