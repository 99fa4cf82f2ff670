//! What is wrong with an AuthorizationConfiguration, in upstream's words.
//!
//! In: the tree of a file, what is there of the files that it names. Out: who is asked, or everything that is
//! wrong. Never: reads a file.
//!
//! Source: apiserver v0.36.3 `pkg/apis/apiserver/validation/validation.go`; kubernetes v1.36.3
//! `pkg/kubeapiserver/authorizer/config.go`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::selector::dns1123_subdomain_faults;
use serde_json::Value;

use crate::conditions::MatchConditions;
use crate::configuration::{
    ABAC_REFUSED, AuthorizationConfiguration, AuthorizerKind, ConfiguredAuthorizer, OnWebhookError,
    ReviewVersion, WebhookAuthorizerConfig, Written, WrittenAuthorizer, WrittenWebhook,
};

/// What upstream knows, in order.
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];

/// The longest that a webhook may be given.
const TIMEOUT_MAX_NANOS: i64 = 30_000_000_000;

/// Whether a path leads to a regular file, or why that cannot be told.
pub type IsFile<'f> = &'f dyn Fn(&Path) -> Result<bool, String>;

impl AuthorizationConfiguration {
    /// The configuration of a tree; null is one that is empty.
    ///
    /// - `required`: who has to be among them, besides webhooks: whoever was when the server started.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn of(
        tree: &Value,
        is_file: IsFile<'_>,
        required: &[&str],
    ) -> Result<AuthorizationConfiguration, String> {
        let written = Written::read(tree)
            .map_err(|why| format!("failed to load AuthorizationConfiguration from file: {why}"))?;
        let faults = faults(&written, is_file);
        if !faults.is_empty() {
            return Err(told(faults));
        }
        if written.authorizers.iter().any(|one| one.kind == "ABAC") {
            return Err(ABAC_REFUSED.to_owned());
        }
        let mut faults: Vec<String> = written.authorizers.iter().filter_map(misnamed).collect();
        let has = |kind: &str| written.authorizers.iter().any(|one| one.kind == kind);
        let missing: Vec<&str> = required.iter().copied().filter(|kind| !has(kind)).collect();
        if !missing.is_empty() {
            faults.push(format!("missing required types: [{}]", missing.join(" ")));
        }
        if !faults.is_empty() {
            return Err(told(faults));
        }
        let authorizers = written.authorizers.into_iter().map(configured).collect::<Result<_, String>>()?;
        Ok(AuthorizationConfiguration { authorizers })
    }

    /// Who is asked besides webhooks.
    pub fn types(&self) -> Vec<&'static str> {
        let all: BTreeSet<&str> = self.authorizers.iter().map(|one| one.kind.as_str()).collect();
        all.into_iter().filter(|kind| *kind != "Webhook").collect()
    }
}

/// Those that are no webhooks are called by their type.
fn misnamed(one: &WrittenAuthorizer) -> Option<String> {
    let wanted = one.kind.to_lowercase();
    let is_wrong = one.kind != "Webhook" && wanted != one.name;
    is_wrong.then(|| format!("expected name {wanted} for authorizer {} instead of {}", one.kind, one.name))
}

fn configured(one: WrittenAuthorizer) -> Result<ConfiguredAuthorizer, String> {
    let kind = match (one.kind.as_str(), one.webhook) {
        ("AlwaysAllow", _) => AuthorizerKind::AlwaysAllow,
        ("AlwaysDeny", _) => AuthorizerKind::AlwaysDeny,
        ("Node", _) => AuthorizerKind::Node,
        ("RBAC", _) => AuthorizerKind::Rbac,
        (_, Some(webhook)) => AuthorizerKind::Webhook(Box::new(configured_webhook(webhook)?)),
        (kind, None) => return Err(format!("unknown authorization mode {kind} specified")),
    };
    Ok(ConfiguredAuthorizer { name: one.name, kind })
}

