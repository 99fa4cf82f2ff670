//! ReplicaSets.
//!
//! In: a ReplicaSet. Out: defaults, causes. Never: its pods.
//!
//! Source: kubernetes v1.36.3 `registry/apps/replicaset`, `apis/apps/{v1,validation}`.

use super::template::{not_negative, replica_counts, same_selector, selector_of, template_of};
use crate::core::pod;
use crate::field::{Causes, Path};
use crate::meta::validate_built_in_update;
use crate::rule::Update;
use crate::value::{Members, child_made, child_or_empty, default};

const SPEC: Path<'static> = Path::root("spec");

pub fn defaults(set: &mut Members) {
    let spec = child_made(set, "spec");
    default(spec, "replicas", 1);
    pod::defaults::template(child_made(spec, "template"));
}

pub fn validate_create(set: &Members, causes: &mut Causes) {
    let spec = child_or_empty(set, "spec");
    not_negative(spec, "replicas", &SPEC, causes);
    not_negative(spec, "minReadySeconds", &SPEC, causes);
    selector_of(spec, &SPEC, "empty selector is invalid for deployment", causes);
    template_of(spec, &SPEC, "invalid label selector", "ReplicaSet", causes);
}

pub fn validate_update(new: &Members, update: &Update<'_>, causes: &mut Causes) {
    let old = update.old;
    validate_built_in_update(new, old, causes);
    if update.is_status() {
        return validate_status(child_or_empty(new, "status"), causes);
    }
    validate_create(new, causes);
    same_selector(child_or_empty(new, "spec"), child_or_empty(old, "spec"), causes);
}

fn validate_status(status: &Members, causes: &mut Causes) {
    const COUNTS: [&str; 6] = [
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    replica_counts(status, &COUNTS, "fullyLabeledReplicas", causes);
}
