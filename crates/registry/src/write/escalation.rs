//! escalate: whoever gives a right has it, or may give what they have not.
//!
//! In: a role or a binding that somebody writes. Out: nothing, or a refusal in upstream's words. Never: asked
//! of the server itself, or of the masters; judges by rights that are not current, or where others wait.
//!
//! Source: kubernetes v1.36.3 `pkg/registry/rbac/{escalation_check,helpers}.go`, `*/policybased/storage.go`.

use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::caller::MASTERS;
use forebay_apimachinery::{About, Attributes, Caller, Reason, ResourceAttributes, Status, Verb};
use forebay_rbac::{GROUP, Rights, Role, RoleRef, full_authority};
use serde_json::{Map, Value};

use super::Write;
use super::flow::{Flow, Passed};
use crate::context::Context;
use crate::incoming::name_of;
use crate::rights_source;

/// See the module's doc.
pub(super) fn escalate<'a>(write: &'a mut Write<'_>, context: &'a Arc<Context>) -> Passed<'a> {
    let is_object = write.is_new_object() || write.is_change();
    if !rights_source::has(write.served()) || !is_object {
        return Eventual::Now(Ok(Flow::Next));
    }
    match write.target.caller.clone() {
        None => Eventual::Now(Ok(Flow::Next)),
        Some(caller) if caller.is_in(MASTERS) => Eventual::Now(Ok(Flow::Next)),
        Some(caller) => Eventual::later(async move {
            let giving = Giving { write, context, caller: &caller };
            giving.check().await.map(|()| Flow::Next)
        }),
    }
}

/// Somebody writes a role or a binding.
struct Giving<'a, 'w> {
    write: &'a Write<'w>,
    context: &'a Arc<Context>,
    caller: &'a Arc<Caller>,
}

impl Giving<'_, '_> {
    async fn check(&self) -> Result<(), Status> {
        let write = self.write;
        if write.old.as_ref().is_some_and(|old| is_only_collected(&write.proposed, old)) {
            return Ok(());
        }
        match write.served().resource() {
            "roles" | "clusterroles" => self.check_role().await,
            _ => self.check_binding().await,
        }
    }

    async fn check_role(&self) -> Result<(), Status> {
        let (write, served) = (self.write, self.write.served());
        let name = if write.is_nameless { "" } else { write.target.name() };
        if self.may("escalate", served.resource(), name).await {
            return Ok(());
        }
        let rights = rights_source::current(self.context).await?;
        self.check_rules(&rights, Role::read(&write.proposed).into()).await?;
        // Who gathers rules gathers any, and who changes what is gathered may keep rules from going.
        let gathers = [Some(&write.proposed), write.old.as_ref()].into_iter().flatten().any(gathers);
        if gathers && self.check_rules(&rights, full_authority().into()).await.is_err() {
            return Err(self.forbidden("must have cluster-admin privileges to use the aggregationRule"));
        }
        Ok(())
    }

    async fn check_binding(&self) -> Result<(), Status> {
        let text = |name: &str| self.write.proposed["roleRef"][name].as_str().unwrap_or("");
        let (kind, name, namespace) = (text("kind"), text("name"), self.write.target.namespace());
        let resource = match kind {
            "ClusterRole" => "clusterroles",
            "Role" => "roles",
            other => return Err(Status::internal(format!("unsupported role reference kind: {other:?}"))),
        };
        if text("apiGroup") == GROUP && self.may("bind", resource, name).await {
            return Ok(());
        }
        let Some(role) = RoleRef::read(&self.write.proposed["roleRef"], namespace) else {
            return Err(Status::bad_request("Namespace parameter required."));
        };
        let rights = rights_source::current(self.context).await?;
        // Upstream takes what is not found for one of the request's resource.
        let missing = || Status::not_found(GROUP, self.write.served().resource(), name);
        let given = rights.role(&role).ok_or_else(missing)?;
        self.check_rules(&rights, given.clone()).await
    }

    /// Whether there is a right to do `verb` to a role whatever it allows.
    async fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let namespace = self.write.target.namespace();
        let of = ResourceAttributes {
            group: GROUP,
            version: "*",
            namespace,
            resource,
            name,
            ..Default::default()
        };
        let asked = Attributes { caller: self.caller, verb: &Verb::named(verb), about: About::Resource(of) };
        self.context.config.authorizer.authorize(&asked).wait().await.is_allowed()
    }

    /// Whether whoever writes has what `given` allows: judged apart, however short the request is.
    async fn check_rules(&self, rights: &Arc<Rights>, given: Arc<Role>) -> Result<(), Status> {
        let (rights, caller, served) =
            (rights.clone(), self.caller.clone(), self.write.target.served.clone());
        let namespace = self.write.target.namespace().to_owned();
        let judge = move || rights.refusal_to_give(&caller, &namespace, &given, served.resource());
        match forebay_rt::apart(judge).await {
            Some(None) => Ok(()),
            Some(Some(why)) => Err(self.forbidden(&why)),
            None => Err(Status::internal("the judgement of rights was broken off")),
        }
    }

    fn forbidden(&self, why: &str) -> Status {
        let (served, name) = (self.write.served(), name_of(&self.write.proposed));
        let resource = served.gvr.group_resource();
        let message = match name {
            "" => format!("{resource} is forbidden: {why}"),
            name => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Status::new(Reason::Forbidden, message).about(served.group(), served.resource(), name)
    }
}

fn gathers(role: &Value) -> bool {
    role["aggregationRule"]["clusterRoleSelectors"].as_array().is_some_and(|selectors| !selectors.is_empty())
}

/// Whether nothing is changed but what the garbage collector changes.
fn is_only_collected(proposed: &Value, old: &Value) -> bool {
    const COLLECTED: [&str; 4] = ["ownerReferences", "finalizers", "selfLink", "managedFields"];
    let (Some(proposed), Some(old)) = (proposed.as_object(), old.as_object()) else { return false };
    let same = |one: &Map<String, Value>, other: &Map<String, Value>| {
        one.iter().filter(|(name, _)| *name != "metadata").all(|(name, value)| other.get(name) == Some(value))
    };
    let same_metadata = |one: &Value, other: &Value| {
        let members = one.as_object().into_iter().flatten();
        // Few: four names.
        let mut kept = members.filter(|(name, _)| !COLLECTED.contains(&name.as_str()));
        kept.all(|(name, value)| other.get(name) == Some(value))
    };
    let metadata = |of: &Map<String, Value>| of.get("metadata").cloned().unwrap_or_default();
    let (new, was) = (metadata(proposed), metadata(old));
    same(proposed, old) && same(old, proposed) && same_metadata(&new, &was) && same_metadata(&was, &new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_the_garbage_collector_changes_is_let_pass() {
        let object = |finalizers: &[&str], rules: Value| json!({ "metadata": { "name": "a", "finalizers": finalizers }, "rules": rules });
        let old = object(&["f"], json!([1]));
        for (proposed, want) in [
            (old.clone(), true),
            (object(&[], json!([1])), true),
            (json!({ "metadata": { "name": "a" }, "rules": [1] }), true),
            (json!({ "metadata": { "name": "a", "labels": { "x": "y" } }, "rules": [1] }), false),
            (object(&["f"], json!([1, 2])), false),
            (json!({ "metadata": { "name": "a" } }), false),
            (json!({ "metadata": { "name": "a" }, "rules": [1], "aggregationRule": {} }), false),
        ] {
            assert_eq!(is_only_collected(&proposed, &old), want, "{proposed}");
            assert_eq!(is_only_collected(&old, &proposed), want, "{proposed}");
        }
    }
}
