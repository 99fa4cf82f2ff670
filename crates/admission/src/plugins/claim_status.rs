//! Who may write which part of a resource claim's status: what is allocated, and what drivers say of their
//! devices.
//!
//! In: a claim's status as it was and as it is to be, and who asks. Out: a cause for each part that they have
//! no right to. Never: asks about what did not change, or about more drivers than a claim may have.
//!
//! Source: kubernetes v1.36.3 `registry/resource/utils.go`, `registry/resource/resourceclaim/strategy.go`.

use std::collections::{BTreeMap, BTreeSet};

use forebay_api::Eventual;
use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{About, Attributes, Caller, Cause, CauseReason, ResourceAttributes, Verb};
use serde_json::Value;

use crate::plugin::{Plugin, Switch, Tools, WriteAttributes};

/// What accounts of services are called.
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";
/// What a token is bound to says so.
const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// Drivers that are asked about: twice as many as a claim has devices, those that it had and those that it
/// is to have. One with more is refused.
const DRIVERS_MAX: usize = 64;
/// A device: driver, pool, name, share.
const DEVICE: [&str; 4] = ["driver", "pool", "device", "shareID"];

pub struct ClaimStatus;

impl Plugin for ClaimStatus {
    fn name(&self) -> &'static str {
        "ClaimStatus"
    }

    fn switch(&self) -> Switch {
        Switch::None
    }

    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        write.updates() && write.is_of_part("resource.k8s.io", "resourceclaims", "status")
    }

    fn causes<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Eventual<'a, Vec<Cause>> {
        let (Some(caller), Some(old)) = (write.caller, write.old) else { return Eventual::Now(Vec::new()) };
        let (new, old) = (&object["status"], &old["status"]);
        let binds = !is_same(&new["allocation"], &old["allocation"])
            || !is_same_or_empty(&new["reservedFor"], &old["reservedFor"]);
        // Whoever takes the allocation away takes away what drivers said with it.
        let drivers = if new["allocation"].is_null() { BTreeSet::new() } else { changed_drivers(new, old) };
        if !binds && drivers.is_empty() {
            return Eventual::Now(Vec::new());
        }
        Eventual::later(async move {
            let asking = Rights { write, caller, tools };
            let mut causes = Vec::new();
            if binds {
                causes.extend(asking.to_bind().await);
            }
            if drivers.len() > DRIVERS_MAX {
                let why =
                    format!("changing status.devices of more than {DRIVERS_MAX} drivers is not allowed");
                causes.push(forbidden("status.devices", &why));
                return causes;
            }
            let verbs = asking.verbs_of_drivers(&new["allocation"]);
            for driver in drivers {
                causes.extend(asking.to_speak_for(driver, &verbs).await);
            }
            causes
        })
    }
}

/// What somebody may write of a claim.
struct Rights<'a> {
    write: &'a WriteAttributes<'a>,
    caller: &'a Caller,
    tools: &'a Tools<'a>,
}

impl Rights<'_> {
    /// Asked of all claims of the cluster, as upstream does.
    async fn to_bind(&self) -> Option<Cause> {
        let verb = self.write.asked_as();
        let refusal = self.refusal("binding", verb, "", "").await?;
        let why = format!(
            "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", \
             verb=\"{verb}\" permission: {refusal}"
        );
        Some(forbidden("status.allocation", &why))
    }

    /// Either of `verbs` is enough.
    async fn to_speak_for(&self, driver: &str, verbs: &[String]) -> Option<Cause> {
        let mut first = None;
        for verb in verbs {
            let refusal = self.refusal("driver", verb, self.write.of.namespace, driver).await?;
            first = first.or(Some(refusal));
        }
        let (verbs, refusal) = (verbs.join(" "), first.unwrap_or_default());
        let why = format!(
            "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{verbs}]\" permission: {refusal}"
        );
        Some(forbidden("status.devices", &why))
    }

    /// Whoever runs on the node that the devices are of needs a smaller right.
    fn verbs_of_drivers(&self, allocation: &Value) -> Vec<String> {
        let verb = self.write.asked_as();
        let arbitrary = format!("arbitrary-node:{verb}");
        let own = match self.caller.extra.get(NODE_NAME).map(Vec::as_slice) {
            Some([node]) if self.caller.name.starts_with(SERVICE_ACCOUNT) => Some(node.as_str()),
            _ => None,
        };
        match node_of(allocation) {
            Some(node) if own == Some(node) => vec![format!("associated-node:{verb}"), arbitrary],
            _ => vec![arbitrary],
        }
    }

    /// Why who asks may not, if so.
    async fn refusal(&self, subresource: &str, verb: &str, namespace: &str, name: &str) -> Option<String> {
        let of = ResourceAttributes {
            group: self.write.of.group,
            version: self.write.of.version,
            namespace,
            resource: self.write.of.resource,
            subresource,
            name,
            ..ResourceAttributes::default()
        };
        let asked = Attributes { caller: self.caller, verb: &Verb::named(verb), about: About::Resource(of) };
        let decision = self.tools.authorizer.authorize(&asked).wait().await;
        if decision.is_allowed() {
            return None;
        }
        let place = match namespace {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {}", go_quote(namespace)),
        };
        let user = go_quote(&self.caller.name);
        let why = format!(
            "User {user} cannot {verb} resource \"resourceclaims/{subresource}\" in API group {} {place}",
            go_quote(of.group)
        );
        let reason = decision.because().to_string();
        let said: Vec<&str> =
            decision.error().into_iter().chain([reason.as_str()]).filter(|text| !text.is_empty()).collect();
        let because = if said.is_empty() { String::new() } else { format!(": {}", said.join(": ")) };
        let named = WriteAttributes { of, ..*self.write };
        Some(named.forbidden_as(name, &format!("{}{because}", escaped(&why))).message)
    }
}

