//! One life of the server, from a start on what the disk holds to a crash.
//!
//! Owns the engine, its writer, the registry, the HTTP server and their tasks. In: a machine. Out: a registry
//! for clients, batches of the writer when it is told to go on. Ends at once: whoever waits for an answer
//! then gets none.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::Revision;
use forebay_backend::{Backend, Change, Feed, FeedStep};
use forebay_embedded::faults::Machine;
use forebay_embedded::{Engine, OpenError, Options, Stepper};
use forebay_registry::{Config, Registry};
use forebay_rt::{Clock, CutOnDrop, Random, Shutdown, Tasks};
use forebay_watchcache::EarlyReaders;
use forebay_watchcache::limits::Pace;

use crate::network::Network;
use crate::store::FaultyStore;

/// How long objects that expire are kept.
pub const EVENT_TTL: Duration = Duration::from_secs(40);

/// Objects are put at rest as soon as nobody has touched them for a moment.
const PACE: Pace = Pace { cool_ms: 300, late_ms: 2_000, period: Duration::from_millis(100), recent: 20 };

/// See the module's doc.
pub struct Life {
    /// Which one of this run it is.
    pub number: u64,
    pub registry: Registry,
    pub store: Arc<FaultyStore>,
    pub network: Network,
    pub ended: Shutdown,
    stepper: RefCell<Option<Stepper>>,
    // Every change of the whole store.
    audit: RefCell<Feed>,
    // Dropped, it ends the server's tasks.
    cut: RefCell<Option<CutOnDrop>>,
    // Whether it has noticed that its disk has failed.
    pub failed: Cell<bool>,
}

impl Life {
    /// Opens the store that is on `machine` and begins to fill the caches. Also returns the store's history,
    /// oldest first, and the revision after which that begins.
    pub async fn begin(
        number: u64,
        machine: &Machine,
        clock: &Clock,
        history_ms: u64,
        random: &Random,
    ) -> Result<(Life, Vec<Change>, u64), OpenError> {
        let Opened { engine, stepper, audit, oldest } = open(machine, clock, history_ms).await?;
        let tasks = Tasks::new();
        let store = FaultyStore::new(engine.clone(), clock.clone(), Random::seeded(random.next_u64()));
        let store = Arc::new(store);
        let early = Arc::new(EarlyReaders::admitted());
        let config = Config { event_ttl: Some(EVENT_TTL), pace: PACE, early, ..Config::default() };
        let (fork, random) = (Random::seeded(random.next_u64()), Random::seeded(random.next_u64()));
        let registry = Registry::new(config, store.clone(), clock.clone(), random, tasks.clone());
        let network = Network::new(registry.clone(), tasks.clone(), fork);
        let life = Life {
            network,
            number,
            registry,
            store,
            ended: Shutdown::default(),
            stepper: RefCell::new(Some(stepper)),
            audit: RefCell::new(audit),
            cut: RefCell::new(Some(tasks.cut_on_drop())),
            failed: Cell::new(false),
        };
        let found = life.shown().map_err(failed)?;
        Ok((life, found, oldest))
    }

    /// The store is what is on `machine` from now on, and the server goes on. False, and nothing is changed,
    /// when that store would be past `revision` at once: nobody could tell that it went back.
    pub async fn go_back(
        &self,
        machine: &Machine,
        clock: &Clock,
        history_ms: u64,
        revision: u64,
    ) -> Result<bool, OpenError> {
        let Opened { engine, stepper, audit, .. } = open(machine, clock, history_ms).await?;
        if engine.barrier().await.map_or(0, Revision::get) != revision {
            return Ok(false);
        }
        self.store.replace(engine);
        *self.stepper.borrow_mut() = Some(stepper);
        *self.audit.borrow_mut() = audit;
        self.shown().map(|_| true).map_err(failed)
    }

    pub fn engine(&self) -> Arc<Engine> {
        self.store.engine()
    }

    /// One batch of the store's writer. Returns what it has shown.
    pub fn step(&self) -> Result<Vec<Change>, String> {
        if let Some(stepper) = self.stepper.borrow_mut().as_mut() {
            stepper.step();
        }
        let shown = self.shown();
        self.store.relay();
        shown
    }

    fn shown(&self) -> Result<Vec<Change>, String> {
        let (mut audit, mut changes) = (self.audit.borrow_mut(), Vec::new());
        loop {
            match audit.take(1000, &mut changes) {
                Ok(FeedStep::Idle) => return Ok(changes),
                Ok(FeedStep::Changes | FeedStep::Progress(_)) => {}
                Err(error) => return Err(format!("a feed of the whole store ended: {error}")),
            }
        }
    }

    /// The store's current revision.
    pub async fn visible(&self) -> u64 {
        self.engine().barrier().await.map_or(0, Revision::get)
    }

    /// From now on nobody gets an answer.
    pub fn end(&self) {
        self.ended.raise();
        self.cut.borrow_mut().take();
        self.stepper.borrow_mut().take();
    }
}

/// An engine without a thread, and every change of it.
struct Opened {
    engine: Arc<Engine>,
    stepper: Stepper,
    audit: Feed,
    oldest: u64,
}

async fn open(machine: &Machine, clock: &Clock, history_ms: u64) -> Result<Opened, OpenError> {
    let options = Options {
        clock: clock.clone(),
        history_ms,
        mark_every_ms: history_ms / 30,
        slack_bytes: 128 << 10,
        ..Options::default()
    };
    let (engine, mut stepper) = Engine::open_stepped(machine.disk(), options)?;
    stepper.step();
    let oldest = engine.oldest().await.unwrap_or(Revision::FIRST);
    let opening = Backend::feed(&*engine, "/", oldest);
    let step = async {
        tokio::task::yield_now().await;
        stepper.step();
    };
    let (audit, ()) = tokio::join!(opening, step);
    let audit = audit.map_err(|error| failed(error.to_string()))?;
    Ok(Opened { engine, stepper, audit, oldest: oldest.get() })
}

fn failed(cause: String) -> OpenError {
    OpenError::Failed { file: "the simulated disk".to_string(), cause }
}
