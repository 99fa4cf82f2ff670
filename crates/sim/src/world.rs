//! What all actors of one run share: the machine, the life of the server that is going on, the model, the
//! trace, and the first thing that went wrong.
//!
//! Owner of all of it: the one thread that runs the simulation.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use forebay_backend::Change;
use forebay_embedded::faults::{Crash, Machine};
use forebay_rt::{Clock, Random, Shutdown};
use serde_json::Value;

use crate::history::History;
use crate::life::{EVENT_TTL, Life};
use crate::resources::{Collection, marker};
use crate::seen::Seen;
use crate::trace::Trace;

/// Wall time at the start of every run.
const BEGIN_MS: u64 = 1_700_000_000_000;

/// What the run is about now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients write and read, and everything that may fail fails.
    Chaos,
    /// Nothing fails any more: everybody has to catch up.
    Settling,
    Over,
}

/// A write that was sent and not answered yet.
#[derive(Clone, Debug)]
pub struct Pending {
    pub key: String,
    /// `None` deletes.
    pub marker: Option<u64>,
}

/// That the store went back.
#[derive(Clone, Copy, Debug)]
pub struct WentBack {
    at_ms: u64,
    life: u64,
    /// What has a higher one was made later.
    pub number: u64,
    /// Where it went back to.
    pub revision: u64,
}

/// How long caches may take to notice that the store went back. What is asked meanwhile is not judged.
const NOTICE_MS: u64 = 5_000;

/// See the module's doc.
pub struct World {
    pub clock: Clock,
    pub random: Random,
    pub phase: Cell<Phase>,
    /// Raised when the run settles.
    pub settle: Shutdown,
    pub history: RefCell<History>,
    pub seen: RefCell<Seen>,
    pub machine: RefCell<Machine>,
    // Polls of actors after which the server crashes.
    pub crash_at: Cell<Option<u64>>,
    pub polls: Cell<u64>,
    // Writers that still have something to write.
    pub writing: Cell<u64>,
    /// How long the store keeps history.
    pub history_ms: u64,
    // What there is of an earlier moment: the machine, and the revision then.
    backup: RefCell<Option<(Machine, u64)>>,
    // How often the store went back, when that was last, in which life, and the number then.
    epoch: Cell<u64>,
    went_back: Cell<Option<WentBack>>,
    life: RefCell<Option<Rc<Life>>>,
    lives: Cell<u64>,
    // number -> a write without an answer
    pending: RefCell<BTreeMap<u64, Pending>>,
    next: Cell<u64>,
    trace: RefCell<Trace>,
    failure: RefCell<Option<String>>,
}

impl World {
    pub fn new(seed: u64, print: bool) -> World {
        let random = Random::seeded(seed);
        // In some runs the store forgets before the caches do.
        let history_ms = if random.below(3) == 0 { 15_000 + random.below(60_000) } else { 300_000 };
        World {
            clock: Clock::steady(BEGIN_MS),
            random,
            phase: Cell::new(Phase::Chaos),
            settle: Shutdown::default(),
            history: RefCell::default(),
            seen: RefCell::default(),
            machine: RefCell::new(Machine::new()),
            crash_at: Cell::new(None),
            polls: Cell::new(0),
            writing: Cell::new(0),
            history_ms,
            backup: RefCell::new(None),
            epoch: Cell::new(0),
            went_back: Cell::new(None),
            life: RefCell::new(None),
            lives: Cell::new(0),
            pending: RefCell::default(),
            next: Cell::new(0),
            trace: RefCell::new(Trace::new(print)),
            failure: RefCell::new(None),
        }
    }

    /// A source of randomness of its own for one actor.
    pub fn fork(&self) -> Random {
        Random::seeded(self.random.next_u64())
    }

    pub fn now_ms(&self) -> u64 {
        self.clock.unix_ms() - BEGIN_MS
    }

    pub fn trace(&self, who: &str, what: fmt::Arguments<'_>) {
        self.trace.borrow_mut().line(self.now_ms(), who, what);
    }

    /// (hash, lines) of the trace.
    pub fn traced(&self) -> (u64, u64) {
        let trace = self.trace.borrow();
        (trace.hash(), trace.lines())
    }

    pub fn trace_end(&self) -> String {
        self.trace.borrow().last()
    }

