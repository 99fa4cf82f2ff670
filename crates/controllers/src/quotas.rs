//! resourcequota-controller: what is used of each quota, counted anew when there may be less of it, when its
//! limits are others, and from time to time.
//!
//! Owns which quotas there are, by name, and what they limit. In: notices of quotas, and of objects of those
//! kinds alone that some quota limits. Out: the status of quotas. Never: keeps an object; counts what is
//! created, which admission did.
//!
//! Source: kubernetes v1.36.3 `pkg/controller/resourcequota`, `pkg/quota/v1/install/update_filter.go`.

mod usage;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{GroupResource, Reason, Status};
use forebay_catalog::Served;
use forebay_object::Object;
use forebay_quota::{Amounts, DeviceClasses, Evaluator};
use forebay_registry::{CatalogChanges, Informer, Notice};
use forebay_rt::{Clock, Instant, Random};
use serde_json::Value;

use crate::acting::ActingRegistry;
use crate::each::InFlight;
use crate::gc::Kinds;
use crate::informers::any_ready;
use crate::limits;
use crate::objects::{built_in, collection};
use crate::queue::{Queue, Verdict};

/// A quota: its namespace and its name.
type Name = (String, String);

/// What is counted of one kind.
#[derive(Clone)]
pub struct Counted {
    pub served: Arc<Served>,
    pub evaluator: Evaluator,
}

/// Runs until it is dropped.
pub async fn run(registry: ActingRegistry, random: Arc<Random>) {
    let informer = built_in(&registry, "", "v1", "resourcequotas")
        .and_then(|quotas| registry.informer(&collection(&quotas, None), &ListOptions::default()));
    match informer {
        Ok(quotas) => Quotas::new(registry, random, quotas).run().await,
        Err(status) => tracing::error!(why = status.message, "quotas cannot be followed"),
    }
}

struct Quotas {
    registry: ActingRegistry,
    clock: Clock,
    random: Arc<Random>,
    catalog: CatalogChanges,
    kinds: Kinds,
    quotas: Informer,
    // quota -> what it limits
    known: BTreeMap<Name, Amounts>,
    // Exactly the kinds that a known quota limits, once that is looked at again.
    followed: HashMap<GroupResource, Followed>,
    /// Quotas may limit other kinds than are followed.
    is_other: bool,
    queue: Queue<Name>,
    under_way: InFlight<(Name, Verdict)>,
}

struct Followed {
    counted: Counted,
    informer: Informer,
}

impl Quotas {
    fn new(registry: ActingRegistry, random: Arc<Random>, quotas: Informer) -> Quotas {
        Quotas {
            clock: registry.clock().clone(),
            catalog: registry.catalog_changes(),
            registry,
            random,
            kinds: Kinds::default(),
            quotas,
            known: BTreeMap::new(),
            followed: HashMap::new(),
            is_other: true,
            queue: Queue::new(),
            under_way: InFlight::new(),
        }
    }

    async fn run(mut self) {
        let mut resync = self.clock.now() + limits::QUOTA_RESYNC_PERIOD;
        loop {
            self.read_quotas();
            self.follow();
            self.read_objects().await;
            if self.clock.now() >= resync {
                self.known.keys().for_each(|name| self.queue.add(name.clone()));
                resync = self.clock.now() + limits::QUOTA_RESYNC_PERIOD;
            }
            self.begin_work();
            let due = self.queue.next_due().map_or(resync, |due| due.min(resync));
            let clock = self.clock.clone();
            let objects = self.followed.values_mut().map(|followed| &mut followed.informer);
            tokio::select! {
                (name, verdict) = self.under_way.next() => {
                    if let Verdict::Retry(why) = &verdict {
                        tracing::debug!(namespace = name.0, name = name.1, why, "to be counted again");
                    }
                    self.queue.finish(name, &verdict, clock.now(), &self.random);
                }
                () = any_ready(objects.chain([&mut self.quotas])) => {}
                () = self.catalog.changed() => {}
                () = clock.sleep_until(due) => {}
            }
        }
    }

    fn read_quotas(&mut self) {
        for _ in 0..limits::NOTICES_MAX {
            match self.quotas.try_next() {
                Some(Notice::Put(quota)) => {
                    let Some(value) = tree(&quota) else { continue };
                    let hard = value["spec"]["hard"].as_object().map(Amounts::of).unwrap_or_default();
                    let is_other = self.known.get(&name_of(&quota)) != Some(&hard);
                    if is_other || usage::is_behind(&value) {
                        self.queue.add(name_of(&quota));
                    }
                    self.is_other |= is_other;
                    self.known.insert(name_of(&quota), hard);
                }
                Some(Notice::Deleted(quota)) => {
                    self.known.remove(&name_of(&quota));
                    self.is_other = true;
                }
                Some(Notice::Synced | Notice::Ended) => {}
                None => return,
            }
        }
    }

