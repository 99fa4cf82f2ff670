//! The collector's one task: it owns the informers, the graph, the queue and the work under way.
//!
//! Before an owner is let go that waits for its dependents, or is to orphan them, the graph is brought up to
//! what is current in the store: a dependent that was created before the owner's deletion is known by then.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use forebay_api::{NoticeElsewhere, ObjectsElsewhere};
use forebay_apimachinery::GroupResource;
use forebay_apimachinery::options::ListOptions;
use forebay_object::Object;
use forebay_registry::{CatalogChanges, Informer, Notice};
use forebay_rt::{Clock, Random};

use super::found::{AskedWhen, FoundOwners};
use super::graph::{DeletionState, Followed, Graph, ObjectReference, Uid};
use super::kinds::Kinds;
use super::lanes::{Lanes, OtherServer};
use super::others::{News, Others};
use super::place::{Context, ObjectPlace, WorkReach};
use super::work::{self, Attempt, Dependents, Task, WorkItem};
use crate::acting::ActingRegistry;
use crate::each::InFlight;
use crate::informers::any_ready;
use crate::limits;
use crate::meta::{Meta, OwnerReference};
use crate::objects::{collection, named};
use crate::queue::{Queue, Verdict};

/// A resource that is followed.
struct Follower {
    resource: GroupResource,
    informer: Informer,
    synced: bool,
    // As many of its gaps were seen to.
    gaps: u64,
}

pub struct Collector {
    registry: ActingRegistry,
    clock: Clock,
    random: Arc<Random>,
    catalog: CatalogChanges,
    kinds: Arc<Kinds>,
    followers: HashMap<Followed, Follower>,
    followed: Followed,
    others: Others,
    graph: Graph,
    queue: Queue<Uid>,
    // What the queue gave out and other servers are asked for.
    lanes: Lanes,
    under_way: InFlight<(Begun, AskedWhen, Attempt)>,
    found: FoundOwners,
    // Looked at again when the catalog changes: an owner is of a kind that is not served.
    unknown: HashSet<Uid>,
}

/// Work that begins.
struct Begun {
    uid: Uid,
    // Whose lane it is in.
    lane: Option<OtherServer>,
}

/// How far to read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    /// A fair share of each.
    Some,
    /// Until there is nothing now.
    All,
}

