//! RBAC: whoever has a role by a binding may do what its rules say.
//!
//! In: the rights in force, a question. Out: the binding that allows it, in upstream's words. Never: waits;
//! who follows roles and bindings is elsewhere.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/rbac/rbac.go`.

use std::borrow::Cow;
use std::sync::Arc;

use forebay_api::{Authorizer, Because, Decision, Eventual, PathRule, ResourceRule, Rules, told_together};
use forebay_apimachinery::{About, Attributes, Caller};
use forebay_rbac::limits::TOLD_BYTES_MAX;
use forebay_rbac::{PolicyRule, Rights, RightsInForce, RoleRef, Ruling};

/// Allows what the rights in force do.
pub struct Rbac(pub Arc<RightsInForce>);

impl Authorizer for Rbac {
    fn authorize<'a>(&'a self, asked: &'a Attributes<'a>) -> Eventual<'a, Decision> {
        let rights = self.0.load();
        Eventual::Now(match rights.decide(asked) {
            Ruling::Allowed(through) => Decision::Allow(Because::Shared(through)),
            Ruling::NotAllowed { absent: false } => Decision::NoOpinion(Because::Unsaid),
            Ruling::NotAllowed { absent: true } => {
                let namespace = match asked.about {
                    About::Resource(of) => of.namespace,
                    About::Path(_) => "",
                };
                let absent = absent(&rights, asked.caller, namespace);
                Decision::NoOpinion(Because::Said(format!("RBAC: {}", told_together(&absent)).into()))
            }
        })
    }

    fn rules(&self, caller: &Caller, namespace: &str, rules: &mut Rules) {
        let rights = self.0.load_full();
        let mut bytes = 0;
        for rule in rights.rules(caller, namespace) {
            bytes += rule.bytes();
            if bytes > TOLD_BYTES_MAX {
                rules.incomplete = true;
                rules.errors.push("there are more rules than are told of".to_owned());
                break;
            }
            tell(rule, rules);
        }
        rules.errors.extend(absent(&rights, caller, namespace));
    }
}

/// Roles that are bound and not there, as upstream's cache names them.
fn absent(rights: &Rights, caller: &Caller, namespace: &str) -> Vec<String> {
    let word = |of: &RoleRef| if of.is_cluster_role() { "clusterrole" } else { "role" };
    rights.absent(caller, namespace, word)
}

fn tell(rule: &PolicyRule, rules: &mut Rules) {
    let texts = |list: &[Arc<str>]| -> Vec<Cow<'static, str>> {
        list.iter().map(|text| Cow::Owned(text.to_string())).collect()
    };
    if !rule.resources().is_empty() {
        rules.resources.push(ResourceRule {
            verbs: texts(rule.verbs()),
            groups: texts(rule.groups()),
            resources: texts(rule.resources()),
            names: texts(rule.names()),
        });
    }
    if !rule.paths().is_empty() {
        rules.paths.push(PathRule { verbs: texts(rule.verbs()), paths: texts(rule.paths()) });
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{ResourceAttributes, Verb};
    use forebay_rbac::{Role, RoleBinding};
    use serde_json::json;

    use super::*;

    fn published() -> Rbac {
        let mut rights = Rights::default();
        let role = json!({ "rules": [
            { "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"] },
            { "verbs": ["get"], "nonResourceURLs": ["/x"] },
        ] });
        rights.put_role(&RoleRef { namespace: "".into(), name: "r".into() }, Role::read(&role));
        for (name, role, group) in [("b", "r", "dev"), ("c", "gone", "ops"), ("d", "lost", "ops")] {
            let binding = json!({
                "metadata": { "name": name }, "roleRef": { "kind": "ClusterRole", "name": role },
                "subjects": [{ "kind": "Group", "name": group }],
            });
            rights.put_binding(RoleBinding::read(&binding, "").expect("a binding"));
        }
        let in_force = RightsInForce::default();
        in_force.publish(rights);
        Rbac(Arc::new(in_force))
    }

    #[test]
    fn decisions_are_told_in_upstreams_words() {
        let absent = r#"NoOpinion("RBAC: [clusterrole.rbac.authorization.k8s.io \"gone\" not found, clusterrole.rbac.authorization.k8s.io \"lost\" not found]")"#;
        let allowed =
            r#"Allow("RBAC: allowed by ClusterRoleBinding \"b\" of ClusterRole \"r\" to Group \"dev\"")"#;
        for (group, name, want) in [
            ("dev", "a", allowed),
            ("dev", "b", r#"NoOpinion("")"#),
            ("ops", "a", absent),
            ("others", "a", r#"NoOpinion("")"#),
        ] {
            let caller = Caller { groups: vec![group.into()], ..Caller::default() };
            let of = ResourceAttributes { resource: "pods", namespace: "n", name, ..Default::default() };
            let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Resource(of) };
            let rbac = published();
            let Eventual::Now(decision) = rbac.authorize(&asked) else { panic!("decides at once") };
            assert_eq!(format!("{decision:?}"), want, "{group} {name}");
        }
    }

    #[test]
    fn rules_are_told_with_what_could_not_be_looked_at() {
        let caller = Caller { groups: vec!["dev".into(), "ops".into()], ..Caller::default() };
        let mut rules = Rules::default();
        published().rules(&caller, "n", &mut rules);
        assert_eq!((rules.resources.len(), rules.paths.len(), rules.incomplete), (1, 1, false));
        assert_eq!(rules.resources[0].names, ["a"]);
        assert_eq!(
            told_together(&rules.errors),
            r#"[clusterrole.rbac.authorization.k8s.io "gone" not found, clusterrole.rbac.authorization.k8s.io "lost" not found]"#
        );
    }

    #[test]
    fn nobody_has_a_right_before_any_are_published() {
        let caller = Caller { groups: vec!["dev".into()], ..Caller::default() };
        let asked = Attributes { caller: &caller, verb: &Verb::Get, about: About::Path("/x") };
        let rbac = Rbac(Arc::default());
        assert!(matches!(rbac.authorize(&asked), Eventual::Now(Decision::NoOpinion(Because::Unsaid))));
    }
}