    /// Something went wrong; the first is kept.
    pub fn fail(&self, who: &str, what: fmt::Arguments<'_>) {
        self.trace(who, format_args!("FAILED: {what}"));
        self.failure.borrow_mut().get_or_insert_with(|| format!("{who}: {what}"));
    }

    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    pub fn is_over(&self) -> bool {
        self.phase.get() == Phase::Over || self.failure.borrow().is_some()
    }

    pub fn is_settling(&self) -> bool {
        self.phase.get() == Phase::Settling
    }

    pub async fn pause(&self, span_ms: u64) {
        self.clock.sleep(Duration::from_millis(span_ms)).await;
    }

    /// The server, once it is up; `None` when the run is over.
    pub async fn connect(&self) -> Option<Rc<Life>> {
        loop {
            if self.is_over() {
                return None;
            }
            if let Some(life) = self.life() {
                return Some(life);
            }
            self.pause(20).await;
        }
    }

    pub fn life(&self) -> Option<Rc<Life>> {
        self.life.borrow().clone()
    }

    /// A number that no other object has.
    pub fn number(&self) -> u64 {
        self.next.set(self.next.get() + 1);
        self.next.get()
    }

    pub fn send(&self, number: u64, pending: Pending) {
        self.pending.borrow_mut().insert(number, pending);
    }

    /// The write was answered: it is known what became of it.
    pub fn resolve(&self, number: u64) {
        self.pending.borrow_mut().remove(&number);
    }

    /// Takes over what the store has shown. Everything must have been asked for, or be due.
    pub fn show(&self, changes: Vec<Change>) {
        let now_ms = self.now_ms();
        for change in changes {
            self.judge(&change, now_ms);
            let what = if change.value.is_some() { "put" } else { "del" };
            self.trace("store", format_args!("{what} {}@{}", change.key, change.revision));
            self.history.borrow_mut().push(&change, now_ms);
        }
    }

    fn judge(&self, change: &Change, now_ms: u64) {
        let key = change.key.as_str();
        let Some(resource) = Collection::of(key) else { return };
        let last = self.history.borrow().last();
        let expires = resource == Collection::Events && change.value.is_none();
        if change.revision.get() < last || (change.revision.get() == last && !expires) {
            self.fail("store", format_args!("{key}@{} after revision {last}", change.revision));
        }
        let put = change.value.as_ref().map(|value| serde_json::from_slice::<Value>(value));
        let wanted = match &put {
            Some(Ok(value)) => marker(value),
            Some(Err(error)) => return self.fail("store", format_args!("{key}: {error}")),
            None => None,
        };
        let pending = self.pending.borrow();
        let asked = pending.values().any(|pending| pending.key == key && pending.marker == wanted);
        let history = self.history.borrow();
        let entries = history.entries(resource).iter().rev();
        let put_ms = entries.filter(|entry| &*entry.key == key).map(|entry| entry.at_ms).next();
        let due =
            expires && put_ms.is_some_and(|put_ms| put_ms + EVENT_TTL.as_millis() as u64 <= now_ms + 30_000);
        drop(history);
        if !asked && !due {
            self.fail("store", format_args!("nobody asked for {key}@{} {wanted:?}", change.revision));
        }
        if !asked && due {
            self.seen.borrow_mut().expired_keys += 1;
        }
    }

    /// Lets the store's writer do what is waiting.
    pub async fn step(&self, life: &Life) {
        match life.step() {
            Ok(changes) => self.show(changes),
            Err(cause) => self.fail("store", format_args!("{cause}")),
        }
        let visible = life.visible().await;
        self.history.borrow_mut().set_visible(visible);
    }

    /// Which past the store has; none while not everybody can know.
    pub fn stamp(&self) -> Option<u64> {
        let settled = self.went_back.get().is_none_or(|back| self.now_ms() > back.at_ms + NOTICE_MS);
        settled.then_some(self.epoch.get())
    }

