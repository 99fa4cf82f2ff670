//! Schemas as OpenAPI documents describe them.
//!
//! In: the built-in table, or the schema of a CRD's version. Out: one definition at a time as JSON, in the words of
//! OpenAPI v2 or v3. Never: descriptions of built-in types (the table has none), paths, or a whole document in memory
//! as a tree.
//!
//! Source: kube-openapi `generators/openapi.go`, `builder`, `builder3` at the commit that kube-apiserver v1.36.3 uses.

mod builtin;
mod custom;
mod fixed;
mod gvk;

pub use builtin::{definition, references};
pub use custom::{CustomKind, custom_definition, custom_list_definition, custom_name};
pub use fixed::Fixed;
pub use gvk::Kinds;

/// Which OpenAPI a definition is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `/openapi/v2`: no defaults, no `oneOf`, no `nullable`.
    V2,
    /// `/openapi/v3`.
    V3,
}

impl Dialect {
    /// What a `$ref` to the definition `name` is.
    pub fn reference(self, name: &str) -> String {
        match self {
            Dialect::V2 => format!("#/definitions/{name}"),
            Dialect::V3 => format!("#/components/schemas/{name}"),
        }
    }
}
