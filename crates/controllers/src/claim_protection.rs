//! Claims stay while pods use them: persistentvolumeclaim-protection-controller.
//!
//! In: notices of claims and of pods. Out: the finalizer, put on claims that have none and taken from those
//! that are deleted and not used. Keeps which claims are deleted and held. Who uses them is looked for in a
//! snapshot, in one pass over the pods of a namespace for all its claims that wait. Never: takes the
//! finalizer away by what notices say.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/volume/pvcprotection`.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use forebay_apimachinery::Status;
use forebay_object::Object;
use forebay_registry::{Informer, Notice};
use forebay_rt::Instant;
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::acting::ActingRegistry;
use crate::each::each;
use crate::limits;
use crate::meta::Meta;
use crate::objects::{built_in, collection, find, named};
use crate::protection::{CLAIMS, PluralOf, change_finalizer, informer, verdict};
use crate::queue::{Queue, Verdict};
use crate::run::Named;

const PODS: PluralOf = ("", "pods");
const FINALIZER: &str = "kubernetes.io/pvc-protection";

/// Its names are `namespace/name` of a claim without protection, and `namespace/` of all those claims there
/// that are deleted.
pub struct ClaimProtection {
    registry: ActingRegistry,
    // namespace/name of claims that are deleted and held here
    deleted: Mutex<HashSet<String>>,
}

impl ClaimProtection {
    pub fn new(registry: ActingRegistry) -> ClaimProtection {
        ClaimProtection { registry, deleted: Mutex::default() }
    }

    fn deleted(&self) -> MutexGuard<'_, HashSet<String>> {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn observe_claim(&self, claim: &Object, now: Instant, queue: &mut Queue<String>) {
        let (meta, key) = (Meta::of(claim), key(claim.namespace(), claim.name()));
        match (meta.is_deleting(), meta.has_finalizer(FINALIZER)) {
            (true, true) => {
                self.deleted().insert(key);
                look_for_users(claim.namespace(), now, queue);
            }
            (false, false) => {
                self.deleted().remove(&key);
                queue.add(key);
            }
            _ => {
                self.deleted().remove(&key);
            }
        }
    }

    /// A pod may be the last that used a claim.
    fn observe_pod(
        &self,
        pod: &Object,
        uses_no_more: impl FnOnce(&Pod) -> bool,
        now: Instant,
        queue: &mut Queue<String>,
    ) {
        if self.deleted().is_empty() {
            return;
        }
        let (namespace, text) = (pod.namespace(), pod.untyped_json());
        let Some(Ok(pod)) = may_use_claims(&text).then(|| Pod::read(&text)) else { return };
        let mut claims = pod.volumes().filter_map(|volume| pod.claim_of(volume));
        if uses_no_more(&pod) && claims.any(|name| self.deleted().contains(&key(namespace, &name))) {
            look_for_users(namespace, now, queue);
        }
    }
}

impl Named for ClaimProtection {
    const NAME: &'static str = crate::Controller::ClaimProtection.name();

    fn informers(&self) -> Result<Vec<Informer>, Status> {
        [CLAIMS, PODS].into_iter().map(|resource| informer(&self.registry, resource)).collect()
    }

    fn observe(&self, source: usize, notice: &Notice, now: Instant, queue: &mut Queue<String>) {
        match (source, notice) {
            (0, Notice::Put(claim)) => self.observe_claim(claim, now, queue),
            (0, Notice::Deleted(claim)) => {
                self.deleted().remove(&key(claim.namespace(), claim.name()));
            }
            (1, Notice::Put(pod)) => {
                let uses_no_more = |pod: &Pod| {
                    matches!(&*pod.status.phase, "Failed" | "Succeeded") || pod.spec.node_name.is_empty()
                };
                self.observe_pod(pod, uses_no_more, now, queue);
            }
            (1, Notice::Deleted(pod)) => self.observe_pod(pod, |_| true, now, queue),
            _ => {}
        }
    }

    fn sync(&self, name: String) -> impl Future<Output = Verdict> + Send + 'static {
        let registry = self.registry.clone();
        async move {
            verdict(match name.split_once('/').unwrap_or_default() {
                (namespace, "") => sync_deleted(&registry, namespace).await,
                (namespace, name) => sync_living(&registry, namespace, name).await,
            })
        }
    }
}

