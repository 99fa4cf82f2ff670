//! CustomResourceDefinitions and the resources that they define, as pure data.
//!
//! In: a CRD, or a custom resource, as JSON values. Out: whether it is right (every violation, in the words
//! of kube-apiserver), what it becomes (pruned, defaulted, normalized), and what is served of it (columns,
//! conditions, OpenAPI). Never: stores, waits or knows HTTP.

mod apply;
mod approval;
pub mod check;
mod choices;
mod compile;
pub mod conditions;
mod custom_rules;
mod default;
mod default_check;
pub mod defaults;
mod definition;
mod embedded;
pub mod field;
mod format;
mod jsonpath;
pub mod limits;
#[cfg(test)]
mod linear;
mod list_type;
pub mod meta_rules;
mod names;
mod needed;
pub mod object_meta;
mod pattern;
mod props;
mod prune;
mod schema;
mod spec;
mod structural;
mod validate;
mod validations;

pub use apply::{ApplyNode, NodeType};
pub use custom_rules::{CustomRules, ScalePaths};
pub use definition::{Column, Definition, Scale, Version, Violations};
pub use jsonpath::{JsonPath, JsonPathError};
pub use props::depth_within;
pub use schema::Schema;
