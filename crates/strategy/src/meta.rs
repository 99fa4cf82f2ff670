//! The rules of `metadata`, the same for every kind.
//!
//! In: the metadata of the object to be stored, and of the stored one. Out: system fields filled in; causes
//! in upstream's order and words. Never: the rules of one kind.
//!
//! Source: apimachinery v0.36.3 `api/validation/objectmeta.go`, `apis/meta/v1/validation`; apiserver v0.36.3
//! `registry/rest/{meta,create,update}.go`. Where upstream walks a map, its order is random; here it is
//! sorted.

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::is_print;
use forebay_apimachinery::options::FIELD_MANAGER_BYTES_MAX;
use forebay_apimachinery::selector::{label_key_faults, label_value_faults};
use serde_json::Value;

use super::field::{BadValue, Causes, Path};
use super::format;
use super::names::NameRule;
use super::value::{
    Members, child_or_empty, entries, int, objects, same_member, set, take_over, text, texts,
};

/// What upstream says of a field that may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// Bytes of an object's annotations, keys and values together.
pub const ANNOTATIONS_BYTES_MAX: usize = 256 << 10;
const SUBRESOURCE_BYTES_MAX: usize = 256;
const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

const METADATA: Path<'static> = Path::root("metadata");

/// Gives a new object its identity, whatever the client sent for it.
pub fn fill_system_fields(meta: &mut Members, now: &str, uid: &str) {
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        meta.remove(name);
    }
    set(meta, "creationTimestamp", Some(now.into()));
    set(meta, "uid", Some(uid.into()));
}

/// Keeps what only the server writes, before a kind's own preparation.
pub fn keep_generation(meta: &mut Members, old: &Members) {
    take_over(meta, old, "generation");
}

/// Keeps what only the server writes, after a kind's own preparation.
pub fn keep_system_fields(meta: &mut Members, old: &Members) {
    if text(meta, "uid").is_empty() {
        take_over(meta, old, "uid");
    }
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if !text(old, name).is_empty() {
            take_over(meta, old, name);
        }
    }
    if !meta.contains_key("deletionGracePeriodSeconds") {
        take_over(meta, old, "deletionGracePeriodSeconds");
    }
}

/// `metadata` of a new object.
pub fn validate_meta_create(meta: &Members, namespaced: bool, rule: NameRule, causes: &mut Causes) {
    validate_at(meta, namespaced, rule, &METADATA, causes);
}

/// `metadata` of an object that takes the place of `old`.
pub fn validate_meta_update(new: &Members, old: &Members, causes: &mut Causes) {
    if old.contains_key("deletionTimestamp") {
        no_new_finalizers(new, old, causes);
    }
    if text(new, "resourceVersion").is_empty() {
        causes.invalid(&METADATA.child("resourceVersion"), "", "must be specified for an update");
    }
    let generation = int(new, "generation").unwrap_or(0);
    if generation < int(old, "generation").unwrap_or(0) {
        causes.invalid(&METADATA.child("generation"), generation, "must not be decremented");
    }
    for name in ["name", "namespace", "uid"] {
        if !same_member(new, old, name) {
            causes.invalid(&METADATA.child(name), text(new, name), IMMUTABLE);
        }
    }
    for name in ["creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new.get(name) != old.get(name) {
            let bad = match new.get(name) {
                None => BadValue::Nil,
                Some(Value::Number(number)) => BadValue::shown(number.to_string()),
                Some(value) => BadValue::Json(value),
            };
            causes.invalid(&METADATA.child(name), bad, IMMUTABLE);
        }
    }
    labels(meta_map(new, "labels"), &METADATA.child("labels"), causes);
    annotations(new, &METADATA.child("annotations"), causes);
    owner_references(new, causes);
    managed_fields(new, causes);
}

/// The metadata of a template: labels and annotations are all that an object gets from there.
pub fn of_template(meta: &Members, at: &Path<'_>, causes: &mut Causes) {
    const OTHERS: [(&str, &str); 13] = [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
        ("managedFields", "managedFields"),
    ];
    annotations(meta, &at.child("annotations"), causes);
    labels(meta_map(meta, "labels"), &at.child("labels"), causes);
    // Of a number it matters that it is said, but of the generation, which is none when it is zero.
    let is_set = |name: &str, value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => name != "generation" || number.as_i64() != Some(0),
        _ => true,
    };
    for (name, shown) in OTHERS {
        if meta.get(name).is_some_and(|value| is_set(name, value)) {
            causes.forbidden(&at.child(shown), "cannot be set");
        }
    }
}

