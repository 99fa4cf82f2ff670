//! Requests that run: how they give back what they hold, and leave.
//!
//! In: work that is done, bytes that are taken, clients that are gone. Out: the same, charged and given to
//! others. Never: who is next (`level.rs`).

use std::time::Duration;

use crate::dispatcher::{Dispatcher, FlowEffect, Phase, level_of};
use crate::door::Latency;
use crate::price::Moment;
use crate::request::{Run, State, Work};

/// How much longer than without load a request may take for more to be let in at the door.
const DOOR_STRETCH_MAX: f64 = 2.0;

impl Dispatcher {
    /// A watch sends its initial state: others may work meanwhile, its bytes are its reader's to take.
    pub(crate) fn begun(&mut self, id: u64, cpu: Duration, now: Moment, effects: &mut Vec<FlowEffect>) {
        if self.work_done(id, cpu, now) {
            self.pass_door(id);
            self.reseat(id);
            self.let_others(id, now, effects);
        }
    }

    pub(crate) fn answered(&mut self, id: u64, cpu: Duration, now: Moment, effects: &mut Vec<FlowEffect>) {
        let was_going = self.work_done(id, cpu, now);
        let Some(request) = self.requests.get(&id) else { return };
        match (&request.state, request.arrival.watch_bytes) {
            (State::Running(_), Some(_)) => {
                // From now on only its bytes as a watch count.
                self.end_run(id, now);
                self.requests.get_mut(&id).expect("it is there").state = State::Watching;
            }
            (State::Running(_), None) if was_going => {
                self.pass_door(id);
                self.reseat(id);
            }
            _ => return,
        }
        self.let_others(id, now, effects);
    }

    /// Nobody works on it any more, if somebody did.
    fn work_done(&mut self, id: u64, cpu: Duration, now: Moment) -> bool {
        let Some(request) = self.requests.get_mut(&id) else { return false };
        let State::Running(run) = &mut request.state else { return false };
        run.came_to(cpu);
        if run.work == Work::Done {
            return false;
        }
        let before = std::mem::replace(&mut run.work, Work::Done);
        if before != Work::Going {
            // It is answered for, though it did not go on: its time was up.
            run.away += now.saturating_sub(run.since);
        }
        // What somebody else took says nothing of this server.
        let took = now.saturating_sub(run.began).saturating_sub(run.away);
        let (price, access) = (request.arrival.price, request.arrival.access);
        let level = self.levels.get_mut(&request.arrival.flow.level).expect("its level is there");
        level.works_no_more(id, before);
        self.limiter.answered(access, price.cpu, took);
        true
    }

    pub(crate) fn given_back(&mut self, id: u64, bytes: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let State::Running(run) = &mut request.state else { return };
        let flow = &request.arrival.flow;
        let level = self.levels.get_mut(&flow.level).expect("its level is there");
        run.left = run.left.saturating_sub(bytes);
        let counted = run.counted.min(run.left);
        run.taken += self.seat.holding(run.counted, now.saturating_sub(run.last));
        level.holding.give(flow.hash, id, run.counted - counted, (run.last, now));
        (run.counted, run.last) = (counted, now);
        self.reseat(id);
        self.let_others(id, now, effects);
    }

