//! Who may act as whom, by which rights.

use forebay_rbac::{Rights, RightsInForce, Role, RoleBinding, RoleRef};
use serde_json::{Value, json};

use super::*;
use crate::access::ForbiddenAbout;
use crate::config::{Anonymous, Authorization};

/// Whoever is in the group `a` has the rules `a`, and so on.
fn access(rules: &[(&str, Value)]) -> Access {
    access_of(rules, Anonymous::HealthAndVersion)
}

fn access_of(rules: &[(&str, Value)], anonymous: Anonymous) -> Access {
    let mut rights = Rights::default();
    for (group, rules) in rules {
        let role = RoleRef { namespace: "".into(), name: (*group).into() };
        rights.put_role(&role, Role::read(&json!({ "rules": rules })));
        let binding = json!({
            "metadata": { "name": group }, "roleRef": { "kind": "ClusterRole", "name": group },
            "subjects": [{ "kind": "Group", "name": group }],
        });
        rights.put_binding(RoleBinding::read(&binding, "").expect("a binding"));
    }
    let in_force = RightsInForce::default();
    in_force.publish(rights);
    Access::new(&Authorization::rbac(Arc::new(in_force)), anonymous)
}

fn asker(name: &str, groups: &[&str], node: Option<&str>) -> Asker {
    let mut extra = BTreeMap::new();
    extra.extend(node.map(|node| (NODE_NAME.to_string(), vec![node.to_string()])));
    let groups = groups.iter().map(|group| (*group).to_string()).collect();
    Asker::Known(Arc::new(Caller { name: name.into(), groups, extra, ..Caller::default() }))
}

fn wanted(user: &str, groups: &[&str], extra: &[(&str, &str)]) -> Wanted {
    Wanted {
        user: user.into(),
        uid: String::new(),
        groups: groups.iter().map(|group| (*group).to_string()).collect(),
        extra: extra.iter().map(|(key, value)| ((*key).to_string(), (*value).to_string())).collect(),
    }
}

fn may(verbs: &[&str], group: &str, resources: &[&str], names: &[&str]) -> Value {
    json!({ "verbs": verbs, "apiGroups": [group], "resources": resources, "resourceNames": names })
}

fn impersonation(ways: Ways) -> Impersonation {
    Impersonation::new(Clock::manual(0).0, Arc::default(), ways)
}

/// Lists pods as `wanted`, and tells how.
async fn listing(impersonation: &Impersonation, access: &Access, asker: &Asker, wanted: &Wanted) -> String {
    let pods = ResourceAttributes { version: "v1", namespace: "n", resource: "pods", ..Default::default() };
    let asking = Asking { access, asker, verb: &Verb::List, about: About::Resource(pods) };
    match impersonation.become_wanted(wanted, asking).await {
        Ok(Impersonated { asker, constraint }) => {
            let caller = asker.caller();
            format!(
                "{} [{}] by {}",
                caller.name,
                caller.groups.join(","),
                constraint.as_deref().unwrap_or("all")
            )
        }
        Err(Refused::Unauthenticated) => "401".to_owned(),
        Err(Refused::Undecided(why)) => format!("500 {why}"),
        Err(Refused::Forbidden(forbidden)) => {
            let ForbiddenAbout::Resource { resource, subresource, name, .. } = forbidden.about else {
                return "a path".to_owned();
            };
            let why = if forbidden.why.is_empty() { String::new() } else { format!(": {}", forbidden.why) };
            format!("no {} {resource}/{subresource}/{name}{why}", forbidden.verb)
        }
    }
}