    /// Whether what was begun at `stamp` can be judged.
    pub fn holds(&self, stamp: Option<u64>) -> bool {
        stamp.is_some() && stamp == self.stamp()
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    pub fn went_back(&self) -> Option<WentBack> {
        self.went_back.get()
    }

    /// Whether the server of now has seen its store go back, and so has forgotten what was before.
    pub fn has_forgotten(&self) -> bool {
        let life = self.life().map(|life| life.number);
        self.went_back.get().is_some_and(|back| Some(back.life) == life)
    }

    /// Keeps what is on the disk now.
    pub fn back_up(&self, life: &Life) {
        if life.engine().failure().is_some() {
            return;
        }
        let machine = self.machine.borrow().crash(Crash::KeepAll);
        *self.backup.borrow_mut() = Some((machine, self.history.borrow().visible()));
    }

    /// Puts the store back to the last backup under the server's feet.
    pub async fn go_back(&self, life: &Life) {
        let Some((machine, revision)) = self.backup.borrow_mut().take() else { return };
        if revision >= self.history.borrow().visible() || life.failed.get() {
            return;
        }
        match life.go_back(&machine, &self.clock, self.history_ms, revision).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.fail("chaos", format_args!("the backup cannot be opened: {error}")),
        }
        *self.machine.borrow_mut() = machine;
        self.trace("chaos", format_args!("the store goes back to {revision}"));
        self.history.borrow_mut().go_back(revision);
        self.epoch.set(self.epoch.get() + 1);
        let back = WentBack { at_ms: self.now_ms(), life: life.number, number: self.next.get(), revision };
        self.went_back.set(Some(back));
        self.seen.borrow_mut().times_gone_back += 1;
    }

    /// The server and its machine go down, and the disk is left as `crash` leaves it.
    pub fn crash(&self, crash: Crash) {
        let Some(life) = self.life.borrow_mut().take() else { return };
        let after = self.machine.borrow().crash(crash);
        life.end();
        self.trace("chaos", format_args!("crash {crash:?}"));
        self.seen.borrow_mut().crashed(crash);
        *self.machine.borrow_mut() = after;
    }

    /// Starts the server on what the disk has, and holds that against everything that was ever said.
    pub async fn start(&self) {
        let machine = self.machine.borrow().clone();
        self.lives.set(self.lives.get() + 1);
        let begun = Life::begin(self.lives.get(), &machine, &self.clock, self.history_ms, &self.random).await;
        let (life, found, oldest) = match begun {
            Ok(begun) => begun,
            Err(error) => return self.fail("start", format_args!("{error}")),
        };
        let visible = life.visible().await;
        self.trace("start", format_args!("oldest {oldest} visible {visible}"));
        let last = self.history.borrow().last();
        let (old, new): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|change| change.revision.get() <= last);
        if let Some(lost) = self.compare(&old, oldest) {
            return self.fail("start", format_args!("what was shown is lost: {lost}"));
        }
        if visible < self.history.borrow().visible() {
            let before = self.history.borrow().visible();
            return self.fail("start", format_args!("the store is at {visible}, it has been at {before}"));
        }
        self.seen.borrow_mut().survived_unacknowledged += new.len() as u64;
        self.show(new);
        // What has not come by now never will.
        self.pending.borrow_mut().clear();
        self.history.borrow_mut().set_visible(visible);
        *self.life.borrow_mut() = Some(Rc::new(life));
    }

    /// What of the history after `oldest` is not as it was shown.
    fn compare(&self, found: &[Change], oldest: u64) -> Option<String> {
        let history = self.history.borrow();
        for resource in Collection::ALL {
            let shown = &history.entries(resource)[history.place_after(resource, oldest)..];
            let kept: Vec<_> =
                found.iter().filter(|change| Collection::of(change.key.as_str()) == Some(resource)).collect();
            for at in 0..shown.len().max(kept.len()) {
                let (was, is) = (shown.get(at), kept.get(at));
                let same = was.zip(is).is_some_and(|(was, is)| {
                    let value =
                        is.value.as_ref().and_then(|value| serde_json::from_slice::<Value>(value).ok());
                    was.revision == is.revision.get()
                        && *was.key == *is.key.as_str()
                        && was.current.as_deref() == value.as_ref()
                });
                if !same {
                    let was = was.map(|was| format!("{}@{}", was.key, was.revision));
                    let is = is.map(|is| format!("{}@{}", is.key, is.revision));
                    return Some(format!("{was:?} is {is:?} now"));
                }
            }
        }
        None
    }
}
