//! What stores data goes once nobody uses it: persistentvolumeclaim-protection-controller,
//! persistentvolume-protection-controller and volumeattributesclass-protection-controller.
//!
//! In: notices of what is protected, and of what uses it. Out: finalizers, put on what has none and taken
//! from what is deleted and not used. Never: keeps who uses what: it is looked for in a snapshot when
//! something is deleted.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/volume/{pvcprotection,pvprotection,vacprotection}`.

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
type Resource = (&'static str, &'static str);

const CLAIMS: Resource = ("", "persistentvolumeclaims");
const VOLUMES: Resource = ("", "persistentvolumes");
const CLASSES: Resource = ("storage.k8s.io", "volumeattributesclasses");
const PODS: Resource = ("", "pods");

/// Protects claims that pods use. Its names are `namespace/name`.
pub struct ClaimProtection(pub ActingRegistry);

/// Protects volumes that are bound.
pub struct VolumeProtection(pub ActingRegistry);

/// Protects classes that claims and volumes have. The empty name is that of all classes that are deleted.
pub struct ClassProtection(pub ActingRegistry);

impl Named for ClaimProtection {
    const NAME: &'static str = crate::Controller::ClaimProtection.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        [CLAIMS, PODS].into_iter().map(|resource| informer(&self.0, resource)).collect()
    }

    fn observe(&self, source: usize, notice: &Notice, _: Instant, queue: &mut Queue<String>) {
        let name_in = |object: &Object, name: &str| format!("{}/{name}", object.namespace());
        match (source, notice) {
            (0, Notice::Put(claim)) => queue.add(name_in(claim, claim.name())),
            (1, Notice::Put(pod)) => {
                let uses_no_more = |pod: &Value| {
                    let phase = &pod["status"]["phase"];
                    phase == "Failed" || phase == "Succeeded" || node(pod).is_empty()
                };
                let claims = claims_of(pod, uses_no_more);
                claims.iter().for_each(|name| queue.add(name_in(pod, name)));
            }
            (1, Notice::Deleted(pod)) => {
                claims_of(pod, |_| true).iter().for_each(|name| queue.add(name_in(pod, name)));
            }
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.0.clone();
        async move {
            let (namespace, name) = name.split_once('/').unwrap_or_default();
            verdict(sync_claim(&registry, namespace, name).await)
        }
    }
}

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
                name => sync_class(&registry, name).await,
            })
        }
    }
}

async fn sync_claim(registry: &ActingRegistry, namespace: &str, name: &str) -> Result<(), Status> {
    let target = named(&built_in(registry, CLAIMS.0, "v1", CLAIMS.1)?, namespace, name);
    let Some(claim) = find(registry, &target).await? else { return Ok(()) };
    let is_used = async || {
        let pods = registry
            .objects(&collection(&built_in(registry, PODS.0, "v1", PODS.1)?, Some(namespace)))
            .await?;
        pods.are_all()?;
        let owners = Meta::of(&claim).owner_references.into_iter();
        let owner = owners.filter(|owner| owner.controller == Some(true)).map(|owner| owner.uid).next();
        Ok(pods.iter().any(|pod| uses(pod, name, owner.as_deref())))
    };
    protect(registry, &target, &claim, "kubernetes.io/pvc-protection", is_used).await
}

async fn sync_volume(registry: &ActingRegistry, name: &str) -> Result<(), Status> {
    let target = named(&built_in(registry, VOLUMES.0, "v1", VOLUMES.1)?, "", name);
    let Some(volume) = find(registry, &target).await? else { return Ok(()) };
    let is_bound = async || Ok(tree(&volume)["status"]["phase"] == "Bound");
    protect(registry, &target, &volume, "kubernetes.io/pv-protection", is_bound).await
}

async fn sync_deleted_classes(registry: &ActingRegistry) -> Result<(), Status> {
    let classes =
        registry.objects(&collection(&built_in(registry, CLASSES.0, "v1", CLASSES.1)?, None)).await?;
    let deleted: Vec<String> = classes
        .iter()
        .filter(|class| Meta::of(class).is_deleting())
        .map(|class| class.name().to_string())
        .collect();
    for name in deleted {
        sync_class(registry, &name).await?;
    }
    Ok(())
}

