//! The informers of one server: one for each kind and selection, whoever asks for it.
//!
//! In: a client, what to watch. Out: [`Informer`]s. Owner: the program. Never: keeps an informer that nobody
//! holds.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_apimachinery::{FieldPath, Key, PathError, PathStep};
use forebay_client::wire::Projection;
use forebay_client::{Ask, Collection};
use forebay_connector::{Connected, Pool, Rate, Throttle};
use forebay_object::{Form, Layout, Scope};
use forebay_rt::{Clock, Duration, Random, Tasks};
use forebay_watchcache::limits::PACE;
use forebay_watchcache::{Cacher, EarlyReaders, History, Resource, Room};
use tokio::runtime;

use crate::ceiling::{AtLimit, Ceiling};
use crate::change::Stored;
use crate::encoding::Encoding;
use crate::error::Error;
use crate::handler_stats::Handlers;
use crate::informer::Informer;
use crate::limits;
use crate::progress::Progress;
use crate::saved::States;
use crate::shared::{Part, Shared};
use crate::unseen::Writes;
use crate::upstream::Upstream;
use crate::watched::{Cut, Wanted, Watched};
use crate::way::Way;

/// An API server as a program reaches it: by any `kube::Client`, or by one of [`forebay_connector::connect`],
/// which needs a connection for a hundred watches instead of one for each.
#[derive(Clone)]
pub struct Server {
    client: kube::Client,
    pool: Option<Pool>,
}

/// How a factory's informers behave.
#[derive(Debug)]
pub struct Options {
    /// What the server's logs call the program.
    pub user_agent: String,
    /// How fast to ask, all informers together; `None` is as fast as it goes.
    pub rate: Option<Rate>,
    /// In what form objects are asked for.
    pub encoding: Encoding,
    /// What all informers together may hold in plain form before it is compressed.
    pub loose_bytes_max: usize,
    /// What a collection may hold of replaced objects, in bytes, for handlers that are behind.
    pub window_bytes_max: usize,
    /// What an informer may hold, and what it does there, unless its [`Watched`] says otherwise; `None` is
    /// whatever there is.
    pub max_bytes: Option<(usize, AtLimit)>,
    /// Where states are kept for the next start of the program, in files that only its user may read: Secrets
    /// are in them as well. `None` keeps none.
    pub state_dir: Option<PathBuf>,
    pub clock: Clock,
    /// For jitter.
    pub random: Random,
}

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub struct Factory(Arc<Inner>);

struct Inner {
    way: Way,
    window_bytes_max: usize,
    max_bytes: Option<(usize, AtLimit)>,
    states: Option<States>,
    random: Random,
    room: Arc<Room>,
    early: Arc<EarlyReaders>,
    tasks: Tasks,
    informers: Mutex<HashMap<Wanted, Weak<Shared>>>,
}

impl From<kube::Client> for Server {
    fn from(client: kube::Client) -> Server {
        Server { client, pool: None }
    }
}

impl From<Connected> for Server {
    fn from(connected: Connected) -> Server {
        Server { client: connected.client, pool: Some(connected.pool) }
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            user_agent: concat!("forebay-informer/", env!("CARGO_PKG_VERSION")).into(),
            rate: Some(Rate { qps: limits::QPS, burst: limits::BURST }),
            encoding: Encoding::default(),
            loose_bytes_max: limits::LOOSE_BYTES_MAX,
            window_bytes_max: limits::WINDOW_BYTES_MAX,
            max_bytes: None,
            state_dir: None,
            clock: Clock::system(),
            random: Random::system(),
        }
    }
}

impl Factory {
    /// A factory without informers. Nothing is asked of the server yet.
    pub fn new(server: impl Into<Server>, options: Options) -> Factory {
        let Server { client, pool } = server.into();
        let Options {
            user_agent,
            rate,
            encoding,
            loose_bytes_max,
            window_bytes_max,
            max_bytes,
            state_dir,
            clock,
            random,
        } = options;
        let throttle = Throttle::new(rate, clock.clone(), Random::seeded(random.next_u64()));
        let (throttle, user_agent) = (Arc::new(throttle), Arc::from(user_agent));
        Factory(Arc::new(Inner {
            way: Way { client, pool, throttle, reach: Arc::default(), user_agent, encoding, clock },
            window_bytes_max,
            max_bytes,
            states: state_dir.map(States::new),
            random,
            room: Arc::new(Room::new(loose_bytes_max)),
            early: Arc::new(EarlyReaders::admitted()),
            tasks: Tasks::new(),
            informers: Mutex::default(),
        }))
    }

