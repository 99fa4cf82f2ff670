//! StorageClasses and VolumeAttributesClasses.
//!
//! In: a class. Out: defaults, causes, warnings. Never: which one is the default.

use std::collections::HashMap;

use forebay_apimachinery::Seen;

use crate::field::{BadValue, Causes, Path};
use crate::meta::{IMMUTABLE, label_key, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::node::deprecated_label;
use crate::rule::Update;
use crate::value::{
    Members, child_or_empty, default, entries, list, objects, same_member, text, text_opt, texts,
};

const PARAMETERS_MAX: usize = 512;
const PARAMETERS_BYTES_MAX: usize = 256 << 10;

pub fn defaults(class: &mut Members) {
    default(class, "reclaimPolicy", "Delete");
    default(class, "volumeBindingMode", "Immediate");
}

pub fn validate(class: &Members, causes: &mut Causes) {
    const POLICIES: [&str; 2] = ["Delete", "Retain"];
    const MODES: [&str; 2] = ["Immediate", "WaitForFirstConsumer"];
    provisioner(class, "provisioner", causes);
    parameters(class, causes);
    let policy = text(class, "reclaimPolicy");
    if !policy.is_empty() && !POLICIES.contains(&policy) {
        causes.not_supported(&Path::root("reclaimPolicy"), policy, &POLICIES);
    }
    match text_opt(class, "volumeBindingMode") {
        None => causes.required(&Path::root("volumeBindingMode"), ""),
        Some(mode) if !MODES.contains(&mode) => {
            causes.not_supported(&Path::root("volumeBindingMode"), mode, &MODES);
        }
        Some(_) => {}
    }
    topologies(class, causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
    validate(new, causes);
    validate_built_in_update(new, old, causes);
    for name in ["parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"] {
        if same_member(new, old, name) {
            continue;
        }
        let bad = match (new.get(name), name) {
            (None, "provisioner") => BadValue::Text(""),
            (value, _) => value.into(),
        };
        causes.invalid(&Path::root(name), bad, IMMUTABLE);
    }
}

pub fn warnings(class: &Members, warnings: &mut Vec<String>) {
    let at = Path::root("allowedTopologies");
    for (index, term) in objects(class, "allowedTopologies").enumerate() {
        let at = at.index(index);
        for (index, expression) in objects(term, "matchLabelExpressions").enumerate() {
            if let Some(why) = deprecated_label(text(expression, "key")) {
                let at = at.child("matchLabelExpressions");
                warnings.push(format!("{}: {why}", at.index(index).child("key")));
            }
        }
    }
}

pub fn validate_attributes(class: &Members, causes: &mut Causes) {
    provisioner(class, "driverName", causes);
    let before = causes.len();
    parameters(class, causes);
    if causes.len() == before && child_or_empty(class, "parameters").is_empty() {
        causes.required(&Path::root("parameters"), "must contain at least one key/value pair");
    }
}

pub fn validate_attributes_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if text(new, "driverName") != text(old, "driverName") {
        causes.forbidden(&Path::root("driverName"), "updates to driverName are forbidden.");
    }
    if !same_member(new, old, "parameters") {
        causes.forbidden(&Path::root("parameters"), "updates to parameters are forbidden.");
    }
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
    validate_attributes(new, causes);
}

fn provisioner(class: &Members, name: &str, causes: &mut Causes) {
    match text(class, name) {
        "" => causes.required(&Path::root(name), ""),
        provisioner => label_key(&provisioner.to_lowercase(), &Path::root(name), causes),
    }
}

fn parameters(class: &Members, causes: &mut Causes) {
    let at = Path::root("parameters");
    if child_or_empty(class, "parameters").len() > PARAMETERS_MAX {
        return causes.too_long(&at, PARAMETERS_MAX);
    }
    let mut bytes = 0;
    for (key, value) in entries(class, "parameters") {
        if key.is_empty() {
            causes.invalid(&at, key, "field can not be empty.");
        }
        bytes += key.len() + value.len();
    }
    if bytes > PARAMETERS_BYTES_MAX {
        causes.too_long(&at, PARAMETERS_BYTES_MAX);
    }
}

/// The keys of a term, each with its values as a set.
type Term<'o> = Vec<(&'o str, Vec<&'o str>)>;

fn topologies(class: &Members, causes: &mut Causes) {
    let at = Path::root("allowedTopologies");
    // Upstream begins with as many empty terms as there are terms, so an empty one always repeats them all.
    let mut known: HashMap<Term<'_>, usize> =
        HashMap::from([(Vec::new(), list(class, "allowedTopologies").len())]);
    for (index, term) in objects(class, "allowedTopologies").enumerate() {
        let at = at.index(index);
        let at = at.child("matchLabelExpressions");
        let found = topology(term, &at, causes);
        let times = known.entry(found).or_default();
        for _ in 0..*times {
            if causes.is_full() {
                break;
            }
            causes.duplicate(&at, "");
        }
        *times += 1;
    }
}

fn topology<'o>(term: &'o Members, at: &Path<'_>, causes: &mut Causes) -> Term<'o> {
    let mut found: HashMap<&str, Vec<&str>> = HashMap::new();
    for (index, expression) in objects(term, "matchLabelExpressions").enumerate() {
        let at = at.index(index);
        let key = text(expression, "key");
        let (mut values, mut known): (Vec<&str>, Seen<&str>) = (Vec::new(), Seen::default());
        if list(expression, "values").is_empty() {
            causes.required(&at.child("values"), "");
        }
        for (index, value) in texts(expression, "values").enumerate() {
            if known.again(value) {
                causes.duplicate(&at.child("values").index(index), value);
            } else {
                values.push(value);
            }
        }
        label_key(key, &at.child("key"), causes);
        values.sort_unstable();
        if found.insert(key, values).is_some() {
            causes.duplicate(&at.child("key"), key);
        }
    }
    let mut found: Term<'o> = found.into_iter().collect();
    found.sort_unstable();
    found
}
