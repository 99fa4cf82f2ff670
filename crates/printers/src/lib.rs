//! The columns of kubectl get: Table rows of the built-in kinds.
//!
//! Owns: the columns that kube-apiserver 1.36 prints for each built-in kind, and how their cells are made
//! from an object. In: group, kind, an object as JSON value, the present. Out: [`Column`]s and [`TableRow`]s.
//! Never: IO, a clock, a cached age; nor a panic, whatever the object looks like.
//!
//! Objects are read as kube-apiserver reads them from storage: where defaulting would fill in a field that is
//! printed, the default is printed.
//!
//! Source: Kubernetes v1.36.3 `pkg/printers/internalversion`, apiserver `registry/rest/table.go`, kube-aggregator
//! `registry/apiservice`.

mod admission;
mod apiserver;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod containers;
mod coordination;
mod core_config;
mod core_nodes;
mod core_pods;
mod core_services;
mod core_volumes;
mod discovery;
pub mod duration;
mod events;
mod flowcontrol;
mod kinds;
pub mod labels;
mod lists;
mod member;
mod networking;
mod rbac;
mod reads;
mod resource;
mod scheduling;
mod storage;
mod table;

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

pub use table::{Column, Printer, TableRow, TableRowCondition};

/// Returns the printer of a kind; one that prints name and time of creation for kinds that have none.
pub fn printer(group: &str, kind: &str) -> &'static Printer {
    kinds::printer(group, kind)
}

/// Returns the column definitions of a kind, in order, wide ones included.
pub fn columns(group: &str, kind: &str) -> &'static [Column] {
    printer(group, kind).columns()
}

/// Prints one object; see [`Printer::row`].
pub fn row(group: &str, kind: &str, object: &Value, now: Timestamp) -> TableRow {
    printer(group, kind).row(object, now)
}

/// Returns the order of a Table's rows where it is not that of the list: FlowSchemas go by precedence, then
/// by name.
pub fn list_order(group: &str, kind: &str) -> Option<fn(&Value, &Value) -> Ordering> {
    kinds::list_order(group, kind)
}