    /// Follows the kinds that quotas limit, and no others; those of one that is new are counted.
    fn follow(&mut self) {
        let catalog = self.registry.catalog();
        if !self.kinds.are_of(&catalog) {
            self.kinds = Kinds::of(catalog);
            self.is_other = true;
        }
        if !std::mem::take(&mut self.is_other) {
            return;
        }
        let mut wanted = HashMap::new();
        for (resource, counted) in self.limited() {
            let same = |known: &Followed| Arc::ptr_eq(&known.counted.served, &counted.served);
            let followed = self.followed.remove(&resource).filter(same);
            let informer = match followed {
                Some(followed) => followed.informer,
                None => {
                    let collection = collection(&counted.served, None);
                    match self.registry.informer(&collection, &ListOptions::default()) {
                        Ok(informer) => {
                            let counts = |hard: &Amounts| may_count(&counted.evaluator, hard);
                            let quotas = self.known.iter().filter(|(_, hard)| counts(hard));
                            quotas.for_each(|(name, _)| self.queue.add(name.clone()));
                            informer
                        }
                        Err(status) => {
                            tracing::error!(%resource, why = status.message, "cannot be counted");
                            continue;
                        }
                    }
                }
            };
            wanted.insert(resource, Followed { counted, informer });
        }
        self.followed = wanted;
    }

    fn limited(&self) -> Vec<(GroupResource, Counted)> {
        let namespaced = self.kinds.collected().filter(|(_, served)| served.namespaced);
        let counted = namespaced.filter_map(|(resource, served)| {
            let evaluator = Evaluator::of(served.group(), served.resource())?;
            Some((resource.clone(), Counted { served: served.clone(), evaluator }))
        });
        let limits = |counted: &Counted| {
            // Few: names that quotas limit; looked at when a quota or the catalog changes.
            self.known.values().any(|hard| may_count(&counted.evaluator, hard))
        };
        counted.filter(|(_, counted)| limits(counted)).collect()
    }

    async fn read_objects(&mut self) {
        // Bytes that were looked at.
        let mut since_turn = 0;
        let now = self.clock.now();
        let seconds = self.registry.timestamp().as_second();
        for followed in self.followed.values_mut() {
            for _ in 0..limits::NOTICES_MAX {
                let (object, when) = match followed.informer.try_next_change() {
                    Some((Notice::Deleted(object), _)) => (object, Some(now)),
                    Some((Notice::Put(object), previous)) => {
                        let evaluator = &followed.counted.evaluator;
                        let change = (previous.as_deref(), &*object);
                        let when = recount(evaluator, change, &self.known, now, seconds);
                        since_turn += object.body_len();
                        (object, when)
                    }
                    Some((Notice::Synced | Notice::Ended, _)) => continue,
                    None => break,
                };
                if since_turn >= limits::QUOTA_TURN_BYTES {
                    since_turn = 0;
                    tokio::task::yield_now().await;
                }
                let Some(when) = when else { continue };
                for (name, hard) in quotas_of(&self.known, object.namespace()) {
                    if may_count(&followed.counted.evaluator, hard) {
                        match when <= now {
                            true => self.queue.add(name.clone()),
                            false => self.queue.add_at(name.clone(), when),
                        }
                    }
                }
            }
        }
    }

    fn begin_work(&mut self) {
        while self.under_way.len() < limits::WORK_MAX {
            let Some(name) = self.queue.next(self.clock.now()) else { return };
            let kinds: Vec<Counted> =
                self.followed.values().map(|followed| followed.counted.clone()).collect();
            let registry = self.registry.clone();
            self.under_way.push(async move {
                let verdict = match usage::sync(&registry, &kinds, &name.0, &name.1).await {
                    Ok(()) => Verdict::Done,
                    Err(Status { reason: Reason::NotFound, .. }) => Verdict::Done,
                    Err(status) => Verdict::Retry(status.message),
                };
                (name, verdict)
            });
        }
    }
}

/// When quotas of its namespace are counted anew after `object` was written; none when there is no less of
/// anything.
///
/// - `previous`: the object as it was told of last, if it was.
fn recount(
    evaluator: &Evaluator,
    (previous, object): (Option<&Object>, &Object),
    known: &BTreeMap<Name, Amounts>,
    now: Instant,
    seconds: i64,
) -> Option<Instant> {
    quotas_of(known, object.namespace()).next()?;
    match evaluator {
        Evaluator::Pods => {
            let (previous, pod) = (previous.and_then(tree), tree(object)?);
            // One that was given a deadline has left the quotas of those without, which nobody tells.
            let may_be_other = !pod["spec"]["activeDeadlineSeconds"].is_null();
            let later = may_be_other.then(|| now + limits::QUOTA_RECOUNT_PAUSE);
            let previous = previous.as_ref().and_then(Value::as_object);
            if usage::has_less(previous, pod.as_object()?, seconds) { Some(now) } else { later }
        }
        Evaluator::Services | Evaluator::VolumeClaims => Some(now + limits::QUOTA_RECOUNT_PAUSE),
        Evaluator::ResourceClaims | Evaluator::Objects { .. } => None,
    }
}

fn quotas_of<'k>(
    known: &'k BTreeMap<Name, Amounts>,
    namespace: &'k str,
) -> impl Iterator<Item = (&'k Name, &'k Amounts)> {
    let from = (namespace.to_string(), String::new());
    known.range(from..).take_while(move |((of, _), _)| of == namespace)
}

/// Whether objects of a kind may be what a quota limits, whichever device classes there are.
fn may_count(evaluator: &Evaluator, hard: &Amounts) -> bool {
    let is_extended = |name: &str| *evaluator == Evaluator::ResourceClaims && name.starts_with("requests.");
    evaluator.counts_any(hard, &DeviceClasses::default()) || hard.names().any(is_extended)
}

fn name_of(quota: &Object) -> Name {
    (quota.namespace().to_string(), quota.name().to_string())
}

fn tree(object: &Object) -> Option<Value> {
    serde_json::from_slice(&object.untyped_json()).ok()
}
