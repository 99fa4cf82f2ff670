//! Strategic merge patch of built-in kinds, as apimachinery's `strategicpatch` applies it.
//!
//! In: an object as it is written on the wire (structs that Go always writes are present, see
//! [`crate::builtin::codec`]) and a patch. Out: the merged object, which is not yet checked or canonical.
//! Never: patches computed from two objects, kinds that are not built in.
//!
//! Go visits a patch's keys in random order; here the order is that of the bytes, so that
//! `$deleteFromPrimitiveList/x` always comes before `x`.

mod error;
mod limits;
mod lists;
mod lookup;
mod maps;
#[cfg(test)]
mod tests;
mod walk;

use std::cell::Cell;

use forebay_apimachinery::json::kind_of;
use serde_json::Value;

pub use error::{PatchError, PatchFault, go_format};
pub use limits::{DEPTH_MAX, WALKS_MAX};

use crate::builtin::TypeId;
use limits::SMALL;
use walk::{Walk, weight_of_members};

/// Merges a patch into an object of a built-in kind.
///
/// - `original`: a JSON object; `null` counts as an empty one.
/// - `patch`: a JSON object with Kubernetes' directives; `null` changes nothing.
///
/// Cost: a walk over both; lists are matched by hashed merge keys. A list below an element that the patch
/// names many times is walked as many times: a patch that takes more than [`WALKS_MAX`] walks over both is
/// refused.
///
/// # Errors
/// [`PatchError`] in upstream's words; [`PatchError::fault`] says whose mistake it is.
pub fn merge(ty: TypeId, original: Value, patch: Value) -> Result<Value, PatchError> {
    let original = object(original)?;
    let patch = object(patch)?;
    let schema = lookup::Schema { ty, pointer: false };
    let size = weight_of_members(&original) + weight_of_members(&patch);
    let left = Cell::new(WALKS_MAX.saturating_mul(size.max(SMALL)));
    maps::merge(original, patch, schema, Walk { depth: 0, left: &left }).map(Value::Object)
}

fn object(value: Value) -> Result<serde_json::Map<String, Value>, PatchError> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(serde_json::Map::new()),
        other => Err(PatchError::NotAnObject { value: kind_of(&other) }),
    }
}