    /// Its reader counts as one that has taken something.
    pub(crate) fn touch(&mut self, id: u64, now: Moment) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let State::Running(run) = &mut request.state else { return };
        let flow = &request.arrival.flow;
        let level = self.levels.get_mut(&flow.level).expect("its level is there");
        run.taken += self.seat.holding(run.counted, now.saturating_sub(run.last));
        level.holding.give(flow.hash, id, 0, (run.last, now));
        run.last = now;
    }

    pub(crate) fn left(&mut self, id: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        match request.state {
            State::AtDoor | State::Queued(_) | State::Parked(_) => {
                self.leave_waiting(id, now);
                let request = &self.requests[&id];
                let level = self.levels.get_mut(&request.arrival.flow.level).expect("its level is there");
                level.tally.cancelled += 1;
                *level.tally.of(&request.arrival.flow.schema).rejected.entry("cancelled").or_default() += 1;
            }
            State::Running(Run { work, .. }) => {
                let level = self.levels.get_mut(&request.arrival.flow.level).expect("its level is there");
                level.works_no_more(id, work);
                self.end_run(id, now);
            }
            State::Watching => {}
        }
        self.let_others(id, now, effects);
        self.forget(id, now);
    }

    /// What a request that ran holds is given back, and its queue charged for what it took beyond its price.
    fn end_run(&mut self, id: u64, now: Moment) {
        let request = self.requests.get_mut(&id).expect("it runs");
        let State::Running(run) = request.state else { return };
        let flow = &request.arrival.flow;
        let level = self.levels.get_mut(&flow.level).expect("its level is there");
        level.running -= 1;
        level.seats -= run.seats;
        level.holding.leave(flow.hash, id, run.counted, run.last);
        let tally = level.tally.of(&flow.schema);
        tally.running -= 1;
        tally.running_seats -= run.seats;
        let ran = now.saturating_sub(run.began).as_secs_f64();
        match request.arrival.watch_bytes {
            Some(_) => tally.watch_started.observe(ran),
            None => tally.ran.observe(ran),
        }
        if let (Some(queues), Some(queue)) = (&mut level.queues, run.queue) {
            let taken =
                run.taken.saturating_add(self.seat.holding(run.counted, now.saturating_sub(run.last)));
            queues.pass(now);
            queues.done(queue, run.paid, run.began);
            queues.pass(now);
            queues.settle(
                queue,
                (i128::from(taken) - i128::from(run.paid)).clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            );
        }
        let access = request.arrival.access;
        self.count(Phase::Running, access, -1, now);
        self.pass_door(id);
    }

    /// One whom the door let in is done: another may come.
    pub(crate) fn pass_door(&mut self, id: u64) {
        let request = self.requests.get_mut(&id).expect("it runs");
        let by_door = std::mem::take(&mut request.by_door);
        let level = &self.levels[&request.arrival.flow.level];
        let fine = level.waiting == 0 && self.limiter.stretch() <= DOOR_STRETCH_MAX;
        if let Some(door) = self.door.as_mut().filter(|_| by_door) {
            door.done(if fine { Latency::Fine } else { Latency::TooLong });
        }
    }

    /// As many seats as it holds now.
    pub(crate) fn reseat(&mut self, id: u64) {
        let request = self.requests.get_mut(&id).expect("it runs");
        let State::Running(run) = &mut request.state else { return };
        let level = self.levels.get_mut(&request.arrival.flow.level).expect("its level is there");
        let worked_on = u64::from(run.work == Work::Going);
        let seats = self.seat.seats(run.left).max(worked_on).min(run.seats);
        let tally = level.tally.of(&request.arrival.flow.schema);
        tally.running_seats -= run.seats - seats;
        level.seats -= run.seats - seats;
        run.seats = seats;
    }

    /// After a request has given something back: others of its level, and those at the door.
    pub(crate) fn let_others(&mut self, id: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let level = level_of(&self.requests, id);
        self.dispatch(&level, now, effects);
        self.open_door(now, effects);
    }

    /// Forgets a request that has given everything back; and its level, if it only waited for that.
    fn forget(&mut self, id: u64, now: Moment) {
        let request = self.requests.remove(&id).expect("it is there");
        let flow = &request.arrival.flow;
        if let Some(bytes) = request.arrival.watch_bytes {
            self.watches.end(flow.hash, bytes);
        }
        if self.levels.get(&flow.level).is_some_and(|level| level.quiescing && level.is_idle()) {
            self.levels.remove(&flow.level);
            self.rehome();
            self.share(now);
        }
    }
}
