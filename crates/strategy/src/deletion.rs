//! What a DELETE does to an object: its grace, its finalizers, and whether it goes now.
//!
//! In: the stored object, the options, the time. Out: the object changed in place, and a [`Deletion`] that
//! says what to do with it. Never: preconditions, admission, dependents.
//!
//! Source: apiserver v0.36.3 `registry/rest/delete.go`, `registry/generic/registry/store.go`; kubernetes v1.36.3
//! `registry/core/{pod/strategy.go,namespace/storage}`.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::kind::GroupKind;
use super::rule::DefaultPropagation;
use super::value::{Members, child_made, child_or_empty, int, list, list_mut, set, text, texts};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// `DeleteOptions`, as far as an object is changed by them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    pub grace_period_seconds: Option<i64>,
    pub orphan_dependents: Option<bool>,
    pub propagation: Option<Propagation>,
}

/// What becomes of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// Holds a CustomResourceDefinition until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// What to do with an object that is to be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is on its way already: answer with it as it is.
    AlreadyDeleting,
    /// Store what it has become; somebody else finishes.
    Store,
    /// Store what it has become, then remove it.
    StoreAndRemove,
    /// Remove it as it is.
    Remove,
}

/// The grace that a pod is given, by its state and what was asked for, in seconds and not negative.
fn pod_grace(pod: &Members, requested: Option<i64>) -> i64 {
    let spec = child_or_empty(pod, "spec");
    let wanted = requested.or_else(|| int(spec, "terminationGracePeriodSeconds")).unwrap_or(0);
    let scheduled = !text(spec, "nodeName").is_empty();
    let ended = matches!(text(child_or_empty(pod, "status"), "phase"), "Failed" | "Succeeded");
    match wanted {
        _ if !scheduled || ended => 0,
        negative if negative < 0 => 1,
        seconds => seconds,
    }
}

/// Begins, hastens or ends the deletion of an object.
///
/// - `object`: changed when the answer is to store it.
/// - `now`: RFC 3339 in whole seconds.
pub fn start_deletion(
    kind: &GroupKind<'_>,
    object: &mut Value,
    options: &DeleteOptions,
    now: &str,
) -> Deletion {
    let Some(members) = object.as_object_mut() else { return Deletion::Remove };
    let grace = match begin_grace(kind, members, options, now) {
        Grace::AlreadyDeleting => return Deletion::AlreadyDeleting,
        grace => grace,
    };
    let meta = child_made(members, "metadata");
    let current: Vec<&str> = texts(meta, "finalizers").collect();
    if let Some(finalizers) = finalizers_for_deletion(kind.flags().propagation, &current, options) {
        let finalizers: Vec<Value> = finalizers.into_iter().map(Value::from).collect();
        set(meta, "finalizers", (!finalizers.is_empty()).then_some(Value::Array(finalizers)));
    }
    let held = !list(meta, "finalizers").is_empty();
    match grace {
        Grace::None if held => {
            mark_as_deleting(meta, now);
            Deletion::Store
        }
        Grace::None => Deletion::Remove,
        Grace::Begun(seconds) if held || seconds > 0 => Deletion::Store,
        Grace::Begun(_) => Deletion::StoreAndRemove,
        Grace::AlreadyDeleting => Deletion::AlreadyDeleting,
    }
}

enum Grace {
    None,
    AlreadyDeleting,
    Begun(i64),
}

fn begin_grace(kind: &GroupKind<'_>, members: &mut Members, options: &DeleteOptions, now: &str) -> Grace {
    if !kind.flags().graceful {
        return Grace::None;
    }
    let requested = options.grace_period_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let meta = child_or_empty(members, "metadata");
    if !text(meta, "deletionTimestamp").is_empty() {
        return hasten(child_made(members, "metadata"), requested, now);
    }
    let seconds = pod_grace(members, requested);
    let meta = child_made(members, "metadata");
    set(meta, "deletionTimestamp", Some(after(now, seconds).into()));
    set(meta, "deletionGracePeriodSeconds", Some(seconds.into()));
    bump_generation(meta);
    Grace::Begun(seconds)
}