#[tokio::test]
async fn acting_as_somebody_for_one_thing_takes_both_rights() {
    let on = |mode: &str| may(&[&format!("impersonate-on:{mode}:list")], "", &["pods"], &[]);
    let be = |mode: &str, resource: &str, name: &str| {
        may(&[&format!("impersonate:{mode}")], GROUP, &[resource], &[name])
    };
    let access = access(&[
        ("on", json!([on("user-info"), on("serviceaccount"), on("arbitrary-node"), on("associated-node")])),
        ("bob", json!([be("user-info", "users", "bob")])),
        ("sa", json!([be("serviceaccount", "serviceaccounts", "s")])),
        ("node", json!([be("arbitrary-node", "nodes", "w1")])),
        ("own", json!([be("associated-node", "nodes", "*")])),
        ("old", json!([may(&["impersonate"], "", &["users", "groups", "serviceaccounts"], &[])])),
    ]);
    let check = async |groups: &[&str], wanted: Wanted, want: &str| {
        let asks = asker("ann", groups, None);
        let got = listing(&impersonation(Ways::All), &access, &asks, &wanted).await;
        assert_eq!(got, want, "{groups:?} {wanted:?}");
    };
    let bob = || wanted("bob", &[], &[]);
    check(&["on", "bob"], bob(), "bob [system:authenticated] by impersonate:user-info").await;
    check(&["bob"], bob(), "no impersonate-on:user-info:list pods//").await;
    check(&["on"], bob(), "no impersonate:user-info users//bob").await;
    check(&["old"], bob(), "bob [system:authenticated] by all").await;
    // Groups, too, are allowed one by one.
    check(&["on", "bob"], wanted("bob", &["g"], &[]), "no impersonate:user-info groups//g").await;
    let masters = "no impersonate:user-info groups//system:masters: impersonating the system:masters group is not allowed";
    check(&["on", "bob"], wanted("bob", &[MASTERS], &[]), masters).await;
    check(
        &["on", "bob", "old"],
        wanted("bob", &[MASTERS], &[]),
        "bob [system:masters,system:authenticated] by all",
    )
    .await;
    let account = "system:serviceaccount:n:s";
    let groups = "system:serviceaccounts,system:serviceaccounts:n,system:authenticated";
    let known = format!("{account} [{groups}] by impersonate:serviceaccount");
    check(&["on", "sa"], wanted(account, &[], &[]), &known).await;
    // With groups it is no service account as such, and as a user it is none either.
    check(&["on", "sa"], wanted(account, &["g"], &[]), "no impersonate serviceaccounts//s").await;
    let known = "system:node:w1 [system:nodes,system:authenticated] by impersonate:arbitrary-node";
    check(&["on", "node"], wanted("system:node:w1", &[], &[]), known).await;
    check(&["on", "node"], wanted("system:node:w2", &[], &[]), "no impersonate:arbitrary-node nodes//w2")
        .await;
    // A name that no node can have is a user's.
    check(
        &["on", "node"],
        wanted("system:node:W", &[], &[]),
        "no impersonate:user-info users//system:node:W",
    )
    .await;
}

#[tokio::test]
async fn what_is_open_to_everyone_is_not_open_to_who_acts_as_somebody_else() {
    let access = access(&[("bob", json!([may(&["impersonate:user-info"], GROUP, &["users"], &["bob"])]))]);
    let asks = asker("ann", &["bob"], None);
    for asker in [&asks, &Asker::Anonymous] {
        let asking = Asking { access: &access, asker, verb: &Verb::Get, about: About::Path("/version") };
        let refused = impersonation(Ways::All).become_wanted(&wanted("bob", &[], &[]), asking).await;
        let Err(Refused::Forbidden(forbidden)) = refused else { panic!("{refused:?}") };
        assert_eq!(forbidden.verb.as_str(), "impersonate-on:user-info:get");
        assert_eq!(forbidden.about, ForbiddenAbout::Path("/version".into()));
    }
}

#[tokio::test]
async fn who_is_made_anonymous_is_asked_for_rights_and_not_for_credentials() {
    let rights = [
        ("nobody", json!([may(&["impersonate"], "", &["users"], &["system:anonymous"])])),
        ("system:unauthenticated", json!([may(&["list"], "", &["nodes"], &[])])),
    ];
    let access = access_of(&rights, Anonymous::Nothing);
    let asks = asker("ann", &["nobody"], None);
    let nodes = ResourceAttributes { version: "v1", resource: "nodes", ..Default::default() };
    let asking = |verb| Asking { access: &access, asker: &asks, verb, about: About::Resource(nodes) };
    let wanted = wanted("system:anonymous", &[], &[]);
    let became =
        impersonation(Ways::Legacy).become_wanted(&wanted, asking(&Verb::List)).await.expect("it may");
    assert_eq!(became.asker.name(), "system:anonymous");
    let decided = access.check(&became.asker, &Verb::List, About::Resource(nodes)).await;
    assert!(decided.is_ok(), "{decided:?}");
    let decided = access.check(&became.asker, &Verb::Watch, About::Resource(nodes)).await;
    assert!(matches!(decided, Err(Refused::Forbidden(_))), "{decided:?}");
}

