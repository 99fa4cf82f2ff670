//! What the fields of a kind are: built-in tables and CRD schemas; pruning, defaulting, validation, merge keys, OpenAPI.

pub mod bad_value;
pub mod builtin;
pub mod crd;
pub mod openapi;
pub mod strategic;
