//! Strategic merge patch of built-in kinds, as apimachinery's `strategicpatch` applies it.
//!
//! In: an object as it is written on the wire (structs that Go always writes are present, see
//! [`crate::builtin::codec`]) and a patch. Out: the merged object, which is not yet checked or canonical.
//! Never: patches computed from two objects, kinds that are not built in.
//!
//! Go visits a patch's keys in random order; here the order is that of the bytes, so that
//! `$deleteFromPrimitiveList/x` always comes before `x`.

mod error;
mod lists;
mod lookup;
mod maps;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use forebay_apimachinery::json::kind_of;
use forebay_apimachinery::steps;
use serde_json::Value;

pub use error::{PatchError, PatchFault, go_format};

use crate::builtin::TypeId;

/// Levels of nesting that are merged; the JSON parser in front of us allows 128.
pub const DEPTH_MAX: usize = 160;

/// Merges a patch into an object of a built-in kind.
///
/// - `original`: a JSON object; `null` counts as an empty one.
/// - `patch`: a JSON object with Kubernetes' directives; `null` changes nothing.
///
/// Cost: a walk over both; lists are matched by hashed merge keys. A list below an element that the patch names many times
/// is walked as many times: a patch that takes more than [`WALKS_MAX`] walks over both is refused.
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

/// Walks over object and patch that a merge may take. Each level of nesting takes some three over what is below it, as its
/// lists are matched, ordered and put together; what is built in nests lists no deeper than four times.
pub const WALKS_MAX: usize = 32;
/// An object and a patch that are smaller count as large as this.
const SMALL: usize = 1 << 10;

/// Where a merge is, and how much it may still walk over.
#[derive(Clone, Copy)]
struct Walk<'w> {
    depth: usize,
    left: &'w Cell<usize>,
}

impl Walk<'_> {
    fn deeper(self) -> Self {
        Walk { depth: self.depth + 1, ..self }
    }

    /// Walks over what weighs so much.
    fn pass(self, weight: usize) -> Result<(), PatchError> {
        steps::add(weight as u64);
        let left = self.left.get().checked_sub(weight).ok_or(PatchError::TooManyWalks)?;
        self.left.set(left);
        Ok(())
    }
}

/// A step for each value and each eight bytes of text in it.
fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 8,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => 1 + weight_of_members(members),
        _ => 1,
    }
}

fn weight_of_members(members: &serde_json::Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| 1 + name.len() / 8 + weight(value)).sum()
}

fn object(value: Value) -> Result<serde_json::Map<String, Value>, PatchError> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null => Ok(serde_json::Map::new()),
        other => Err(PatchError::NotAnObject { value: kind_of(&other) }),
    }
}
