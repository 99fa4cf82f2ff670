//! Which kinds a type is registered as.
//!
//! In: the table. Out: for each type its groups, versions and kinds. Never: CRDs.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::builtin::{Table, TypeId};

/// Kinds that every group and version registers as its own, and that documents refer to.
const EVERYWHERE: [&str; 2] = ["DeleteOptions", "WatchEvent"];

/// The kinds of every type that has any.
pub struct Kinds {
    // type -> (group, version, kind), ordered
    of: HashMap<TypeId, Vec<(&'static str, &'static str, String)>>,
}

impl Kinds {
    pub fn new(table: &'static Table) -> Kinds {
        let mut of: HashMap<TypeId, Vec<_>> = HashMap::new();
        for kind in table.kinds() {
            of.entry(kind.ty).or_default().push((kind.group, kind.version, kind.kind.to_string()));
            if let Some(list) = kind.list {
                of.entry(list).or_default().push((kind.group, kind.version, format!("{}List", kind.kind)));
            }
        }
        let mut versions: Vec<_> = table.kinds().iter().map(|kind| (kind.group, kind.version)).collect();
        versions.dedup();
        for everywhere in EVERYWHERE {
            let Some(known) = table.kind("", "v1", everywhere) else { continue };
            let all = versions.iter().map(|(group, version)| (*group, *version, everywhere.to_string()));
            of.insert(known.ty, all.collect());
        }
        for kinds in of.values_mut() {
            kinds.sort();
            kinds.dedup();
        }
        Kinds { of }
    }

    /// `x-kubernetes-group-version-kind` of a type; `None` when it is no kind.
    ///
    /// - `within`: keeps the core group and this group and version, where a type has many kinds.
    pub(super) fn extension(&self, ty: TypeId, within: Option<(&str, &str)>) -> Option<Value> {
        let kinds = self.of.get(&ty)?;
        let keep = |group: &str, version: &str| {
            kinds.len() == 1
                || within.is_none_or(|gv| gv == (group, version) || (group, version) == ("", "v1"))
        };
        let kept = kinds.iter().filter(|(group, version, _)| keep(group, version));
        Some(kept.map(|(group, version, kind)| gvk(group, version, kind)).collect())
    }
}

pub(super) fn gvk(group: &str, version: &str, kind: &str) -> Value {
    json!({ "group": group, "version": version, "kind": kind })
}
