//! Who owns what.
//!
//! In: names of managers, sets and the versions that they are of. Out: the same, by manager. Never: what a
//! manager's name is made of, or when it wrote.

use std::collections::BTreeMap;

use crate::set::Set;

/// What a manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub fields: Set,
    /// The version of the object that the fields are of.
    pub version: String,
    /// Whether it applied them, rather than wrote the object.
    pub applied: bool,
}

/// What each manager owns, by its name; nobody owns nothing.
pub type Managers = BTreeMap<String, Owned>;