impl Collector {
    /// - `objects`: what other servers keep, if there may be any.
    pub fn new(
        registry: ActingRegistry,
        objects: Option<Arc<dyn ObjectsElsewhere>>,
        random: Arc<Random>,
    ) -> Collector {
        Collector {
            others: Others::new(objects, registry.account().clone()),
            lanes: Lanes::default(),
            clock: registry.clock().clone(),
            catalog: registry.catalog_changes(),
            registry,
            random,
            kinds: Arc::default(),
            followers: HashMap::new(),
            followed: 0,
            graph: Graph::default(),
            queue: Queue::new(),
            under_way: InFlight::new(),
            found: FoundOwners::default(),
            unknown: HashSet::new(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        loop {
            self.follow_catalog();
            self.follow_others();
            if self.read(Read::Some) {
                // There may be much more; others have their turn first.
                tokio::task::yield_now().await;
            }
            if self.is_synced() {
                self.begin_work().await;
            }
            let due = self.queue.next_due();
            let clock = self.clock.clone();
            let alarm = async {
                match due {
                    Some(at) => clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                (begun, asked, outcome) = self.under_way.next() => self.finish(begun, asked, outcome),
                news = self.others.news() => match news {
                    News::Changed => self.follow_others(),
                    News::Heard(heard) => self.hear(heard),
                },
                () = any_ready(self.followers.values_mut().map(|follower| &mut follower.informer)) => {}
                () = self.catalog.changed() => {}
                () = alarm => {}
            }
        }
    }

    /// Follows what is served now. What is no longer served ends by itself, once everything of it was read.
    fn follow_catalog(&mut self) {
        let catalog = self.registry.catalog();
        if self.kinds.are_of(&catalog) {
            return;
        }
        let kinds = Arc::new(Kinds::of(catalog));
        self.found.lose_all();
        for (resource, served) in kinds.collected() {
            let same_store = |known: &Arc<forebay_catalog::Served>| match (&known.store, &served.store) {
                (Some(known), Some(now)) => Arc::ptr_eq(known, now),
                _ => false,
            };
            if self.kinds.resource(resource).is_some_and(same_store) {
                continue;
            }
            match self.registry.informer(&collection(served, None), &ListOptions::default()) {
                Ok(informer) => {
                    let follower = Follower { resource: resource.clone(), informer, synced: false, gaps: 0 };
                    self.followers.insert(self.followed, follower);
                    self.followed += 1;
                }
                Err(status) => tracing::error!(%resource, why = status.message, "cannot be collected"),
            }
        }
        self.kinds = kinds;
        for uid in self.unknown.drain() {
            self.queue.add(uid);
        }
    }

    /// The same of what other servers serve. One that cannot be asked now goes on to serve what it did.
    fn follow_others(&mut self) {
        let Some(ended) = self.others.look(&mut self.followed) else { return };
        self.found.lose_all();
        let mut touched: Vec<Uid> = self.unknown.drain().collect();
        for followed in ended {
            self.graph.forget(followed, &mut touched);
        }
        touched.into_iter().for_each(|uid| self.queue.add(uid));
    }

    /// Takes in what was heard of other servers.
    fn hear(&mut self, heard: Vec<(Followed, NoticeElsewhere)>) {
        let mut touched = Vec::new();
        for notice in heard {
            self.others.take(notice, &mut self.graph, &mut self.found, &mut touched);
        }
        touched.into_iter().for_each(|uid| self.queue.add(uid));
    }

    /// Takes in what the informers have; whether there was something.
    fn read(&mut self, read: Read) -> bool {
        let (mut touched, mut ended, mut any) = (Vec::new(), Vec::new(), false);
        for (followed, follower) in &mut self.followers {
            let most = if read == Read::All { usize::MAX } else { limits::NOTICES_MAX };
            for _ in 0..most {
                let Some(notice) = follower.informer.try_next() else {
                    if follower.gaps != follower.informer.gaps() {
                        follower.gaps = follower.informer.gaps();
                        // Owners that are in no graph may have come and gone.
                        touched.extend(self.graph.owned().cloned());
                        self.found.lose_all();
                    }
                    break;
                };
                any = true;
                match notice {
                    Notice::Put(object) => {
                        put(&mut self.graph, &mut self.found, *followed, &object, &mut touched);
                    }
                    Notice::Deleted(object) => {
                        let uid = Meta::of(&object).uid;
                        self.found.lose(&uid);
                        self.graph.remove(&uid, &mut touched);
                        self.unknown.remove(&*uid);
                    }
                    Notice::Synced => follower.synced = true,
                    Notice::Ended => ended.push(*followed),
                }
            }
        }
        for followed in ended {
            self.graph.forget(followed, &mut touched);
            self.found.lose_all();
            self.followers.remove(&followed);
        }
        for uid in touched {
            self.queue.add(uid);
        }
        any
    }

    /// Whether everything has been read once: before that, nobody can be said to have no dependents.
    fn is_synced(&self) -> bool {
        self.others.are_known() && self.followers.values().all(|follower| follower.synced)
    }

    /// Begins as much work as there may be at once: what is left in the queue waits for work to end, or for
    /// its time.
    async fn begin_work(&mut self) {
        loop {
            let mut all = Vec::new();
            while let Some((server, uid)) = self.lanes.next() {
                all.push(Begun { uid, lane: Some(server) });
            }
            // What asks other servers has its own limit.
            while self.under_way.len() + all.len() - self.lanes.busy() < limits::WORK_MAX {
                let Some(uid) = self.queue.next(self.clock.now()) else { break };
                all.push(Begun { uid, lane: None });
            }
            if all.is_empty() {
                return;
            }
            self.begin(all).await;
        }
    }

    async fn begin(&mut self, all: Vec<Begun>) {
        let depends = |graph: &Graph, uid: &Uid| {
            let waits = matches!(
                graph.phase(uid),
                Some(DeletionState::Orphaning | DeletionState::WaitingForDependents)
            );
            waits || graph.is_awaited(uid)
        };
        let settles = all.iter().any(|begun| depends(&self.graph, &begun.uid));
        let settled = if settles { self.settle().await } else { Ok(()) };
        let others_settled = if settles { self.others.settled(self.clock.now()) } else { Ok(()) };
        let asked = self.found.begin();
        for begun in all {
            let mut settled = settled.clone();
            if depends(&self.graph, &begun.uid) {
                settled = settled.and(others_settled.clone());
            }
            match (settled, self.item(&begun.uid, settles)) {
                (Ok(()), Some(item)) => {
                    if let (None, Some(server)) = (&begun.lane, item.server()) {
                        self.lanes.add(server, begun.uid);
                        continue;
                    }
                    let context = self.context(&begun);
                    self.under_way.push(async move { (begun, asked, work::work(context, item).await) });
                }
                (Ok(()), None) => self.finish(begun, asked, Attempt::Finished(Verdict::Done)),
                (Err(why), _) => self.finish(begun, asked, Attempt::Finished(Verdict::Retry(why))),
            }
        }
    }

    fn context(&self, begun: &Begun) -> Context {
        Context {
            registry: self.registry.clone(),
            kinds: self.kinds.clone(),
            other_kinds: self.others.kinds().clone(),
            objects: self.others.objects().cloned(),
            reach: if begun.lane.is_some() { WorkReach::Anywhere } else { WorkReach::Here },
        }
    }

    /// Brings the graph up to what is current in the store.
    async fn settle(&mut self) -> Result<(), String> {
        let current = self.registry.current_revision().await.map_err(|status| status.message)?;
        self.follow_catalog();
        let deadline = self.clock.now() + limits::SETTLE_WAIT;
        for follower in self.followers.values_mut() {
            if !follower.informer.reaches(current, deadline).await {
                return Err(format!("{} could not be read up to {current} in time", follower.resource));
            }
        }
        self.read(Read::All);
        let heard = self.others.heard_now().await;
        self.hear(heard);
        if self.is_synced() { Ok(()) } else { Err("a list is not complete yet".into()) }
    }

    /// What is to be done about `uid`, as the graph has it: `settled` when it was brought up to date just
    /// now.
    fn item(&mut self, uid: &Uid, settled: bool) -> Option<WorkItem> {
        let place = self.place(uid)?;
        let task = match self.graph.phase(uid)? {
            DeletionState::Deleting => return None,
            DeletionState::Living if settled => Task::Collect(self.dependents(uid)),
            DeletionState::Living => Task::Collect(Dependents::Unsettled),
            DeletionState::Orphaning => {
                let dependents = self.graph.dependents_of(uid);
                Task::Orphan(dependents.filter_map(|one| Some((one.clone(), self.place(one)?))).collect())
            }
            DeletionState::WaitingForDependents => {
                let waits = |one: &&Uid| self.graph.phase(one) == Some(DeletionState::WaitingForDependents);
                let blocking: Vec<Uid> = self.graph.blocking(uid).cloned().collect();
                if blocking.is_empty() {
                    Task::Release
                } else {
                    // Each of them touches the owner again when it is gone.
                    let idle: Vec<Uid> = blocking.iter().filter(|one| !waits(one)).cloned().collect();
                    idle.into_iter().for_each(|one| self.queue.add(one));
                    return None;
                }
            }
        };
        Some(WorkItem { uid: uid.clone(), place, task })
    }

    fn dependents(&self, uid: &str) -> Dependents {
        let waits = |one: &Uid| self.graph.phase(one) == Some(DeletionState::WaitingForDependents);
        match self.graph.dependents_of(uid).next() {
            None => Dependents::None,
            Some(_) if self.graph.dependents_of(uid).any(waits) => Dependents::SomeWaiting,
            Some(_) => Dependents::Some,
        }
    }

    fn place(&self, uid: &str) -> Option<ObjectPlace> {
        let reference = self.graph.reference(uid)?;
        let Some(follower) = self.followers.get(&reference.resource) else {
            return self.others.place(reference).map(ObjectPlace::Elsewhere);
        };
        let served = self.kinds.resource(&follower.resource)?;
        Some(ObjectPlace::Here(named(served, reference.namespace, reference.name)))
    }

    fn finish(&mut self, Begun { uid, lane }: Begun, asked: AskedWhen, outcome: Attempt) {
        if let Some(server) = &lane {
            self.lanes.done(server);
        }
        let verdict = match outcome {
            Attempt::Elsewhere(server) => return self.lanes.add(server, uid),
            Attempt::Owned(references) => {
                let is_followed =
                    |reference: &OwnerReference| match self.others.kinds().serve(&reference.api_version) {
                        true => self.others.hears_of(reference),
                        false => self.kinds.is_collected(reference),
                    };
                let followed = references.iter().all(is_followed);
                if let Some(at) = self.graph.reference(&uid).filter(|_| followed) {
                    self.found.keep(asked, at.namespace, references);
                }
                Verdict::Done
            }
            Attempt::UnknownKind => {
                // Looked at again with the next catalog.
                if self.graph.phase(&uid).is_some() {
                    self.unknown.insert(uid.clone());
                }
                Verdict::Done
            }
            Attempt::Finished(verdict) => verdict,
        };
        if let Verdict::Retry(why) = &verdict {
            tracing::debug!(%uid, why, "to be tried again");
        }
        self.queue.finish(uid, &verdict, self.clock.now(), &self.random);
    }
}

/// Takes `object` into the graph, if that has to know of it.
fn put(
    graph: &mut Graph,
    found: &mut FoundOwners,
    followed: Followed,
    object: &Arc<Object>,
    touched: &mut Vec<Uid>,
) {
    if !work::may_matter(object) && !graph.tracks(followed, object.key()) {
        return;
    }
    let reference =
        ObjectReference { resource: followed, namespace: object.namespace(), name: object.name() };
    let meta = Meta::of(object);
    if meta.is_deleting() {
        found.lose(&meta.uid);
    }
    let owned = found.has_all(object.namespace(), &meta.owner_references);
    graph.put(object.key(), reference, &meta, owned, touched);
}