fn forbidden(field: &str, why: &str) -> Cause {
    Cause::new(CauseReason::FieldValueForbidden, field, format!("Forbidden: {why}"))
}

/// As upstream writes names of users where they might be taken for markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The drivers whose devices are new, changed or gone.
fn changed_drivers<'v>(new: &'v Value, old: &'v Value) -> BTreeSet<&'v str> {
    let mut before: BTreeMap<[&str; 4], &Value> = devices(old).map(|device| (key(device), device)).collect();
    let mut changed = BTreeSet::new();
    for device in devices(new) {
        let key = key(device);
        if before.remove(&key).is_none_or(|known| !is_same(known, device)) {
            changed.insert(key[0]);
        }
    }
    changed.extend(before.keys().map(|gone| gone[0]));
    changed
}

fn devices(status: &Value) -> impl Iterator<Item = &Value> {
    status["devices"].as_array().into_iter().flatten()
}

fn key(device: &Value) -> [&str; 4] {
    DEVICE.map(|member| device[member].as_str().unwrap_or_default())
}

/// The one node that an allocation is of, if it is one.
fn node_of(allocation: &Value) -> Option<&str> {
    let [term] = allocation["nodeSelector"]["nodeSelectorTerms"].as_array()?.as_slice() else { return None };
    let has_labels = term["matchExpressions"].as_array().is_some_and(|all| !all.is_empty());
    let [field] = term["matchFields"].as_array()?.as_slice() else { return None };
    let [node] = field["values"].as_array()?.as_slice() else { return None };
    let is_name = field["key"] == "metadata.name" && field["operator"] == "In" && !has_labels;
    node.as_str().filter(|node| is_name && !node.is_empty())
}

/// Whether two parts are the same.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(ones), Value::Object(others)) => {
            let names = ones.keys().chain(others.keys());
            // Once: a member is looked up in the other.
            names.into_iter().all(|name| is_same_or_empty(&one[name.as_str()], &other[name.as_str()]))
        }
        (Value::Array(ones), Value::Array(others)) => {
            ones.len() == others.len() && ones.iter().zip(others).all(|(one, other)| is_same(one, other))
        }
        (one, other) => one == other,
    }
}

/// The same, where what is empty is as good as nothing.
fn is_same_or_empty(one: &Value, other: &Value) -> bool {
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    };
    is_empty(one) && is_empty(other) || is_same(one, other)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn device(driver: &str, device: &str, data: Value) -> Value {
        json!({"driver": driver, "pool": "p", "device": device, "data": data})
    }

    #[test]
    fn drivers_are_asked_about_whose_devices_are_new_changed_or_gone() {
        let old = json!({"devices": [
            device("same", "d", json!({"a": 1})), device("changed", "d", json!(1)), device("gone", "d", json!(1)),
        ]});
        let new = json!({"devices": [
            device("changed", "d", json!(2)), device("new", "d", json!(1)), device("same", "d", json!({"a": 1})),
        ]});
        let changed: Vec<&str> = changed_drivers(&new, &old).into_iter().collect();
        assert_eq!(changed, ["changed", "gone", "new"]);
        assert!(changed_drivers(&old, &old).is_empty());
    }

    #[test]
    fn an_empty_list_is_as_good_as_none_and_an_empty_allocation_is_not() {
        let (none, empty) = (json!({"name": "x"}), json!({"name": "x", "conditions": []}));
        assert!(is_same(&none, &empty) && is_same_or_empty(&json!([]), &Value::Null));
        assert!(!is_same(&json!({}), &Value::Null) && !is_same(&none, &json!({"name": "y"})));
    }

    #[test]
    fn an_allocation_is_of_the_node_that_it_names_alone() {
        let of = |term: Value| json!({"nodeSelector": {"nodeSelectorTerms": [term]}});
        let field = json!([{"key": "metadata.name", "operator": "In", "values": ["n"]}]);
        assert_eq!(node_of(&of(json!({"matchFields": field}))), Some("n"));
        let more = json!([{"key": "a", "operator": "Exists"}]);
        assert_eq!(node_of(&of(json!({"matchFields": field, "matchExpressions": more}))), None);
        assert_eq!(node_of(&json!({})), None);
    }
}
