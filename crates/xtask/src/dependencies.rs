//! The dependency tree, held against `deny.toml`: licences, banned crates, two versions of one crate,
//! features, sources.
//!
//! In: `deny.toml`, which `cargo deny check bans licenses sources` reads as well, and `cargo metadata` for
//! each target that it names. Out: every finding. Never: a section of `deny.toml` that is not looked at: an
//! unknown key is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde::Deserialize;
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::run::{self, Done};

/// Where crates may come from, as `cargo metadata` names it.
const REGISTRIES: [&str; 2] =
    ["registry+https://github.com/rust-lang/crates.io-index", "sparse+https://index.crates.io/"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Policy {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    #[serde(rename = "sources")]
    _sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    #[serde(rename = "version")]
    _version: u8,
    allow: Vec<String>,
    /// Of a licence's text, for cargo-deny; here the manifest says what it is.
    #[serde(rename = "confidence-threshold")]
    _confidence_threshold: f64,
    #[serde(rename = "unused-allowed-license")]
    _unused_allowed_license: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: Level,
    wildcards: Level,
    #[serde(rename = "allow-wildcard-paths")]
    _allow_wildcard_paths: bool,
    skip: Vec<Ban>,
    deny: Vec<Ban>,
    features: Vec<Features>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ban {
    /// `name`, or `name@version`.
    #[serde(rename = "crate")]
    of: String,
    reason: String,
    /// Crates that may use it all the same.
    #[serde(default)]
    wrappers: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Features {
    #[serde(rename = "crate")]
    of: String,
    deny: Vec<String>,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    #[serde(rename = "unknown-registry")]
    _unknown_registry: Level,
    #[serde(rename = "unknown-git")]
    _unknown_git: Level,
}

/// The one level that is checked here.
#[derive(Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Level {
    Deny,
}

/// Runs every check and fails with all findings.
pub fn check() -> Done {
    let path = run::root().join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
    let policy: Policy = toml::from_str(&text).map_err(|e| format!("deny.toml: {e}"))?;
    let mut found = BTreeSet::new();
    for target in &policy.graph.targets {
        let args = ["metadata", "--locked", "--format-version", "1", "--filter-platform", target];
        let metadata = run::output(&mut run::cargo(&args))?;
        let metadata: Value = serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
        found.extend(findings(&policy, &metadata)?);
    }
    match found.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("{} findings\n  {}", found.len(), found.into_iter().collect::<Vec<_>>().join("\n  ")))
        }
    }
}

fn findings(policy: &Policy, metadata: &Value) -> Result<Vec<String>, String> {
    let packages: BTreeMap<&str, &Value> =
        array(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let name = |id: &str| packages.get(id).map_or("", |package| text(&package["name"]));
    let allowed =
        policy.licenses.allow.iter().map(|it| Licensee::parse(it).map_err(|e| format!("{it}: {e}")));
    let allowed = allowed.collect::<Result<Vec<Licensee>, String>>()?;
    let mut findings = Vec::new();
    let mut versions = BTreeMap::<&str, BTreeSet<&str>>::new();
    for node in array(&metadata["resolve"]["nodes"]) {
        let Some(package) = packages.get(text(&node["id"])) else { continue };
        let (of, version) = (text(&package["name"]), text(&package["version"]));
        if package["source"].is_null() {
            findings.extend(wildcards(policy, package));
        } else {
            versions.entry(of).or_default().insert(version);
            findings.extend(source(of, text(&package["source"])));
            findings.extend(licence(&allowed, of, package["license"].as_str()));
        }
        findings.extend(features(policy, of, node));
        for used in array(&node["deps"]) {
            findings.extend(banned(policy, of, name(text(&used["pkg"]))));
        }
    }
    for (of, all) in versions {
        findings.extend(twice(policy, of, &all));
    }
    Ok(findings)
}

fn source(of: &str, source: &str) -> Option<String> {
    (!REGISTRIES.contains(&source)).then(|| format!("{of}: comes from {source}, and not from crates.io"))
}

fn licence(allowed: &[Licensee], of: &str, licence: Option<&str>) -> Option<String> {
    let Some(licence) = licence else { return Some(format!("{of}: its manifest names no licence")) };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Ok(expression) if expression.evaluate(|asked| allowed.iter().any(|it| it.satisfies(asked))) => None,
        Ok(_) => Some(format!("{of}: its licence, {licence}, is not among those that are allowed")),
        Err(why) => Some(format!("{of}: its licence, {licence}, is no SPDX expression: {}", why.reason)),
    }
}

fn wildcards(policy: &Policy, package: &Value) -> Vec<String> {
    let denied = policy.bans.wildcards == Level::Deny;
    let any = |used: &&Value| denied && used["path"].is_null() && text(&used["req"]) == "*";
    let said = |used: &Value| format!("{}: any version of {}", text(&package["name"]), text(&used["name"]));
    array(&package["dependencies"]).filter(any).map(said).collect()
}

