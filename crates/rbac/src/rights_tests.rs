//! The index, held against a reading of all roles and bindings for each question.

use std::collections::BTreeMap;

use forebay_apimachinery::caller::service_account_name;
use forebay_apimachinery::{About, ResourceAttributes, Verb};
use forebay_rt::Random;
use serde_json::{Value, json};

use super::*;

/// What is stored, by namespace and name.
#[derive(Clone, Default)]
struct Model {
    roles: BTreeMap<(String, String), Value>,
    bindings: BTreeMap<(String, String), Value>,
}

/// A question.
#[derive(Clone, Debug)]
struct Asked {
    caller: Caller,
    verb: &'static str,
    group: &'static str,
    namespace: &'static str,
    resource: &'static str,
    subresource: &'static str,
    name: &'static str,
    path: Option<&'static str>,
}

const NAMESPACES: [&str; 3] = ["", "n", "m"];
const ROLES: [&str; 4] = ["r0", "r1", "r2", "r3"];
const BINDINGS: [&str; 5] = ["b0", "b1", "b2", "b3", "b4"];

fn one<'t>(random: &Random, of: &[&'t str]) -> &'t str {
    of[random.below(of.len() as u64) as usize]
}

fn some(random: &Random, of: &[&str]) -> Vec<String> {
    let count = random.below(3) + 1;
    (0..count).map(|_| one(random, of).to_owned()).collect()
}

fn rule(random: &Random) -> Value {
    if random.below(5) == 0 {
        return json!({ "verbs": some(random, &["get", "post", "*"]), "nonResourceURLs": some(random, &["/a", "/a/*", "*", "/b"]) });
    }
    let names = if random.below(3) == 0 { some(random, &["x", "y"]) } else { Vec::new() };
    json!({
        "verbs": some(random, &["get", "list", "watch", "*"]),
        "apiGroups": some(random, &["", "apps", "*"]),
        "resources": some(random, &["pods", "pods/log", "*/log", "nodes", "*"]),
        "resourceNames": names,
    })
}

fn role(random: &Random) -> Value {
    json!({ "rules": (0..1 + random.below(4)).map(|_| rule(random)).collect::<Vec<_>>() })
}

fn binding(random: &Random, namespace: &str, name: &str) -> Value {
    let kind = if namespace.is_empty() { "ClusterRole" } else { one(random, &["Role", "ClusterRole"]) };
    let subject = |_| match random.below(4) {
        0 => json!({ "kind": "User", "name": one(random, &["u", "system:serviceaccount:n:s"]) }),
        1 => json!({ "kind": "Group", "name": one(random, &["g", "h"]) }),
        2 => json!({ "kind": "ServiceAccount", "name": "s" }),
        _ => json!({ "kind": "ServiceAccount", "name": "s", "namespace": one(random, &["n", "m"]) }),
    };
    json!({
        "metadata": { "name": name },
        "roleRef": { "kind": kind, "name": one(random, &ROLES) },
        "subjects": (0..1 + random.below(3)).map(subject).collect::<Vec<_>>(),
    })
}

fn asked(random: &Random) -> Asked {
    let name = match random.below(3) {
        0 => "u".to_owned(),
        1 => service_account_name("n", "s"),
        _ => service_account_name("m", "s"),
    };
    let groups = (0..random.below(3)).map(|_| one(random, &["g", "h", "i"]).to_owned()).collect();
    Asked {
        caller: Caller { name, groups, ..Caller::default() },
        verb: one(random, &["get", "list", "delete", "post"]),
        group: one(random, &["", "apps", "batch"]),
        namespace: one(random, &NAMESPACES),
        resource: one(random, &["pods", "nodes", "jobs"]),
        subresource: one(random, &["", "", "log", "exec"]),
        name: one(random, &["", "x", "z"]),
        path: (random.below(4) == 0).then(|| one(random, &["/a", "/a/b", "/b", "/c"])),
    }
}

/// As upstream goes about it: every binding, each of its subjects, every rule.
impl Model {
    fn allows(&self, asked: &Asked) -> bool {
        let namespace = if asked.path.is_some() { "" } else { asked.namespace };
        self.bindings.iter().any(|((of, _), binding)| {
            (of.is_empty() || *of == namespace)
                && binding["subjects"]
                    .as_array()
                    .expect("subjects")
                    .iter()
                    .any(|who| is(who, of, &asked.caller))
                && self.role(of, binding).is_some_and(|role| {
                    role["rules"].as_array().expect("rules").iter().any(|rule| allows(rule, asked))
                })
        })
    }

