//! CSINodes.
//!
//! In: a CSINode. Out: causes. Never: asks the node.

use std::collections::HashMap;

use forebay_apimachinery::Seen;

use crate::core::pod::csi_driver_name;
use crate::counts::not_negative;
use crate::field::{Causes, Path};
use crate::internal;
use crate::meta::{IMMUTABLE, label_key, validate_built_in_create};
use crate::names::NameRule;
use crate::rule::Update;
use crate::typed::same_of;
use crate::value::{Members, child_or_empty, objects, text, texts};

const NODE_ID_BYTES_MAX: usize = 256;
const SPEC: Path<'static> = Path::root("spec");

pub fn validate(node: &Members, causes: &mut Causes) {
    let mut known = Seen::default();
    let at = SPEC.child("drivers");
    for (index, of) in objects(child_or_empty(node, "spec"), "drivers").enumerate() {
        let at = at.index(index);
        driver(of, &at, causes);
        let name = text(of, "name");
        if known.again(name) {
            causes.duplicate(&at.child("name"), name);
        }
        topology_keys(of, &at, causes);
    }
}

/// A driver stays what it is, but for how many volumes it takes.
pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    validate_built_in_create(child_or_empty(new, "metadata"), false, NameRule::Subdomain, causes);
    validate(new, causes);
    let drivers = |node| objects(child_or_empty(node, "spec"), "drivers");
    let mut by_name: HashMap<&str, Vec<&Members>> = HashMap::new();
    for driver in drivers(new) {
        by_name.entry(text(driver, "name")).or_default().push(driver);
    }
    // A stored node has each name once, and repeats in the new one have been told of already.
    for old in drivers(update.old) {
        for new in by_name.remove(text(old, "name")).unwrap_or_default() {
            let (new, old) = (fixed(new), fixed(old));
            if !same_of(("storage/v1", "CSINodeDriver"), &new, &old) {
                causes.invalid(&SPEC.child("drivers"), internal::shown("CSINodeDriver", &new), IMMUTABLE);
            }
        }
    }
}

fn fixed(driver: &Members) -> Members {
    let mut driver = driver.clone();
    driver.remove("allocatable");
    driver
}

fn driver(driver: &Members, at: &Path<'_>, causes: &mut Causes) {
    csi_driver_name(text(driver, "name"), &at.child("name"), causes);
    let id = text(driver, "nodeID");
    if id.is_empty() {
        causes.required(&at.child("nodeID"), "");
    }
    if id.len() > NODE_ID_BYTES_MAX {
        causes.invalid(&at.child("nodeID"), id, "must be 256 characters or less");
    }
    not_negative(child_or_empty(driver, "allocatable"), "count", &at.child("allocatable"), causes);
}

fn topology_keys(driver: &Members, at: &Path<'_>, causes: &mut Causes) {
    let mut known = Seen::default();
    for key in texts(driver, "topologyKeys") {
        if key.is_empty() {
            causes.required(at, "");
        }
        if known.again(key) {
            causes.duplicate(at, key);
        }
        label_key(key, at, causes);
    }
}
