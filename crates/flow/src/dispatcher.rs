//! The machine: requests in, turns out.
//!
//! In: an [`FlowInput`] and what time it is. Out: [`FlowEffect`]s. Never: waits, reads a clock, does what it
//! says.
//!
//! Owned by one thread at a time. A step costs O(log n) of the requests that are there for each request that
//! it lets run. What is said of a request that is not there any more (it was refused, or has left) changes
//! nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::Attributes;

use crate::config::CATCH_ALL;
use crate::configuration::Configuration;
use crate::door::{Comeback, Door, Latency};
use crate::fair::Waiter;
use crate::histogram::Timed;
use crate::level::{Entry, Level, Turn};
use crate::limit::{Access, LimitBounds, Limiter};
use crate::limits::{ADJUST_APART, ADJUST_EVERY, QUEUED_RESUMES_MAX, WAITING_MAX};
use crate::matching::{Flow, Schemas};
use crate::price::{Moment, Seat, SeatTime, nanos};
use crate::rejection::{RejectReason, Rejection};
use crate::request::{Arrival, Awaited, Request, Run, State, Work};
use crate::tally::READ_WRITE_USE;
use crate::watches::{Open, Watches};

/// What a server says at its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    pub bounds: LimitBounds,
    /// For watches that are open.
    pub watch_bytes: u64,
    /// That do the work: in a second no more is done than so many seconds of CPU time.
    pub cores: u64,
    pub start: Opening,
}

/// Whether those who come back are let in one after another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    ByDoor,
    Open,
}

/// What happens.
#[derive(Debug)]
pub enum FlowInput {
    /// These are the objects now, all of them.
    Configured(Configuration),
    Arrived(Box<Arrival>),
    /// The work on a watch is at its reader's pace from now on, while it sends its initial state; or a
    /// request waits for others, and nobody works on it. It has taken so much CPU time by now, or will have.
    Begun {
        id: u64,
        cpu: Duration,
    },
    /// The work on it is done, with so much CPU time in all; a watch has sent its initial state. What it
    /// holds is its reader's to take.
    Answered {
        id: u64,
        cpu: Duration,
    },
    /// It waits for somebody else: nobody works on it until [`FlowInput::Resumed`].
    Paused {
        id: u64,
        awaited: Awaited,
    },
    /// What it waited for is there: [`FlowEffect::Run`] follows, now or later.
    Resumed {
        id: u64,
    },
    /// Its reader has taken so many bytes.
    GivenBack {
        id: u64,
        bytes: u64,
    },
    /// It is over, or its client is gone.
    Left {
        id: u64,
    },
    /// So much memory is left in the server.
    Memory {
        left: u64,
    },
    /// It is later.
    Tick,
}

/// What follows.
#[derive(Debug, PartialEq)]
pub enum FlowEffect {
    Run {
        id: u64,
    },
    Reject {
        id: u64,
        rejection: Box<Rejection>,
    },
    /// Its reader stands still and others need what it holds: its answer ends here, as a reset.
    /// [`FlowInput::Left`] follows.
    Cut {
        id: u64,
    },
}

/// Who of all that ask has a turn.
#[derive(Debug)]
pub struct Dispatcher {
    pub(crate) schemas: Schemas,
    // name -> level
    pub(crate) levels: BTreeMap<Arc<str>, Level>,
    // id -> request, from its arrival until it has left
    pub(crate) requests: HashMap<u64, Request>,
    // (until when it waits, id), those that wait
    deadlines: BTreeSet<(Moment, u64)>,
    pub(crate) limiter: Limiter,
    pub(crate) seat: Seat,
    /// Seats that are divided.
    pub(crate) total: u64,
    pub(crate) fair_fraction: f64,
    pub(crate) watches: Watches,
    cores: u64,
    pub(crate) door: Option<Door>,
    pub(crate) read_write: ReadWrite,
    pub(crate) adjusted: Moment,
    pub(crate) adjusted_early: Moment,
}

