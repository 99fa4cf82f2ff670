//! What is wrong with a policy, in kube-apiserver's words.
//!
//! In: a rule as it was written. Out: all that is wrong with it. Never: what Go's decoder says.
//!
//! Source: apiserver v0.36.3 `pkg/apis/audit/validation/validation.go`.

use std::collections::HashSet;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::selector::dns1123_subdomain_faults;

use crate::level::{AuditLevel, AuditStage};
use crate::policy::PolicyRule;

/// What was found, in order.
#[derive(Default)]
pub(crate) struct Found(Vec<String>);

impl Found {
    pub fn no_stage(&mut self, path: &str, name: &str) {
        let allowed = AuditStage::ALL.map(AuditStage::name).join(",");
        self.invalid(path, &go_quote(name), &format!("allowed stages are {allowed}"));
    }

    /// Whether it is about resources and about paths.
    pub fn both(&mut self, rule: &PolicyRule, path: &str) {
        if rule.paths.is_empty() || rule.resources.is_empty() && rule.namespaces.is_empty() {
            return;
        }
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        self.invalid(&format!("{path}.nonResourceURLs"), &quoted(&rule.paths), why);
    }

    /// All of it as one text: several in brackets, each once.
    ///
    /// # Errors
    /// The text, if there is anything.
    pub fn finish(self) -> Result<(), String> {
        let mut seen = HashSet::new();
        let all: Vec<&str> = self.0.iter().map(String::as_str).filter(|fault| seen.insert(*fault)).collect();
        match all.as_slice() {
            [] => Ok(()),
            [one] => Err((*one).to_owned()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }

    fn invalid(&mut self, path: &str, value: &str, why: &str) {
        self.0.push(format!("{path}: Invalid value: {value}: {why}"));
    }
}

/// What is wrong with a rule but for its stages.
///
/// - `level`: as it is written.
pub(crate) fn validate(rule: &PolicyRule, level: &str, path: &str, found: &mut Found) {
    match level {
        "" => found.0.push(format!("{path}.level: Required value")),
        level if AuditLevel::named(level).is_none() => {
            let known = AuditLevel::ALL.map(|level| go_quote(level.name())).join(", ");
            let level = go_quote(level);
            found.0.push(format!("{path}.level: Unsupported value: {level}: supported values: {known}"));
        }
        _ => {}
    }
    for (at, url) in rule.paths.iter().enumerate().filter(|(_, url)| *url != "*") {
        let path = format!("{path}.nonResourceURLs[{at}]");
        if !url.starts_with('/') {
            let why = "non-resource URL rules must begin with a '/' character";
            found.invalid(&path, &go_quote(url), why);
        }
        if url.strip_suffix('*').unwrap_or(url).contains('*') {
            let why = "non-resource URL wildcards '*' must be the final character of the rule";
            found.invalid(&path, &go_quote(url), why);
        }
    }
    for of in &rule.resources {
        if !of.group.is_empty() && of.group != "*" {
            let faults = dns1123_subdomain_faults(&of.group);
            if !faults.is_empty() {
                found.invalid(&format!("{path}.resources.group"), &go_quote(&of.group), &faults.join(","));
            }
        }
        if !of.names.is_empty() && of.resources.is_empty() {
            let why = "using resourceNames requires at least one resource";
            found.invalid(&format!("{path}.resources.resourceNames"), &quoted(&of.names), why);
        }
    }
}

/// A list as JSON, as such errors show one.
fn quoted(all: &[String]) -> String {
    let all: Vec<String> = all.iter().map(|one| go_quote(one)).collect();
    format!("[{}]", all.join(","))
}