    fn role(&self, namespace: &str, binding: &Value) -> Option<&Value> {
        let namespace = if binding["roleRef"]["kind"] == "ClusterRole" { "" } else { namespace };
        let name = binding["roleRef"]["name"].as_str().expect("a name");
        self.roles.get(&(namespace.to_owned(), name.to_owned()))
    }

    fn rights(&self) -> Rights {
        let mut rights = Rights::default();
        for ((namespace, name), binding) in &self.bindings {
            put_binding(&mut rights, namespace, name, binding);
        }
        for ((namespace, name), role) in &self.roles {
            rights.put_role(&reference(namespace, name), Role::read(role));
        }
        rights
    }
}

fn put_binding(rights: &mut Rights, namespace: &str, name: &str, binding: &Value) {
    match RoleBinding::read(binding, namespace) {
        Some(binding) => rights.put_binding(binding),
        None => rights.remove_binding(namespace, name),
    }
}

fn reference(namespace: &str, name: &str) -> RoleRef {
    RoleRef { namespace: namespace.into(), name: name.into() }
}

fn is(subject: &Value, binding: &str, caller: &Caller) -> bool {
    let name = subject["name"].as_str().expect("a name");
    match subject["kind"].as_str() {
        Some("User") => caller.name == name,
        Some("Group") => caller.is_in(name),
        _ => {
            let namespace = subject["namespace"].as_str().unwrap_or(binding);
            !namespace.is_empty() && caller.name == service_account_name(namespace, name)
        }
    }
}

