//! Where a merge is, and how much of object and patch it may still walk over.

use std::cell::Cell;

use forebay_apimachinery::steps;
use serde_json::Value;

use super::error::PatchError;

/// Where a merge is, and how much it may still walk over.
#[derive(Clone, Copy)]
pub(super) struct Walk<'w> {
    pub(super) depth: usize,
    pub(super) left: &'w Cell<usize>,
}

impl Walk<'_> {
    pub(super) fn deeper(self) -> Self {
        Walk { depth: self.depth + 1, ..self }
    }

    /// Walks over what weighs so much.
    pub(super) fn pass(self, weight: usize) -> Result<(), PatchError> {
        steps::add(weight as u64);
        let left = self.left.get().checked_sub(weight).ok_or(PatchError::TooManyWalks)?;
        self.left.set(left);
        Ok(())
    }
}

/// A step for each value and each eight bytes of text in it.
pub(super) fn weight(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 8,
        Value::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Value::Object(members) => 1 + weight_of_members(members),
        _ => 1,
    }
}

pub(super) fn weight_of_members(members: &serde_json::Map<String, Value>) -> usize {
    members.iter().map(|(name, value)| 1 + name.len() / 8 + weight(value)).sum()
}