fn configured_webhook(written: WrittenWebhook) -> Result<WebhookAuthorizerConfig, String> {
    let span = |nanos: i64| Duration::from_nanos(nanos.unsigned_abs());
    let Some(kubeconfig) = written.kubeconfig else {
        return Err(format!("connectionInfo.type {:?} is not served", written.connection));
    };
    Ok(WebhookAuthorizerConfig {
        authorized_ttl: written.caches_authorized.then(|| span(written.authorized_ttl)),
        unauthorized_ttl: written.caches_unauthorized.then(|| span(written.unauthorized_ttl)),
        timeout: span(written.timeout),
        version: if written.version == "v1" { ReviewVersion::V1 } else { ReviewVersion::V1beta1 },
        on_error: match written.failure_policy.as_str() {
            "Deny" => OnWebhookError::Deny,
            _ => OnWebhookError::NoOpinion,
        },
        kubeconfig: PathBuf::from(kubeconfig),
        conditions: written.conditions,
    })
}

fn faults(written: &Written, is_file: IsFile<'_>) -> Vec<String> {
    let mut faults = Vec::new();
    if written.authorizers.is_empty() {
        faults.push(required("authorizers", "at least one authorization mode must be defined"));
    }
    let (mut kinds, mut names) = (BTreeSet::new(), BTreeSet::new());
    for (at, one) in written.authorizers.iter().enumerate() {
        let way = |member: &str| format!("authorizers[{at}].{member}");
        let kind = one.kind.as_str();
        if kind.is_empty() {
            faults.push(required(&way("type"), ""));
            continue;
        }
        if !TYPES.contains(&kind) {
            faults.push(unsupported(&way("type"), &go_quote(kind), &TYPES));
            continue;
        }
        if !kinds.insert(kind) && kind != "Webhook" {
            faults.push(format!("{}: Duplicate value: {}", way("type"), go_quote(kind)));
            continue;
        }
        let name = one.name.as_str();
        if name.is_empty() {
            faults.push(required(&way("name"), ""));
        } else if names.contains(name) {
            faults.push(format!("{}: Duplicate value: {}", way("name"), go_quote(name)));
        } else {
            let wrong = dns1123_subdomain_faults(name);
            if !wrong.is_empty() {
                let why = format!("authorizer name is invalid: {}", wrong.join(", "));
                faults.push(invalid(&way("name"), &go_quote(name), &why));
            }
        }
        names.insert(name);
        match (&one.webhook, kind) {
            (None, "Webhook") => faults.push(required(&way("webhook"), "required when type=Webhook")),
            (Some(webhook), "Webhook") => webhook_faults(webhook, at, is_file, &mut faults),
            (Some(_), _) => {
                faults.push(invalid(
                    &way("webhook"),
                    "\"non-null\"",
                    "may only be specified when type=Webhook",
                ));
            }
            (None, _) => {}
        }
    }
    faults
}

fn webhook_faults(webhook: &WrittenWebhook, at: usize, is_file: IsFile<'_>, faults: &mut Vec<String>) {
    let way = |member: &str| format!("authorizers[{at}].{member}");
    match webhook.timeout {
        0 => faults.push(required(&way("timeout"), "")),
        1..=TIMEOUT_MAX_NANOS => {}
        other => {
            faults.push(invalid(&way("timeout"), &go_quote(&go_text(other)), "must be > 0s and <= 30s"));
        }
    }
    for (member, ttl) in
        [("authorizedTTL", webhook.authorized_ttl), ("unauthorizedTTL", webhook.unauthorized_ttl)]
    {
        if ttl < 0 {
            faults.push(invalid(&way(member), &go_quote(&go_text(ttl)), "must be > 0s"));
        }
    }
    match webhook.version.as_str() {
        "" => faults.push(required(&way("subjectAccessReviewVersion"), "")),
        "v1" | "v1beta1" => {}
        other => {
            let member = way("subjectAccessReviewVersion");
            faults.push(unsupported(&member, &go_quote(other), &["v1", "v1beta1"]));
        }
    }
    let member = way("matchConditionSubjectAccessReviewVersion");
    match webhook.conditions_version.as_str() {
        "" if !webhook.conditions.is_empty() => {
            faults.push(required(&member, "required if match conditions are specified"));
        }
        "" | "v1" => {}
        other => faults.push(unsupported(&member, &go_quote(other), &["v1"])),
    }
    match webhook.failure_policy.as_str() {
        "" => faults.push(required(&way("failurePolicy"), "")),
        "NoOpinion" | "Deny" => {}
        other => {
            faults.push(unsupported(&way("failurePolicy"), &go_quote(other), &["NoOpinion", "Deny"]));
        }
    }
    connection_faults(webhook, at, is_file, faults);
    if let Err(more) = MatchConditions::of(&webhook.conditions, &format!("authorizers[{at}].")) {
        faults.extend(more);
    }
}

