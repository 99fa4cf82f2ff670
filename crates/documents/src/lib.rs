//! What describes a server, as bytes with their content type: discovery, OpenAPI, health, metrics, version.
//!
//! In: what is served, and what the rooms of a server say of themselves. Out: documents, whole or as they are
//! kept. Never: a request, a header, a code; who may read what.

pub mod discovery;
mod documents;
pub mod health;
pub mod metrics;
pub mod openapi;
pub mod slis;
pub mod version;
pub mod zpages;

pub use documents::Documents;

/// What the tests describe: the built-in resources.
#[cfg(test)]
fn built_ins() -> forebay_catalog::Catalog {
    forebay_catalog::table::without_stores(forebay_strategy::convert::of)
}