    /// The informer of `watched`: the one that there is already, or a new one, which begins at once. It lives
    /// for as long as somebody holds it; the last one to let go of it has its state kept on disk, where
    /// states are. Must be called within a runtime.
    ///
    /// # Errors
    /// [`Error::Path`] of an index.
    pub fn informer<K>(&self, watched: &Watched<K>) -> Result<Informer<K>, Error> {
        let mut wanted = watched.wanted();
        wanted.limit = wanted.limit.or_else(|| self.0.max_bytes.clone());
        let mut informers = self.0.informers.lock().unwrap_or_else(PoisonError::into_inner);
        let found = informers.get(&wanted).and_then(Weak::upgrade);
        let shared = match found {
            Some(shared) => shared,
            None => {
                let fields =
                    wanted.indexes.iter().map(|path| members(path)).collect::<Result<Vec<_>, _>>()?;
                let stored = Stored {
                    whole: Arc::new(projection(&wanted.cut)?),
                    part: Arc::new(projection(&wanted.cut.to_metadata(&wanted.indexes))?),
                };
                let ceiling =
                    wanted.limit.clone().map(|(bytes, at_limit)| Arc::new(Ceiling::new(bytes, at_limit)));
                let part = |collection: &Collection| {
                    self.part(collection, &fields, &wanted.cut, (&stored, ceiling.as_ref()))
                };
                let parts = wanted.collections.iter().map(part).collect();
                let indexes = wanted.indexes.clone();
                let (clock, tasks) = (self.0.way.clock.clone(), self.0.tasks.clone());
                let shared = Arc::new(Shared {
                    parts,
                    indexes,
                    writes: Writes::default(),
                    handlers: Handlers::default(),
                    clock,
                    tasks,
                    runtime: runtime::Handle::current(),
                });
                informers.retain(|_, informer| informer.strong_count() > 0);
                informers.insert(wanted, Arc::downgrade(&shared));
                if self.0.states.is_some() {
                    let (kept, clock) = (Arc::downgrade(&shared), self.0.way.clock.clone());
                    self.0.tasks.spawn("informer states", keep(kept, clock));
                }
                shared
            }
        };
        Ok(Informer::new(shared, Arc::new(watched.kind().clone())))
    }

    /// How many informers there are that somebody holds.
    pub fn informers(&self) -> usize {
        let informers = self.0.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.values().filter(|informer| informer.strong_count() > 0).count()
    }

    pub(crate) fn held(&self) -> Vec<Arc<Shared>> {
        let informers = self.0.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.values().filter_map(Weak::upgrade).collect()
    }

    /// Ends all informers and handlers, and waits for them, at most `wait`. What is to be kept on disk is
    /// written there before, also of informers that nobody holds any more.
    pub async fn stop(&self, wait: Duration) {
        for informer in self.held() {
            informer.save().await;
        }
        self.0.tasks.clone().stop(wait).await;
    }

    fn part(
        &self,
        collection: &Collection,
        fields: &[Vec<String>],
        cut: &Cut,
        (stored, ceiling): (&Stored, Option<&Arc<Ceiling>>),
    ) -> Part {
        let progress = Arc::<Progress>::default();
        let all = Ask::List { limit: None, next: None, at: None };
        let saved = self
            .0
            .states
            .as_ref()
            .map(|states| Arc::new(states.place(format!("{} {cut:?}", all.target(collection)))));
        let upstream = Upstream {
            saved: saved.clone(),
            stored: stored.clone(),
            ceiling: ceiling.cloned(),
            way: self.0.way.clone(),
            collection: collection.clone(),
            progress: progress.clone(),
            random: Random::seeded(self.0.random.next_u64()),
        };
        let resource = Resource {
            name: collection.path(),
            prefix: Key::from("/"),
            layout: Layout {
                prefix_len: 1,
                scope: Scope::Namespaced,
                form: Form::Whole,
                fields: fields.to_vec(),
            },
            indexed: (0..fields.len()).collect(),
            pace: PACE,
            history: History::Own,
            room: self.0.room.clone(),
            early: self.0.early.clone(),
        };
        let cacher = Cacher::start(resource, Arc::new(upstream), self.0.way.clock.clone(), &self.0.tasks);
        let part_of_limit = ceiling.map_or(usize::MAX, |ceiling| ceiling.max_bytes / limits::WINDOW_PART);
        cacher.cap_window(Some(self.0.window_bytes_max.min(part_of_limit)));
        let ceiling = ceiling.cloned();
        Part { cacher, progress, namespace: collection.namespace.clone(), saved, ceiling }
    }
}

/// Saves the states of an informer every so often, until nobody holds it.
async fn keep(informer: Weak<Shared>, clock: Clock) {
    loop {
        clock.sleep(limits::SAVE_PERIOD).await;
        let Some(informer) = informer.upgrade() else { return };
        informer.save().await;
    }
}

fn projection(cut: &Cut) -> Result<Projection, Error> {
    let parse = |path: &String| path.parse().map_err(|error: PathError| refused(path, &error));
    let dropped = cut.dropped.iter().map(parse).collect::<Result<Vec<FieldPath>, _>>()?;
    let kept = cut.kept.as_ref().map(|kept| kept.iter().map(parse).collect::<Result<Vec<FieldPath>, _>>());
    let kept = kept.transpose()?;
    let all = || cut.dropped.iter().chain(cut.kept.iter().flatten()).cloned().collect::<Vec<_>>().join(", ");
    Projection::new(&dropped, kept.as_deref()).map_err(|error| refused(&all(), &error))
}

fn refused(path: &str, why: &impl std::fmt::Display) -> Error {
    Error::Path { path: path.into(), why: why.to_string() }
}

/// The path of a field as an index goes along it: members only.
fn members(path: &str) -> Result<Vec<String>, Error> {
    let parsed: FieldPath = path.parse().map_err(|error: PathError| refused(path, &error))?;
    let step = |step: &PathStep| match step {
        PathStep::Member(name) => Ok(name.clone()),
        PathStep::Element(_) | PathStep::Elements => Err(refused(path, &"an index has one value an object")),
    };
    parsed.steps().iter().map(step).collect()
}
