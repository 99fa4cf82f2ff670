//! The objects of a write as text, in the version in which somebody is shown them.
//!
//! In: what is proposed, and the stored object. Out: JSON, without a tree of either: what is stored is
//! shown as it is, and of what is proposed nothing is made but what would be stored. Never: what a new
//! object has not yet.

use bytes::Bytes;
use forebay_apimachinery::json::{self, Reader, Unexpected, weight, write_string};
use forebay_apimachinery::{Lease, Revision, Status};
use forebay_catalog::{Converted, Served, Target};
use forebay_object::Object;
use serde_json::Value;

/// What every stored object has, and how one has it that is not stored yet.
const GIVEN: [(&str, &str); 2] = [("creationTimestamp", "1970-01-01T00:00:00Z"), ("uid", "none")];

/// The members that a new object has only once it is stored.
fn absent(value: &Value) -> impl Iterator<Item = (&'static str, &'static str)> {
    GIVEN.into_iter().filter(|(name, _)| !value["metadata"][name].is_string())
}

/// What is stored, as clients of `shown` see it.
///
/// # Errors
/// No room.
pub(super) fn of_stored(target: &Target, shown: &Served, object: &Object) -> Result<Bytes, Status> {
    // In another version it is longer or shorter by a little.
    target.lease.charge(object.body_len() + object.body_len() / 8)?;
    let mut text = Vec::with_capacity(object.body_len() + 128);
    shown.write_object(object, None, &mut text);
    Ok(text.into())
}

/// `value` as clients of `shown` see it, where a webhook converts the versions.
///
/// # Errors
/// What cannot be converted; no room.
pub(super) async fn of_converted(
    target: &Target,
    shown: &Served,
    converted: &Converted,
    value: &Value,
) -> Result<Bytes, Status> {
    let lease = &target.lease;
    if shown.gvr == target.served.gvr {
        return written(shown, value, lease);
    }
    lease.charge(weight::of(value))?;
    let api_version = shown.gvk.api_version();
    let made = converted.convert(value.clone(), &api_version, target.in_its_name()).await?;
    written(shown, &made, lease)
}

/// The text of a tree that is in the version of `shown`.
fn written(shown: &Served, value: &Value, lease: &Lease) -> Result<Bytes, Status> {
    // A text is no longer than its tree takes, or it is the tree of one string.
    let foreseen = weight::of(value);
    lease.charge(foreseen)?;
    let mut text = Vec::with_capacity(1024);
    shown.kind.write_value(value, &mut text)?;
    lease.charge(text.capacity())?;
    lease.give_back(foreseen);
    Ok(text.into())
}

/// `value`, which is as its rules know it, as clients of `shown` see it.
///
/// # Errors
/// What cannot be converted; no room.
pub(super) fn of_proposed(target: &Target, shown: &Served, value: &Value) -> Result<Bytes, Status> {
    let (served, lease) = (&target.served, &target.lease);
    if shown.gvr == served.gvr && !served.kind.is_converted() {
        return written(shown, value, lease);
    }
    let body = {
        // The copy goes with what is made of it.
        let _copy = lease.scope();
        lease.charge(weight::of(value))?;
        let mut stored = value.clone();
        absent(value).for_each(|(name, given)| stored["metadata"][name] = given.into());
        served.encode(stored)?
    };
    // What would be stored, what is shown of it, and the same with what is not there yet left out.
    lease.charge(3 * body.len())?;
    let store = served.stored()?;
    let object = store.decode(store.key(target.namespace(), target.name()), Revision::FIRST, &body)?;
    let mut text = Vec::with_capacity(body.len() + 128);
    shown.write_object(&object, None, &mut text);
    let missing: Vec<&str> = absent(value).map(|(name, _)| name).collect();
    let revision = value["metadata"]["resourceVersion"].as_str();
    let text = with_metadata(&text, &missing, revision).map_err(Status::internal)?;
    lease.give_back(2 * body.len());
    Ok(text.into())
}

/// The tree of such a text.
///
/// # Errors
/// No room.
pub(super) fn tree(text: &Option<Bytes>, lease: &Lease) -> Result<Option<Value>, Status> {
    let parsed = text.as_ref().map(|text| json::parse(text, lease)).transpose();
    parsed.map(|parsed| parsed.map(|parsed| parsed.value)).map_err(Status::internal)
}

/// `text` without the members of its metadata that are named, and with that resourceVersion or none.
fn with_metadata(text: &[u8], without: &[&str], revision: Option<&str>) -> Result<Vec<u8>, Unexpected> {
    const REVISION: &str = "resourceVersion";
    let mut reader = Reader::new(text);
    reader.begin(b'{')?;
    let mut index = 0;
    while let Some(name) = reader.member(index)? {
        index += 1;
        if &*name != b"metadata" {
            reader.skip()?;
            continue;
        }
        let mut out = Vec::with_capacity(text.len() + 64);
        out.extend_from_slice(&text[..=reader.at()]);
        reader.begin(b'{')?;
        let (mut at, mut kept) = (0, 0);
        loop {
            let from = reader.at();
            let Some(name) = reader.member(at)? else { break };
            at += 1;
            reader.skip()?;
            // Few: there are three at most.
            if *name == *REVISION.as_bytes() || without.iter().any(|one| one.as_bytes() == &*name) {
                continue;
            }
            let member = &text[from..reader.at()];
            if kept > 0 {
                out.push(b',');
            }
            kept += 1;
            out.extend_from_slice(member.strip_prefix(b",").unwrap_or(member));
        }
        if let Some(revision) = revision {
            if kept > 0 {
                out.push(b',');
            }
            write_string(REVISION, &mut out);
            out.push(b':');
            write_string(revision, &mut out);
        }
        out.push(b'}');
        out.extend_from_slice(&text[reader.at()..]);
        return Ok(out);
    }
    Ok(text.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, without: &[&str], revision: Option<&str>, want: &str) {
        let got = with_metadata(text.as_bytes(), without, revision).expect("an object");
        assert_eq!(String::from_utf8_lossy(&got), want);
    }

    #[test]
    fn members_that_are_not_there_yet_are_left_out_and_nothing_else() {
        let text = r#"{"kind":"K","metadata":{"uid":"none","name":"a","resourceVersion":"1"},"uid":1}"#;
        check(text, &["uid"], None, r#"{"kind":"K","metadata":{"name":"a"},"uid":1}"#);
        check(
            text,
            &[],
            Some("7"),
            r#"{"kind":"K","metadata":{"uid":"none","name":"a","resourceVersion":"7"},"uid":1}"#,
        );
        check(r#"{"metadata":{"uid":"none"}}"#, &["uid"], None, r#"{"metadata":{}}"#);
        check(
            r#"{"metadata":{"uid":"none"}}"#,
            &["uid"],
            Some("7"),
            r#"{"metadata":{"resourceVersion":"7"}}"#,
        );
        check(r#"{"a":{"metadata":{"uid":1}}}"#, &["uid"], None, r#"{"a":{"metadata":{"uid":1}}}"#);
    }
}
