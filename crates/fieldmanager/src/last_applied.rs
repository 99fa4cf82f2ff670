//! What kubectl noted of its client-side applies.
//!
//! In: an object with the annotation, what is applied. Out: the fields that are kubectl's by it; the
//! annotation as it is to be. Never: for another manager than kubectl.
//!
//! Source: apimachinery v0.36.3 `managedfields/internal/lastapplied*.go`.

use forebay_apimachinery::json::{self, weight, write_sorted};
use forebay_apimachinery::{Exhausted, Lease};
use forebay_merge::{Duplicates, Set, TypedValue};
use serde_json::Value;

use crate::field_type::FieldType;
use crate::limits::ANNOTATIONS_BYTES_MAX;

/// Who takes over from client-side applies.
pub const KUBECTL: &str = "kubectl";

/// The annotation that says what kubectl applied last by itself.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The fields of `live` that are as they were last applied; `None` if nothing is known.
///
/// - `ty`: of both, in the version of `live`.
pub fn fields(live: &Value, ty: FieldType<'_>, lease: &Lease) -> Option<Set> {
    let text = noted(live)?;
    let live = TypedValue::new(live, ty, Duplicates::Refused).ok()?;
    let last = json::parse(text.as_bytes(), lease).ok()?.value;
    if last["apiVersion"] != live.value["apiVersion"] {
        return None;
    }
    let last = TypedValue::new(&last, ty, Duplicates::Refused).ok()?;
    let changes = last.compare(&live).ok()?;
    let fields = last.fields().ok()?;
    Some(fields.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
}

/// Notes what is applied, if the object has a note already.
///
/// # Errors
/// [`Exhausted`].
pub fn note(object: &mut Value, config: &Value, lease: &Lease) -> Result<(), Exhausted> {
    if noted(object).is_none() {
        return Ok(());
    }
    let text = text_of(weight::copy(config, lease)?);
    let annotations = object["metadata"]["annotations"].as_object_mut().expect("it has the note");
    annotations.insert(LAST_APPLIED.to_owned(), Value::from(text));
    let bytes = annotations.iter().map(|(name, value)| name.len() + value.as_str().map_or(0, str::len));
    if bytes.sum::<usize>() > ANNOTATIONS_BYTES_MAX {
        annotations.remove(LAST_APPLIED);
    }
    Ok(())
}

fn noted(object: &Value) -> Option<&str> {
    object["metadata"]["annotations"][LAST_APPLIED].as_str().filter(|text| !text.is_empty())
}

/// What is applied as it is noted: without the note, as Go writes it.
fn text_of(mut config: Value) -> String {
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
    let mut out = Vec::new();
    write_sorted(&config, &mut out);
    out.push(b'\n');
    String::from_utf8(out).expect("JSON made of strings is UTF-8")
}
