//! OwnerReferencesPermissionEnforcement: who gives an object another owner may delete the object, and who
//! lets it hold up its owner's end may set finalizers on that.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/gc`.

use forebay_api::{Decision, Eventual};
use forebay_apimachinery::seen::Firsts;
use forebay_apimachinery::{About, Attributes, Caller, ResourceAttributes, Status, Verb};
use serde_json::Value;

use crate::plugin::{Admitted, Plugin, Switch, Tools, WriteAttributes};

pub struct OwnerReferencesPermissionEnforcement;

impl Plugin for OwnerReferencesPermissionEnforcement {
    fn name(&self) -> &'static str {
        "OwnerReferencesPermissionEnforcement"
    }

    fn switch(&self) -> Switch {
        Switch::IfEnabled
    }

    /// A kubelet writes the status of pods as it knows them, which changes no owner.
    fn handles(&self, write: &WriteAttributes<'_>) -> bool {
        (write.creates() || write.updates()) && !write.is_of_part("", "pods", "status")
    }

    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let Some(caller) = write.caller else { return Eventual::Now(Ok(())) };
        let old = write.old.filter(|_| write.updates());
        match references(object) == old.map_or(&[][..], references) {
            true => Eventual::Now(Ok(())),
            false => Eventual::later(judge(write, (object, old), tools, caller)),
        }
    }
}

fn references(object: &Value) -> &[Value] {
    object["metadata"]["ownerReferences"].as_array().map_or(&[], Vec::as_slice)
}

async fn judge(
    write: &WriteAttributes<'_>,
    (object, old): (&Value, Option<&Value>),
    tools: &Tools<'_>,
    caller: &Caller,
) -> Result<(), Status> {
    // Who creates may choose the owners: nobody had to.
    if !write.creates()
        && let Err(why) = may(caller, tools, "delete", write.of).await
    {
        let why = format!("cannot set an ownerRef on a resource you can't delete: {why}, <nil>");
        return Err(write.forbidden(object, &why));
    }
    let blocking = newly_blocking(object, old);
    let anything = ResourceAttributes {
        group: "*",
        version: "*",
        resource: "*",
        subresource: "finalizers",
        name: "*",
        ..ResourceAttributes::default()
    };
    if blocking.is_empty() || may(caller, tools, "update", anything).await.is_ok() {
        return Ok(());
    }
    for reference in blocking {
        let text = |name: &str| reference[name].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let owner = tools.lookup.kind(api_version, kind).ok_or_else(|| {
            let why = format!(
                "cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion \
                 {api_version} Kind {kind}: no matches for kind {kind:?} in version {api_version:?}"
            );
            write.forbidden(object, &why)
        })?;
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        // An owner in a namespace is in that of what it owns.
        let mut of = write.of;
        if !owner.namespaced {
            of.namespace = "";
        }
        (of.group, of.version, of.resource) = (group, version, owner.resource.as_str());
        (of.subresource, of.name) = ("finalizers", text("name"));
        if let Err(why) = may(caller, tools, "update", of).await {
            let why = format!(
                "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set \
                 finalizers on: {why}, <nil>"
            );
            return Err(write.forbidden(object, &why));
        }
    }
    Ok(())
}

/// Whether the caller may, or what the authorizer says.
async fn may(
    caller: &Caller,
    tools: &Tools<'_>,
    verb: &str,
    of: ResourceAttributes<'_>,
) -> Result<(), String> {
    let verb = Verb::named(verb);
    let asked = Attributes { caller, verb: &verb, about: About::Resource(of) };
    match tools.authorizer.authorize(&asked).wait().await {
        Decision::Allow(_) => Ok(()),
        other => Err(other.because().to_string()),
    }
}

/// References that block their owner's end, and did not before.
fn newly_blocking<'o>(object: &'o Value, old: Option<&'o Value>) -> Vec<&'o Value> {
    let blocks = |reference: &Value| reference["blockOwnerDeletion"] == true;
    let uid = |reference: &'o Value| reference["uid"].as_str().unwrap_or_default();
    let before = old.into_iter().flat_map(references);
    // Of those with one uid the last counts.
    let before: Vec<&'o Value> = before.collect();
    let before: Firsts<&str, bool> = before.into_iter().rev().map(|one| (uid(one), blocks(one))).collect();
    let all = references(object).iter().filter(|reference| blocks(reference));
    all.filter(|reference| before.get(uid(reference)).is_none_or(|blocked| !blocked)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_blocked_before_may_go_on() {
        let owned = |blocking: &[(&str, bool)]| {
            let all =
                blocking.iter().map(|(uid, blocks)| json!({ "uid": uid, "blockOwnerDeletion": blocks }));
            json!({ "metadata": { "ownerReferences": all.collect::<Vec<_>>() } })
        };
        let uids = |new: &[(&str, bool)], old: Option<&Value>| -> Vec<String> {
            let new = owned(new);
            newly_blocking(&new, old)
                .iter()
                .map(|one| one["uid"].as_str().expect("there").to_owned())
                .collect()
        };
        assert_eq!(uids(&[("a", true), ("b", false)], None), ["a"]);
        let old = owned(&[("a", true), ("b", false)]);
        assert_eq!(uids(&[("a", true), ("b", true), ("c", true)], Some(&old)), ["b", "c"]);
        assert!(uids(&[("a", false)], Some(&old)).is_empty());
    }
}
