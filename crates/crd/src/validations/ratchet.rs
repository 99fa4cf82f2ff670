//! What is forgiven on an update: what a rule says of values that are as they were.
//!
//! In: values with those before them, on the way down. Out: whether they are equal, found once. Never:
//! forgives a rule that compares both.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/cel/validation.go`, `ratchetingOptions`.

use std::cell::Cell;

use serde_json::Value;

use crate::schema::Node;
use crate::validate::correlate::{ListIndex, is_unchanged};

/// A value and the one before it.
pub(super) struct Correlated<'a> {
    node: &'a Node,
    value: &'a Value,
    old: &'a Value,
    is_same: Cell<Option<bool>>,
}

impl<'a> Correlated<'a> {
    pub(super) fn new(node: &'a Node, value: &'a Value, old: &'a Value) -> Correlated<'a> {
        Correlated { node, value, old, is_same: Cell::new(None) }
    }

    fn is_same(&self) -> bool {
        let is_same = self.is_same.get().unwrap_or_else(|| is_unchanged(self.node, self.value, self.old));
        self.is_same.set(Some(is_same));
        is_same
    }

    fn member(&self, name: &str) -> Option<Correlated<'a>> {
        let node = self.node.property(name).or_else(|| self.node.additional_schema())?;
        Some(Correlated::new(node, self.value.as_object()?.get(name)?, self.old.as_object()?.get(name)?))
    }
}

/// What may forgive what is said of a value.
#[derive(Clone, Copy, Default)]
pub(super) struct Ratchet<'a> {
    pub(super) current: Option<&'a Correlated<'a>>,
    /// The nearest around it that has one before it.
    pub(super) around: Option<&'a Correlated<'a>>,
}

impl<'a> Ratchet<'a> {
    pub(super) fn forgives(self) -> bool {
        self.current.or(self.around).is_some_and(Correlated::is_same)
    }

    /// The member `name` and the one before it.
    pub(super) fn member(self, name: &str) -> Option<Correlated<'a>> {
        self.current?.member(name)
    }

    /// The item `item`, and the one before it in the list of those before.
    pub(super) fn item(self, item: &'a Value, before: &ListIndex<'a>) -> Option<Correlated<'a>> {
        Some(Correlated::new(self.current?.node.item()?, item, before.find(item)?))
    }

    /// For the root's type, which both have alike whatever they were.
    pub(super) fn is_type_of_root(self, name: &str) -> bool {
        self.current.is_some() && self.around.is_none() && matches!(name, "apiVersion" | "kind")
    }

    /// One step down, where `found` may be.
    pub(super) fn then<'b>(self, found: Option<&'b Correlated<'b>>) -> Ratchet<'b>
    where
        'a: 'b,
    {
        match self.current {
            None => self,
            Some(current) => Ratchet { current: found, around: Some(current) },
        }
    }
}