/// Only a shorter grace than the one that runs changes anything.
fn hasten(meta: &mut Members, requested: Option<i64>, now: &str) -> Grace {
    let running = match int(meta, "deletionGracePeriodSeconds") {
        None | Some(0) => return Grace::None,
        Some(negative) if negative < 0 => 1,
        Some(seconds) => seconds,
    };
    let Some(mut seconds) = requested.filter(|requested| *requested < running) else {
        return Grace::AlreadyDeleting;
    };
    let asked_at = after(text(meta, "deletionTimestamp"), -running);
    let mut end = after(&asked_at, seconds);
    if earlier(&end, now) {
        end = now.to_string();
        // It was asked for grace: somebody else still ends it.
        seconds = seconds.min(1);
    }
    set(meta, "deletionTimestamp", Some(end.into()));
    set(meta, "deletionGracePeriodSeconds", Some(seconds.into()));
    Grace::Begun(seconds)
}

/// Says in the metadata that the object is being deleted, without grace.
fn mark_as_deleting(meta: &mut Members, now: &str) {
    let running = text(meta, "deletionTimestamp");
    if running.is_empty() {
        bump_generation(meta);
    }
    let running = text(meta, "deletionTimestamp");
    if running.is_empty() || earlier(now, running) {
        set(meta, "deletionTimestamp", Some(now.into()));
    }
    set(meta, "deletionGracePeriodSeconds", Some(0.into()));
}

fn bump_generation(meta: &mut Members) {
    if let Some(generation) = int(meta, "generation").filter(|generation| *generation > 0) {
        set(meta, "generation", Some((generation + 1).into()));
    }
}

/// The finalizers that an object has once it is being deleted; `None` when they are the ones it has.
fn finalizers_for_deletion(
    default: DefaultPropagation,
    current: &[&str],
    options: &DeleteOptions,
) -> Option<Vec<String>> {
    let keep = |name: &&&str| ***name != *ORPHAN && ***name != *FOREGROUND;
    let mut finalizers: Vec<&str> = current.iter().filter(keep).copied().collect();
    if should_orphan(default, current, options) {
        finalizers.push(ORPHAN);
    }
    if should_wait_for_dependents(default, current, options) {
        finalizers.push(FOREGROUND);
    }
    // The others are kept, and there may be very many.
    let unchanged =
        [ORPHAN, FOREGROUND].iter().all(|name| finalizers.contains(name) == current.contains(name));
    (!unchanged).then(|| finalizers.into_iter().map(str::to_string).collect())
}

fn should_orphan(default: DefaultPropagation, current: &[&str], options: &DeleteOptions) -> bool {
    let asked = options.orphan_dependents.or(options.propagation.map(|asked| asked == Propagation::Orphan));
    let finalizers =
        // Once: for the whole object.
        || current.iter().find(|name| [ORPHAN, FOREGROUND].contains(name)).map(|name| *name == ORPHAN);
    match default {
        DefaultPropagation::Unsupported => false,
        _ => asked.or_else(finalizers).unwrap_or(default == DefaultPropagation::Orphan),
    }
}

fn should_wait_for_dependents(
    default: DefaultPropagation,
    current: &[&str],
    options: &DeleteOptions,
) -> bool {
    if default == DefaultPropagation::Unsupported || options.orphan_dependents.is_some() {
        return false;
    }
    // Once: for the whole object.
    let finalizers = || current.iter().find(|name| [ORPHAN, FOREGROUND].contains(name)) == Some(&FOREGROUND);
    options.propagation.map_or_else(finalizers, |asked| asked == Propagation::Foreground)
}

/// Whether an update that leaves `new` of an object being deleted ends it: nothing holds it any more.
pub fn may_finish_deletion(kind: &GroupKind<'_>, new: &Value, old: &Value) -> bool {
    let (Some(new), Some(old)) = (new.as_object(), old.as_object()) else { return false };
    let old_meta = child_or_empty(old, "metadata");
    let content_is_gone = !is_namespace(kind) || list(child_or_empty(new, "spec"), "finalizers").is_empty();
    content_is_gone
        && list(child_or_empty(new, "metadata"), "finalizers").is_empty()
        && !text(old_meta, "deletionTimestamp").is_empty()
        && matches!(int(old_meta, "deletionGracePeriodSeconds"), None | Some(0))
}

