//! The few members of `metadata` that controllers go by.
//!
//! In: an object. Out: [`Meta`], read from the metadata's bytes alone.

use forebay_object::Object;
use serde::Deserialize;

/// A part of `metadata`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    pub uid: String,
    pub resource_version: String,
    pub deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "listed")]
    pub finalizers: Vec<String>,
    #[serde(deserialize_with = "listed")]
    pub owner_references: Vec<OwnerReference>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub block_owner_deletion: Option<bool>,
    pub controller: Option<bool>,
}

pub const ORPHAN: &str = "orphan";
pub const FOREGROUND: &str = "foregroundDeletion";

impl Meta {
    /// What `object` says of itself. A stored object was checked when it was written; one that cannot be read
    /// says nothing, and so is left alone.
    pub fn of(object: &Object) -> Meta {
        serde_json::from_slice(&object.metadata()).unwrap_or_else(|error| {
            tracing::warn!(key = %object.key(), %error, "unreadable metadata");
            Meta::default()
        })
    }

    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

impl OwnerReference {
    pub fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

/// `null` is an empty list.
fn listed<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<Vec<T>>::deserialize(deserializer).map(Option::unwrap_or_default)
}