#[tokio::test]
async fn a_pods_account_may_be_the_node_that_the_pod_is_on() {
    let access = access(&[(
        "agents",
        json!([
            may(&["impersonate-on:associated-node:list"], "", &["pods"], &[]),
            may(&["impersonate:associated-node"], GROUP, &["nodes"], &["*"]),
        ]),
    )]);
    let agent = "system:serviceaccount:n:agent";
    for (name, node, user, want) in [
        (
            agent,
            Some("w1"),
            "system:node:w1",
            "system:node:w1 [system:nodes,system:authenticated] by impersonate:associated-node",
        ),
        (agent, Some("w1"), "system:node:w2", "no impersonate-on:arbitrary-node:list pods//"),
        (agent, None, "system:node:w1", "no impersonate-on:arbitrary-node:list pods//"),
        ("ann", Some("w1"), "system:node:w1", "no impersonate-on:arbitrary-node:list pods//"),
    ] {
        let asks = asker(name, &["agents"], node);
        let got = listing(&impersonation(Ways::All), &access, &asks, &wanted(user, &[], &[])).await;
        assert_eq!(got, want, "{name} {node:?} {user}");
    }
}

#[tokio::test]
async fn attributes_that_are_none_are_nobodys() {
    let access = access(&[(
        "all",
        json!([
            may(&["impersonate-on:user-info:list"], "", &["pods"], &[]),
            may(&["impersonate:user-info"], GROUP, &["users"], &[]),
            may(&["impersonate:user-info"], GROUP, &["userextras/a.io/b"], &["x"]),
        ]),
    )]);
    let asks = asker("ann", &["all"], None);
    let refused = "no impersonate:user-info userextras//: impersonating";
    for (extra, want) in [
        (("a.io/b", "x"), "bob [system:authenticated] by impersonate:user-info".to_owned()),
        (("a.io/b", "y"), "no impersonate:user-info userextras/a.io/b/y".to_owned()),
        (("a.io/b", ""), format!("{refused} the empty string value in extra is not allowed")),
        (("", "x"), format!("{refused} the empty string key in extra is not allowed")),
        (("a.io/B", "x"), format!("{refused} a non-lowercase key in extra is not allowed: \"a.io/B\"")),
        (
            ("scopes", "x"),
            format!(
                "{refused} an invalid key in extra is not allowed: extra.key: Invalid value: \"scopes\": must be a \
                 domain-prefixed path (such as \"acme.io/foo\")"
            ),
        ),
    ] {
        let wanted = wanted("bob", &[], &[extra]);
        assert_eq!(listing(&impersonation(Ways::All), &access, &asks, &wanted).await, want, "{extra:?}");
    }
}

#[tokio::test]
async fn the_way_that_somebody_went_last_is_tried_first_and_says_why_not() {
    let access = access(&[("old", json!([may(&["impersonate"], "", &["users"], &["bob"])]))]);
    let (all, asks) = (impersonation(Ways::All), asker("ann", &["old"], None));
    let eve = wanted("eve", &[], &[]);
    assert_eq!(listing(&all, &access, &asks, &eve).await, "no impersonate-on:user-info:list pods//");
    let bob = wanted("bob", &[], &[]);
    assert_eq!(listing(&all, &access, &asks, &bob).await, "bob [system:authenticated] by all");
    assert_eq!(listing(&all, &access, &asks, &eve).await, "no impersonate users//eve");
    // Whoever has constrained impersonation turned off hears of the old way alone.
    let legacy = impersonation(Ways::Legacy);
    assert_eq!(listing(&legacy, &access, &asks, &eve).await, "no impersonate users//eve");
}

#[test]
fn no_more_users_are_known_than_there_may_be() {
    let all = impersonation(Ways::All);
    for name in 0..3 * IMPERSONATORS_KNOWN_MAX as u64 {
        all.went(name, 1);
        assert_eq!(all.last(0), Some(1), "{name}");
    }
    let last = all.last.lock().expect("no panic");
    assert!(last.iter().all(|of| of.len() <= IMPERSONATORS_KNOWN_MAX));
}

#[test]
fn a_service_account_that_could_not_be_there_is_a_user() {
    for (user, want) in [
        ("system:serviceaccount:ns:sa", Some(("ns", "sa"))),
        ("system:serviceaccount:ns:s.a", Some(("ns", "s.a"))),
        ("system:serviceaccount:ns:sa:x", None),
        ("system:serviceaccount:Ns:sa", None),
        ("system:serviceaccount::sa", None),
        ("system:serviceaccount:ns:", None),
        ("bob", None),
    ] {
        assert_eq!(service_account(user), want, "{user}");
    }
}