/// As [`validate_meta_create`], and finalizers without a domain must be known: what most built-in kinds ask
/// for.
pub fn validate_built_in_create(meta: &Members, namespaced: bool, rule: NameRule, causes: &mut Causes) {
    validate_meta_create(meta, namespaced, rule, causes);
    known_finalizers(meta, causes);
}

/// As [`validate_meta_update`], and finalizers without a domain must be known: what most built-in kinds ask
/// for.
pub fn validate_built_in_update(new: &Members, old: &Members, causes: &mut Causes) {
    validate_meta_update(child_or_empty(new, "metadata"), child_or_empty(old, "metadata"), causes);
    known_finalizers(child_or_empty(new, "metadata"), causes);
}

fn known_finalizers(meta: &Members, causes: &mut Causes) {
    let at = METADATA.child("finalizers");
    for (index, finalizer) in texts(meta, "finalizers").enumerate() {
        known_finalizer(finalizer, &at.index(index), causes);
    }
}

/// A finalizer without a domain is one of Kubernetes' own.
pub fn known_finalizer(finalizer: &str, at: &Path<'_>, causes: &mut Causes) {
    if !finalizer.contains('/') && !matches!(finalizer, "kubernetes" | ORPHAN | FOREGROUND) {
        causes.invalid(at, finalizer, "name is neither a standard finalizer name nor is it fully qualified");
    }
}

/// `metadata` somewhere inside an object, such as a pod template's volume claim.
pub fn validate_at(meta: &Members, namespaced: bool, rule: NameRule, at: &Path<'_>, causes: &mut Causes) {
    let base = text(meta, "generateName");
    if !base.is_empty() {
        causes.faults(&at.child("generateName"), base, rule.generate_faults(base));
    }
    let name = text(meta, "name");
    if name.is_empty() {
        causes.required(&at.child("name"), "name or generateName is required");
    } else {
        causes.faults(&at.child("name"), name, rule.faults(name));
    }
    let namespace = text(meta, "namespace");
    match (namespaced, namespace.is_empty()) {
        (true, true) => causes.required(&at.child("namespace"), ""),
        (true, false) => causes.faults(&at.child("namespace"), namespace, format::dns1123_label(namespace)),
        (false, true) => {}
        (false, false) => causes.forbidden(&at.child("namespace"), "not allowed on this type"),
    }
    let generation = int(meta, "generation").unwrap_or(0);
    if generation < 0 {
        causes.invalid(&at.child("generation"), generation, "must be greater than or equal to 0");
    }
    labels(meta_map(meta, "labels"), &at.child("labels"), causes);
    annotations(meta, &at.child("annotations"), causes);
    owner_references(meta, causes);
    finalizers(meta, &at.child("finalizers"), causes);
    managed_fields(meta, causes);
}

fn meta_map<'m>(meta: &'m Members, name: &str) -> &'m Members {
    child_or_empty(meta, name)
}

/// Labels, wherever they stand.
pub fn labels(labels: &Members, at: &Path<'_>, causes: &mut Causes) {
    for (key, value) in labels {
        label_key(key, at, causes);
        label_value(value.as_str().unwrap_or(""), at, causes);
    }
}

/// The key of a label.
pub fn label_key(key: &str, at: &Path<'_>, causes: &mut Causes) {
    if !is_plain_name(key) {
        causes.faults(at, key, label_key_faults(key));
    }
}

/// The value of a label.
pub fn label_value(value: &str, at: &Path<'_>, causes: &mut Causes) {
    if !is_plain_name(value) {
        causes.faults(at, value, label_value_faults(value));
    }
}

/// Letters and digits, with dashes and dots inside: fine as key and value, and what most are.
fn is_plain_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= 63
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
}

/// Annotations: their keys in any case, and all together at most 256 KiB.
pub fn annotations(meta: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut bytes = 0;
    for (key, value) in entries(meta, "annotations") {
        bytes += key.len() + value.len();
        if !is_plain_name(key) {
            causes.faults(at, key, label_key_faults(&key.to_lowercase()));
        }
    }
    if bytes > ANNOTATIONS_BYTES_MAX {
        causes.too_long(at, ANNOTATIONS_BYTES_MAX);
    }
}

/// Drops owner references that are there already.
///
/// Returns the uids of those, a comma between two, if there are any.
pub fn dedup_owner_references(object: &mut Value) -> Option<String> {
    let references = object.pointer_mut("/metadata/ownerReferences")?.as_array_mut()?;
    if references.len() < 2 {
        return None;
    }
    let (mut seen, mut dropped) = (Seen::default(), Vec::new());
    references.retain(|reference| {
        let again = seen.again(reference.to_string());
        if again {
            dropped.push(reference["uid"].as_str().unwrap_or_default().to_owned());
        }
        !again
    });
    (!dropped.is_empty()).then(|| dropped.join(", "))
}

