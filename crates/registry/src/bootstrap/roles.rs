//! The roles and bindings of Kubernetes' own users, read from `data/rbac.txt`.
//!
//! In: that table. Out: the objects. Never: what they allow; what becomes of those that are there is
//! `reconcile.rs`'s.

use serde_json::{Map, Value, json};

const GROUP: &str = "rbac.authorization.k8s.io";
const TABLE: &str = include_str!("../../data/rbac.txt");

/// An object, its resource, and its namespace unless it stands outside of them.
pub(super) struct Rbac {
    pub resource: &'static str,
    pub namespace: Option<&'static str>,
    pub object: Value,
}

/// All of them. Reading the table takes about a millisecond, once a start.
pub(super) fn all() -> Vec<Rbac> {
    let mut objects: Vec<Rbac> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            Some(rule) => add_rule(objects.last_mut(), rule),
            None => objects.extend(head(line)),
        }
    }
    objects
}

fn head(line: &'static str) -> Option<Rbac> {
    let mut words = line.split(' ');
    let (kind, namespace, name) = (words.next()?, words.next()?, words.next()?);
    let (kind, resource, binds) = match kind {
        "clusterrole" => ("ClusterRole", "clusterroles", None),
        "role" => ("Role", "roles", None),
        "clusterrolebinding" => ("ClusterRoleBinding", "clusterrolebindings", Some("ClusterRole")),
        "rolebinding" => ("RoleBinding", "rolebindings", Some("Role")),
        _ => return None,
    };
    let namespace = Some(namespace).filter(|namespace| *namespace != "-");
    let mut object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": {
            "name": name,
            "labels": { "kubernetes.io/bootstrapping": "rbac-defaults" },
            "annotations": { "rbac.authorization.kubernetes.io/autoupdate": "true" },
        },
    });
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = namespace.into();
    }
    match binds {
        Some(bound) => {
            object["roleRef"] = json!({ "apiGroup": GROUP, "kind": bound, "name": words.next()? });
            let subjects: Vec<Value> = words.filter_map(subject).collect();
            if !subjects.is_empty() {
                object["subjects"] = subjects.into();
            }
        }
        None => words.for_each(|word| aggregation(&mut object, word)),
    }
    Some(Rbac { resource, namespace, object })
}

/// `aggregate-to:LABEL`, `aggregates:LABEL`
fn aggregation(object: &mut Value, word: &str) {
    let label = |to: &str| format!("{GROUP}/aggregate-to-{to}");
    match word.split_once(':') {
        Some(("aggregate-to", to)) => object["metadata"]["labels"][label(to)] = "true".into(),
        Some(("aggregates", to)) => {
            let selector = json!({ "matchLabels": { label(to): "true" } });
            object["aggregationRule"] = json!({ "clusterRoleSelectors": [selector] });
        }
        _ => {}
    }
}

fn subject(word: &str) -> Option<Value> {
    let (kind, name) = word.split_once(':')?;
    Some(match kind {
        "user" => json!({ "kind": "User", "apiGroup": GROUP, "name": name }),
        "group" => json!({ "kind": "Group", "apiGroup": GROUP, "name": name }),
        "account" => {
            let (namespace, name) = name.split_once('/')?;
            json!({ "kind": "ServiceAccount", "name": name, "namespace": namespace })
        }
        _ => return None,
    })
}

fn add_rule(role: Option<&mut Rbac>, line: &str) {
    let list = |words: &str| -> Value {
        words.split(',').map(|word| if word == "-" { "" } else { word }).collect::<Vec<_>>().into()
    };
    let names: &[&str] = match line.split(' ').nth(1) {
        Some("urls") => &["verbs", "", "nonResourceURLs"],
        _ => &["verbs", "apiGroups", "resources", "resourceNames"],
    };
    let members = names.iter().zip(line.split(' ')).filter(|(name, _)| !name.is_empty());
    let rule: Map<String, Value> = members.map(|(name, words)| (name.to_string(), list(words))).collect();
    let Some(role) = role else { return };
    match &mut role.object["rules"] {
        Value::Array(rules) => rules.push(Value::Object(rule)),
        rules => *rules = json!([rule]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_strategy::{GroupKind, Privileged, defaults, validate_create};

    #[test]
    fn every_line_of_the_table_is_understood() {
        let objects = all();
        let count = |resource| objects.iter().filter(|object| object.resource == resource).count();
        assert_eq!(count("clusterroles"), 69);
        assert_eq!(count("clusterrolebindings"), 50);
        assert_eq!(count("roles"), 7);
        assert_eq!(count("rolebindings"), 7);
        let rules = |object: &Rbac| object.object["rules"].as_array().map_or(0, Vec::len);
        let indented = TABLE.lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!(objects.iter().map(rules).sum::<usize>(), indented);
    }

    #[test]
    fn every_object_is_valid_and_complete() {
        for Rbac { object, .. } in all() {
            let kind = object["kind"].as_str().expect("a kind");
            let kind = GroupKind::built_in(GROUP, kind);
            let mut filled = object.clone();
            defaults(&kind, &mut filled);
            assert_eq!(filled, object, "is filled in");
            let causes = validate_create(&kind, &filled, Privileged::Allowed);
            assert_eq!(causes, [], "{}", filled["metadata"]["name"]);
        }
    }

    #[test]
    fn objects_are_what_their_lines_say() {
        let find = |resource: &str, name: &str| {
            let mut objects = all().into_iter();
            objects
                .find(|of| of.resource == resource && of.object["metadata"]["name"] == name)
                .expect(name)
                .object
        };
        let admin = find("clusterroles", "cluster-admin");
        assert_eq!(
            admin["rules"],
            json!([
                { "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] },
                { "verbs": ["*"], "nonResourceURLs": ["*"] },
            ])
        );
        let edit = find("clusterroles", "edit");
        assert_eq!(edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-admin"], "true");
        assert!(edit["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"].is_object());
        let masters = find("clusterrolebindings", "cluster-admin");
        assert_eq!(
            masters["subjects"],
            json!([{ "kind": "Group", "apiGroup": GROUP, "name": "system:masters" }])
        );
        let locking = find("rolebindings", "system::leader-locking-kube-scheduler");
        assert_eq!(locking["metadata"]["namespace"], "kube-system");
        assert_eq!(locking["roleRef"]["kind"], "Role");
    }
}
