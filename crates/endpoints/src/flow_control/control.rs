//! Whose turn it is, as requests wait for it: the state machine of `flow` behind a lock, with a clock and
//! wakers.
//!
//! In: what a request asks and what it will cost, how far its answer is, what is configured, how much memory
//! is free. Out: a [`Ticket`] once it is its turn, or a [`Rejection`] that says why not. Never: decides by
//! itself; the machine does. It divides what the [rooms](crate::rooms) have: they bind those who are exempt
//! from turns, too.
//!
//! Owner of the machine: whoever holds the lock, for one step. What follows for others is done when it is
//! given back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use forebay_apimachinery::Attributes;
use forebay_flow::limits::WAIT_MAX;
use forebay_flow::{
    Access, Arrival, Configuration, Details, Dispatcher, Flow, FlowEffect, FlowInput, LimitBounds, Measure,
    Opening, Rejection, Setup,
};
use forebay_rt::{Clock, Instant, Tasks};
use forebay_transport::{LetGoFor, Stalls};
use tokio::sync::{Notify, oneshot, watch};

use super::explain::Classified;
use super::price::Cost;
use super::ticket::Ticket;
use crate::config::ApiServerConfig;
use crate::limits::{LISTS_ROOM_BYTES, MEMORY_PERIOD, SEATS_MAX, SEATS_MIN, WATCHES_POOL_BYTES};
use crate::rooms::Rooms;

/// What a request waits for until it is its turn.
type Turn = Result<(), Box<Rejection>>;

/// Turns for all requests. Cheap to clone.
#[derive(Clone)]
pub struct FlowControl(pub(super) Arc<Shared>);

pub(super) struct Shared {
    clock: Clock,
    start: Instant,
    pub(super) began: SystemTime,
    /// Longest wait for a turn.
    wait_max: Duration,
    machine: Mutex<Machine>,
    /// The machine wants to be woken sooner than was told.
    sooner: Notify,
}

pub(super) struct Machine {
    pub(super) dispatcher: Dispatcher,
    next: u64,
    // id -> who waits; as many as the machine lets wait
    pub(super) waiting: HashMap<u64, oneshot::Sender<Turn>>,
    // id -> its answer, of those that are read; as many as there are streams
    pub(super) readers: HashMap<u64, Weak<dyn Stalls>>,
    wakes_at: Duration,
}

impl FlowControl {
    /// Turns within the bounds of the configuration; those who come first come in one after another.
    pub fn new(config: &ApiServerConfig, clock: Clock) -> FlowControl {
        let limits = [config.max_requests_inflight, config.max_mutating_requests_inflight];
        // Where one of them is no limit, both together are none.
        let both = limits[0].zip(limits[1]).map(|(reads, writes)| (reads + writes) as u64);
        let seats_max = both.unwrap_or(SEATS_MAX).max(1);
        let watch_bytes =
            config.memory.limit.map_or(WATCHES_POOL_BYTES, |limit| WATCHES_POOL_BYTES.min(limit / 4));
        let bounds = LimitBounds {
            seats_min: SEATS_MIN.min(seats_max),
            seats_max,
            bytes_max: LISTS_ROOM_BYTES as u64,
        };
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let setup = Setup { bounds, watch_bytes, cores, start: Opening::ByDoor };
        let machine = Machine {
            dispatcher: Dispatcher::new(setup, Duration::ZERO),
            next: 0,
            waiting: HashMap::new(),
            readers: HashMap::new(),
            wakes_at: Duration::ZERO,
        };
        FlowControl(Arc::new(Shared {
            start: clock.now(),
            began: SystemTime::UNIX_EPOCH + Duration::from_millis(clock.unix_ms()),
            wait_max: WAIT_MAX.min(config.request_timeout / 4),
            clock,
            machine: Mutex::new(machine),
            sooner: Notify::new(),
        }))
    }

    /// The flow that a request is in, and its level's uid.
    pub fn classify(&self, asked: &Attributes<'_>) -> Classified {
        let machine = self.machine();
        let flow = machine.dispatcher.flow(asked);
        let level_uid = machine.dispatcher.level_uid(&flow);
        Classified { flow, level_uid }
    }

    /// Waits for a turn. Cancel-safe: whoever leaves while it waits gives its place up.
    ///
    /// # Errors
    /// Why it has none.
    pub async fn turn(
        &self,
        flow: &Flow,
        cost: Cost,
        asked: &Attributes<'_>,
        path: &str,
    ) -> Result<Arc<Ticket>, Box<Rejection>> {
        let access = if asked.verb.is_read_only() { Access::Read } else { Access::Write };
        let (mut ticket, turn) = self.arrive(flow.clone(), cost, access, Details::of(asked, path));
        match turn {
            Ok(decided) => decided?,
            // The machine refuses whom it lets wait no longer; it does not go before its requests do.
            Err(wait) => {
                let since = self.0.clock.now();
                wait.await.unwrap_or(Ok(()))?;
                ticket.waited = self.0.clock.now() - since;
            }
        }
        Ok(Arc::new(ticket))
    }