/// Reads and writes that wait and that run.
#[derive(Debug)]
pub(crate) struct ReadWrite {
    // [waiting, running][read, write]
    pub(crate) counts: [[u64; 2]; 2],
    pub(crate) uses: [[Timed; 2]; 2],
}

/// Which of the two.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    Waiting = 0,
    Running = 1,
}

impl Dispatcher {
    /// A machine with the built-in objects, until it is told what a store has.
    pub fn new(setup: Setup, now: Moment) -> Dispatcher {
        let limiter = Limiter::new(setup.bounds, setup.cores, now);
        let uses = || Timed::new(READ_WRITE_USE, now);
        let mut dispatcher = Dispatcher {
            schemas: Schemas::default(),
            levels: BTreeMap::new(),
            requests: HashMap::new(),
            deadlines: BTreeSet::new(),
            total: limiter.seats(),
            limiter,
            seat: Seat { bytes: 1 },
            fair_fraction: 0.0,
            watches: Watches::new(setup.watch_bytes),
            cores: setup.cores.max(1),
            door: (setup.start == Opening::ByDoor).then(|| Door::new(now)),
            read_write: ReadWrite { counts: [[0; 2]; 2], uses: [[uses(), uses()], [uses(), uses()]] },
            adjusted: now,
            adjusted_early: now,
        };
        dispatcher.configure(Configuration::built_in(), now);
        dispatcher
    }

    /// The flow of a request, to arrive with.
    pub fn flow(&self, asked: &Attributes) -> Flow {
        self.schemas.flow(asked)
    }

    /// The uid of a flow's level; empty where nobody has stored it.
    pub fn level_uid(&self, flow: &Flow) -> Arc<str> {
        self.levels.get(&flow.level).map(|level| level.config.uid.clone()).unwrap_or_default()
    }

    /// What a seat is.
    pub fn seat(&self) -> Seat {
        self.seat
    }

    /// Seats that are divided among the levels.
    pub fn seats(&self) -> u64 {
        self.total
    }

    /// What a flow keeps open.
    pub fn watches(&self, flow: &Flow) -> Open {
        self.watches.of(flow.hash)
    }

    /// By when a [`FlowInput::Tick`] is needed if nothing else comes.
    pub fn wakes_at(&self) -> Moment {
        let deadline = self.deadlines.first().map(|(until, _)| *until);
        let still = self.levels.values().filter_map(|level| level.holding.still_at());
        deadline.into_iter().chain(still).fold(self.adjusted + ADJUST_EVERY, Moment::min)
    }

    /// Takes one thing in, and says what follows from it and from the time that has passed.
    ///
    /// - `now`: not before that of the last step.
    pub fn step(&mut self, input: FlowInput, now: Moment) -> Vec<FlowEffect> {
        let mut effects = Vec::new();
        self.pass(now, &mut effects);
        match input {
            FlowInput::Configured(configuration) => self.configure(configuration, now),
            FlowInput::Arrived(arrival) => self.arrive(*arrival, now, &mut effects),
            FlowInput::Begun { id, cpu } => self.begun(id, cpu, now, &mut effects),
            FlowInput::Answered { id, cpu } => self.answered(id, cpu, now, &mut effects),
            FlowInput::Paused { id, awaited } => self.paused(id, awaited, now, &mut effects),
            FlowInput::Resumed { id } => self.resumed(id, now, &mut effects),
            FlowInput::GivenBack { id, bytes } => self.given_back(id, bytes, now, &mut effects),
            FlowInput::Left { id } => self.left(id, now, &mut effects),
            FlowInput::Memory { left } => self.memory(left, now, &mut effects),
            FlowInput::Tick => {}
        }
        effects
    }

