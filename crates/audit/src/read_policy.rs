//! A policy, from the tree of its file.
//!
//! In: a tree. Out: a policy, and what of the file is not known and passed over; or what is wrong with it,
//! in kube-apiserver's words where it judges, in ours where Go's decoder does. Never: opens a file.
//!
//! Source: apiserver v0.36.3 `pkg/audit/policy/reader.go`.

use serde_json::{Map, Value};

use crate::level::{AuditLevel, AuditStage, Stages};
use crate::policy::{AuditPolicy, GroupResources, PolicyRule};
use crate::validation::{Found, validate};

const VERSION: &str = "audit.k8s.io/v1";

impl AuditPolicy {
    /// What the tree of a file says, and what of it is passed over because nobody knows it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(tree: &Value) -> Result<(AuditPolicy, Vec<String>), String> {
        let no_object = || "failed decoding: an audit policy is an object".to_owned();
        let file = tree.as_object().ok_or_else(no_object)?;
        let (version, kind) = (text(file, "apiVersion")?, text(file, "kind")?);
        if kind.is_empty() {
            return Err("failed decoding: Object 'Kind' is missing".to_owned());
        }
        if version.is_empty() {
            return Err("failed decoding: Object 'apiVersion' is missing".to_owned());
        }
        if version != VERSION || kind != "Policy" {
            return Err(format!("failed decoding: no kind {kind:?} is registered for version {version:?}"));
        }
        read(file)
    }
}

fn read(file: &Map<String, Value>) -> Result<(AuditPolicy, Vec<String>), String> {
    let mut unknown = Unknown::default();
    unknown.of(file, "", &["apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields"]);
    let mut found = Found::default();
    let omits = stages(file, "omitStages", &mut found)?;
    let default = truth(file, "omitManagedFields")?.unwrap_or_default();
    let mut rules = Vec::new();
    for (at, value) in list(file, "rules")?.iter().enumerate() {
        let path = format!("rules[{at}]");
        let of = value.as_object().ok_or_else(|| format!("failed decoding: {path}: a rule is an object"))?;
        unknown.of(of, &path, &RULE);
        let mut rule = rule(of, &path, &mut unknown, &mut found)?;
        rule.omits = rule.omits.and(omits);
        rule.omits_managed_fields = truth(of, "omitManagedFields")?.unwrap_or(default);
        rules.push(rule);
    }
    found.finish()?;
    if rules.is_empty() {
        return Err("loaded illegal policy with 0 rules".to_owned());
    }
    Ok((AuditPolicy { rules }, unknown.0))
}

const RULE: [&str; 9] = [
    "level",
    "users",
    "userGroups",
    "verbs",
    "resources",
    "namespaces",
    "nonResourceURLs",
    "omitStages",
    "omitManagedFields",
];

fn rule(
    of: &Map<String, Value>,
    path: &str,
    unknown: &mut Unknown,
    found: &mut Found,
) -> Result<PolicyRule, String> {
    let mut resources = Vec::new();
    for (at, value) in list(of, "resources")?.iter().enumerate() {
        let path = format!("{path}.resources[{at}]");
        let of = value.as_object().ok_or_else(|| format!("failed decoding: {path}: it is an object"))?;
        unknown.of(of, &path, &["group", "resources", "resourceNames"]);
        resources.push(GroupResources {
            group: text(of, "group")?.to_owned(),
            resources: texts(of, "resources")?,
            names: texts(of, "resourceNames")?,
        });
    }
    let level = text(of, "level")?;
    let mut rule = PolicyRule {
        level: AuditLevel::named(level).unwrap_or_default(),
        users: texts(of, "users")?,
        groups: texts(of, "userGroups")?,
        verbs: texts(of, "verbs")?,
        resources,
        namespaces: texts(of, "namespaces")?,
        paths: texts(of, "nonResourceURLs")?,
        ..PolicyRule::default()
    };
    validate(&rule, level, path, found);
    let names = texts(of, "omitStages")?;
    rule.omits = staged(&names, &format!("{path}.omitStages"), found);
    found.both(&rule, path);
    Ok(rule)
}

fn stages(of: &Map<String, Value>, name: &str, found: &mut Found) -> Result<Stages, String> {
    Ok(staged(&texts(of, name)?, name, found))
}

fn staged(names: &[String], path: &str, found: &mut Found) -> Stages {
    let known = |(at, name): (usize, &String)| {
        let stage = AuditStage::named(name);
        if stage.is_none() {
            found.no_stage(&format!("{path}[{at}]"), name);
        }
        stage
    };
    names.iter().enumerate().filter_map(known).collect()
}

