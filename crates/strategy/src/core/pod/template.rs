//! The pod templates of controllers.
//!
//! In: a template and where it is. Out: causes. Never: a controller's own rules.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`.

use super::annotations as noted;
use super::app_armor;
use super::spec::{self, Owner};
use crate::field::{Causes, Path};
use crate::meta::{annotations, labels};
use crate::value::{Members, child_or_empty, list, text};

/// What any template must be.
pub fn validate_template(template: &Members, at: &Path<'_>, causes: &mut Causes) {
    let meta = child_or_empty(template, "metadata");
    labels(child_or_empty(meta, "labels"), &at.child("labels"), causes);
    annotations(meta, &at.child("annotations"), causes);
    let (pod, notes) = (child_or_empty(template, "spec"), child_or_empty(meta, "annotations"));
    noted::validate(notes, None, pod, &at.child("annotations"), causes);
    spec::validate(pod, Owner::Template, &at.child("spec"), causes);
    noted::seccomp_fields_match(notes, pod, &at.child("spec"), causes);
    app_armor::fields_match(notes, pod, &at.child("spec"), causes);
    if !list(pod, "ephemeralContainers").is_empty() {
        let at = at.child("spec");
        causes
            .forbidden(&at.child("ephemeralContainers"), "ephemeral containers not allowed in pod template");
    }
}

/// The pods of `owner` run for good.
pub fn only_always(template: &Members, owner: &str, at: &Path<'_>, causes: &mut Causes) {
    let (pod, at) = (child_or_empty(template, "spec"), at.child("spec"));
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        causes.not_supported(&at.child("restartPolicy"), policy, &["Always"]);
    }
    if pod.contains_key("activeDeadlineSeconds") {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        causes.forbidden(&at.child("activeDeadlineSeconds"), &detail);
    }
}

/// The labels of a template are not what its controller selects.
pub fn template_not_selected(template: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("metadata");
    let labels = child_or_empty(template, "metadata").get("labels");
    causes.invalid(&at.child("labels"), labels, "`selector` does not match template `labels`");
}
