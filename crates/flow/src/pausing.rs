//! Requests that wait for somebody else in the middle of their work, such as a webhook or the store: they
//! give their seat to others meanwhile, and take one again before they go on.
//!
//! In: who waits for whom, and who goes on. Out: turns. Never: refuses one that had its turn: it comes before
//! those that have not begun, the first that arrived first. What it holds in bytes it holds all the time, but
//! while somebody outside is waited for: that has a limit of its own, elsewhere.

use std::sync::Arc;

use crate::dispatcher::{Dispatcher, FlowEffect};
use crate::price::Moment;
use crate::request::{Awaited, State, Work};

impl Dispatcher {
    /// Nobody works on it for some time. It keeps its seat where enough of its level are at the store.
    pub(crate) fn paused(&mut self, id: u64, awaited: Awaited, now: Moment, effects: &mut Vec<FlowEffect>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let State::Running(run) = &mut request.state else { return };
        if run.work != Work::Going {
            return;
        }
        let level = self.levels.get_mut(&request.arrival.flow.level).expect("its level is there");
        run.work = match awaited {
            Awaited::Other => {
                run.taken += self.seat.holding(run.counted, now.saturating_sub(run.last));
                level.holding.set_aside(request.arrival.flow.hash, id, run.counted, run.last);
                (run.aside, run.counted, run.last) = (Some(run.counted), 0, now);
                Work::Paused
            }
            Awaited::Store if level.at_store >= level.at_store_max => return,
            Awaited::Store => {
                level.at_store += 1;
                Work::AtStore
            }
        };
        run.since = now;
        level.working -= 1;
        self.pass_door(id);
        self.reseat(id);
        self.let_others(id, now, effects);
    }

    /// It wants to go on, and does as soon as its level has a seat.
    pub(crate) fn resumed(&mut self, id: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let Some(request) = self.requests.get_mut(&id) else { return };
        let State::Running(run) = &mut request.state else { return };
        let name = request.arrival.flow.level.clone();
        let level = self.levels.get_mut(&name).expect("its level is there");
        match run.work {
            Work::Paused => {}
            Work::AtStore => level.at_store -= 1,
            Work::Going | Work::Returning | Work::Done => return,
        }
        run.work = Work::Returning;
        level.returning.insert(id);
        self.dispatch(&name, now, effects);
    }

    /// Whether it waits for a seat to go on.
    pub fn is_returning(&self, id: u64) -> bool {
        let state = self.requests.get(&id).map(|request| &request.state);
        matches!(state, Some(State::Running(run)) if run.work == Work::Returning)
    }

