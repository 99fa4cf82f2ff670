//! CSIStorageCapacities.
//!
//! In: a CSIStorageCapacity. Out: causes, warnings. Never: how much there is.

use forebay_apimachinery::quantity;

use crate::field::{Causes, Path};
use crate::format;
use crate::meta::{IMMUTABLE, validate_built_in_create, validate_built_in_update};
use crate::names::NameRule;
use crate::node::deprecated_label;
use crate::rule::Update;
use crate::selector;
use crate::value::{Members, child, child_or_empty, objects, same_member, text};

const TOPOLOGY: Path<'static> = Path::root("nodeTopology");

pub fn validate(capacity: &Members, causes: &mut Causes) {
    if let Some(of) = child(capacity, "nodeTopology") {
        selector::validate(of, &TOPOLOGY, causes);
    }
    let class = text(capacity, "storageClassName");
    causes.faults(&Path::root("storageClassName"), class, format::dns1123_subdomain(class));
    if let Some(amount) = capacity.get("capacity").filter(|amount| quantity::of(amount) < 0) {
        causes.invalid(&Path::root("capacity"), amount, "must be greater than or equal to 0");
    }
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_create(child_or_empty(new, "metadata"), true, NameRule::Subdomain, causes);
    validate(new, causes);
    validate_built_in_update(new, old, causes);
    if !same_member(new, old, "nodeTopology") {
        causes.invalid(&TOPOLOGY, selector::shown(new.get("nodeTopology")), IMMUTABLE);
    }
    if text(new, "storageClassName") != text(old, "storageClassName") {
        causes.invalid(&Path::root("storageClassName"), text(new, "storageClassName"), IMMUTABLE);
    }
}

pub fn warnings(capacity: &Members, warnings: &mut Vec<String>) {
    let selector = child_or_empty(capacity, "nodeTopology");
    let at = TOPOLOGY.child("matchExpressions");
    for (index, expression) in objects(selector, "matchExpressions").enumerate() {
        let key = text(expression, "key");
        if let Some(why) = deprecated_label(key) {
            warnings.push(format!("{}: {key} is {why}", at.index(index).child("key")));
        }
    }
    for label in child_or_empty(selector, "matchLabels").keys() {
        if let Some(why) = deprecated_label(label) {
            warnings.push(format!("{}: {why}", TOPOLOGY.child("matchLabels").child(label)));
        }
    }
}
