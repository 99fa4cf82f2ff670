//! What is done about one object, decided on what is there now.
//!
//! In: where the object is, and what the graph knows of its dependents. Out: a delete, a patch, or nothing.

use forebay_api::PlaceElsewhere;
use forebay_apimachinery::options::{DeleteOptions, Preconditions, PropagationPolicy};
use forebay_apimachinery::{Reason, Seen};
use forebay_object::Object;
use serde_json::{Value, json};

use super::graph::Uid;
use super::lanes::OtherServer;
use super::place::{Context, ObjectPlace, Stop};
use crate::each::each;
use crate::limits;
use crate::meta::{FOREGROUND, Meta, ORPHAN, OwnerReference};
use crate::objects::named;
use crate::queue::Verdict;

/// One object to look at.
pub struct WorkItem {
    pub uid: Uid,
    pub place: ObjectPlace,
    pub task: Task,
}

/// What the graph says is to be done.
pub enum Task {
    /// See whether it still has an owner.
    Collect(Dependents),
    /// Nobody blocks it any more: let it go.
    Release,
    /// Take it out of the references of these, then let it go.
    Orphan(Vec<(Uid, ObjectPlace)>),
}

impl WorkItem {
    /// A server that it asks in any case.
    pub fn server(&self) -> Option<OtherServer> {
        let of_dependents = || match &self.task {
            Task::Orphan(dependents) => dependents.iter().find_map(|(_, place)| place.server()),
            Task::Collect(_) | Task::Release => None,
        };
        self.place.server().or_else(of_dependents)
    }
}

/// What an object has of dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependents {
    /// The graph knew of nobody who waits for the object, and was not brought up to date for it.
    Unsettled,
    None,
    Some,
    /// Some of which wait for theirs: perhaps for this very object.
    SomeWaiting,
}

/// What became of an item.
pub enum Attempt {
    Finished(Verdict),
    /// It stays: the owners that it names here are all there.
    Owned(Vec<OwnerReference>),
    /// An owner is of a kind that is not served now: it may be one day.
    UnknownKind,
    /// It takes what this server knows, which may hang, and it may not wait for that.
    Elsewhere(OtherServer),
}

/// Does the task of `item`.
pub async fn work(context: Context, item: WorkItem) -> Attempt {
    let done = match &item.task {
        Task::Collect(dependents) => match collect(&context, &item, *dependents).await {
            Ok(owners) if !owners.is_empty() => return Attempt::Owned(owners),
            done => done.map(drop),
        },
        Task::Release => release(&context, &item, FOREGROUND).await,
        Task::Orphan(dependents) => orphan(&context, &item, dependents).await,
    };
    match done {
        Ok(()) => Attempt::Finished(Verdict::Done),
        Err(Stop::UnknownKind) => Attempt::UnknownKind,
        Err(Stop::Elsewhere(server)) => Attempt::Elsewhere(server),
        Err(Stop::GraphBehind) => Attempt::Finished(Verdict::Retry("the graph is behind its owner".into())),
        Err(Stop::Failed(status)) => Attempt::Finished(Verdict::Retry(status.message)),
    }
}

/// The owners of an object, by what they are now.
#[derive(Default)]
struct Owners {
    solid: usize,
    /// Uids of those that are not there.
    absent: Vec<String>,
    /// Uids of those that wait for their dependents.
    waiting: Vec<String>,
}

/// The references of an object that stays because all its owners are there; none in any other case.
async fn collect(
    context: &Context,
    item: &WorkItem,
    dependents: Dependents,
) -> Result<Vec<OwnerReference>, Stop> {
    let Some(meta) = context.find(&item.place).await? else { return Ok(Vec::new()) };
    if *meta.uid != *item.uid || meta.is_deleting() || meta.owner_references.is_empty() {
        return Ok(Vec::new());
    }
    let Some(owners) = classify(context, &item.place, &meta.owner_references).await? else {
        tracing::warn!(
            resource = item.place.resource(),
            name = item.place.name(),
            "is in no namespace but has an owner in one, which cannot be: left as it is"
        );
        return Ok(Vec::new());
    };
    let unneeded: Vec<String> = owners.absent.iter().chain(&owners.waiting).cloned().collect();
    if owners.solid > 0 {
        if unneeded.is_empty() {
            return Ok(meta.owner_references);
        }
        disown(context, &item.place, &item.uid, &unneeded).await?;
        return Ok(Vec::new());
    }
    if !owners.waiting.is_empty() && dependents == Dependents::Unsettled {
        return Err(Stop::GraphBehind);
    }
    let policy = if !owners.waiting.is_empty() && dependents != Dependents::None {
        if dependents == Dependents::SomeWaiting {
            unblock(context, item).await?;
        }
        PropagationPolicy::Foreground
    } else if meta.has_finalizer(ORPHAN) {
        PropagationPolicy::Orphan
    } else if meta.has_finalizer(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    };
    delete(context, item, &meta, policy).await?;
    Ok(Vec::new())
}