fn key(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

/// Those of one moment are looked for together.
fn look_for_users(namespace: &str, now: Instant, queue: &mut Queue<String>) {
    queue.add_at(key(namespace, ""), now + limits::CLAIM_USE_PAUSE);
}

/// Puts the finalizer on a claim that lives without.
async fn sync_living(registry: &ActingRegistry, namespace: &str, name: &str) -> Result<(), Status> {
    let target = named(&built_in(registry, CLAIMS.0, "v1", CLAIMS.1)?, namespace, name);
    let Some(claim) = find(registry, &target).await? else { return Ok(()) };
    let meta = Meta::of(&claim);
    if meta.is_deleting() || meta.has_finalizer(FINALIZER) {
        return Ok(());
    }
    change_finalizer(registry, &target, &meta.uid, FINALIZER).await
}

/// Takes the finalizer from all claims of a namespace that are deleted and not used.
///
/// Cost: each claim and each pod of the namespace once; those of its pods are read that are on a node and
/// have claims.
async fn sync_deleted(registry: &ActingRegistry, namespace: &str) -> Result<(), Status> {
    let served = built_in(registry, CLAIMS.0, "v1", CLAIMS.1)?;
    let mut unused = deleted_claims(registry, namespace).await?;
    if unused.is_empty() {
        return Ok(());
    }
    let pods = built_in(registry, PODS.0, "v1", PODS.1)?;
    let pods = registry.objects(&collection(&pods, Some(namespace))).await?;
    pods.are_all()?;
    for (at, pod) in pods.iter().enumerate() {
        let_others_go(at).await;
        let text = pod.untyped_json();
        if !may_use_claims(&text) || !names(&text, "\"nodeName\"") {
            continue;
        }
        let pod = Pod::read(&text)?;
        for volume in pod.volumes().filter(|_| !pod.spec.node_name.is_empty()) {
            let Some(name) = pod.claim_of(volume) else { continue };
            if unused.get(&name).is_some_and(|claim| pod.uses(volume, claim)) {
                unused.remove(&name);
            }
        }
    }
    let outcomes = each(unused, limits::WRITES_MAX, |(name, DeletedClaim { uid, .. })| {
        let (registry, target) = (registry.clone(), named(&served, namespace, &name));
        async move { change_finalizer(&registry, &target, &uid, FINALIZER).await }
    });
    outcomes.await.into_iter().collect()
}

/// A claim that is deleted, and held here.
struct DeletedClaim {
    uid: String,
    /// The uid of what it was made for.
    owner: Option<String>,
}

/// Those of a namespace, by name.
async fn deleted_claims(
    registry: &ActingRegistry,
    namespace: &str,
) -> Result<HashMap<String, DeletedClaim>, Status> {
    let served = built_in(registry, CLAIMS.0, "v1", CLAIMS.1)?;
    let claims = registry.objects(&collection(&served, Some(namespace))).await?;
    let mut deleted = HashMap::new();
    for (at, claim) in claims.iter().enumerate() {
        let_others_go(at).await;
        let meta = Meta::of(claim);
        if meta.is_deleting() && meta.has_finalizer(FINALIZER) {
            let mut owners = meta.owner_references.into_iter();
            let owner = owners.find(|owner| owner.controller == Some(true)).map(|owner| owner.uid);
            deleted.insert(claim.name().to_owned(), DeletedClaim { uid: meta.uid, owner });
        }
    }
    Ok(deleted)
}

/// Once so many were looked at.
async fn let_others_go(at: usize) {
    if at % limits::PODS_LOOKED_AT_MAX == limits::PODS_LOOKED_AT_MAX - 1 {
        tokio::task::yield_now().await;
    }
}

fn names(pod: &[u8], member: &str) -> bool {
    memmem::find(pod, member.as_bytes()).is_some()
}

/// Tells quickly of most pods that they have no claim.
fn may_use_claims(pod: &[u8]) -> bool {
    names(pod, "\"persistentVolumeClaim\"") || names(pod, "\"ephemeral\"")
}

/// What of a pod says whether it uses a claim.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    metadata: PodMeta,
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodMeta {
    name: String,
    uid: String,
    deletion_timestamp: Option<IgnoredAny>,
    deletion_grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodSpec {
    node_name: String,
    volumes: Option<Vec<Volume>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Volume {
    name: String,
    persistent_volume_claim: Option<ClaimVolume>,
    ephemeral: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ClaimVolume {
    claim_name: String,
}

impl Pod {
    /// # Errors
    /// It says something else than a pod does.
    fn read(text: &[u8]) -> Result<Pod, Status> {
        serde_json::from_slice(text).map_err(Status::internal)
    }

    fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.spec.volumes.iter().flatten()
    }

    /// The claim of a volume, its own or the one made for it.
    fn claim_of(&self, volume: &Volume) -> Option<String> {
        match &volume.persistent_volume_claim {
            Some(own) => Some(own.claim_name.clone()),
            None => volume.ephemeral.map(|_| format!("{}-{}", self.metadata.name, volume.name)),
        }
    }

    /// Whether it uses `claim`, which is called as that of one of its volumes, if it is on a node.
    fn uses(&self, volume: &Volume, claim: &DeletedClaim) -> bool {
        if volume.persistent_volume_claim.is_some() {
            return true;
        }
        let PodMeta { uid, deletion_timestamp, deletion_grace_period_seconds, .. } = &self.metadata;
        let is_over = deletion_timestamp.is_some() && *deletion_grace_period_seconds == Some(0);
        claim.owner.as_ref() == Some(uid) && !is_over
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use forebay_api::Body;
    use forebay_apimachinery::options::{CreateOptions, DeleteOptions};
    use forebay_embedded::{Engine, Options};
    use forebay_registry::{Config, Registry};
    use forebay_rt::{Clock, Random, Tasks};
    use serde_json::{Value, json};

    use super::*;

    async fn registry() -> ActingRegistry {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let registry = Registry::new(Config::default(), engine, clock, Random::seeded(1), Tasks::new());
        registry.start().await.expect("starts");
        ActingRegistry::of_tests(registry)
    }

    async fn create(registry: &ActingRegistry, resource: &str, object: Value) -> Value {
        let all = collection(&built_in(registry, "", "v1", resource).expect("served"), Some("default"));
        let made = registry.create(&all, &Body::Value(object), &CreateOptions::default()).await;
        serde_json::from_slice(&made.expect("created").outcome.json()).expect("JSON")
    }

    /// A claim that is deleted and held.
    async fn deleted_claim(registry: &ActingRegistry, name: &str, owner: Option<&Value>) {
        let owners: Vec<Value> = owner
            .map(|owner| {
                json!({
                    "apiVersion": "v1", "kind": "Pod", "name": owner["metadata"]["name"],
                    "uid": owner["metadata"]["uid"], "controller": true,
                })
            })
            .into_iter()
            .collect();
        let spec =
            json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        let claim = json!({ "metadata": { "name": name, "ownerReferences": owners }, "spec": spec });
        create(registry, CLAIMS.1, claim).await;
        let target = named(&built_in(registry, "", "v1", CLAIMS.1).expect("served"), "default", name);
        registry.delete(&target, &DeleteOptions::default()).await.expect("deleted");
    }

    fn pod(name: &str, node: &str, volumes: Value) -> Value {
        let spec =
            json!({ "nodeName": node, "containers": [{ "name": "c", "image": "i" }], "volumes": volumes });
        json!({ "metadata": { "name": name }, "spec": spec })
    }

    fn of_claim(claim: &str) -> Value {
        json!({ "name": "v", "persistentVolumeClaim": { "claimName": claim } })
    }

    fn made_anew() -> Value {
        let spec =
            json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } });
        json!({ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": spec } } })
    }

    async fn left(registry: &ActingRegistry) -> Vec<String> {
        let served = built_in(registry, "", "v1", CLAIMS.1).expect("served");
        let claims = registry.objects(&collection(&served, Some("default"))).await.expect("read");
        claims.iter().map(|claim| claim.name().to_owned()).collect()
    }

    #[tokio::test]
    async fn all_claims_of_a_namespace_that_are_deleted_are_one_look_at_its_pods() {
        let registry = registry().await;
        let claims = (0..40).map(|number| format!("c{number}"));
        for name in claims {
            deleted_claim(&registry, &name, None).await;
        }
        create(&registry, PODS.1, pod("p", "n", json!([of_claim("c7")]))).await;
        let controller = ClaimProtection::new(registry.clone());
        let (mut queue, now) = (Queue::new(), registry.clock().now());
        let served = built_in(&registry, "", "v1", CLAIMS.1).expect("served");
        for claim in registry.objects(&collection(&served, None)).await.expect("read").iter() {
            controller.observe(0, &Notice::Put(claim.clone()), now, &mut queue);
        }
        let later = now + limits::CLAIM_USE_PAUSE;
        assert_eq!((queue.next(now), queue.next(later)), (None, Some("default/".to_owned())));
        assert_eq!(queue.next(later), None);
        assert_eq!(controller.sync("default/".to_owned()).await, Verdict::Done);
        assert_eq!(left(&registry).await, ["c7"]);
    }

    #[tokio::test]
    async fn a_claim_is_used_by_pods_on_nodes_that_name_it_or_that_it_was_made_for() {
        let registry = registry().await;
        create(&registry, PODS.1, pod("own", "n", json!([of_claim("named")]))).await;
        create(&registry, PODS.1, pod("unscheduled", "", json!([of_claim("waits")]))).await;
        let made = create(&registry, PODS.1, pod("made", "n", json!([made_anew()]))).await;
        create(&registry, PODS.1, pod("other", "n", json!([made_anew()]))).await;
        for (name, owner) in [
            ("named", None),
            ("waits", None),
            ("unnamed", None),
            ("made-v", Some(&made)),
            ("other-v", Some(&made)),
        ] {
            deleted_claim(&registry, name, owner).await;
        }
        sync_deleted(&registry, "default").await.expect("looks");
        assert_eq!(left(&registry).await, ["made-v", "named"]);
    }

    #[tokio::test]
    async fn a_look_at_many_pods_lets_others_work() {
        let registry = registry().await;
        for number in 0..3 * limits::PODS_LOOKED_AT_MAX {
            create(&registry, PODS.1, pod(&format!("p-{number}"), "n", json!([of_claim("c")]))).await;
        }
        deleted_claim(&registry, "c", None).await;
        let mut turns = 0;
        let mut look = pin!(sync_deleted(&registry, "default"));
        let looked = std::future::poll_fn(|cx| {
            let polled = look.as_mut().poll(cx);
            turns += usize::from(matches!(polled, Poll::Pending));
            polled
        });
        looked.await.expect("looks");
        assert!(turns >= 3, "{turns}");
        assert_eq!(left(&registry).await, ["c"]);
    }
}