    fn arrive(
        &self,
        flow: Flow,
        Cost { price, watch_bytes, comeback }: Cost,
        access: Access,
        details: Details,
    ) -> (Ticket, Result<Turn, oneshot::Receiver<Turn>>) {
        let mut machine = self.machine();
        let id = machine.next;
        machine.next += 1;
        let mut arrival = Arrival::new(id, flow, price, access, details);
        (arrival.watch_bytes, arrival.comeback, arrival.wait_max) = (watch_bytes, comeback, self.0.wait_max);
        let mut effects = self.step(&mut machine, FlowInput::Arrived(Box::new(arrival)));
        let own = effects.iter().position(|effect| id_of(effect) == Some(id));
        let turn = match own.map(|at| effects.swap_remove(at)) {
            Some(FlowEffect::Reject { rejection, .. }) => Ok(Err(rejection)),
            Some(_) => Ok(Ok(())),
            None => {
                let (turn, wait) = oneshot::channel();
                machine.waiting.insert(id, turn);
                Err(wait)
            }
        };
        self.give_back(machine, effects);
        (Ticket::new(self.clone(), id, price), turn)
    }

    /// Waits until a request that was paused has a turn again: as a rule it has at once. Cancel-safe: a place
    /// that is not waited for any more goes with the ticket.
    pub(super) async fn resume(&self, id: u64) {
        let wait = {
            let mut machine = self.machine();
            let effects = self.step(&mut machine, FlowInput::Resumed { id });
            let wait = machine.dispatcher.is_returning(id).then(|| {
                let (turn, wait) = oneshot::channel();
                machine.waiting.insert(id, turn);
                wait
            });
            self.give_back(machine, effects);
            wait
        };
        if let Some(wait) = wait {
            // Who comes back is not refused.
            let _turn = wait.await;
        }
    }

    /// Tells the machine something, and does what follows.
    pub(super) fn tell(&self, inputs: impl IntoIterator<Item = FlowInput>) {
        let mut machine = self.machine();
        let effects = inputs.into_iter().flat_map(|input| self.step(&mut machine, input)).collect();
        self.give_back(machine, effects);
    }

    pub(super) fn leave(&self, id: u64) {
        let mut machine = self.machine();
        let _gone = (machine.waiting.remove(&id), machine.readers.remove(&id));
        let effects = self.step(&mut machine, FlowInput::Left { id });
        self.give_back(machine, effects);
    }

    pub(super) fn read_by(&self, id: u64, reader: Weak<dyn Stalls>) {
        self.machine().readers.insert(id, reader);
    }

    fn step(&self, machine: &mut Machine, input: FlowInput) -> Vec<FlowEffect> {
        let effects = machine.dispatcher.step(input, self.now());
        if machine.dispatcher.wakes_at() < machine.wakes_at {
            self.0.sooner.notify_one();
        }
        effects
    }

    /// Lets go of the machine, and does what it said.
    fn give_back(&self, mut machine: MutexGuard<'_, Machine>, effects: Vec<FlowEffect>) {
        let mut still = Vec::new();
        for effect in effects {
            let (id, turn) = match effect {
                FlowEffect::Run { id } => (id, Ok(())),
                FlowEffect::Reject { id, rejection } => (id, Err(rejection)),
                FlowEffect::Cut { id } => {
                    still.extend(machine.readers.get(&id).and_then(Weak::upgrade));
                    continue;
                }
            };
            if let Some(waiter) = machine.waiting.remove(&id) {
                // Who has gone meanwhile says so by its ticket.
                let _gone = waiter.send(turn);
            }
        }
        drop(machine);
        let since = self.0.clock.now().checked_sub(forebay_flow::limits::STILL);
        for reader in still {
            since.map(|since| reader.let_go(since, LetGoFor::Stalled));
        }
    }

    /// Begins to keep time, and to go by what is configured and by what the rooms have.
    pub fn start(&self, configuration: watch::Receiver<Configuration>, rooms: &Rooms, tasks: &Tasks) {
        tasks.spawn("flow control", self.clone().keep_time());
        tasks.spawn("flow control's rooms", self.clone().follow_rooms(rooms.clone()));
        tasks.spawn("flow control's configuration", self.clone().follow(configuration));
    }

    /// Goes by what is configured, for as long as it may change.
    async fn follow(self, mut configuration: watch::Receiver<Configuration>) {
        loop {
            let now = configuration.borrow_and_update().clone();
            self.tell([FlowInput::Configured(now)]);
            if configuration.changed().await.is_err() {
                return;
            }
        }
    }

    /// Wakes the machine when it wants to be, for ever.
    pub(super) async fn keep_time(self) {
        loop {
            let wakes_at = {
                let mut machine = self.machine();
                machine.wakes_at = machine.dispatcher.wakes_at();
                machine.wakes_at
            };
            tokio::select! {
                () = self.0.clock.sleep_until(self.0.start + wakes_at) => {}
                () = self.0.sooner.notified() => {}
            }
            self.tell([FlowInput::Tick]);
        }
    }

    /// Divides what the rooms have for lists, for ever.
    pub(super) async fn follow_rooms(self, rooms: Rooms) {
        loop {
            self.divide(&rooms);
            self.0.clock.sleep(MEMORY_PERIOD).await;
        }
    }

    fn divide(&self, rooms: &Rooms) {
        let totals = rooms.lists.totals();
        // The machine takes half of what is left beside what is held.
        let left = (2 * totals.limit).saturating_sub(totals.held) as u64;
        self.tell([FlowInput::Memory { left }]);
    }

    /// All that is counted.
    pub fn metrics(&self) -> Vec<Measure> {
        self.machine().dispatcher.metrics()
    }

    fn now(&self) -> Duration {
        self.0.clock.now().duration_since(self.0.start)
    }

    pub(super) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn id_of(effect: &FlowEffect) -> Option<u64> {
    match effect {
        FlowEffect::Run { id } | FlowEffect::Reject { id, .. } => Some(*id),
        FlowEffect::Cut { .. } => None,
    }
}
