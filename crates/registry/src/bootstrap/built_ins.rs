//! Objects that a server has without anybody making them: the local APIServices, and the levels and schemas
//! of flow control. Those that are deleted come back.
//!
//! In: the catalog. Out: the objects, written when they are missing, and the APIServices of CRDs that are
//! gone, deleted. Never: overwrites what somebody has made of them, unless it asks for it or must not be.
//!
//! Source: kubernetes v1.36.3 `registry/flowcontrol/{ensurer,rest}`, `controlplane/controller/crdregistration`;
//! kube-aggregator v0.36.3 `controllers/autoregister`.

use std::collections::BTreeMap;
use std::sync::Arc;

use forebay_apimachinery::options::{DeleteOptions, UpdateOptions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::store::Mode;
use forebay_catalog::{Catalog, Served};
use futures_util::{TryStreamExt, stream};
use serde_json::{Value, json};

use crate::context::Context;
use crate::delete;
use crate::limits::{BUILT_IN_WRITES_MAX, BUILT_INS_PERIOD};
use crate::new_object;
use crate::owners;
use crate::update;
use forebay_api::Body;
use forebay_catalog::Target;
use forebay_catalog::groups;
use forebay_strategy::flowcontrol as flow_control;

const AGGREGATOR: &str = "apiregistration.k8s.io";
const CRDS: &str = "apiextensions.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";
// As they are called upstream.
const FLOW_CONTROL_PRODUCER: &str = "api-priority-and-fairness-config-producer-v1";
const FLOW_CONTROL_CONSUMER: &str = "api-priority-and-fairness-config-consumer-v1";
/// The label of APIServices that a server manages: `onstart` for its own versions, `true` for those of CRDs.
const AUTOMANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";

/// An object that is to exist.
pub(super) struct BuiltIn {
    pub served: Arc<Served>,
    pub namespace: Option<&'static str>,
    pub object: Value,
}

/// Makes sure that all of them exist.
///
/// # Errors
/// When the store cannot be written or read.
pub(super) async fn ensure_built_ins(context: &Arc<Context>) -> Result<(), Status> {
    let catalog = context.catalog();
    let wanted = missing_services(&catalog)?.into_iter().chain(flow_controls(&catalog));
    stream::iter(wanted.map(Ok))
        .try_for_each_concurrent(BUILT_IN_WRITES_MAX, |one| ensure_one(context, one))
        .await
}

/// Looks after them until the server ends.
pub(super) async fn keep_built_ins(context: Arc<Context>) {
    let mut catalog = context.watch_catalog();
    loop {
        tokio::select! {
            changed = catalog.changed() => if changed.is_err() { return },
            () = context.clock.sleep(BUILT_INS_PERIOD) => {}
        }
        let done = match ensure_built_ins(&context).await {
            Ok(()) => drop_stale_services(&context).await,
            Err(status) => Err(status),
        };
        if let Err(status) = done {
            tracing::warn!(message = status.message, "built-in objects could not be looked after");
        }
    }
}

/// Makes sure that it is there.
///
/// # Errors
/// When the store cannot be written or read.
pub(super) async fn ensure_one(context: &Arc<Context>, wanted: BuiltIn) -> Result<(), Status> {
    let BuiltIn { served, namespace, mut object } = wanted;
    let store = served.stored()?;
    let name = object["metadata"]["name"].as_str().unwrap_or("").to_string();
    let key = store.key(namespace.unwrap_or(""), &name);
    let namespace = namespace.map(String::from);
    let mut target = Target::of_server(served, namespace, None);
    let manager = match target.served.group() {
        FLOW_CONTROL => FLOW_CONTROL_PRODUCER,
        _ => owners::SERVER,
    };
    if let Some(current) = store.cached(&key) {
        let current = target.served.to_value(&current.object)?;
        let Some(renewed) = flow_control::renewed(&current, &object) else { return Ok(()) };
        target.name = Some(name);
        let body = Body::Value(renewed);
        let options = UpdateOptions { field_manager: manager.to_owned(), ..UpdateOptions::default() };
        return match update::update(context, &target, &body, &options, None).await {
            Ok(_) => Ok(()),
            Err(status) if matches!(status.reason, Reason::Conflict | Reason::NotFound) => Ok(()),
            Err(status) => Err(status),
        };
    }
    new_object::fill_in(context, &target, &mut object);
    flow_control::settle(&mut object, &context.now_rfc3339());
    owners::by_server(context, &target.served, (manager, ""), None, &mut object)?;
    if object["kind"] == "FlowSchema" {
        owners::status_by_server(context, &target.served, FLOW_CONTROL_CONSUMER, &mut object)?;
    }
    match store.create(key, target.served.encode(object)?, None, Mode::Commit).await {
        Ok(_) | Err(None) => Ok(()),
        Err(Some(status)) => Err(status),
    }
}

/// An APIService for each version that is served and has none, but for the aggregator's own. There may be as
/// many as CRDs, so those that exist are not looked into.
fn missing_services(catalog: &Catalog) -> Result<Vec<BuiltIn>, Status> {
    let Some(served) = catalog.resource(AGGREGATOR, "v1", "apiservices") else { return Ok(Vec::new()) };
    let store = served.stored()?;
    let versions: BTreeMap<(&str, &str), bool> = catalog
        .iter()
        .filter(|of| of.group() != AGGREGATOR)
        .map(|of| ((of.group(), &*of.gvr.version), of.is_custom()))
        .collect();
    let is_missing =
        |group: &str, version: &str| store.cached(&store.key("", &name_of(group, version))).is_none();
    let missing = versions.into_iter().filter(|((group, version), _)| is_missing(group, version));
    let built_in = |((group, version), is_custom)| BuiltIn {
        served: served.clone(),
        namespace: None,
        object: service(group, version, is_custom),
    };
    Ok(missing.map(built_in).collect())
}

/// Deletes the APIServices of versions that no CRD serves any more.
async fn drop_stale_services(context: &Arc<Context>) -> Result<(), Status> {
    let catalog = context.catalog();
    let Some(served) = catalog.resource(AGGREGATOR, "v1", "apiservices") else { return Ok(()) };
    let store = served.stored()?;
    let Ok(snapshot) = store.cacher.snapshot() else { return Ok(()) };
    let managed = snapshot
        .range(&store.reach(None, None), None)
        .filter(|object| object.label(AUTOMANAGED) == Some("true"));
    let unserved = managed.map(|object| object.name()).filter(|name| {
        let (group, version) = group_version(name);
        !catalog.has_version(group, version)
    });
    for name in without_definition(context, &catalog, unserved.collect()).await? {
        let name = Some(name.to_string());
        let target = Target::of_server(served.clone(), None, name);
        match delete::delete(context, &target, &DeleteOptions::default()).await {
            Ok(_) => {}
            Err(status) if status.reason == Reason::NotFound => {}
            Err(status) => return Err(status),
        }
    }
    Ok(())
}

/// Those of `names`, which are of APIServices, whose version no CRD says is served; none while a CRD cannot
/// be read. The catalog may be behind, and has no versions that only a webhook converts to; a kube-apiserver
/// beside it has.
async fn without_definition<'n>(
    context: &Arc<Context>,
    catalog: &Catalog,
    mut names: Vec<&'n str>,
) -> Result<Vec<&'n str>, Status> {
    let Some(served) = catalog.resource(CRDS, "v1", "customresourcedefinitions") else {
        return Ok(names);
    };
    if names.is_empty() {
        return Ok(names);
    }
    let store = served.stored()?;
    let (all, crds) = (store.reach(None, None), context.fresh(&store).await?);
    if crds.may_have_unreadable(&all) {
        return Ok(Vec::new());
    }
    for crd in crds.range(&all, None) {
        // Its name is the plural and the group.
        let group = crd.name().split_once('.').map_or("", |(_, group)| group);
        if names.iter().any(|name| group_version(name).0 == group) {
            let crd = served.to_value(crd)?;
            names.retain(|name| group_version(name).0 != group || !serves(&crd, group_version(name).1));
        }
    }
    Ok(names)
}

