//! What documents need of a CRD's version.
//!
//! In: what the catalog serves. Out: its schema and selectable fields. Never: a built-in resource.

use forebay_catalog::Served;
use serde_json::Value;

/// The schema as the CRD has it, in JSON; `None` when it has none.
pub fn schema_text(served: &Served) -> Option<&str> {
    served.kind.schema().map(|schema| schema.source())
}

/// The schema as the CRD has it; `None` when it has none.
pub fn schema(served: &Served) -> Option<Value> {
    serde_json::from_str(schema_text(served)?).ok()
}

/// The dotted paths that field selectors may name.
pub fn selectable_fields(served: &Served) -> Vec<String> {
    match served.is_custom() {
        false => Vec::new(),
        true => served.selectable.iter().map(|field| field.label.clone()).collect(),
    }
}
