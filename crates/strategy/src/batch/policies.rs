//! When a Job fails or succeeds early: `podFailurePolicy` and `successPolicy`.
//!
//! In: a Job's spec. Out: causes. Never: a pod's fate.
//!
//! Source: kubernetes v1.36.3 `apis/batch/validation`.

use forebay_apimachinery::Seen;
use serde_json::Value;

use super::indexes;
use crate::counts::not_negative;
use crate::field::{BadValue, Causes, Path};
use crate::meta::label_key;
use crate::value::{Members, child, child_or_empty, int, list, objects, text, text_opt};

const RULES_MAX: usize = 20;
const PATTERNS_MAX: usize = 20;
const CODES_MAX: usize = 255;
const INDEXES_BYTES_MAX: usize = 64 << 10;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];

/// `podFailurePolicy`.
pub fn failure(spec: &Members, policy: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("rules");
    let rules = list(policy, "rules").len();
    if rules > RULES_MAX {
        causes.too_many(&at, rules, RULES_MAX);
    }
    let containers = containers(spec);
    for (index, rule) in objects(policy, "rules").enumerate() {
        failure_rule(spec, rule, &containers, &at.index(index), causes);
    }
}

fn failure_rule(spec: &Members, rule: &Members, containers: &Seen<&str>, at: &Path<'_>, causes: &mut Causes) {
    match text(rule, "action") {
        "" => causes.required(&at.child("action"), &valid_values(&ACTIONS)),
        "FailIndex" if !spec.contains_key("backoffLimitPerIndex") => {
            causes.invalid(&at.child("action"), "FailIndex", "requires the backoffLimitPerIndex to be set");
        }
        known if ACTIONS.contains(&known) => {}
        other => causes.not_supported(&at.child("action"), other, &ACTIONS),
    }
    let codes = child(rule, "onExitCodes");
    if let Some(codes) = codes {
        exit_codes(codes, containers, &at.child("onExitCodes"), causes);
    }
    let patterns = list(rule, "onPodConditions").len();
    let patterns_at = at.child("onPodConditions");
    if patterns > PATTERNS_MAX {
        causes.too_many(&patterns_at, patterns, PATTERNS_MAX);
    }
    for (index, pattern) in objects(rule, "onPodConditions").enumerate() {
        condition(pattern, &patterns_at.index(index), causes);
    }
    match (codes.is_some(), patterns > 0) {
        (true, true) => {
            causes.invalid_omitted(at, "specifying both OnExitCodes and OnPodConditions is not supported")
        }
        (false, false) => {
            causes.invalid_omitted(at, "specifying one of OnExitCodes and OnPodConditions is required")
        }
        _ => {}
    }
}

fn condition(pattern: &Members, at: &Path<'_>, causes: &mut Causes) {
    label_key(text(pattern, "type"), &at.child("type"), causes);
    match text(pattern, "status") {
        "" => causes.required(&at.child("status"), &valid_values(&STATUSES)),
        known if STATUSES.contains(&known) => {}
        other => causes.not_supported(&at.child("status"), other, &STATUSES),
    }
}

fn exit_codes(codes: &Members, containers: &Seen<&str>, at: &Path<'_>, causes: &mut Causes) {
    const OPERATORS: [&str; 2] = ["In", "NotIn"];
    let operator = text(codes, "operator");
    match operator {
        "" => causes.required(&at.child("operator"), &valid_values(&OPERATORS)),
        known if OPERATORS.contains(&known) => {}
        other => causes.not_supported(&at.child("operator"), other, &OPERATORS),
    }
    if let Some(name) = text_opt(codes, "containerName")
        && !containers.has(name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        causes.invalid(&at.child("containerName"), name, detail);
    }
    let values: Vec<i64> = list(codes, "values").iter().filter_map(Value::as_i64).collect();
    let at = at.child("values");
    if values.is_empty() {
        causes.invalid(&at, BadValue::shown("[]"), "at least one value is required");
    } else if values.len() > CODES_MAX {
        causes.too_many(&at, values.len(), CODES_MAX);
    }
    let mut known = Seen::default();
    for (index, code) in values.iter().enumerate() {
        if operator == "In" && *code == 0 {
            causes.invalid(&at.index(index), 0, "must not be 0 for the In operator");
        }
        if known.again(*code) {
            causes.duplicate(&at.index(index), *code);
        }
    }
    if !values.is_sorted() {
        causes.invalid(&at, codes.get("values"), "must be ordered");
    }
}

/// Names of the containers that a failure may be of.
fn containers(spec: &Members) -> Seen<&str> {
    let pod = child_or_empty(child_or_empty(spec, "template"), "spec");
    let all = ["containers", "initContainers"].into_iter().flat_map(|list| objects(pod, list));
    all.map(|of| text(of, "name")).collect()
}

fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

/// `successPolicy` of an indexed Job.
pub fn success(spec: &Members, policy: &Members, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("rules");
    let rules = list(policy, "rules").len();
    if rules == 0 {
        causes.required(&at, "at least one rules must be specified when the successPolicy is specified");
    }
    if rules > RULES_MAX {
        causes.too_many(&at, rules, RULES_MAX);
    }
    let completions = int(spec, "completions").unwrap_or(0);
    for (index, rule) in objects(policy, "rules").enumerate() {
        success_rule(rule, completions, &at.index(index), causes);
    }
}

fn success_rule(rule: &Members, completions: i64, at: &Path<'_>, causes: &mut Causes) {
    let (wanted, indexes) = (int(rule, "succeededCount"), text_opt(rule, "succeededIndexes"));
    if wanted.is_none() && indexes.is_none() {
        causes.required(at, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if let Some(indexes) = indexes {
        let at = at.child("succeededIndexes");
        if indexes.len() > INDEXES_BYTES_MAX {
            causes.too_long(&at, INDEXES_BYTES_MAX);
        }
        match indexes::count(indexes, completions) {
            Ok(count) => total = count,
            Err(error) => causes.invalid(&at, indexes, &format!("error parsing succeededIndexes: {error}")),
        }
    }
    let Some(wanted) = wanted else { return };
    not_negative(rule, "succeededCount", at, causes);
    let at = at.child("succeededCount");
    if wanted > completions {
        let detail =
            format!("must be less than or equal to {completions} (the number of specified completions)");
        causes.invalid(&at, wanted, &detail);
    }
    if indexes.is_some() && wanted > total {
        let detail = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        causes.invalid(&at, wanted, &detail);
    }
}