fn connection_faults(webhook: &WrittenWebhook, at: usize, is_file: IsFile<'_>, faults: &mut Vec<String>) {
    let kind = format!("authorizers[{at}].connectionInfo.type");
    let file = format!("authorizers[{at}].connectionInfo.kubeConfigFile");
    let said = webhook.kubeconfig.as_deref();
    let path = said.unwrap_or_default();
    match webhook.connection.as_str() {
        "" => faults.push(required(&kind, "")),
        "InClusterConfig" => {
            if said.is_some() {
                faults.push(invalid(&file, &go_quote(path), "can only be set when type=KubeConfigFile"));
            }
        }
        "KubeConfigFile" if path.is_empty() => faults.push(required(&file, "")),
        "KubeConfigFile" if !Path::new(path).is_absolute() => {
            faults.push(invalid(&file, &go_quote(path), "must be an absolute path"));
        }
        "KubeConfigFile" => match is_file(Path::new(path)) {
            Err(why) => faults.push(invalid(&file, &go_quote(path), &format!("error loading file: {why}"))),
            Ok(false) => faults.push(invalid(&file, &go_quote(path), "must be a regular file")),
            Ok(true) => {}
        },
        other => {
            let file = said.map_or("null".to_owned(), go_quote);
            let shown = format!("{{\"Type\":{},\"KubeConfigFile\":{file}}}", go_quote(other));
            faults.push(unsupported(&kind, &shown, &["InClusterConfig", "KubeConfigFile"]));
        }
    }
}

pub(crate) fn required(way: &str, why: &str) -> String {
    match why {
        "" => format!("{way}: Required value"),
        why => format!("{way}: Required value: {why}"),
    }
}

pub(crate) fn invalid(way: &str, shown: &str, why: &str) -> String {
    format!("{way}: Invalid value: {shown}: {why}")
}

fn unsupported(way: &str, shown: &str, supported: &[&str]) -> String {
    let supported: Vec<String> = supported.iter().map(|one| go_quote(one)).collect();
    format!("{way}: Unsupported value: {shown}: supported values: {}", supported.join(", "))
}

/// Faults as one text, each once.
pub(crate) fn told(faults: Vec<String>) -> String {
    let mut seen = BTreeSet::new();
    let each: Vec<String> = faults.into_iter().filter(|fault| seen.insert(fault.clone())).collect();
    match each.as_slice() {
        [only] => only.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// A duration as Go writes it: `1m30s`, `-2s`, `31s`.
fn go_text(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let all = nanos.unsigned_abs();
    if all < 1_000_000_000 {
        let (unit, name) = match all {
            0 => return "0s".to_owned(),
            1..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            _ => (1_000_000, "ms"),
        };
        return format!("{sign}{}{name}", with_fraction(all, unit));
    }
    let (minutes, rest) = (all / 60_000_000_000, all % 60_000_000_000);
    let seconds = with_fraction(rest, 1_000_000_000);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

fn with_fraction(nanos: u64, unit: u64) -> String {
    let (whole, part) = (nanos / unit, nanos % unit);
    if part == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let part = format!("{part:0digits$}");
    format!("{whole}.{}", part.trim_end_matches('0'))
}

#[cfg(test)]
#[path = "validation_tests.rs"]
mod tests;
