//! clusterrole-aggregation-controller: a ClusterRole that takes in others has the rules of those that it
//! selects.
//!
//! In: notices of roles. Out: rules, applied where they are others. Never: keeps a role: which take in others
//! is looked for each time, once for all that has changed meanwhile.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/clusterroleaggregation`.

use std::collections::HashSet;
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::{ListOptions, PatchOptions};
use forebay_apimachinery::selector::LabelSelector;
use forebay_catalog::Served;
use forebay_object::Object;
use forebay_registry::{Informer, Notice, Objects};
use forebay_rt::Instant;
use memchr::memmem;
use serde_json::{Map, Value, json};

use crate::acting::ActingRegistry;
use crate::limits;
use crate::objects::{built_in, collection, named};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

const GROUP: &str = "rbac.authorization.k8s.io";

/// What a rule says, in the order in which it is compared.
const MEMBERS: [&str; 5] = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"];

/// The controller. Its one name is that of all roles that take in others.
pub struct RoleAggregation(pub ActingRegistry);

impl Named for RoleAggregation {
    const NAME: &'static str = crate::Controller::RoleAggregation.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        let roles = built_in(&self.0, GROUP, "v1", "clusterroles")?;
        Ok(vec![self.0.informer(&collection(&roles, None), &ListOptions::default())?])
    }

    fn observe(&self, _: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(_) | Notice::Deleted(_) = notice {
            queue.add_at(String::new(), now + limits::ROLES_PAUSE);
        }
    }

    fn sync(&self, _: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            match sync(&registry).await {
                Ok(failures) if failures.is_empty() => Verdict::Done,
                Ok(failures) => Verdict::Retry(failures.join("; ")),
                Err(status) => Verdict::Retry(status.message),
            }
        }
    }
}

/// Looks at all roles; what could not be written.
async fn sync(registry: &ActingRegistry) -> Result<Vec<String>, Status> {
    let roles = built_in(registry, GROUP, "v1", "clusterroles")?;
    let all = registry.objects(&collection(&roles, None)).await?;
    all.are_all()?;
    let mut failures = Vec::new();
    for role in all.iter().filter(|role| memmem::find(&role.body(), b"\"aggregationRule\"").is_some()) {
        if let Err(status) = aggregate(registry, &roles, &all, role).await {
            failures.push(status.message);
        }
        tokio::task::yield_now().await;
    }
    Ok(failures)
}

async fn aggregate(
    registry: &ActingRegistry,
    roles: &Arc<Served>,
    all: &Objects,
    role: &Arc<Object>,
) -> Result<(), Status> {
    let value = roles.to_value(role)?;
    let selectors = &value["aggregationRule"]["clusterRoleSelectors"];
    if !value["aggregationRule"].is_object() {
        return Ok(());
    }
    let mut rules = Rules::default();
    for selector in selectors.as_array().into_iter().flatten() {
        let selector = LabelSelector::from_value(selector).map_err(Status::internal)?;
        let others = all.iter().filter(|other| other.name() != role.name());
        for other in others.filter(|other| selector.matches(|label| other.label(label))) {
            rules.take(&roles.to_value(other)?["rules"]);
        }
    }
    let rules = rules.all;
    if canonical(&value["rules"]) == rules.iter().map(canonical_rule).collect::<Vec<_>>() {
        return Ok(());
    }
    let mut config = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": { "name": role.name() },
    });
    if !rules.is_empty() {
        config["rules"] = Value::Array(rules);
    }
    let options = PatchOptions {
        field_manager: crate::Controller::RoleAggregation.name().to_owned(),
        force: true,
        ..PatchOptions::default()
    };
    registry.apply(&named(roles, "", role.name()), &config, &options).await.map(drop)
}

/// Rules, each once, in the order in which they came.
#[derive(Default)]
struct Rules {
    all: Vec<Value>,
    known: HashSet<String>,
}

impl Rules {
    fn take(&mut self, rules: &Value) {
        for rule in rules.as_array().into_iter().flatten() {
            if self.known.insert(canonical_rule(rule)) {
                let said = MEMBERS.iter().filter_map(|member| {
                    let list = rule[*member].as_array().filter(|list| !list.is_empty())?;
                    Some(((*member).to_owned(), json!(list)))
                });
                self.all.push(Value::Object(said.collect::<Map<String, Value>>()));
            }
        }
    }
}

fn canonical(rules: &Value) -> Vec<String> {
    rules.as_array().into_iter().flatten().map(canonical_rule).collect()
}

/// The text of a rule, in which an empty list and none are the same.
fn canonical_rule(rule: &Value) -> String {
    let empty = Value::Array(Vec::new());
    let list = |member: &&str| rule.get(*member).filter(|list| list.is_array()).unwrap_or(&empty).clone();
    Value::Array(MEMBERS.iter().map(list).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_taken_once_and_what_is_empty_is_left_out() {
        let mut rules = Rules::default();
        let get = json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": [] });
        rules.take(&json!([get, { "verbs": ["get"], "nonResourceURLs": ["/x"] }]));
        rules.take(&json!([{ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }]));
        rules.take(&Value::Null);
        let want = [
            json!({ "verbs": ["get"], "apiGroups": [""], "resources": ["pods"] }),
            json!({ "verbs": ["get"], "nonResourceURLs": ["/x"] }),
        ];
        assert_eq!(rules.all, want);
        assert_eq!(canonical(&json!([get])), [canonical_rule(&want[0])]);
    }
}