/// What each owner is now. `None`: one of them cannot be its owner, because it is in a namespace and the
/// object in none.
async fn classify(
    context: &Context,
    place: &ObjectPlace,
    references: &[OwnerReference],
) -> Result<Option<Owners>, Stop> {
    let mut owners = Owners::default();
    for reference in references {
        let Some((owner, is_namespaced)) = owner(context, place.namespace(), reference) else {
            return Err(Stop::UnknownKind);
        };
        if is_namespaced && place.namespace().is_empty() {
            return Ok(None);
        }
        match context.find(&owner).await?.filter(|meta| meta.uid == reference.uid) {
            None => owners.absent.push(reference.uid.clone()),
            Some(meta) if meta.is_deleting() && meta.has_finalizer(FOREGROUND) => {
                owners.waiting.push(reference.uid.clone());
            }
            Some(_) => owners.solid += 1,
        }
    }
    Ok(Some(owners))
}

/// Where an owner is that is named from `namespace`, and whether its kind is in namespaces. `None`: nobody
/// serves its kind, as far as is known.
fn owner(context: &Context, namespace: &str, reference: &OwnerReference) -> Option<(ObjectPlace, bool)> {
    let OwnerReference { api_version, kind, name, .. } = reference;
    // An owner in a namespace is in the same one.
    // What another server serves is not to be found here, whatever this one has of the same name.
    if !context.other_kinds.serve(api_version) {
        let served = context.kinds.kind(api_version, kind)?;
        return Some((ObjectPlace::Here(named(served, namespace, name)), served.namespaced));
    }
    let of = context.other_kinds.kind(api_version, kind)?.clone();
    let (is_namespaced, name) = (of.is_namespaced, name.as_str().into());
    let namespace = if is_namespaced { namespace.into() } else { Box::default() };
    Some((ObjectPlace::Elsewhere(PlaceElsewhere { of, namespace, name }), is_namespaced))
}

/// Deletes exactly the state that was judged; if only something other than the owners has changed since, the
/// object all the same, so that one that is written all the time goes as well.
async fn delete(
    context: &Context,
    item: &WorkItem,
    judged: &Meta,
    policy: PropagationPolicy,
) -> Result<(), Stop> {
    match delete_at(context, item, policy, Some(judged.resource_version.clone())).await {
        Err(Stop::Failed(status)) if status.reason == Reason::Conflict => {
            let Some(now) = context.find(&item.place).await? else { return Ok(()) };
            let same_owners = now.uid == judged.uid && now.owner_references == judged.owner_references;
            if same_owners { delete_at(context, item, policy, None).await } else { Err(status.into()) }
        }
        done => done,
    }
}

async fn delete_at(
    context: &Context,
    item: &WorkItem,
    policy: PropagationPolicy,
    resource_version: Option<String>,
) -> Result<(), Stop> {
    let preconditions = Preconditions { uid: Some(item.uid.to_string()), resource_version };
    let options =
        DeleteOptions { preconditions, propagation_policy: Some(policy), ..DeleteOptions::default() };
    tracing::debug!(
        resource = item.place.resource(),
        namespace = item.place.namespace(),
        name = item.place.name(),
        policy = policy.as_str(),
        "collected"
    );
    context.delete(&item.place, &options).await
}

/// Takes the finalizer away that holds an owner.
async fn release(context: &Context, item: &WorkItem, finalizer: &str) -> Result<(), Stop> {
    let without = |metadata: &Value| {
        let finalizers = metadata["finalizers"].as_array()?;
        let kept: Vec<&Value> = finalizers.iter().filter(|one| **one != *finalizer).collect();
        (kept.len() < finalizers.len()).then(|| json!({ "finalizers": kept }))
    };
    context.change_metadata(&item.place, &item.uid, without).await
}

/// Takes the owner out of the references of its dependents, and only then lets it go.
async fn orphan(context: &Context, item: &WorkItem, dependents: &[(Uid, ObjectPlace)]) -> Result<(), Stop> {
    let outcomes = each(dependents.iter().cloned(), limits::WRITES_MAX, |(uid, place)| {
        let (context, owner) = (context.clone(), vec![item.uid.to_string()]);
        async move { disown(&context, &place, &uid, &owner).await }
    })
    .await;
    outcomes.into_iter().collect::<Result<(), Stop>>()?;
    release(context, item, ORPHAN).await
}

