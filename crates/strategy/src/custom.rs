//! Custom resources, whatever their schema.
//!
//! In: a custom resource and what its definition says of its subresources. Out: what it is stored as, causes.
//! Never: its schema.
//!
//! Source: apiextensions-apiserver v0.36.3 `registry/customresource`.

use forebay_crd::CustomRules;

use forebay_apimachinery::Seen;
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::selector::label_key_faults;

use super::field::{Causes, Path};
use super::meta::{validate_meta_create, validate_meta_update};
use super::names::NameRule;
use super::rule::Update;
use super::scale::{replicas_at, selector_at};
use super::value::{Members, child_made, child_or_empty, int, set, take_over, texts};

/// Finalizers that stand without a domain.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

pub fn prepare_create(rules: &CustomRules, object: &mut Members) {
    if rules.status_subresource {
        object.remove("status");
    }
    set(child_made(object, "metadata"), "generation", Some(1.into()));
}

pub fn prepare_update(rules: &CustomRules, new: &mut Members, update: &Update<'_>) {
    let old = update.old;
    if update.is_status() {
        return only_status(new, old);
    }
    if rules.status_subresource {
        take_over(new, old, "status");
    }
    let rest = |object: &Members| object.iter().filter(|(name, _)| *name != "metadata").count();
    let same = rest(new) == rest(old)
        && new
            .iter()
            .filter(|(name, _)| *name != "metadata")
            .all(|(name, value)| old.get(name) == Some(value));
    if !same {
        let generation = int(child_or_empty(old, "metadata"), "generation").unwrap_or(0);
        set(child_made(new, "metadata"), "generation", Some((generation + 1).into()));
    }
}

/// Everything but the status is the stored object's; its resourceVersion, too, so a precondition has to be
/// looked at before.
fn only_status(new: &mut Members, old: &Members) {
    let status = new.remove("status");
    *new = old.clone();
    set(new, "status", status);
}

pub fn validate_create(rules: &CustomRules, object: &Members, causes: &mut Causes) {
    validate_meta_create(child_or_empty(object, "metadata"), rules.namespaced, NameRule::Subdomain, causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_meta_update(child_or_empty(new, "metadata"), child_or_empty(update.old, "metadata"), causes);
}

/// What is wrong with what its scale reads of it.
pub fn validate_scale(rules: &CustomRules, object: &Members, is_status: bool, causes: &mut Causes) {
    if !is_status {
        scale_spec(rules, object, causes);
    }
    scale_status(rules, object, causes);
}

/// What is said of finalizers that are new: those without a domain, or without a path, are anybody's.
pub fn warnings(object: &Members, update: Option<&Update<'_>>, warnings: &mut Vec<String>) {
    let of = |object| texts(child_or_empty(object, "metadata"), "finalizers");
    let known: Seen<&str> = update.into_iter().flat_map(|update| of(update.old)).collect();
    let mut added: Vec<&str> = of(object).filter(|name| !known.has(*name)).collect();
    added.sort_unstable();
    added.dedup();
    for name in added {
        let mut say = |why: &str| warnings.push(format!("metadata.finalizers: {}: {why}", go_quote(name)));
        label_key_faults(name).iter().for_each(|fault| say(fault));
        if name.contains('/') || STANDARD_FINALIZERS.contains(&name) {
            continue;
        }
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        say(&format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer \
             writers"
        ));
    }
}

fn scale_spec(rules: &CustomRules, object: &Members, causes: &mut Causes) {
    if let Some(paths) = &rules.scale {
        replicas(object, &paths.spec_replicas, causes);
    }
}

fn scale_status(rules: &CustomRules, object: &Members, causes: &mut Causes) {
    let Some(paths) = &rules.scale else { return };
    replicas(object, &paths.status_replicas, causes);
    if let Some(path) = &paths.label_selector
        && let Err(error) = selector_at(object, path)
    {
        causes.invalid(&Path::root(path), "", &error);
    }
}

fn replicas(object: &Members, path: &str, causes: &mut Causes) {
    let at = Path::root(path);
    match replicas_at(object, path) {
        Err(error) => causes.invalid(&at, 0, &error),
        Ok(Some(replicas)) if replicas < 0 => {
            causes.invalid(&at, replicas, "should be a non-negative integer");
        }
        Ok(Some(replicas)) if replicas > i64::from(i32::MAX) => {
            causes.invalid(&at, replicas, "should be less than or equal to 2147483647");
        }
        Ok(_) => {}
    }
}
