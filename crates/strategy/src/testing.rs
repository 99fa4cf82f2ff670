//! Writes as text, for tests: an object, edits of it, and what is said about the result.
//!
//! In: `spec.replicas=-1; metadata.labels={"a":"b"}`, a path and JSON each; null takes a member away, `+`
//! adds to a list. An update may begin with `!` and edits of the object that it meets, up to ` => `, and with
//! `@` and a subresource. Out: a panic that shows all rows that went another way. Never: used outside of
//! tests.
//!
//! Expected causes are `field: message`; one that ends in `…` is only begun.

use std::sync::LazyLock;

use forebay_apimachinery::{Caller, Cause};
use forebay_schema::builtin::{Conversion, Judged, StoredAs, TypeId, codec, forget_empty_lists, table};
use serde_json::Value;

use super::convert;
use super::{Context, GroupKind, Privileged, defaults, fill_system_fields, prepare_create, prepare_update};
use super::{validate_create, validate_update};

/// What is expected of one write: edits, and causes; none when it is let through.
pub type Row<'a> = (&'a str, &'a [&'a str]);

const UID: &str = "11111111-1111-1111-1111-111111111111";
/// Who writes.
static USER: LazyLock<Caller> = LazyLock::new(|| Caller {
    name: "admin".into(),
    uid: "uid1".into(),
    groups: vec!["system:masters".into(), "system:authenticated".into()],
    ..Caller::default()
});

/// A kind, and an object of it that is fine.
pub struct Sample {
    kind: GroupKind<'static>,
    ty: TypeId,
    object: Value,
    // To what the rules know, where that is another version.
    conversion: Option<&'static Conversion>,
    // What new objects, and changed ones, are judged by.
    privileged: Privileged,
}

impl Sample {
    pub fn new(group: &'static str, version: &str, kind: &'static str, mut object: Value) -> Sample {
        let ty = table().kind(group, version, kind).expect("a built-in kind").ty;
        object["kind"] = kind.into();
        object["apiVersion"] =
            if group.is_empty() { version.into() } else { format!("{group}/{version}").into() };
        let stored = StoredAs::of_kind(group, version, kind);
        let conversion = stored.and_then(convert::of).filter(|known| known.judged == Judged::Stored);
        let (kind, privileged) = (GroupKind::built_in(group, kind), Privileged::Allowed);
        Sample { kind, ty, object, conversion, privileged }
    }

    /// The same in a cluster without privileged containers. What an update meets may have some.
    pub fn without_privileged(self) -> Sample {
        Sample { privileged: Privileged::Disallowed, ..self }
    }

    /// The edited sample as a client sends it.
    pub fn sent(&self, edits: &str) -> Value {
        edited(&self.object, edits)
    }

    /// The edited sample as it is stored, without what every object has.
    pub fn created(&self, edits: &str) -> Value {
        let mut object = self.create(&edited(&self.object, edits), self.privileged).0;
        self.convert_back(&mut object);
        for name in ["uid", "creationTimestamp"] {
            object["metadata"].as_object_mut().expect("metadata").remove(name);
        }
        for name in ["kind", "apiVersion"] {
            object.as_object_mut().expect("an object").remove(name);
        }
        object
    }