/// What nobody knows, as a strict reader tells of it.
#[derive(Default)]
struct Unknown(Vec<String>);

impl Unknown {
    fn of(&mut self, members: &Map<String, Value>, path: &str, known: &[&str]) {
        let dot = if path.is_empty() { "" } else { "." };
        // Few: members of a file's objects.
        let others = members.keys().filter(|name| !known.contains(&name.as_str()));
        self.0.extend(others.map(|name| format!("unknown field \"{path}{dot}{name}\"")));
    }
}

fn text<'v>(of: &'v Map<String, Value>, name: &str) -> Result<&'v str, String> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(format!("failed decoding: {name} is a text")),
    }
}

fn truth(of: &Map<String, Value>, name: &str) -> Result<Option<bool>, String> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(said)) => Ok(Some(*said)),
        Some(_) => Err(format!("failed decoding: {name} is true or false")),
    }
}

fn list<'v>(of: &'v Map<String, Value>, name: &str) -> Result<&'v [Value], String> {
    match of.get(name) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("failed decoding: {name} is a list")),
    }
}

fn texts(of: &Map<String, Value>, name: &str) -> Result<Vec<String>, String> {
    let no_text = || format!("failed decoding: {name} is a list of texts");
    let one = |value: &Value| value.as_str().map(String::from).ok_or_else(no_text);
    list(of, name)?.iter().map(one).collect()
}

/// What a test writes: JSON, without the type.
#[cfg(test)]
pub(crate) fn read_text(text: &str) -> Result<(AuditPolicy, Vec<String>), String> {
    let tree: Value = serde_json::from_str(text).map_err(|why| why.to_string())?;
    read(tree.as_object().ok_or("no object")?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_told_in_kube_apiservers_words_all_of_it() {
        let told = |text: &str| read_text(text).map(|(_, unknown)| unknown);
        for (text, want) in [
            (r#"{"rules": [{}]}"#, "rules[0].level: Required value"),
            (
                r#"{"rules": [{"level": "metadata"}]}"#,
                r#"rules[0].level: Unsupported value: "metadata": supported values: "None", "Metadata", "Request", "RequestResponse""#,
            ),
            (
                r#"{"omitStages": ["x"], "rules": [{"level": "None", "nonResourceURLs": ["a", "/a*b", "*"]}]}"#,
                r#"[omitStages[0]: Invalid value: "x": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic, rules[0].nonResourceURLs[0]: Invalid value: "a": non-resource URL rules must begin with a '/' character, rules[0].nonResourceURLs[1]: Invalid value: "/a*b": non-resource URL wildcards '*' must be the final character of the rule]"#,
            ),
            (
                r#"{"rules": [{"level": "None", "resources": [{"group": "apps/v1", "resourceNames": ["x"]}]}]}"#,
                r#"[rules[0].resources.group: Invalid value: "apps/v1": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), rules[0].resources.resourceNames: Invalid value: ["x"]: using resourceNames requires at least one resource]"#,
            ),
            (
                r#"{"rules": [{"level": "None", "nonResourceURLs": ["/a"], "namespaces": ["n"]}]}"#,
                r#"rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and non-resource URLs"#,
            ),
            (r#"{"rules": []}"#, "loaded illegal policy with 0 rules"),
            (r#"{"rules": {}}"#, "failed decoding: rules is a list"),
            (r#"{"rules": [{"level": "None", "verbs": [1]}]}"#, "failed decoding: verbs is a list of texts"),
        ] {
            assert_eq!(told(text), Err(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_nobody_knows_is_passed_over_and_told_of() {
        let policy = json!({
            "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rule": [],
            "rules": [{ "level": "Metadata", "user": "x", "resources": [{ "groups": "y" }] }],
        });
        let (_, unknown) = AuditPolicy::of(&policy).expect("a policy");
        let told = [
            "unknown field \"rule\"",
            "unknown field \"rules[0].user\"",
            "unknown field \"rules[0].resources[0].groups\"",
        ];
        assert_eq!(unknown, told);
    }

    #[test]
    fn another_kind_is_no_policy() {
        for (tree, want) in [
            (json!({ "kind": "Policy" }), "failed decoding: Object 'apiVersion' is missing"),
            (json!({ "apiVersion": VERSION }), "failed decoding: Object 'Kind' is missing"),
            (
                json!({ "apiVersion": "audit.k8s.io/v1beta1", "kind": "Policy" }),
                "failed decoding: no kind \"Policy\" is registered for version \"audit.k8s.io/v1beta1\"",
            ),
            (json!([]), "failed decoding: an audit policy is an object"),
        ] {
            assert_eq!(AuditPolicy::of(&tree).expect_err(want), want);
        }
    }
}