    /// What follows from the time alone.
    fn pass(&mut self, now: Moment, effects: &mut Vec<FlowEffect>) {
        while let Some((_, id)) = self.deadlines.first().copied().filter(|(until, _)| *until <= now) {
            self.time_out(id, now, effects);
        }
        if self.limiter.tick(now) && self.limiter.seats() != self.total {
            self.total = self.limiter.seats();
            self.share(now);
            self.dispatch_all(now, effects);
        } else if now.saturating_sub(self.adjusted) >= ADJUST_EVERY {
            self.adjust(now);
            self.dispatch_all(now, effects);
        }
        let give_way = self.levels.values_mut().filter_map(|level| {
            let id = level.holding.gives_way(now)?;
            level.tally.gave_way += 1;
            Some(id)
        });
        let give_way: Vec<u64> = give_way.collect();
        for id in give_way {
            // It counts as one that goes on reading until it has left, so that it is not cut again.
            self.touch(id, now);
            effects.push(FlowEffect::Cut { id });
        }
        self.door = self.door.take().filter(|door| !door.is_over(now));
    }

    fn arrive(&mut self, mut arrival: Arrival, now: Moment, effects: &mut Vec<FlowEffect>) {
        if !self.levels.contains_key(&arrival.flow.level) {
            // It was told its flow before the level went.
            arrival.flow.level = CATCH_ALL.into();
        }
        let id = arrival.id;
        let until = now + arrival.wait_max;
        let seats = self.seat.seats(arrival.price.bytes).max(1);
        let request = Request { arrived: now, until, seats, state: State::AtDoor, by_door: false, arrival };
        let exempt = self.levels[&request.arrival.flow.level].is_exempt();
        if let Some(reason) = self.obstacle(&request.arrival, exempt) {
            effects.push(self.refuse(&request, reason, now));
            return;
        }
        if let Some(bytes) = request.arrival.watch_bytes {
            self.watches.open(request.arrival.flow.hash, bytes);
        }
        let comeback = request.arrival.comeback.filter(|_| !exempt);
        let work = self.seat.work(request.arrival.price);
        let before = self.requests.insert(id, request);
        assert!(before.is_none(), "two requests are called {id}");
        match (&mut self.door, comeback) {
            (Some(door), Some(comeback)) => match door.wait(id, comeback, work, now) {
                true => drop(self.deadlines.insert((until, id))),
                false => {
                    let waiting = door.waiting() as u64;
                    self.turn_away(id, RejectReason::DoorFull { waiting }, now, effects);
                }
            },
            _ => self.enter(id, now, effects),
        }
        self.open_door(now, effects);
    }

    /// What keeps a request from even waiting.
    fn obstacle(&self, arrival: &Arrival, exempt: bool) -> Option<RejectReason> {
        let flow = arrival.flow.hash;
        let watch_fits = |bytes| exempt || self.watches.fits(flow, bytes);
        if arrival.watch_bytes.is_some_and(|bytes| !watch_fits(bytes)) {
            return Some(RejectReason::Watches { open: self.watches.of(flow) });
        }
        let waiting = self.deadlines.len();
        (waiting >= WAITING_MAX && !exempt).then_some(RejectReason::ServerFull { waiting: waiting as u64 })
    }

    /// Lets those in at the door who may.
    pub(crate) fn open_door(&mut self, now: Moment, effects: &mut Vec<FlowEffect>) {
        while let Some(id) = self.door.as_mut().and_then(Door::admit) {
            let request = self.requests.get_mut(&id).expect("who waits at the door is there");
            request.by_door = true;
            self.deadlines.remove(&(request.until, id));
            self.enter(id, now, effects);
        }
    }

    /// A request comes to its level.
    fn enter(&mut self, id: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let request = self.requests.get_mut(&id).expect("who enters is there");
        let (arrival, seat) = (&request.arrival, self.seat);
        let level = self.levels.get_mut(&arrival.flow.level).expect("its level is there");
        let waiter = Waiter { id, work: seat.work(arrival.price) };
        let seats = request.seats;
        let longest = (arrival.comeback == Some(Comeback::Resume)).then_some(QUEUED_RESUMES_MAX);
        let entry = level.enter((arrival.flow.hash, longest), waiter, arrival.price.bytes, now);
        let tally = level.tally.of(&arrival.flow.schema);
        tally.seats.observe(seats as f64);
        match entry {
            Entry::Refused(reason) => self.turn_away(id, reason, now, effects),
            Entry::Runs => self.run(id, None, now, effects),
            Entry::Waits(place) => {
                tally.waiting += 1;
                tally.waiting_seats += seats;
                let access = arrival.access;
                request.state = State::Queued(place);
                level.waiting += 1;
                let length = level.queues.as_ref().map_or(0, |queues| queues.length(place.queue));
                level.tally.of(&arrival.flow.schema).queue_lengths.observe(length as f64);
                self.deadlines.insert((request.until, id));
                self.count(Phase::Waiting, access, 1, now);
                let level = level_of(&self.requests, id);
                self.dispatch(&level, now, effects);
            }
        }
    }