fn features(policy: &Policy, of: &str, node: &Value) -> Vec<String> {
    let on: BTreeSet<&str> = array(&node["features"]).map(text).collect();
    let rules = policy.bans.features.iter().filter(|rule| rule.of == of);
    let denied = rules.flat_map(|rule| rule.deny.iter().map(move |feature| (feature, &rule.reason)));
    denied
        .filter(|(feature, _)| on.contains(feature.as_str()))
        .map(|(feature, reason)| format!("{of}: has its feature {feature}: {reason}"))
        .collect()
}

/// - `of`: who uses `used`.
fn banned(policy: &Policy, of: &str, used: &str) -> Option<String> {
    let ban = policy.bans.deny.iter().find(|ban| ban.of == used)?;
    (!ban.wrappers.iter().any(|wrapper| wrapper == of)).then(|| format!("{of} -> {used}: {}", ban.reason))
}

/// Of several versions one may be there without a word, and each other one has to be skipped.
fn twice(policy: &Policy, of: &str, versions: &BTreeSet<&str>) -> Option<String> {
    let denied = policy.bans.multiple_versions == Level::Deny;
    let skipped = |version: &str| policy.bans.skip.iter().any(|skip| is_skipped(&skip.of, of, version));
    let left: Vec<&str> = versions.iter().copied().filter(|version| !skipped(version)).collect();
    (denied && left.len() > 1).then(|| format!("{of}: in {} versions: {}", left.len(), left.join(", ")))
}

/// `name@1.2` skips 1.2 and all of 1.2.*.
fn is_skipped(skip: &str, of: &str, version: &str) -> bool {
    let Some((name, skipped)) = skip.split_once('@') else { return skip == of };
    name == of && version.strip_prefix(skipped).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn policy() -> Policy {
        toml::from_str(
            r#"
            graph = { targets = [] }
            licenses = { version = 2, allow = ["MIT", "Apache-2.0"], confidence-threshold = 0.9, unused-allowed-license = "allow" }
            sources = { unknown-registry = "deny", unknown-git = "deny" }
            [bans]
            multiple-versions = "deny"
            wildcards = "deny"
            allow-wildcard-paths = true
            skip = [{ crate = "old@1", reason = "others" }]
            deny = [{ crate = "ssl", reason = "no C", wrappers = ["wraps"] }]
            features = [{ crate = "json", deny = ["ordered"], reason = "sorted" }]
            "#,
        )
        .unwrap()
    }

    fn package(name: &str, version: &str, licence: &str) -> Value {
        let id = format!("{name}@{version}");
        json!({"id": id, "name": name, "version": version, "license": licence, "source": REGISTRIES[0], "dependencies": []})
    }

    fn found(packages: &[Value], nodes: &Value) -> Vec<String> {
        findings(&policy(), &json!({"packages": packages, "resolve": {"nodes": nodes}})).unwrap()
    }

    #[test]
    fn a_licence_is_judged_as_an_expression() {
        let judged =
            |licence: &str| found(&[package("a", "1.0.0", licence)], &json!([{"id": "a@1.0.0"}])).len();
        assert_eq!(["MIT", "GPL-3.0 OR MIT", "MIT/Apache-2.0", "MIT AND Apache-2.0"].map(judged), [0; 4]);
        assert_eq!(["GPL-3.0", "MIT AND GPL-3.0", "what I like"].map(judged), [1; 3]);
    }

    #[test]
    fn a_second_version_is_found_unless_it_is_skipped() {
        let three = ["1.4.0", "2.0.0", "3.0.0"].map(|version| package("old", version, "MIT"));
        let nodes = json!([{"id": "old@1.4.0"}, {"id": "old@2.0.0"}]);
        assert!(found(&three, &nodes).is_empty());
        let nodes = json!([{"id": "old@3.0.0"}, {"id": "old@2.0.0"}]);
        assert_eq!(found(&three, &nodes), ["old: in 2 versions: 2.0.0, 3.0.0"]);
    }

    #[test]
    fn banned_crates_features_and_sources_are_found() {
        let mut forked = package("forked", "1.0.0", "MIT");
        forked["source"] = json!("git+https://example.org/forked");
        let packages = [
            package("ssl", "1.0.0", "MIT"),
            package("wraps", "1.0.0", "MIT"),
            package("json", "1.0.0", "MIT"),
            forked,
        ];
        let nodes = json!([
            {"id": "wraps@1.0.0", "deps": [{"pkg": "ssl@1.0.0"}]},
            {"id": "json@1.0.0", "deps": [{"pkg": "ssl@1.0.0"}], "features": ["std", "ordered"]},
            {"id": "forked@1.0.0"},
        ]);
        let expected = [
            "json: has its feature ordered: sorted",
            "json -> ssl: no C",
            "forked: comes from git+https://example.org/forked, and not from crates.io",
        ];
        assert_eq!(found(&packages, &nodes), expected);
    }

    #[test]
    fn what_is_not_known_in_the_policy_is_an_error() {
        assert!(toml::from_str::<Policy>("[advisories]").is_err());
    }
}