async fn sync_class(registry: &ActingRegistry, name: &str) -> Result<(), Status> {
    let target = named(&built_in(registry, CLASSES.0, "v1", CLASSES.1)?, "", name);
    let Some(class) = find(registry, &target).await? else { return Ok(()) };
    let is_used = async || {
        for (group, resource) in [CLAIMS, VOLUMES] {
            let objects =
                registry.objects(&collection(&built_in(registry, group, "v1", resource)?, None)).await?;
            objects.are_all()?;
            if objects.iter().any(|object| has_class(object, name)) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    protect(registry, &target, &class, "kubernetes.io/vac-protection", is_used).await
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
    change_metadata(registry, target, &meta.uid, ChangeVerb::Update, |metadata| {
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

fn informer(registry: &ActingRegistry, (group, resource): Resource) -> Result<Informer, Status> {
    registry.informer(&collection(&built_in(registry, group, "v1", resource)?, None), &ListOptions::default())
}

fn verdict(done: Result<(), Status>) -> Verdict {
    done.map_or_else(|status| Verdict::Retry(status.message), |()| Verdict::Done)
}

/// The claims of a pod's volumes, where `is_wanted` of the pod. Only who has such volumes is read.
fn claims_of(pod: &Object, is_wanted: impl Fn(&Value) -> bool) -> Vec<String> {
    let text = pod.untyped_json();
    let marked = |mark: &str| memmem::find(&text, mark.as_bytes()).is_some();
    if !marked("\"persistentVolumeClaim\"") && !marked("\"ephemeral\"") {
        return Vec::new();
    }
    let pod: Value = serde_json::from_slice(&text).unwrap_or_default();
    if !is_wanted(&pod) {
        return Vec::new();
    }
    let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    volumes.filter_map(|volume| claim_of(&pod, volume)).collect()
}

/// The claim of a volume, its own or the one made for it.
fn claim_of(pod: &Value, volume: &Value) -> Option<String> {
    match volume["persistentVolumeClaim"]["claimName"].as_str() {
        Some(name) => Some(name.to_string()),
        None => volume["ephemeral"].is_object().then(|| made_for(pod, volume)),
    }
}

/// What the claim of an ephemeral volume is called.
fn made_for(pod: &Value, volume: &Value) -> String {
    let name = |object: &Value| object.as_str().unwrap_or_default().to_string();
    format!("{}-{}", name(&pod["metadata"]["name"]), name(&volume["name"]))
}

/// Whether a pod that is on a node uses a claim.
///
/// - `owner`: the uid of what the claim was made for.
fn uses(pod: &Object, claim: &str, owner: Option<&str>) -> bool {
    let text = pod.untyped_json();
    if memmem::find(&text, b"\"volumes\"").is_none() {
        return false;
    }
    let pod: Value = serde_json::from_slice(&text).unwrap_or_default();
    let (meta, uid) = (&pod["metadata"], pod["metadata"]["uid"].as_str());
    let is_over = !meta["deletionTimestamp"].is_null() && meta["deletionGracePeriodSeconds"] == 0;
    let mut volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
    // Few: the volumes of one pod.
    !node(&pod).is_empty()
        && volumes.any(|volume| {
            let is_own = volume["persistentVolumeClaim"]["claimName"] == claim;
            let is_made = volume["ephemeral"].is_object() && made_for(&pod, volume) == claim && uid == owner;
            is_own || (is_made && !is_over)
        })
}

fn node(pod: &Value) -> &str {
    pod["spec"]["nodeName"].as_str().unwrap_or_default()
}

/// Whether a claim or a volume has, or is to have, a class.
fn has_class(object: &Object, class: &str) -> bool {
    let text = object.untyped_json();
    if memmem::find(&text, b"olumeAttributesClassName\":").is_none() {
        return false;
    }
    let object: Value = serde_json::from_slice(&text).unwrap_or_default();
    [
        "/spec/volumeAttributesClassName",
        "/status/currentVolumeAttributesClassName",
        "/status/modifyVolumeStatus/targetVolumeAttributesClassName",
    ]
    .into_iter()
    .any(|place| object.pointer(place).is_some_and(|value| value == class))
}

fn tree(object: &Object) -> Value {
    serde_json::from_slice(&object.untyped_json()).unwrap_or_default()
}