/// Takes `owners` out of an object's references.
async fn disown(context: &Context, place: &ObjectPlace, uid: &str, owners: &[String]) -> Result<(), Stop> {
    let owners: Seen<&str> = owners.iter().map(String::as_str).collect();
    let without = |metadata: &Value| {
        let references = metadata["ownerReferences"].as_array()?;
        let named = |reference: &&Value| reference["uid"].as_str().is_some_and(|uid| owners.has(uid));
        let kept: Vec<&Value> = references.iter().filter(|reference| !named(reference)).collect();
        match kept.len() {
            same if same == references.len() => None,
            0 => Some(json!({ "ownerReferences": null })),
            _ => Some(json!({ "ownerReferences": kept })),
        }
    };
    context.change_metadata(place, uid, without).await
}

/// Says of every reference of an object that it does not block its owner, so that a circle of them can end.
async fn unblock(context: &Context, item: &WorkItem) -> Result<(), Stop> {
    let unblocked = |metadata: &Value| {
        let mut references = metadata["ownerReferences"].as_array()?.clone();
        let mut changed = false;
        for reference in references.iter_mut().filter(|reference| reference["blockOwnerDeletion"] == true) {
            reference["blockOwnerDeletion"] = json!(false);
            changed = true;
        }
        changed.then(|| json!({ "ownerReferences": references }))
    };
    context.change_metadata(&item.place, &item.uid, unblocked).await
}

/// Whether the graph has to know of `object`: it has owners, or is being deleted. Tells quickly of most that
/// it has not.
pub fn may_matter(object: &Object) -> bool {
    let has = |text: &str| memchr::memmem::find(&object.metadata(), text.as_bytes()).is_some();
    has("\"ownerReferences\":[") || has("\"deletionTimestamp\":\"")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use forebay_api::Body;
    use forebay_apimachinery::options::CreateOptions;
    use forebay_catalog::Target;
    use forebay_embedded::{Engine, Options};
    use forebay_registry::Registry;
    use forebay_rt::{Clock, Random, Tasks};

    use super::super::kinds::Kinds;
    use super::super::place::WorkReach;
    use super::*;
    use crate::acting::ActingRegistry;
    use crate::objects::{built_in, delete, find};

    async fn create(registry: &ActingRegistry, name: &str, owners: Value) -> (Target, Uid) {
        let maps = built_in(registry, "", "v1", "configmaps").expect("served");
        let target = named(&maps, "default", name);
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "ownerReferences": owners },
        });
        let at = Target { name: None, ..target.clone() };
        let body = Body::Json(object.to_string().into());
        registry.create(&at, &body, &CreateOptions::default()).await.expect("is created");
        let uid = Meta::of(&find(registry, &target).await.expect("read").expect("is there")).uid;
        (target, uid.as_str().into())
    }

    #[tokio::test]
    async fn nothing_is_deleted_for_an_owner_that_the_graph_does_not_know_to_wait() {
        let (clock, _hand) = Clock::manual(1_700_000_000_000);
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let config = forebay_registry::Config::default();
        let registry = Registry::new(config, engine, clock, Random::system(), Tasks::new());
        registry.start().await.expect("starts");
        let registry = ActingRegistry::of_tests(registry);
        let (owner, owner_uid) = create(&registry, "owner", json!([])).await;
        let reference = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": *owner_uid, "blockOwnerDeletion": true,
        }]);
        let (child, uid) = create(&registry, "child", reference).await;
        let foreground = DeleteOptions {
            propagation_policy: Some(PropagationPolicy::Foreground),
            ..DeleteOptions::default()
        };
        delete(&registry, &owner, &foreground).await.expect("begins to wait");

        let context = Context {
            kinds: Arc::new(Kinds::of(registry.catalog())),
            registry,
            other_kinds: Arc::default(),
            objects: None,
            reach: WorkReach::Here,
        };
        let judged = async |dependents| {
            let (uid, place) = (uid.clone(), ObjectPlace::Here(child.clone()));
            work(context.clone(), WorkItem { uid, place, task: Task::Collect(dependents) }).await
        };
        assert!(matches!(judged(Dependents::Unsettled).await, Attempt::Finished(Verdict::Retry(_))));
        assert!(find(&context.registry, &child).await.expect("read").is_some(), "stays");
        assert!(matches!(judged(Dependents::None).await, Attempt::Finished(Verdict::Done)));
        assert!(find(&context.registry, &child).await.expect("read").is_none(), "goes");
    }
}