/// Whether `crd` says that `version` is served.
fn serves(crd: &Value, version: &str) -> bool {
    let mut versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    versions.any(|known| known["name"] == version && known["served"] == true)
}

/// The group and version that an APIService of this name is of.
fn group_version(name: &str) -> (&str, &str) {
    name.split_once('.').map_or(("", name), |(version, group)| (group, version))
}

fn name_of(group: &str, version: &str) -> String {
    format!("{version}.{group}")
}

fn service(group: &str, version: &str, is_custom: bool) -> Value {
    let (managed, priority) = match is_custom {
        true => ("true", groups::CUSTOM_PRIORITY),
        false => ("onstart", groups::group_priority(group)),
    };
    let version_priority = match (group, version) {
        _ if is_custom => 100,
        ("", _) => 1,
        ("autoscaling", "v2") => 30,
        ("flowcontrol.apiserver.k8s.io" | "resource.k8s.io", "v1") => 21,
        _ => 15,
    };
    let mut object = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": name_of(group, version), "labels": { AUTOMANAGED: managed } },
        "spec": { "version": version, "groupPriorityMinimum": priority, "versionPriority": version_priority },
    });
    if !group.is_empty() {
        object["spec"]["group"] = group.into();
    }
    object
}

fn flow_controls(catalog: &Catalog) -> Vec<BuiltIn> {
    let of = |built_in: &flow_control::BuiltIn| {
        let served = catalog.resource(FLOW_CONTROL, "v1", built_in.resource)?.clone();
        Some(BuiltIn { served, namespace: None, object: built_in.object.clone() })
    };
    flow_control::ALL.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_services_of_kube_apiserver() {
        let rows = [
            ("", "v1", false, "v1.", 18_000, 1),
            ("autoscaling", "v2", false, "v2.autoscaling", 17_500, 30),
            ("autoscaling", "v1", false, "v1.autoscaling", 17_500, 15),
            ("flowcontrol.apiserver.k8s.io", "v1", false, "v1.flowcontrol.apiserver.k8s.io", 16_100, 21),
            ("example.com", "v1beta1", true, "v1beta1.example.com", 1_000, 100),
        ];
        for (group, version, is_custom, name, priority, version_priority) in rows {
            let object = service(group, version, is_custom);
            assert_eq!(object["metadata"]["name"], name);
            assert_eq!(object["spec"]["groupPriorityMinimum"], priority, "{name}");
            assert_eq!(object["spec"]["versionPriority"], version_priority, "{name}");
            assert_eq!(object["spec"].get("group").is_some(), !group.is_empty(), "{name}");
        }
    }
}