fn allows(rule: &Value, asked: &Asked) -> bool {
    let has = |list: &str, text: &str| {
        let texts = rule[list].as_array().into_iter().flatten();
        texts.filter_map(Value::as_str).any(|own| own == text)
    };
    let verb = has("verbs", "*") || has("verbs", asked.verb);
    if let Some(path) = asked.path {
        let paths = rule["nonResourceURLs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let begins = |own: &str| own.ends_with('*') && path.starts_with(own.trim_end_matches('*'));
        return verb && paths.into_iter().any(|own| own == path || begins(own));
    }
    let resource = match asked.subresource {
        "" => has("resources", asked.resource),
        subresource => {
            has("resources", &format!("{}/{subresource}", asked.resource))
                || has("resources", &format!("*/{subresource}"))
        }
    };
    let is_of_all = rule["resourceNames"].as_array().is_none_or(Vec::is_empty);
    verb && (has("apiGroups", "*") || has("apiGroups", asked.group))
        && (has("resources", "*") || resource)
        && (is_of_all || has("resourceNames", asked.name))
}

fn decide(rights: &Rights, asked: &Asked) -> Ruling {
    let Asked { caller, group, namespace, resource, subresource, name, .. } = asked;
    let of = ResourceAttributes { group, namespace, resource, subresource, name, ..Default::default() };
    let about = asked.path.map_or(About::Resource(of), About::Path);
    rights.decide(&Attributes { caller, verb: &Verb::named(asked.verb), about })
}

fn is_allowed(rights: &Rights, asked: &Asked) -> bool {
    matches!(decide(rights, asked), Ruling::Allowed(_))
}

fn drawn(random: &Random) -> Model {
    let mut model = Model::default();
    for _ in 0..4 + random.below(6) {
        let key = (one(random, &NAMESPACES).to_owned(), one(random, &ROLES).to_owned());
        model.roles.insert(key, role(random));
    }
    for _ in 0..4 + random.below(8) {
        let (namespace, name) = (one(random, &NAMESPACES), one(random, &BINDINGS));
        model.bindings.insert((namespace.to_owned(), name.to_owned()), binding(random, namespace, name));
    }
    model
}

#[test]
fn decisions_are_those_of_reading_everything_while_roles_and_bindings_come_and_go() {
    let random = Random::seeded(1);
    let (mut allowed, mut questions) = (0, 0);
    for _ in 0..60 {
        let (mut model, mut rights) = (Model::default(), Rights::default());
        for _ in 0..60 {
            let namespace = one(&random, &NAMESPACES);
            if random.below(2) == 0 {
                let name = one(&random, &ROLES);
                let key = (namespace.to_owned(), name.to_owned());
                if random.below(3) == 0 {
                    model.roles.remove(&key);
                    rights.remove_role(&reference(namespace, name));
                } else {
                    let role = role(&random);
                    rights.put_role(&reference(namespace, name), Role::read(&role));
                    model.roles.insert(key, role);
                }
            } else {
                let name = one(&random, &BINDINGS);
                let key = (namespace.to_owned(), name.to_owned());
                if random.below(3) == 0 {
                    model.bindings.remove(&key);
                    rights.remove_binding(namespace, name);
                } else {
                    let binding = binding(&random, namespace, name);
                    put_binding(&mut rights, namespace, name, &binding);
                    model.bindings.insert(key, binding);
                }
            }
            let before = rights.clone();
            for _ in 0..10 {
                let asked = asked(&random);
                let want = model.allows(&asked);
                assert_eq!(is_allowed(&rights, &asked), want, "{asked:?}");
                assert_eq!(is_allowed(&before, &asked), want, "{asked:?}");
                (allowed, questions) = (allowed + usize::from(want), questions + 1);
            }
        }
        for (namespace, name) in model.bindings.keys() {
            rights.remove_binding(namespace, name);
        }
        for (namespace, name) in model.roles.keys() {
            rights.remove_role(&reference(namespace, name));
        }
        assert_eq!((rights.places.len(), rights.bindings.len(), rights.scopes.len()), (0, 0, 0));
        assert_eq!(rights.free.len(), rights.roles.len(), "every place is given back");
    }
    assert!(allowed > questions / 25 && allowed < questions / 2, "{allowed} of {questions}");
}

#[test]
fn adding_a_rule_takes_no_right_away() {
    let random = Random::seeded(2);
    for _ in 0..300 {
        let mut model = drawn(&random);
        let before = model.rights();
        let Some(role) = model.roles.values_mut().next() else { continue };
        role["rules"].as_array_mut().expect("rules").push(rule(&random));
        let after = model.rights();
        for _ in 0..60 {
            let asked = asked(&random);
            assert!(!is_allowed(&before, &asked) || is_allowed(&after, &asked), "{asked:?}");
        }
    }
}

#[test]
fn removing_a_binding_removes_exactly_its_rights() {
    let random = Random::seeded(3);
    let mut removed = 0;
    for _ in 0..300 {
        let model = drawn(&random);
        let Some((key, binding)) = model.bindings.iter().next() else { continue };
        let (whole, mut without) = (model.rights(), model.rights());
        without.remove_binding(&key.0, &key.1);
        let only = Model {
            roles: model.roles.clone(),
            bindings: [(key.clone(), binding.clone())].into_iter().collect(),
        };
        let only = only.rights();
        for _ in 0..60 {
            let asked = asked(&random);
            let has = is_allowed(&without, &asked) || is_allowed(&only, &asked);
            assert_eq!(is_allowed(&whole, &asked), has, "{asked:?}");
            removed += usize::from(has && !is_allowed(&without, &asked));
        }
    }
    assert!(removed > 100, "{removed}");
}

#[test]
fn the_rules_of_somebody_are_those_that_decide() {
    let random = Random::seeded(4);
    for _ in 0..200 {
        let model = drawn(&random);
        let rights = model.rights();
        for _ in 0..20 {
            let asked = Asked { path: None, ..asked(&random) };
            let rules = rights.rules(&asked.caller, asked.namespace);
            let told = rules.map(|rule| {
                json!({
                    "verbs": texts(rule.verbs()), "apiGroups": texts(rule.groups()), "resources": texts(rule.resources()),
                    "resourceNames": texts(rule.names()), "nonResourceURLs": texts(rule.paths()),
                })
            });
            let told: Vec<Value> = told.collect();
            assert_eq!(
                told.iter().any(|rule| allows(rule, &asked)),
                is_allowed(&rights, &asked),
                "{asked:?}"
            );
        }
    }
}

fn texts(list: &[Arc<str>]) -> Vec<&str> {
    list.iter().map(|text| &**text).collect()
}

/// A binding of `namespace` to the ClusterRole `role`.
fn bound(namespace: &str, name: &str, role: &str, subjects: Value) -> RoleBinding {
    let object = json!({
        "metadata": { "name": name }, "roleRef": { "kind": "ClusterRole", "name": role }, "subjects": subjects,
    });
    RoleBinding::read(&object, namespace).expect("a binding")
}

fn bob(groups: &[&str]) -> Asked {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Asked {
        caller: Caller { name: "bob".into(), groups, ..Caller::default() },
        verb: "get",
        group: "",
        namespace: "n",
        resource: "pods",
        subresource: "",
        name: "",
        path: None,
    }
}

#[test]
fn a_right_says_what_it_is_had_through_in_upstreams_words() {
    let mut rights = Rights::default();
    let all =
        Role::read(&json!({ "rules": [{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }] }));
    let words = |rights: &Rights, asked: &Asked| match decide(rights, asked) {
        Ruling::Allowed(through) => through.to_string(),
        Ruling::NotAllowed { absent } => {
            let word = |of: &RoleRef| if of.is_cluster_role() { "clusterrole" } else { "role" };
            let told = rights.absent(&asked.caller, asked.namespace, word);
            assert_eq!(absent, !told.is_empty());
            told.join("; ")
        }
    };
    let user = json!({ "kind": "User", "name": "bob" });
    let group = json!({ "kind": "Group", "name": "dev" });
    rights.put_binding(bound("n", "b", "r", json!([user])));
    assert_eq!(words(&rights, &bob(&[])), r#"clusterrole.rbac.authorization.k8s.io "r" not found"#);
    rights.put_role(&reference("", "r"), all.clone());
    assert_eq!(
        words(&rights, &bob(&[])),
        r#"RBAC: allowed by RoleBinding "b/n" of ClusterRole "r" to User "bob""#
    );
    rights.put_binding(bound("", "c", "r", json!([group, user])));
    // Of two subjects that apply the first is named, whichever was found.
    assert_eq!(
        words(&rights, &bob(&["dev"])),
        r#"RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "r" to Group "dev""#
    );
    assert_eq!(
        words(&rights, &bob(&[])),
        r#"RBAC: allowed by ClusterRoleBinding "c" of ClusterRole "r" to User "bob""#
    );
    let mut account = bob(&[]);
    account.caller.name = service_account_name("n", "s");
    rights.put_binding(bound("n", "d", "r", json!([{ "kind": "ServiceAccount", "name": "s" }])));
    assert_eq!(
        words(&rights, &account),
        r#"RBAC: allowed by RoleBinding "d/n" of ClusterRole "r" to ServiceAccount "s/n""#
    );
    rights.remove_role(&reference("", "r"));
    assert_eq!(words(&rights, &account), r#"clusterrole.rbac.authorization.k8s.io "r" not found"#);
    // A binding of the whole cluster cannot lead to a role of a namespace.
    let object = json!({ "metadata": { "name": "x" }, "roleRef": { "kind": "Role", "name": "r" } });
    assert_eq!(RoleBinding::read(&object, ""), None);
}

/// 500 roles of 20 rules, and 5,000 bindings: half to users, a quarter to accounts of 250 namespaces, a
/// quarter to one group.
fn large() -> Rights {
    let mut rights = Rights::default();
    for at in 0..500 {
        let rules: Vec<Value> = (0..20)
            .map(|rule| {
                let resources: Vec<String> = (0..5).map(|of| format!("kind{}", (at * 7 + rule * 5 + of) % 300)).collect();
                json!({ "verbs": ["get", "list", "watch"], "apiGroups": [format!("group{}.example.com", at % 50)], "resources": resources })
            })
            .collect();
        rights.put_role(&reference("", &format!("role{at}")), Role::read(&json!({ "rules": rules })));
    }
    for at in 0..5_000 {
        let namespace = if at % 2 == 0 { String::new() } else { format!("namespace{}", at % 250) };
        let subject = match at % 4 {
            0 => json!({ "kind": "Group", "name": "everybody" }),
            1 => json!({ "kind": "ServiceAccount", "name": format!("account{at}") }),
            _ => json!({ "kind": "User", "name": format!("user{}", at % 1_000) }),
        };
        let (name, role) = (format!("binding{at}"), format!("role{}", at % 500));
        rights.put_binding(bound(&namespace, &name, &role, json!([subject])));
    }
    rights
}

/// Questions to it: of users with few roles, and of members of a group with a hundred; most are not allowed.
fn questions() -> Vec<(Caller, Verb, String, String, String)> {
    let of = |at: usize| {
        let groups = if at.is_multiple_of(2) { vec!["everybody".to_owned()] } else { Vec::new() };
        let groups = groups.into_iter().chain(["system:authenticated".to_owned()]).collect();
        let caller = Caller { name: format!("user{}", at % 1_200), groups, ..Caller::default() };
        let (group, resource) = (format!("group{}.example.com", at % 50), format!("kind{}", at % 320));
        (caller, Verb::Get, group, resource, format!("namespace{}", at % 260))
    };
    (0..2_000).map(of).collect()
}

fn ask(
    rights: &Rights,
    (caller, verb, group, resource, namespace): &(Caller, Verb, String, String, String),
) -> bool {
    let of = ResourceAttributes { group, namespace, resource, name: "x", ..Default::default() };
    let found = rights.decide(&Attributes { caller, verb, about: About::Resource(of) });
    matches!(found, Ruling::Allowed(_))
}

#[test]
fn a_decision_allocates_nothing() {
    let (rights, questions) = (large(), questions());
    let mut allowed = 0;
    let cost = allocation_counter::measure(|| {
        allowed = questions.iter().filter(|question| ask(&rights, question)).count();
    });
    assert_eq!(cost.count_total, 0);
    assert!(allowed > 0 && allowed < questions.len(), "{allowed}");
}
