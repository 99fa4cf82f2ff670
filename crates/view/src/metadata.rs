//! What the metadata of every object says.
//!
//! In: `metadata` as JSON. Out: [`Metadata`], with what most ask for. Of two members of one name the last one
//! counts; null is nothing. Never: `managedFields`, which are passed over.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

/// `metadata` of an object. What it does not have is empty, or 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub owner_references: Vec<OwnerReference>,
    pub finalizers: Vec<String>,
    /// RFC 3339 in UTC, with whole seconds as servers write it: `2026-01-02T03:04:05Z`.
    pub creation_timestamp: Option<String>,
    /// The same, once its deletion has begun.
    pub deletion_timestamp: Option<String>,
}

/// An owner that an object names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub controller: Option<bool>,
    pub block_owner_deletion: Option<bool>,
}

impl Metadata {
    /// The owner that controls it; a server lets no object have two.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller == Some(true))
    }

    /// Whether its deletion has begun.
    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// Derived code takes two members of one name for an error.
macro_rules! read_last {
    ($type:ident { $($field:ident = $name:literal,)* }) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                #[derive(serde::Deserialize)]
                #[serde(field_identifier)]
                #[allow(non_camel_case_types)]
                enum Member {
                    $(#[serde(rename = $name)] $field,)*
                    #[serde(other)]
                    Other,
                }

                struct Members;

                impl<'de> Visitor<'de> for Members {
                    type Value = $type;

                    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                        to.write_str(stringify!($type))
                    }

                    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<$type, A::Error> {
                        let mut read = $type::default();
                        while let Some(member) = from.next_key()? {
                            match member {
                                $(Member::$field => {
                                    read.$field = from.next_value::<Option<_>>()?.unwrap_or_default();
                                })*
                                Member::Other => drop(from.next_value::<IgnoredAny>()?),
                            }
                        }
                        Ok(read)
                    }
                }

                from.deserialize_map(Members)
            }
        }
    };
}

read_last!(Metadata {
    name = "name",
    namespace = "namespace",
    uid = "uid",
    resource_version = "resourceVersion",
    generation = "generation",
    labels = "labels",
    annotations = "annotations",
    owner_references = "ownerReferences",
    finalizers = "finalizers",
    creation_timestamp = "creationTimestamp",
    deletion_timestamp = "deletionTimestamp",
});

read_last!(OwnerReference {
    api_version = "apiVersion",
    kind = "kind",
    name = "name",
    uid = "uid",
    controller = "controller",
    block_owner_deletion = "blockOwnerDeletion",
});
