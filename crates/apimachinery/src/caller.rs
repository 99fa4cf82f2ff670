//! Who asks: the user of a request, as authentication knows it.
//!
//! In and out: names, groups and what else is known. Never: what they may do.

use std::collections::BTreeMap;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    /// What else is known of it, by key: `authentication.kubernetes.io/credential-id`.
    pub extra: BTreeMap<String, Vec<String>>,
}
