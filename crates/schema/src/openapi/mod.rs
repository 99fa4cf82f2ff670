//! Schemas as OpenAPI documents describe them.
//!
//! In: the built-in table and what is said of it, or the schema of a CRD's version. Out: one definition at a
//! time as JSON, in the words of OpenAPI v2 or v3. Never: paths, or a whole document in memory as a tree.
//!
//! Source: kube-openapi `generators/openapi.go`, `builder`, `builder3` at the commit that kube-apiserver v1.36.3 uses.

mod builtin;
mod custom;
mod descriptions;
#[cfg(test)]
mod descriptions_tests;
mod dialect;
mod fixed;
mod gvk;

pub use builtin::{definition, references};
pub use custom::{CustomKind, custom_definition, custom_list_definition, custom_name};
pub use descriptions::Descriptions;
pub use dialect::Dialect;
pub use fixed::Fixed;
pub use gvk::Kinds;
