//! CustomResourceDefinitions as pure data: schemas, conditions, definitions for serving.
//!
//! In: CRDs and custom resources as JSON values. Out: violations, pruned and defaulted values, what is served. Never:
//! stores or serves anything.

#![allow(dead_code, reason = "the validation of CRD objects, which comes next, calls the rest")]

pub mod conditions;
mod default;
mod defaults;
mod definition;
mod embedded;
pub mod field;
mod format;
mod go;
mod jsonpath;
pub mod limits;
mod list_type;
pub mod meta_rules;
mod names;
pub mod object_meta;
mod pattern;
mod props;
mod prune;
mod schema;
mod structural;
mod validate;

pub use definition::{Column, Definition, Scale, Version};
pub use jsonpath::{JsonPath, JsonPathError};
pub use schema::Schema;
