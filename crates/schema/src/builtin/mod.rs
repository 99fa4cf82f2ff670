//! The built-in API of Kubernetes as a table: its types and their fields, its kinds, and the resources
//! served.
//!
//! In: `data/builtin.txt` (written by `gen/`, from the Go modules' types) and `data/resources.txt` (by hand,
//! after kube-apiserver's discovery). Out: [`table`], parsed once, and what is built on it: [`codec`] and
//! [`protobuf`].
//! Never: CRD schemas, defaulting functions, validation beyond what Go's decoder checks.

pub mod codec;
mod empty_lists;
mod go_form;
mod parse;
pub mod protobuf;
mod resources;
mod stored;
mod table;

use std::sync::OnceLock;

pub use empty_lists::forget_empty_lists;
pub use go_form::{always, is_said, to_go_form};
pub use parse::TableError;
pub use resources::{FieldSelector, Resource, Subresource, Verbs};
pub use stored::{Conversion, Judged, STORED_AS, StoredAs};
pub use table::{
    Field, FieldAttrs, FieldFlags, Kind, ListType, MapType, Package, Table, Type, TypeId, TypeKind,
};

static TYPES: &str = include_str!("../../data/builtin.txt");
static RESOURCES: &str = include_str!("../../data/resources.txt");

/// Returns the table; the first call parses it (a few milliseconds).
///
/// # Panics
/// If the committed data files are malformed, which a test rules out.
pub fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| match parse::parse(TYPES, RESOURCES) {
        Ok(table) => table,
        Err(error) => panic!("the committed schema table is malformed: {error}"),
    })
}

#[cfg(test)]
mod tests;