    /// Lets those of a level run whose turn it is.
    pub(crate) fn dispatch(&mut self, name: &Arc<str>, now: Moment, effects: &mut Vec<FlowEffect>) {
        loop {
            let Some(level) = self.levels.get_mut(name) else { return };
            let requests = &self.requests;
            let flow_of = |id| {
                let arrival = &requests[&id].arrival;
                (arrival.flow.hash, arrival.price.bytes)
            };
            match level.turn(flow_of, now) {
                Turn::Runs(Waiter { id, work }, queue) => self.run(id, Some((queue, work)), now, effects),
                Turn::Parks(id, place) => {
                    let request = self.requests.get_mut(&id).expect("who waits is there");
                    request.state = State::Parked(place);
                    level.tally.of(&request.arrival.flow.schema).no_room += 1;
                }
                Turn::GoesOn(id) => self.go_on(name, id, now, effects),
                Turn::Nobody => break,
            }
        }
        let wants_back = self.levels.get_mut(name).is_some_and(|level| {
            level.note(self.seat, now);
            level.wants_back()
        });
        if wants_back && now.saturating_sub(self.adjusted_early) >= ADJUST_APART {
            self.adjust_early(now);
        }
    }

    pub(crate) fn dispatch_all(&mut self, now: Moment, effects: &mut Vec<FlowEffect>) {
        let names: Vec<Arc<str>> = self.levels.keys().cloned().collect();
        names.iter().for_each(|name| self.dispatch(name, now, effects));
    }

    /// - `turn`: its queue, and what that was charged.
    fn run(&mut self, id: u64, turn: Option<(usize, SeatTime)>, now: Moment, effects: &mut Vec<FlowEffect>) {
        let request = self.requests.get_mut(&id).expect("who runs is there");
        let (arrival, seat) = (&request.arrival, self.seat);
        let (flow, access) = (&arrival.flow, arrival.access);
        let level = self.levels.get_mut(&flow.level).expect("its level is there");
        let seats = request.seats;
        let counted = level.holding.counted(arrival.price.bytes);
        let tally = level.tally.of(&flow.schema);
        let waited = !matches!(request.state, State::AtDoor);
        if waited {
            level.waiting -= 1;
            tally.waiting -= 1;
            tally.waiting_seats -= seats;
            self.deadlines.remove(&(request.until, id));
        }
        tally.waited_to_run.observe(now.saturating_sub(request.arrived).as_secs_f64());
        tally.running += 1;
        tally.dispatched += 1;
        tally.cpu = tally.cpu.saturating_add(nanos(arrival.price.cpu));
        tally.running_seats += seats;
        level.tally.dispatched += 1;
        level.running += 1;
        level.working += 1;
        level.seats += seats;
        level.holding.take(flow.hash, id, counted, now);
        level.slots.turn(now, seat.work(arrival.price), level.waiting);
        request.state = State::Running(Run {
            began: now,
            queue: turn.map(|(queue, _)| queue),
            paid: turn.map_or_else(|| seat.work(arrival.price), |(_, work)| work),
            taken: 0,
            cpu: 0,
            work: Work::Going,
            left: arrival.price.bytes,
            counted,
            aside: None,
            last: now,
            seats,
            away: Duration::ZERO,
            since: now,
        });
        level.note(seat, now);
        effects.push(FlowEffect::Run { id });
        if waited {
            self.count(Phase::Waiting, access, -1, now);
        }
        self.count(Phase::Running, access, 1, now);
        let working = self.levels.values().map(|level| level.working).sum();
        self.limiter.under_way(working);
    }

