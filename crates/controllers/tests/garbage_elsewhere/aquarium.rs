//! A server of `flunders`, which are in namespaces, and `fischers`, which are in none, as the collector meets
//! it: it may be away, hang, or say what it likes.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use forebay_api::{
    BoxFuture, FollowElsewhere, KindElsewhere, KnownElsewhere, NoticeElsewhere, ObjectElsewhere,
    ObjectsElsewhere, OwnerElsewhere, PlaceElsewhere,
};
use forebay_apimachinery::options::{DeleteOptions, PropagationPolicy};
use forebay_apimachinery::{Caller, Reason, Status};
use serde_json::{Value, json};
use tokio::sync::Notify;

pub const API_VERSION: &str = "wardle.example.com/v1";

/// See the module's doc. It is there, and everything of it can be listed, unless somebody says otherwise.
pub struct Aquarium {
    state: Mutex<State>,
    changed: Notify,
    /// Somebody waits for an answer that does not come.
    pub hangs: Notify,
}

struct State {
    is_away: bool,
    is_listed: bool,
    hangs: bool,
    // Versions that it serves besides, of which it does not say what they have.
    also: Vec<String>,
    change: u64,
    // (resource, namespace, name) -> metadata
    objects: BTreeMap<Place, Value>,
    // By resource, since the beginning.
    notices: HashMap<String, Vec<NoticeElsewhere>>,
    wakers: Vec<Waker>,
    revision: u64,
    asked_by: Vec<String>,
}

type Place = (String, String, String);

struct Follower {
    aquarium: Arc<Aquarium>,
    resource: String,
    at: usize,
    synced: bool,
}

