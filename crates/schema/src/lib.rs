//! What the fields of a built-in kind are: the generated table, normalizing, encoding, protobuf, strategic
//! merge; and OpenAPI definitions of built-in and custom kinds. What a CRD says is in crate `crd`.

pub mod builtin;
pub mod openapi;
pub mod strategic;
