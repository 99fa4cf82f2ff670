//! What a Job's spec may be, on its own and inside a CronJob.
//!
//! In: a JobSpec. Out: causes. Never: its selector, which a CronJob's has not.
//!
//! Source: kubernetes v1.36.3 `apis/batch/validation`.

use super::policies;
use crate::core::pod;
use crate::counts::not_negative;
use crate::field::{BadValue, Causes, Path};
use crate::format;
use crate::internal;
use crate::value::{Members, child, child_or_empty, int, text, text_opt};

const INDEXED_PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const HIGH_COMPLETIONS_MAX: i64 = 10_000;
const MANAGED_BY_BYTES_MAX: usize = 63;

pub fn validate(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    const NUMBERS: [&str; 7] = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    NUMBERS.into_iter().for_each(|name| not_negative(spec, name, at, causes));
    if spec.contains_key("maxFailedIndexes") && !spec.contains_key("backoffLimitPerIndex") {
        causes.required(&at.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified");
    }
    if let Some(manager) = text_opt(spec, "managedBy") {
        managed_by(manager, &at.child("managedBy"), causes);
    }
    completion_mode(spec, at, causes);
    if let Some(policy) = child(spec, "podFailurePolicy") {
        policies::failure(spec, policy, &at.child("podFailurePolicy"), causes);
    }
    if let Some(policy) = child(spec, "successPolicy") {
        let at = at.child("successPolicy");
        if text(spec, "completionMode") == "Indexed" {
            policies::success(spec, policy, &at, causes);
        } else {
            causes.invalid(&at, internal::shown("SuccessPolicy", policy), "requires indexed completion mode");
        }
    }
    replacement(spec, &at.child("podReplacementPolicy"), causes);
    let template = child_or_empty(spec, "template");
    pod::validate_template(template, &at.child("template"), causes);
    restart_policy(spec, template, &at.child("template"), causes);
}

fn managed_by(manager: &str, at: &Path<'_>, causes: &mut Causes) {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    match manager.split_once('/') {
        _ if manager.is_empty() => causes.required(at, ""),
        Some((host, path)) if !host.is_empty() && !path.is_empty() => {
            causes.faults(at, host, format::dns1123_subdomain(host));
            if !path.bytes().all(allowed) {
                let detail = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')";
                causes.invalid(at, path, detail);
            }
        }
        _ => causes.invalid(at, manager, "must be a domain-prefixed path (such as \"acme.io/foo\")"),
    }
    if manager.len() > MANAGED_BY_BYTES_MAX {
        causes.too_long(at, MANAGED_BY_BYTES_MAX);
    }
}

fn completion_mode(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    const MODES: [&str; 2] = ["NonIndexed", "Indexed"];
    let mode = text_opt(spec, "completionMode");
    if let Some(mode) = mode.filter(|mode| !MODES.contains(mode)) {
        let bad = BadValue::shown(forebay_apimachinery::json::go_quote(mode));
        causes.not_supported(&at.child("completionMode"), bad, &MODES);
    }
    match mode {
        Some("Indexed") => indexed(spec, at, causes),
        None | Some("NonIndexed") => {
            for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
                if let Some(number) = int(spec, name) {
                    causes.invalid(&at.child(name), number, "requires indexed completion mode");
                }
            }
        }
        Some(_) => {}
    }
}

fn indexed(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    let completions = int(spec, "completions");
    let (parallelism, failed) = (int(spec, "parallelism").unwrap_or(0), int(spec, "maxFailedIndexes"));
    let (parallelism_at, failed_at) = (at.child("parallelism"), at.child("maxFailedIndexes"));
    if completions.is_none() {
        causes.required(&at.child("completions"), "when completion mode is Indexed");
    }
    if parallelism > INDEXED_PARALLELISM_MAX {
        let detail = format!(
            "must be less than or equal to {INDEXED_PARALLELISM_MAX} when completion mode is Indexed"
        );
        causes.invalid(&parallelism_at, parallelism, &detail);
    }
    if let (Some(completions), Some(failed)) = (completions, failed)
        && failed > completions
    {
        causes.invalid(&failed_at, failed, "must be less than or equal to completions");
    }
    if let Some(failed) = failed.filter(|failed| *failed > FAILED_INDEXES_MAX) {
        causes.invalid(&failed_at, failed, &format!("must be less than or equal to {FAILED_INDEXES_MAX}"));
    }
    if completions.is_none_or(|count| count <= COMPLETIONS_SOFT_MAX)
        || !spec.contains_key("backoffLimitPerIndex")
    {
        return;
    }
    let detail = format!(
        "must be less than or equal to {HIGH_COMPLETIONS_MAX} when completions are above {COMPLETIONS_SOFT_MAX} and \
         used with backoff limit per index"
    );
    if failed.is_none() {
        let detail = format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
        causes.required(&failed_at, &detail);
    }
    if parallelism > HIGH_COMPLETIONS_MAX {
        causes.invalid(&parallelism_at, parallelism, &detail);
    }
    if let Some(failed) = failed.filter(|failed| *failed > HIGH_COMPLETIONS_MAX) {
        causes.invalid(&failed_at, failed, &detail);
    }
}

fn replacement(spec: &Members, at: &Path<'_>, causes: &mut Causes) {
    const POLICIES: [&str; 2] = ["Failed", "TerminatingOrFailed"];
    let Some(policy) = text_opt(spec, "podReplacementPolicy") else { return };
    let known: &[&str] = if spec.contains_key("podFailurePolicy") { &POLICIES[..1] } else { &POLICIES };
    // Few: two policies.
    if !known.contains(&policy) {
        causes.not_supported(at, policy, known);
    }
}

fn restart_policy(spec: &Members, template: &Members, at: &Path<'_>, causes: &mut Causes) {
    let policy = text(child_or_empty(template, "spec"), "restartPolicy");
    let at = at.child("spec");
    let at = at.child("restartPolicy");
    match policy {
        "Always" | "" => causes.required(&at, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if spec.contains_key("podFailurePolicy") => {
            causes.invalid(&at, policy, "only \"Never\" is supported when podFailurePolicy is specified");
        }
        "OnFailure" | "Never" => {}
        other => causes.not_supported(&at, other, &["OnFailure", "Never"]),
    }
}