/// Who owns fields, as far as a client may say it wrongly: what else is wrong with an entry makes it none.
fn managed_fields(meta: &Members, causes: &mut Causes) {
    let at = METADATA.child("managedFields");
    for (index, entry) in objects(meta, "managedFields").enumerate() {
        if causes.is_full() {
            return;
        }
        let (at, name) = (at.index(index), text(entry, "manager"));
        let manager = at.child("manager");
        if name.len() > FIELD_MANAGER_BYTES_MAX {
            causes.too_long(&manager, FIELD_MANAGER_BYTES_MAX);
        }
        for (place, c) in name.char_indices().filter(|(_, c)| !is_print(*c)) {
            if causes.is_full() {
                return;
            }
            let detail = format!("invalid character U+{:04X} (at position {place})", u32::from(c));
            causes.invalid(&manager, name, &detail);
        }
        if text(entry, "subresource").len() > SUBRESOURCE_BYTES_MAX {
            causes.too_long(&at.child("subresource"), SUBRESOURCE_BYTES_MAX);
        }
    }
}

fn owner_references(meta: &Members, causes: &mut Causes) {
    let at = METADATA.child("ownerReferences");
    let mut controller: Option<String> = None;
    for owner in objects(meta, "ownerReferences") {
        owner_reference(owner, &at, causes);
        if owner.get("controller") != Some(&Value::Bool(true)) {
            continue;
        }
        let named = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(named),
            Some(_) if causes.is_full() => {}
            Some(first) => {
                let detail = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                     {named}"
                );
                let all = BadValue::shown_list(objects(meta, "ownerReferences").map(owner_shown));
                causes.invalid(&at, all, &detail);
            }
        }
    }
}

fn owner_reference(owner: &Members, at: &Path<'_>, causes: &mut Causes) {
    let api_version = text(owner, "apiVersion");
    // Two slashes parse to neither group nor version.
    let version = match api_version.matches('/').count() {
        0 | 1 => api_version.rsplit('/').next().unwrap_or(""),
        _ => "",
    };
    if version.is_empty() {
        causes.invalid(&at.child("apiVersion"), api_version, "version must not be empty");
    }
    for name in ["kind", "name", "uid"] {
        if text(owner, name).is_empty() {
            causes.invalid(&at.child(name), "", "must not be empty");
        }
    }
    if api_version == "v1" && text(owner, "kind") == "Event" {
        let detail = "/v1, Kind=Event is disallowed from being an owner";
        causes.invalid(at, BadValue::shown(owner_shown(owner)), detail);
    }
}

/// An owner reference with its members in the order of upstream's struct.
fn owner_shown(owner: &Members) -> String {
    const ALWAYS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
    let shown =
        |name: &str, value: &Value| format!("\"{name}\":{}", forebay_apimachinery::json::to_go_text(value));
    let empty = Value::String(String::new());
    let mut members: Vec<String> =
        ALWAYS.iter().map(|name| shown(name, owner.get(*name).unwrap_or(&empty))).collect();
    for name in ["controller", "blockOwnerDeletion"] {
        members.extend(owner.get(name).map(|value| shown(name, value)));
    }
    format!("{{{}}}", members.join(","))
}

fn finalizers(meta: &Members, at: &Path<'_>, causes: &mut Causes) {
    let (mut orphan, mut foreground) = (false, false);
    for finalizer in texts(meta, "finalizers") {
        label_key(finalizer, at, causes);
        orphan |= finalizer == ORPHAN;
        foreground |= finalizer == FOREGROUND;
    }
    if orphan && foreground {
        let detail = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        causes.invalid(at, meta.get("finalizers"), &detail);
    }
}

fn no_new_finalizers(new: &Members, old: &Members, causes: &mut Causes) {
    let known: Seen<&str> = texts(old, "finalizers").collect();
    let mut extra: Vec<&str> = texts(new, "finalizers").filter(|name| !known.has(*name)).collect();
    if extra.is_empty() {
        return;
    }
    extra.sort_unstable();
    extra.dedup();
    let quoted: Vec<String> = extra.iter().map(|name| forebay_apimachinery::json::go_quote(name)).collect();
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        quoted.join(", ")
    );
    causes.forbidden(&METADATA.child("finalizers"), &detail);
}