impl Aquarium {
    pub fn new() -> Arc<Aquarium> {
        let state = State {
            is_away: false,
            is_listed: true,
            hangs: false,
            also: Vec::new(),
            change: 1,
            objects: BTreeMap::new(),
            notices: HashMap::new(),
            wakers: Vec::new(),
            revision: 1,
            asked_by: Vec::new(),
        };
        Arc::new(Aquarium { state: Mutex::new(state), changed: Notify::new(), hangs: Notify::new() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changes(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        change(&mut state);
        state.change += 1;
        state.wakers.drain(..).for_each(Waker::wake);
        drop(state);
        self.changed.notify_waiters();
    }

    /// It is not there: nobody is answered, or told anything, or knows what it serves.
    pub fn is_away(&self, is_away: bool) {
        self.changes(|state| state.is_away = is_away);
    }

    /// Its objects cannot be listed, and nothing is told of them.
    pub fn is_listed(&self, is_listed: bool) {
        self.changes(|state| state.is_listed = is_listed);
    }

    /// It takes requests about single objects, and does not answer.
    pub fn hangs(&self) {
        self.changes(|state| state.hangs = true);
    }

    /// It serves `version` in the other server's place, and does not say what it has.
    pub fn also_serves(&self, version: &str) {
        self.changes(|state| state.also.push(version.to_owned()));
    }

    /// Says something of a resource, true or not.
    pub fn says(&self, resource: &str, notice: NoticeElsewhere) {
        self.changes(|state| state.notices.entry(resource.into()).or_default().push(notice));
    }

    /// `flunders/default/name`, `fischers//name`: one that is there now, with these owners.
    pub fn create(&self, path: &str, owners: &[Value]) -> Value {
        let place = place(path);
        let mut state = self.state();
        let uid = format!("{}-{}", place.2, state.revision);
        let metadata =
            json!({ "namespace": place.1, "name": place.2, "uid": uid, "ownerReferences": owners });
        let kind = if place.0 == "flunders" { "Flunder" } else { "Fischer" };
        state.put(place, metadata.clone());
        drop(state);
        json!({ "apiVersion": API_VERSION, "kind": kind, "metadata": metadata })
    }

    pub fn find(&self, path: &str) -> Option<Value> {
        self.state().objects.get(&place(path)).cloned()
    }

    /// Deletes one, as somebody does.
    pub fn deletes(&self, path: &str, policy: PropagationPolicy) {
        let options = DeleteOptions { propagation_policy: Some(policy), ..DeleteOptions::default() };
        self.state().delete(&place(path), &options).expect("it is there");
    }

    /// Waits until `holds` of one, or of `None` when there is none.
    pub async fn until(&self, path: &str, holds: impl Fn(Option<&Value>) -> bool) {
        let seen = async {
            while !holds(self.find(path).as_ref()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(120), seen).await.expect("in time");
    }

    pub async fn until_gone(&self, path: &str) {
        self.until(path, |found| found.is_none()).await;
    }

    /// In whose name single objects were asked for, each once.
    pub fn asked_by(&self) -> Vec<String> {
        let mut all = self.state().asked_by.clone();
        all.sort();
        all.dedup();
        all
    }

    /// Whoever asks is answered, or not.
    async fn answers(&self, caller: &Caller) -> Result<MutexGuard<'_, State>, Status> {
        let hangs = {
            let mut state = self.state();
            state.asked_by.push(caller.name.clone());
            if state.is_away {
                return Err(Status::internal("service unavailable"));
            }
            state.hangs
        };
        if hangs {
            self.hangs.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(self.state())
    }
}

impl State {
    fn put(&mut self, place: Place, mut metadata: Value) {
        self.revision += 1;
        metadata["resourceVersion"] = self.revision.to_string().into();
        self.tell(&place.0, NoticeElsewhere::Put(heard(&metadata)));
        self.objects.insert(place, metadata);
    }

    fn tell(&mut self, resource: &str, notice: NoticeElsewhere) {
        self.notices.entry(resource.into()).or_default().push(notice);
        self.wakers.drain(..).for_each(Waker::wake);
    }

    /// Stores one that is being deleted, or lets it go.
    fn finish(&mut self, place: &Place, metadata: Value) {
        let is_held = metadata["finalizers"].as_array().is_some_and(|all| !all.is_empty());
        if metadata["deletionTimestamp"].is_string() && !is_held {
            self.objects.remove(place);
            let uid = metadata["uid"].as_str().expect("a uid").into();
            return self.tell(&place.0, NoticeElsewhere::Gone(uid));
        }
        self.put(place.clone(), metadata);
    }

    fn delete(&mut self, place: &Place, options: &DeleteOptions) -> Result<(), Status> {
        let gone = || Status::not_found("wardle.example.com", &place.0, &place.2);
        let mut metadata = self.objects.get(place).cloned().ok_or_else(gone)?;
        let asked = &options.preconditions;
        for (name, want) in [("uid", &asked.uid), ("resourceVersion", &asked.resource_version)] {
            if want.as_ref().is_some_and(|want| metadata[name] != **want) {
                return Err(Status::new(Reason::Conflict, "it is another one"));
            }
        }
        let own = match options.propagation_policy {
            Some(PropagationPolicy::Foreground) => Some("foregroundDeletion"),
            Some(PropagationPolicy::Orphan) => Some("orphan"),
            _ => None,
        };
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let mut finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
        finalizers.extend(own.map(Value::from));
        metadata["finalizers"] = finalizers.into();
        self.finish(place, metadata);
        Ok(())
    }
}

fn place(path: &str) -> Place {
    let parts: Vec<String> = path.split('/').map(String::from).collect();
    let [resource, namespace, name] = parts.try_into().expect("resource/namespace/name");
    (resource, namespace, name)
}

fn place_of(at: &PlaceElsewhere) -> Place {
    (at.of.resource.to_string(), at.namespace.to_string(), at.name.to_string())
}

/// What is heard of it.
pub fn heard(metadata: &Value) -> ObjectElsewhere {
    let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
    let owner = |owner: &Value| OwnerElsewhere {
        api_version: text(owner, "apiVersion"),
        kind: text(owner, "kind"),
        name: text(owner, "name"),
        uid: text(owner, "uid"),
        blocks: owner["blockOwnerDeletion"] == true,
    };
    let all = |name: &str| metadata[name].as_array().cloned().unwrap_or_default();
    ObjectElsewhere {
        namespace: text(metadata, "namespace").into(),
        name: text(metadata, "name").into(),
        uid: text(metadata, "uid").into(),
        is_deleting: metadata["deletionTimestamp"].is_string(),
        finalizers: all("finalizers").iter().filter_map(|one| one.as_str().map(String::from)).collect(),
        owners: all("ownerReferences").iter().map(owner).collect(),
    }
}

/// The collector's, of a server that others change as well.
pub struct Seen(pub Arc<Aquarium>);

impl ObjectsElsewhere for Seen {
    fn known(&self) -> Result<KnownElsewhere, Status> {
        let state = self.0.state();
        let kind = |resource: &str, kind: &str, is_namespaced| {
            Arc::new(KindElsewhere {
                group: "wardle.example.com".into(),
                version: "v1".into(),
                resource: resource.into(),
                kind: kind.into(),
                is_namespaced,
                is_followed: true,
            })
        };
        let (kinds, mut unknown) = match state.is_away {
            true => (Vec::new(), vec![API_VERSION.to_owned()]),
            false => {
                (vec![kind("fischers", "Fischer", false), kind("flunders", "Flunder", true)], Vec::new())
            }
        };
        unknown.extend(state.also.iter().cloned());
        let versions = std::iter::once(API_VERSION.to_owned()).chain(state.also.iter().cloned()).collect();
        Ok(KnownElsewhere { kinds, versions, unknown, change: state.change })
    }

    fn changed(&self, change: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let changed = self.0.changed.notified();
                if self.0.state().change != change {
                    return;
                }
                changed.await;
            }
        })
    }

    fn follow(&self, _: Arc<Caller>, of: Arc<KindElsewhere>) -> Box<dyn FollowElsewhere> {
        let (aquarium, resource) = (self.0.clone(), of.resource.to_string());
        Box::new(Follower { aquarium, resource, at: 0, synced: false })
    }

    fn metadata<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
    ) -> BoxFuture<'a, Result<Option<Value>, Status>> {
        Box::pin(async move { Ok(self.0.answers(caller).await?.objects.get(&place_of(at)).cloned()) })
    }

    fn delete<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move { self.0.answers(caller).await?.delete(&place_of(at), options) })
    }

    fn merge<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let (mut state, place) = (self.0.answers(caller).await?, place_of(at));
            let gone = || Status::not_found("wardle.example.com", &place.0, &place.2);
            let mut metadata = state.objects.get(&place).cloned().ok_or_else(gone)?;
            for (member, value) in patch["metadata"].as_object().expect("metadata alone") {
                if member == "resourceVersion" && *value != metadata["resourceVersion"] {
                    return Err(Status::new(Reason::Conflict, "it is another one"));
                }
                metadata[member] = value.clone();
            }
            state.finish(&place, metadata);
            Ok(())
        })
    }
}

impl FollowElsewhere for Follower {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<NoticeElsewhere> {
        let mut state = self.aquarium.state();
        if state.is_listed && !state.is_away {
            let told = state.notices.get(&self.resource).map(Vec::as_slice).unwrap_or_default();
            if let Some(notice) = told.get(self.at) {
                self.at += 1;
                return Poll::Ready(notice.clone());
            }
            if !std::mem::replace(&mut self.synced, true) {
                return Poll::Ready(NoticeElsewhere::Synced);
            }
        }
        state.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}
