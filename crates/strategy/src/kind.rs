//! A kind, as far as its rules go.
//!
//! In: a group and a kind, and for a custom resource what its definition says. Out: its rules and flags.
//! Never: an object.

use forebay_crd::CustomRules;

use super::rule::{Flags, Rules};
use super::rules;

/// Which rules an object is under.
#[derive(Clone, Copy, Debug)]
pub struct GroupKind<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    pub kind: &'a str,
    /// Given for a custom resource, whatever its group.
    pub custom: Option<&'a CustomRules>,
}

impl<'a> GroupKind<'a> {
    /// A built-in kind.
    pub const fn built_in(group: &'a str, kind: &'a str) -> GroupKind<'a> {
        GroupKind { group, kind, custom: None }
    }

    /// What its store does differently.
    pub fn flags(&self) -> Flags {
        match self.custom {
            Some(_) => Flags::CUSTOM,
            None => self.rules().flags,
        }
    }

    pub fn rules(&self) -> &'static Rules {
        rules::of(self.group, self.kind)
    }

    pub fn namespaced(&self) -> bool {
        self.custom.map_or_else(|| self.rules().namespaced, |custom| custom.namespaced)
    }
}
