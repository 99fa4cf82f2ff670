//! What stores data goes once nobody uses it: persistentvolume-protection-controller and
//! volumeattributesclass-protection-controller, and what they share with that of claims.
//!
//! In: notices of what is protected, and of what uses it. Out: finalizers, put on what has none and taken
//! from what is deleted and not used. Never: keeps who uses what: it is looked for in a snapshot when
//! something is deleted.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/volume/{pvprotection,vacprotection}`.

use std::collections::HashSet;
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::ListOptions;
use forebay_catalog::Target;
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use memchr::memmem;
use serde_json::{Value, json};

use crate::acting::ActingRegistry;
use crate::limits;
use crate::meta::Meta;
use crate::objects::{ChangeVerb, built_in, change_metadata, collection, find, named};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

/// A resource: its group and its plural, of version v1.
pub type PluralOf = (&'static str, &'static str);

pub const CLAIMS: PluralOf = ("", "persistentvolumeclaims");
const VOLUMES: PluralOf = ("", "persistentvolumes");
const CLASSES: PluralOf = ("storage.k8s.io", "volumeattributesclasses");

/// Protects volumes that are bound.
pub struct VolumeProtection(pub ActingRegistry);

/// Protects classes that claims and volumes have. The empty name is that of all classes that are deleted.
pub struct ClassProtection(pub ActingRegistry);

impl Named for VolumeProtection {
    const NAME: &'static str = crate::Controller::VolumeProtection.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        Ok(vec![informer(&self.0, VOLUMES)?])
    }

    fn observe(&self, _: usize, notice: &Notice, _: Instant, queue: &mut Queue<String>) {
        if let Notice::Put(volume) = notice {
            queue.add(volume.name().to_string());
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move { verdict(sync_volume(&registry, &name).await) }
    }
}

impl Named for ClassProtection {
    const NAME: &'static str = crate::Controller::ClassProtection.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        [CLASSES, CLAIMS, VOLUMES].into_iter().map(|resource| informer(&self.0, resource)).collect()
    }

    fn observe(&self, source: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        match (source, notice) {
            (0, Notice::Put(class)) => queue.add(class.name().to_string()),
            (1 | 2, Notice::Put(_) | Notice::Deleted(_)) => {
                queue.add_at(String::new(), now + limits::CLASS_USE_PAUSE);
            }
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            verdict(match name.as_str() {
                "" => sync_deleted_classes(&registry).await,
                name => {
                    let is_used = async || Ok(used_classes(&registry).await?.contains(name));
                    sync_class(&registry, name, is_used).await
                }
            })
        }
    }
}

async fn sync_volume(registry: &ActingRegistry, name: &str) -> Result<(), Status> {
    let target = named(&built_in(registry, VOLUMES.0, "v1", VOLUMES.1)?, "", name);
    let Some(volume) = find(registry, &target).await? else { return Ok(()) };
    let is_bound = async || Ok(tree(&volume)["status"]["phase"] == "Bound");
    protect(registry, &target, &volume, "kubernetes.io/pv-protection", is_bound).await
}

/// Looks once at what claims and volumes have, for all classes that are deleted.
async fn sync_deleted_classes(registry: &ActingRegistry) -> Result<(), Status> {
    let classes =
        registry.objects(&collection(&built_in(registry, CLASSES.0, "v1", CLASSES.1)?, None)).await?;
    let deleted = classes.iter().filter(|class| Meta::of(class).is_deleting());
    let deleted: Vec<String> = deleted.map(|class| class.name().to_string()).collect();
    if deleted.is_empty() {
        return Ok(());
    }
    let used = used_classes(registry).await?;
    for name in deleted {
        sync_class(registry, &name, async || Ok(used.contains(&name))).await?;
    }
    Ok(())
}

async fn sync_class(
    registry: &ActingRegistry,
    name: &str,
    is_used: impl AsyncFnOnce() -> Result<bool, Status>,
) -> Result<(), Status> {
    let target = named(&built_in(registry, CLASSES.0, "v1", CLASSES.1)?, "", name);
    let Some(class) = find(registry, &target).await? else { return Ok(()) };
    protect(registry, &target, &class, "kubernetes.io/vac-protection", is_used).await
}

/// The classes that claims and volumes have.
async fn used_classes(registry: &ActingRegistry) -> Result<HashSet<String>, Status> {
    let mut used = HashSet::new();
    for (group, resource) in [CLAIMS, VOLUMES] {
        let objects =
            registry.objects(&collection(&built_in(registry, group, "v1", resource)?, None)).await?;
        objects.are_all()?;
        objects.iter().for_each(|object| used.extend(classes_of(object)));
    }
    Ok(used)
}

/// Puts the finalizer on what lives without, and takes it from what is deleted and not used.
async fn protect(
    registry: &ActingRegistry,
    target: &Target,
    object: &Arc<Object>,
    finalizer: &str,
    is_used: impl AsyncFnOnce() -> Result<bool, Status>,
) -> Result<(), Status> {
    let meta = Meta::of(object);
    let is_candidate = meta.is_deleting() == meta.has_finalizer(finalizer);
    if !is_candidate || (meta.is_deleting() && is_used().await?) {
        return Ok(());
    }
    change_finalizer(registry, target, &meta.uid, finalizer).await
}

/// Puts the finalizer on the object with `uid` if it lives, and takes it away if it is deleted.
pub async fn change_finalizer(
    registry: &ActingRegistry,
    target: &Target,
    uid: &str,
    finalizer: &str,
) -> Result<(), Status> {
    change_metadata(registry, target, uid, ChangeVerb::Update, |metadata| {
        let mut all = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        let before = all.len();
        all.retain(|known| known != finalizer);
        let had = all.len() < before;
        let is_deleted = !metadata["deletionTimestamp"].is_null();
        if !is_deleted {
            all.push(json!(finalizer));
        }
        // It was taken away, or put on, by somebody else meanwhile.
        (is_deleted == had).then(|| json!({ "finalizers": all }))
    })
    .await
}

pub fn informer(registry: &ActingRegistry, (group, resource): PluralOf) -> Result<Informer, Status> {
    registry.informer(&collection(&built_in(registry, group, "v1", resource)?, None), &ListOptions::default())
}

pub fn verdict(done: Result<(), Status>) -> Verdict {
    done.map_or_else(|status| Verdict::Retry(status.message), |()| Verdict::Done)
}

/// The classes that a claim or a volume has, had or is about to have.
fn classes_of(object: &Object) -> Vec<String> {
    let text = object.untyped_json();
    if memmem::find(&text, b"olumeAttributesClassName\":").is_none() {
        return Vec::new();
    }
    let object: Value = serde_json::from_slice(&text).unwrap_or_default();
    [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ]
    .into_iter()
    .filter_map(|place| Some(object.pointer(place)?.as_str()?.to_owned()))
    .collect()
}

fn tree(object: &Object) -> Value {
    serde_json::from_slice(&object.untyped_json()).unwrap_or_default()
}
