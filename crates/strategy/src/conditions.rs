//! Conditions of a status, as `metav1.Condition` has them.
//!
//! In: a status. Out: causes. Never: what a condition means.
//!
//! Source: apimachinery v0.36.3 `apis/meta/v1/validation`.

use forebay_apimachinery::Seen;

use super::field::{Causes, Path};
use super::meta::label_key;
use super::value::{Members, int, objects, text};

const REASON_BYTES_MAX: usize = 1 << 10;
const MESSAGE_BYTES_MAX: usize = 32 << 10;

/// The list `conditions` of a status.
pub fn validate(status: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut known = Seen::default();
    for (index, of) in objects(status, "conditions").enumerate() {
        let at = at.index(index);
        let kind = text(of, "type");
        if known.again(kind) {
            causes.duplicate(&at.child("type"), kind);
        }
        condition(of, &at, causes);
    }
}

fn condition(condition: &Members, at: &Path<'_>, causes: &mut Causes) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    label_key(text(condition, "type"), &at.child("type"), causes);
    let status = text(condition, "status");
    if !STATUSES.contains(&status) {
        causes.not_supported(&at.child("status"), status, &STATUSES);
    }
    if let Some(generation) = int(condition, "observedGeneration").filter(|generation| *generation < 0) {
        causes.invalid(&at.child("observedGeneration"), generation, "must be greater than or equal to zero");
    }
    if text(condition, "lastTransitionTime").is_empty() {
        causes.required(&at.child("lastTransitionTime"), "");
    }
    reason(text(condition, "reason"), &at.child("reason"), causes);
    if text(condition, "message").len() > MESSAGE_BYTES_MAX {
        causes.too_long(&at.child("message"), MESSAGE_BYTES_MAX);
    }
}

fn reason(reason: &str, at: &Path<'_>, causes: &mut Causes) {
    let Some(first) = reason.bytes().next() else { return causes.required(at, "") };
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b':');
    let ends = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !first.is_ascii_alphabetic()
        || !reason.bytes().all(inner)
        || !reason.bytes().next_back().is_some_and(ends)
    {
        let detail = "a condition reason must start with alphabetic character, optionally followed by a string of \
                      alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. \
                      'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used \
                      for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')";
        causes.invalid(at, reason, detail);
    }
    if reason.len() > REASON_BYTES_MAX {
        causes.too_long(at, REASON_BYTES_MAX);
    }
}
