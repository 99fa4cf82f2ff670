//! Objects as the controllers address them, and the writes that more than one of them makes.

use std::sync::Arc;

use forebay_api::{Body, PatchKind};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Served;
use forebay_catalog::Target;
use forebay_object::Object;
use forebay_registry::Registry;
use serde_json::Value;

use crate::acting::ActingRegistry;
use crate::limits;
use crate::meta::Meta;

/// What the controllers are called where they write.
const MANAGER: &str = "kube-controller-manager";

/// A built-in resource.
///
/// # Errors
/// It is not served.
pub fn built_in(
    registry: &Registry,
    group: &str,
    version: &str,
    resource: &str,
) -> Result<Arc<Served>, Status> {
    let served = registry.catalog().resource(group, version, resource).cloned();
    served.ok_or_else(|| Status::internal(format!("{resource} are not served")))
}

/// The collection of `served`, in `namespace` where it has namespaces.
pub fn collection(served: &Arc<Served>, namespace: Option<&str>) -> Target {
    let namespace = namespace.filter(|_| served.namespaced).map(str::to_string);
    Target::of_server(served.clone(), namespace, None)
}

/// One object of `served`.
pub fn named(served: &Arc<Served>, namespace: &str, name: &str) -> Target {
    Target { name: Some(name.to_string()), ..collection(served, Some(namespace)) }
}

/// The object at `target`, as new as anything acknowledged; `None` when there is none.
///
/// # Errors
/// The read failed.
pub async fn find(registry: &Registry, target: &Target) -> Result<Option<Arc<Object>>, Status> {
    match registry.get(target, "").await {
        Ok(object) => Ok(Some(object)),
        Err(status) if status.reason == Reason::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

/// Creates an object.
///
/// # Errors
/// As [`ActingRegistry::create`].
pub async fn create(registry: &ActingRegistry, collection: &Target, value: Value) -> Result<(), Status> {
    let options = CreateOptions { field_manager: MANAGER.to_owned(), ..CreateOptions::default() };
    registry.create(collection, &Body::Value(value), &options).await.map(drop)
}

/// Replaces an object, or a subresource of it.
///
/// # Errors
/// As [`ActingRegistry::update`].
pub async fn update(registry: &ActingRegistry, target: &Target, value: Value) -> Result<(), Status> {
    let options = UpdateOptions { field_manager: MANAGER.to_owned(), ..UpdateOptions::default() };
    registry.update(target, &Body::Value(value), &options).await.map(drop)
}

/// Deletes an object; one that is gone is as good as deleted.
///
/// # Errors
/// As [`ActingRegistry::delete`].
pub async fn delete(
    registry: &ActingRegistry,
    target: &Target,
    options: &DeleteOptions,
) -> Result<(), Status> {
    match registry.delete(target, options).await {
        Err(status) if status.reason != Reason::NotFound => Err(status),
        _ => Ok(()),
    }
}

/// How a change of metadata is written: as its controller's role allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeVerb {
    /// A merge patch of the metadata.
    Patch,
    /// The whole object.
    Update,
}

/// Merges into the object with `uid` at `target` what `change` makes of its metadata, on exactly the state
/// that it was made of. `None` changes nothing. An object that is gone, or another one by now, needs no
/// change.
///
/// # Errors
/// As [`ActingRegistry::patch`]; a conflict when others were faster each time.
pub async fn change_metadata(
    registry: &ActingRegistry,
    target: &Target,
    uid: &str,
    verb: ChangeVerb,
    change: impl Fn(&Value) -> Option<Value>,
) -> Result<(), Status> {
    let mut attempt = 1;
    loop {
        let Some(object) = find(registry, target).await? else { return Ok(()) };
        if Meta::of(&object).uid != uid {
            return Ok(());
        }
        let metadata: Value = serde_json::from_slice(&object.metadata()).map_err(Status::internal)?;
        let Some(changed) = change(&metadata) else { return Ok(()) };
        let written = match verb {
            ChangeVerb::Patch => patch_metadata(registry, target, &metadata, changed).await,
            ChangeVerb::Update => {
                let mut whole = target.served.to_value(&object)?;
                for (member, value) in changed.as_object().into_iter().flatten() {
                    whole["metadata"][member] = value.clone();
                }
                update(registry, target, whole).await
            }
        };
        match written {
            Err(status) if status.reason == Reason::NotFound => return Ok(()),
            Err(status) if status.reason == Reason::Conflict && attempt < limits::CONFLICTS_MAX => {
                attempt += 1
            }
            done => return done,
        }
    }
}

async fn patch_metadata(
    registry: &ActingRegistry,
    target: &Target,
    metadata: &Value,
    mut changed: Value,
) -> Result<(), Status> {
    changed["resourceVersion"] = metadata["resourceVersion"].clone();
    let patch = serde_json::json!({ "metadata": changed }).to_string();
    let options = PatchOptions { field_manager: MANAGER.to_owned(), ..PatchOptions::default() };
    registry.patch(target, PatchKind::Merge, patch.as_bytes(), &options).await.map(drop)
}