    fn time_out(&mut self, id: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        self.leave_waiting(id, now);
        let level = self.levels.get_mut(&self.requests[&id].arrival.flow.level).expect("its level is there");
        level.tally.timed_out += 1;
        let waiting = level.waiting;
        let request = &self.requests[&id];
        let waited = now.saturating_sub(request.arrived).as_secs_f64();
        level.tally.of(&request.arrival.flow.schema).waited_in_vain.observe(waited);
        self.turn_away(id, RejectReason::TimeOut { waiting }, now, effects);
    }

    /// Takes a request from where it waits.
    pub(crate) fn leave_waiting(&mut self, id: u64, now: Moment) {
        let request = &self.requests[&id];
        let flow = &request.arrival.flow;
        self.deadlines.remove(&(request.until, id));
        let level = self.levels.get_mut(&flow.level).expect("its level is there");
        let queues = level.queues.as_mut();
        match request.state {
            State::AtDoor => {
                if let Some(door) = &mut self.door {
                    door.leave(id);
                }
                return;
            }
            State::Queued(place) => drop(queues.and_then(|queues| queues.remove(place))),
            State::Parked(place) => {
                level.holding.unpark(flow.hash, place);
                queues.into_iter().for_each(|queues| queues.unpark(place.queue));
            }
            State::Running(_) | State::Watching => return,
        }
        level.waiting -= 1;
        let tally = level.tally.of(&flow.schema);
        tally.waiting -= 1;
        tally.waiting_seats -= request.seats;
        level.note(self.seat, now);
        let access = request.arrival.access;
        self.count(Phase::Waiting, access, -1, now);
    }

    /// Refuses a request that is there and holds nothing.
    pub(crate) fn turn_away(
        &mut self,
        id: u64,
        reason: RejectReason,
        now: Moment,
        effects: &mut Vec<FlowEffect>,
    ) {
        let request = self.requests.remove(&id).expect("who is refused is there");
        effects.push(self.refuse(&request, reason, now));
        if request.by_door
            && let Some(door) = &mut self.door
        {
            door.done(Latency::TooLong);
        }
        if let Some(bytes) = request.arrival.watch_bytes {
            self.watches.end(request.arrival.flow.hash, bytes);
        }
    }

    fn refuse(&mut self, request: &Request, reason: RejectReason, now: Moment) -> FlowEffect {
        let Arrival { id, ref flow, price, .. } = request.arrival;
        let level = self.levels.get_mut(&flow.level).expect("its level is there");
        level.tally.rejected += 1;
        *level.tally.of(&flow.schema).rejected.entry(reason.as_str()).or_default() += 1;
        let rejection = Rejection {
            flow: flow.clone(),
            level_uid: level.config.uid.clone(),
            price,
            work: self.seat.work(price),
            reason,
            retry_after: level.slots.allot(now, price.cpu, self.cores),
        };
        FlowEffect::Reject { id, rejection: Box::new(rejection) }
    }

    fn memory(&mut self, left: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let held = self.levels.values().map(|level| level.holding.held()).sum();
        self.limiter.memory(left, held);
        self.pools();
        self.dispatch_all(now, effects);
    }

    pub(crate) fn count(&mut self, phase: Phase, access: Access, by: i64, now: Moment) {
        let ReadWrite { counts, uses } = &mut self.read_write;
        let (phase_at, access_at) = (phase as usize, access as usize);
        let count = &mut counts[phase_at][access_at];
        *count = count.strict_add_signed(by);
        let whole = match phase {
            Phase::Waiting => WAITING_MAX as u64,
            Phase::Running => self.total,
        };
        uses[phase_at][access_at].set(*count, whole, now);
    }
}

pub(crate) fn level_of(requests: &HashMap<u64, Request>, id: u64) -> Arc<str> {
    requests[&id].arrival.flow.level.clone()
}
