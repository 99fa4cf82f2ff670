//! Rows on patches of every type.

mod apply_aliases;
mod apply_deep;
mod apply_key_of_a_list;
mod apply_keyed_lists;
mod apply_wide;
mod array_indices;
mod copy_doubling;
mod copy_large;
mod copy_then_fail;
mod inserts_in_front;
mod long_pointers;
mod merge_deep;
mod merge_in_yaml;
mod merge_nulls;
mod moves_in_arrays;
mod strategic_deletes;
mod strategic_directives;
mod strategic_merge_lists;
mod strategic_order;
mod tests_of_a_tree;
mod too_many_operations;

use crate::row::Rows;

pub(super) const ROWS: Rows = rows![
    apply_aliases,
    apply_deep,
    apply_key_of_a_list,
    apply_keyed_lists,
    apply_wide,
    array_indices,
    copy_doubling,
    copy_large,
    copy_then_fail,
    inserts_in_front,
    long_pointers,
    merge_deep,
    merge_in_yaml,
    merge_nulls,
    moves_in_arrays,
    strategic_deletes,
    strategic_directives,
    strategic_merge_lists,
    strategic_order,
    tests_of_a_tree,
    too_many_operations,
];
