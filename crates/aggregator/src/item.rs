//! One object in a list or a watch: what of its metadata decides whether it goes.
//!
//! In: its bytes. Out: an [`ObjectElsewhere`]. Never: one whose place cannot stand in a URL as it is, or that
//! is longer, once read, than its limits say.

use std::marker::PhantomData;

use forebay_api::{ObjectElsewhere, OwnerElsewhere};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::asking::segment;
use crate::limits::{FOLLOWED_LISTED_MAX, FOLLOWED_NAME_BYTES_MAX};

#[derive(Default, Deserialize)]
#[serde(default)]
struct Item {
    metadata: ItemMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ItemMeta {
    #[serde(deserialize_with = "text")]
    namespace: String,
    name: String,
    uid: String,
    deletion_timestamp: Option<String>,
    #[serde(deserialize_with = "listed")]
    finalizers: Vec<String>,
    #[serde(deserialize_with = "listed")]
    owner_references: Vec<Owner>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Owner {
    api_version: String,
    kind: String,
    name: String,
    uid: String,
    block_owner_deletion: Option<bool>,
}

/// Reads one.
///
/// - `is_namespaced`: whether its kind is in namespaces.
///
/// # Errors
/// Why it is left alone.
pub fn read(object: &[u8], is_namespaced: bool) -> Result<ObjectElsewhere, String> {
    let Item { metadata } = serde_json::from_slice(object).map_err(|why| why.to_string())?;
    let short = |text: &str| match text.len() {
        1..=FOLLOWED_NAME_BYTES_MAX => Ok(Box::from(text)),
        len => Err(format!("a name or uid of {len} bytes")),
    };
    segment(&metadata.name).map_err(|status| status.message)?;
    let namespace = match is_namespaced {
        true => short(segment(&metadata.namespace).map_err(|status| status.message)?)?,
        false => Box::default(),
    };
    let owner = |owner: Owner| OwnerElsewhere {
        api_version: owner.api_version,
        kind: owner.kind,
        name: owner.name,
        uid: owner.uid,
        blocks: owner.block_owner_deletion == Some(true),
    };
    Ok(ObjectElsewhere {
        namespace,
        name: short(&metadata.name)?,
        uid: short(&metadata.uid)?,
        is_deleting: metadata.deletion_timestamp.is_some(),
        finalizers: metadata.finalizers,
        owners: metadata.owner_references.into_iter().map(owner).collect(),
    })
}

/// `null` is an empty text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::<String>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// `null` is an empty list; a long one is an error before it is read to its end.
fn listed<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Listed<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for Listed<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "a list of at most {FOLLOWED_LISTED_MAX}")
        }

        fn visit_unit<E: Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(one) = seq.next_element()? {
                if all.len() == FOLLOWED_LISTED_MAX {
                    return Err(A::Error::custom(format!("more than {FOLLOWED_LISTED_MAX} in a list")));
                }
                all.push(one);
            }
            Ok(all)
        }
    }

    deserializer.deserialize_any(Listed(PhantomData))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read_of(metadata: Value) -> Result<ObjectElsewhere, String> {
        read(json!({ "spec": { "a": [1] }, "metadata": metadata }).to_string().as_bytes(), true)
    }

    #[test]
    fn of_an_object_that_is_read_which_decides_whether_it_goes() {
        let owner = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": "u1",
                            "blockOwnerDeletion": true, "controller": true });
        let metadata = json!({ "namespace": "x", "name": "f", "uid": "u", "resourceVersion": "5",
                               "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.io/b"],
                               "ownerReferences": [owner], "labels": { "a": "b" } });
        let want = ObjectElsewhere {
            namespace: "x".into(),
            name: "f".into(),
            uid: "u".into(),
            is_deleting: true,
            finalizers: vec!["a.io/b".to_owned()],
            owners: vec![OwnerElsewhere {
                api_version: "v1".to_owned(),
                kind: "ConfigMap".to_owned(),
                name: "m".to_owned(),
                uid: "u1".to_owned(),
                blocks: true,
            }],
        };
        assert_eq!(read_of(metadata), Ok(want));
        let bare = json!({ "name": "f", "uid": "u", "namespace": "x", "deletionTimestamp": null,
                           "finalizers": null, "ownerReferences": null });
        let bare = read_of(bare).expect("an object");
        assert!(!bare.is_deleting && bare.owners.is_empty() && bare.finalizers.is_empty());
    }

    #[test]
    fn one_that_leads_astray_or_has_too_much_is_left_alone() {
        for metadata in [
            json!({ "name": "f", "uid": "u" }),
            json!({ "name": "f", "uid": "", "namespace": "x" }),
            json!({ "name": "f/../g", "uid": "u", "namespace": "x" }),
            json!({ "name": "f", "uid": "u", "namespace": ".." }),
            json!({ "name": "f", "uid": "u".repeat(FOLLOWED_NAME_BYTES_MAX + 1), "namespace": "x" }),
            json!({ "name": "f", "uid": "u", "namespace": "x",
                    "ownerReferences": vec![json!({}); FOLLOWED_LISTED_MAX + 1] }),
            json!({ "name": "f", "uid": "u", "namespace": "x",
                    "finalizers": vec!["f"; FOLLOWED_LISTED_MAX + 1] }),
        ] {
            assert!(read_of(metadata.clone()).is_err(), "{metadata}");
        }
    }
}