    pub fn check_creates(&self, rows: &[Row<'_>]) {
        check(rows, |edits| self.create(&edited(&self.object, edits), self.privileged).1);
    }

    pub fn check_updates(&self, rows: &[Row<'_>]) {
        check(rows, |write| self.update(write).1);
    }

    fn create(&self, object: &Value, privileged: Privileged) -> (Value, Vec<Cause>) {
        let mut object = self.normalized(object.clone());
        defaults(&self.kind, &mut object);
        self.convert(&mut object);
        fill_system_fields(&mut object, &context(), UID);
        prepare_create(&self.kind, &mut object, &context());
        let causes = validate_create(&self.kind, &object, privileged);
        (object, causes)
    }

    fn update(&self, write: &str) -> (Value, Vec<Cause>) {
        let (before, write) = match write.strip_prefix('!').and_then(|write| write.split_once(" => ")) {
            Some((before, write)) => (before, write),
            None => ("", write),
        };
        let (subresource, edits) = match write.strip_prefix('@').and_then(|write| write.split_once(' ')) {
            Some((subresource, edits)) => (Some(subresource), edits),
            None => (None, write),
        };
        let (mut old, causes) = self.create(&edited(&self.object, before), Privileged::Allowed);
        assert_eq!(causes, [], "{before}");
        self.convert_back(&mut old);
        old["metadata"]["resourceVersion"] = "1".into();
        let mut old = self.normalized(old);
        let mut new = self.normalized(edited(&old, edits));
        self.convert(&mut old);
        defaults(&self.kind, &mut new);
        self.convert(&mut new);
        prepare_update(&self.kind, subresource, &mut new, &old, &context());
        let causes = validate_update(&self.kind, subresource, &new, &old, self.privileged);
        (new, causes)
    }

    fn convert(&self, object: &mut Value) {
        if let Some(conversion) = self.conversion {
            (conversion.to_stored)(object);
        }
    }

    fn convert_back(&self, object: &mut Value) {
        if let Some(conversion) = self.conversion {
            (conversion.from_stored)(object);
        }
    }

    fn normalized(&self, mut object: Value) -> Value {
        let problems = codec::normalize_as_sent(self.ty, &mut object).expect("an object of its kind");
        forget_empty_lists(self.ty, &mut object);
        assert!(problems.is_empty(), "{}", problems[0]);
        object
    }
}

fn context() -> Context<'static> {
    Context { now: "2026-01-01T00:00:00Z", user: Some(&USER) }
}

fn check(rows: &[Row<'_>], write: impl Fn(&str) -> Vec<Cause>) {
    let mut different = String::new();
    for (edits, expected) in rows {
        let causes = write(edits);
        let found: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        causes.iter().for_each(|cause| assert_eq!(cause.reason.as_str(), reason(&cause.message), "{edits}"));
        let as_expected = |(found, expected): (&String, &&str)| match expected.strip_suffix('…') {
            Some(begun) => found.starts_with(begun),
            None => found == expected,
        };
        if found.len() != expected.len() || !found.iter().zip(*expected).all(as_expected) {
            different.push_str(&format!("{edits}\n  expected {expected:#?}\n  found {found:#?}\n"));
        }
    }
    assert!(different.is_empty(), "{different}");
}

/// The reason that goes with how a message begins.
fn reason(message: &str) -> &'static str {
    const REASONS: [(&str, &str); 8] = [
        ("Required value", "FieldValueRequired"),
        ("Invalid value", "FieldValueInvalid"),
        ("Unsupported value", "FieldValueNotSupported"),
        ("Duplicate value", "FieldValueDuplicate"),
        ("Forbidden", "FieldValueForbidden"),
        ("Not found", "FieldValueNotFound"),
        ("Too long", "FieldValueTooLong"),
        ("Too many", "FieldValueTooMany"),
    ];
    REASONS.iter().find(|(begin, _)| message.starts_with(begin)).map_or("", |(_, reason)| reason)
}

pub fn edited(object: &Value, edits: &str) -> Value {
    let mut object = object.clone();
    for edit in apart(edits) {
        let (path, json) = edit.split_once('=').expect("a path and a value");
        let value: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{edit}: {error}"));
        let mut steps: Vec<&str> = path.trim().split('.').collect();
        let last = steps.pop().expect("a path");
        let parent = steps.into_iter().fold(&mut object, |at, step| match at {
            Value::Array(items) => &mut items[step.parse::<usize>().expect("an index")],
            at => &mut at[step],
        });
        match parent {
            Value::Array(items) if last == "+" => items.push(value),
            Value::Array(items) => items[last.parse::<usize>().expect("an index")] = value,
            parent if value.is_null() => {
                parent.as_object_mut().expect("an object").remove(last);
            }
            parent => parent[last] = value,
        }
    }
    object
}

/// Edits, where semicolons inside of texts part nothing.
fn apart(edits: &str) -> Vec<&str> {
    let (mut parts, mut from, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in edits.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            ';' if !quoted => {
                parts.push(&edits[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&edits[from..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}
