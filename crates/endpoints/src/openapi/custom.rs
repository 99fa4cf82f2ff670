//! What documents need of a CRD's version.
//!
//! In: what the catalog serves. Out: its schema and selectable fields. Never: a built-in resource.

use forebay_registry::catalog::{Served, Source};
use serde_json::Value;

/// The schema as the CRD has it; `None` when it has none.
pub fn schema(served: &Served) -> Option<Value> {
    match &served.source {
        Source::BuiltIn { .. } => None,
        Source::Custom(custom) => serde_json::from_str(custom.definition().1.schema.as_ref()?.source()).ok(),
    }
}

/// The dotted paths that field selectors may name.
pub fn selectable_fields(served: &Served) -> Vec<String> {
    served.selectable.iter().map(|field| field.label.clone()).collect()
}