/// Begins the deletion of a namespace, which goes on until its content is gone: `None` when it has begun
/// before and nothing of its content is left, so that it is deleted like everything else, with
/// [`start_deletion`].
pub fn start_namespace_deletion(
    namespace: &mut Value,
    options: &DeleteOptions,
    now: &str,
) -> Option<Deletion> {
    let members = namespace.as_object_mut()?;
    if !text(child_or_empty(members, "metadata"), "deletionTimestamp").is_empty() {
        let held = !list(child_or_empty(members, "spec"), "finalizers").is_empty();
        return held.then_some(Deletion::AlreadyDeleting);
    }
    set(child_made(members, "status"), "phase", Some("Terminating".into()));
    let meta = child_made(members, "metadata");
    set(meta, "deletionTimestamp", Some(now.into()));
    let current: Vec<&str> = texts(meta, "finalizers").collect();
    let mut finalizers: Vec<&str> =
        current.iter().filter(|name| ![ORPHAN, FOREGROUND].contains(name)).copied().collect();
    // Not as everywhere else: here orphanDependents=false asks for the foreground.
    let asked = |propagation| options.propagation.map(|asked| asked == propagation);
    let orphan = options.orphan_dependents.or(asked(Propagation::Orphan));
    // Once: for the whole object.
    if orphan.unwrap_or(current.contains(&ORPHAN)) {
        finalizers.push(ORPHAN);
    }
    let foreground = options.orphan_dependents.map(|orphan| !orphan).or(asked(Propagation::Foreground));
    // Once: for the whole object.
    if foreground.unwrap_or(current.contains(&FOREGROUND)) {
        finalizers.push(FOREGROUND);
    }
    let finalizers: Vec<Value> = finalizers.into_iter().map(Value::from).collect();
    set(meta, "finalizers", (!finalizers.is_empty()).then_some(Value::Array(finalizers)));
    Some(Deletion::Store)
}

impl Propagation {
    /// As it stands in `propagationPolicy`.
    pub fn parse(text: &str) -> Option<Propagation> {
        match text {
            "Background" => Some(Propagation::Background),
            "Foreground" => Some(Propagation::Foreground),
            "Orphan" => Some(Propagation::Orphan),
            _ => None,
        }
    }
}

fn is_namespace(kind: &GroupKind<'_>) -> bool {
    kind.custom.is_none() && kind.group.is_empty() && kind.kind == "Namespace"
}

/// The time `seconds` after `time`; `time` itself when it cannot be told.
fn after(time: &str, seconds: i64) -> String {
    let moved = time
        .parse::<Timestamp>()
        .ok()
        .and_then(|parsed| parsed.checked_add(SignedDuration::from_secs(seconds)).ok());
    moved.map_or_else(|| time.to_string(), |moved| moved.to_string())
}

/// Both are UTC in whole seconds, so their texts compare as they do.
fn earlier(a: &str, b: &str) -> bool {
    a < b
}

/// Begins the deletion of a definition, which goes on until its objects are gone; `None` when it has begun
/// before, and it is deleted like everything else, with [`start_deletion`].
pub fn start_definition_deletion(definition: &mut Value, now: &str) -> Option<Deletion> {
    let members = definition.as_object_mut()?;
    let meta = child_made(members, "metadata");
    if !text(meta, "deletionTimestamp").is_empty() {
        return None;
    }
    set(meta, "deletionTimestamp", Some(now.into()));
    if !texts(meta, "finalizers").any(|finalizer| finalizer == CLEANUP_FINALIZER) {
        match meta.get_mut("finalizers") {
            Some(Value::Array(finalizers)) => finalizers.push(CLEANUP_FINALIZER.into()),
            _ => set(meta, "finalizers", Some(json!([CLEANUP_FINALIZER]))),
        }
    }
    set_terminating(child_made(members, "status"), now);
    Some(Deletion::Store)
}

fn set_terminating(status: &mut Members, now: &str) {
    let terminating = json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "lastTransitionTime": now,
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    });
    let mut known = list_mut(status, "conditions").iter_mut();
    if let Some(condition) = known.find(|condition| condition["type"] == "Terminating") {
        *condition = terminating;
        return;
    }
    match status.get_mut("conditions") {
        Some(Value::Array(conditions)) => conditions.push(terminating),
        _ => set(status, "conditions", Some(json!([terminating]))),
    }
}
