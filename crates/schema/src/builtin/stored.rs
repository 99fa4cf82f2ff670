//! Which built-in kinds are stored as another version than the one that is served.
//!
//! In: a resource of the table. Out: what its objects are stored as, and the shape of what makes the one of
//! the other. Never: makes it: strategy has the functions.

use forebay_apimachinery::GroupVersionKind;
use serde_json::Value;

use super::{Resource, TypeId, table};

/// The version that the objects of a kind are stored as, where it is not the one that is served.
#[derive(Debug, PartialEq, Eq)]
pub struct StoredAs {
    pub group: &'static str,
    pub version: &'static str,
    /// Of both versions.
    pub kind: &'static str,
    pub stored_group: &'static str,
    pub stored_version: &'static str,
}

/// Every kind of which that is so.
pub static STORED_AS: [StoredAs; 2] = [
    StoredAs { group: "events.k8s.io", version: "v1", kind: "Event", stored_group: "", stored_version: "v1" },
    StoredAs {
        group: "autoscaling",
        version: "v1",
        kind: "HorizontalPodAutoscaler",
        stored_group: "autoscaling",
        stored_version: "v2",
    },
];

/// How the objects of one served kind become those that are stored, and back.
#[derive(Debug)]
pub struct Conversion {
    pub to_stored: fn(&mut Value),
    pub from_stored: fn(&mut Value),
    /// The stored path of a path that fields are selected by.
    pub path_to_stored: fn(&str) -> String,
    pub judged: Judged,
}

/// In which of its versions an object is prepared and validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// Each version has rules of its own.
    Served,
    /// The rules know the stored version alone.
    Stored,
}

impl StoredAs {
    /// What the objects of `resource` are stored as; `None` where it is what is served.
    pub fn of(resource: &Resource) -> Option<&'static StoredAs> {
        StoredAs::of_kind(resource.group, resource.version, resource.kind)
    }

    /// The same of a served kind.
    pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static StoredAs> {
        STORED_AS.iter().find(|known| (known.group, known.version, known.kind) == (group, version, kind))
    }

    /// The kind that is stored.
    pub fn gvk(&self) -> GroupVersionKind {
        GroupVersionKind::new(self.stored_group, self.stored_version, self.kind)
    }

    /// Its type.
    pub fn ty(&self) -> Option<TypeId> {
        table().kind(self.stored_group, self.stored_version, self.kind).map(|kind| kind.ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_a_kind_that_is_served_and_stored_as_it_is() {
        for known in &STORED_AS {
            assert!(known.ty().is_some(), "{known:?}");
            assert!(table().kind(known.group, known.version, known.kind).is_some(), "{known:?}");
            let stored = StoredAs::of_kind(known.stored_group, known.stored_version, known.kind);
            assert_eq!(stored, None, "{known:?}");
        }
    }
}