    /// It has its seat again.
    pub(crate) fn go_on(&mut self, name: &Arc<str>, id: u64, now: Moment, effects: &mut Vec<FlowEffect>) {
        let request = self.requests.get_mut(&id).expect("who returns is there");
        let State::Running(run) = &mut request.state else { return };
        run.work = Work::Going;
        run.away += now.saturating_sub(run.since);
        let level = self.levels.get_mut(name).expect("its level is there");
        if let Some(aside) = run.aside.take() {
            let again = aside.min(run.left);
            level.holding.take_again(request.arrival.flow.hash, id, again, (run.last, now));
            (run.counted, run.last) = (again, now);
        }
        level.working += 1;
        let seats = run.seats.max(1);
        let tally = level.tally.of(&request.arrival.flow.schema);
        tally.running_seats += seats - run.seats;
        level.seats += seats - run.seats;
        run.seats = seats;
        level.note(self.seat, now);
        effects.push(FlowEffect::Run { id });
        let working = self.levels.values().map(|level| level.working).sum();
        self.limiter.under_way(working);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::limit::{Access, LimitBounds};
    use crate::limits::AT_STORE_MAX;
    use crate::matching::Flow;
    use crate::price::Price;
    use crate::{Arrival, Details, FlowInput, Opening, Setup, flow_hash};

    use super::*;

    const LEVEL: &str = "global-default";

    /// A machine in which one request of the level is worked on at a time.
    fn one_seat() -> Dispatcher {
        let bounds = LimitBounds { seats_min: 1, seats_max: 1, bytes_max: 64 << 20 };
        Dispatcher::new(
            Setup { bounds, cores: 1, watch_bytes: 1 << 20, start: Opening::Open },
            Duration::ZERO,
        )
    }

    fn arrive(machine: &mut Dispatcher, id: u64, now: Duration) -> Vec<FlowEffect> {
        let flow = Flow {
            schema: LEVEL.into(),
            schema_uid: "".into(),
            level: LEVEL.into(),
            hash: flow_hash(LEVEL, "u"),
            distinguisher: "u".into(),
        };
        let price = Price { bytes: 100, cpu: Duration::from_micros(100) };
        let arrival = Arrival::new(id, flow, price, Access::Write, Details::default());
        machine.step(FlowInput::Arrived(Box::new(arrival)), now)
    }

    fn run(id: u64) -> Vec<FlowEffect> {
        vec![FlowEffect::Run { id }]
    }

    fn away(id: u64) -> FlowInput {
        FlowInput::Paused { id, awaited: Awaited::Other }
    }

    /// A request of some megabytes, of a flow of its own.
    fn arrive_large(machine: &mut Dispatcher, id: u64, bytes: u64, now: Duration) -> Vec<FlowEffect> {
        let flow = Flow {
            schema: LEVEL.into(),
            schema_uid: "".into(),
            level: LEVEL.into(),
            hash: flow_hash(LEVEL, &id.to_string()),
            distinguisher: id.to_string().into(),
        };
        let price = Price { bytes, cpu: Duration::from_micros(100) };
        let arrival = Arrival::new(id, flow, price, Access::Write, Details::default());
        machine.step(FlowInput::Arrived(Box::new(arrival)), now)
    }

    fn at_store(id: u64) -> FlowInput {
        FlowInput::Paused { id, awaited: Awaited::Store }
    }

    #[test]
    fn who_waits_for_somebody_else_leaves_its_seat_to_others_and_comes_before_those_that_have_not_begun() {
        let (mut machine, now) = (one_seat(), Duration::from_millis(1));
        assert_eq!(arrive(&mut machine, 0, now), run(0));
        assert_eq!(arrive(&mut machine, 1, now), []);
        assert_eq!(arrive(&mut machine, 2, now), []);
        assert_eq!(machine.step(away(0), now), run(1));
        assert_eq!(machine.step(away(1), now), run(2));
        assert_eq!(arrive(&mut machine, 3, now), []);
        // Both answers came, the later one first.
        assert_eq!(machine.step(FlowInput::Resumed { id: 1 }, now), []);
        assert_eq!(machine.step(FlowInput::Resumed { id: 0 }, now), []);
        let done = |id| FlowInput::Answered { id, cpu: Duration::ZERO };
        assert_eq!(machine.step(done(2), now), run(0));
        assert_eq!(machine.step(done(0), now), run(1));
        assert_eq!(machine.step(done(1), now), run(3));
        assert_eq!(machine.step(FlowInput::Left { id: 3 }, now), []);
        let level = &machine.levels[LEVEL];
        assert_eq!((level.working, level.waiting, level.returning.len()), (0, 0, 0));
    }

    #[test]
    fn so_many_of_a_level_are_stored_without_a_seat_and_one_more_keeps_its_own() {
        let (mut machine, now) = (one_seat(), Duration::from_millis(1));
        let most = machine.levels[LEVEL].at_store_max;
        assert!((2..AT_STORE_MAX / 2).contains(&most), "{most}");
        for id in 0..most {
            assert_eq!(arrive(&mut machine, id, now), run(id));
            assert_eq!(machine.step(at_store(id), now), []);
        }
        // This one keeps its seat until it is answered, and others wait for that.
        assert_eq!(arrive(&mut machine, most, now), run(most));
        assert_eq!(machine.step(at_store(most), now), []);
        assert_eq!(arrive(&mut machine, most + 1, now), []);
        assert_eq!(machine.step(FlowInput::Resumed { id: 0 }, now), []);
        assert_eq!(machine.step(FlowInput::Resumed { id: most }, now), []);
        let done = |id| FlowInput::Answered { id, cpu: Duration::ZERO };
        assert_eq!(machine.step(done(most), now), run(0));
        assert_eq!(machine.step(done(0), now), run(most + 1));
        // There is a place at the store again; who leaves gives its own back.
        assert_eq!(machine.step(at_store(most + 1), now), []);
        assert_eq!(machine.levels[LEVEL].at_store, most);
        (0..=most + 1).for_each(|id| drop(machine.step(FlowInput::Left { id }, now)));
        let level = &machine.levels[LEVEL];
        assert_eq!((level.at_store, level.working, level.returning.len()), (0, 0, 0));
    }

    #[test]
    fn what_waits_for_somebody_else_holds_no_bytes_of_its_level_until_it_goes_on() {
        let (mut machine, now) = (one_seat(), Duration::from_millis(1));
        let pool = machine.levels[LEVEL].holding.pool();
        // Four of them would be all that the level has, many times over.
        for id in 0..100 {
            assert_eq!(arrive_large(&mut machine, id, pool, now), run(id));
            assert_eq!(machine.step(away(id), now), []);
        }
        assert_eq!(machine.levels[LEVEL].holding.held(), 0);
        let last = FlowInput::Resumed { id: 99 };
        assert_eq!(machine.step(last, now), run(99));
        assert_eq!(machine.levels[LEVEL].holding.held(), pool / crate::limits::WIDEST_PART);
        (0..100).for_each(|id| drop(machine.step(FlowInput::Left { id }, now)));
        let level = &machine.levels[LEVEL];
        assert_eq!((level.holding.held(), level.running), (0, 0));
    }

    #[test]
    fn who_leaves_while_it_is_away_or_comes_back_leaves_nothing_behind() {
        let (mut machine, now) = (one_seat(), Duration::from_millis(1));
        for id in 0..3 {
            arrive(&mut machine, id, now);
            machine.step(away(id), now);
        }
        arrive(&mut machine, 3, now);
        machine.step(FlowInput::Resumed { id: 0 }, now);
        assert_eq!(machine.levels[LEVEL].returning.len(), 1);
        for id in 0..4 {
            assert_eq!(machine.step(FlowInput::Left { id }, now), []);
        }
        let level = &machine.levels[LEVEL];
        assert_eq!((level.working, level.running, level.seats, level.returning.len()), (0, 0, 0, 0));
        assert!(machine.requests.is_empty());
        assert_eq!(arrive(&mut machine, 9, now), run(9));
    }

    #[test]
    fn how_long_somebody_else_took_says_nothing_of_this_server() {
        let mut machine = one_seat();
        let mut now = Duration::from_millis(1);
        for id in 0..2_000 {
            arrive(&mut machine, id, now);
            machine.step(away(id), now);
            now += Duration::from_secs(if id < 1_000 { 0 } else { 10 });
            machine.step(FlowInput::Resumed { id }, now);
            now += Duration::from_millis(1);
            machine.step(FlowInput::Answered { id, cpu: Duration::from_micros(100) }, now);
            machine.step(FlowInput::Left { id }, now);
        }
        assert!(machine.limiter.stretch() < 1.1, "{}", machine.limiter.stretch());
    }
}
