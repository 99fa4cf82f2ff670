//! What is charged is given back, whatever the order of arriving, running, leaving and being configured
//! otherwise.

use std::collections::BTreeSet;
use std::time::Duration;

use forebay_apimachinery::attributes::About;
use forebay_apimachinery::{Attributes, Caller, Verb};
use forebay_flow::{
    Access, Arrival, Awaited, Comeback, Configuration, Details, DetailsShown, Dispatcher, Flow, FlowEffect,
    FlowInput, FlowSchema, LimitBounds, MeasureKind, Moment, Opening, PointValue, Price, PriorityLevel,
    Setup, builtin, flow_hash,
};
use forebay_rt::Random;
use serde_json::json;

fn level(random: &Random, name: &str) -> PriorityLevel {
    let response = match random.below(4) {
        0 => json!({"type": "Reject"}),
        _ => {
            let queues = 1 + random.below(8);
            let queuing =
                json!({"queues": queues, "handSize": 1 + random.below(queues), "queueLengthLimit": 20});
            json!({"type": "Queue", "queuing": queuing})
        }
    };
    let limited = json!({
        "nominalConcurrencyShares": 1 + random.below(40), "lendablePercent": random.below(101), "limitResponse": response,
    });
    let object = json!({"metadata": {"name": name}, "spec": {"type": "Limited", "limited": limited}});
    PriorityLevel::read(&object).unwrap()
}

fn schema(name: &str) -> FlowSchema {
    let spec = json!({"priorityLevelConfiguration": {"name": name}, "rules": []});
    FlowSchema::read(&json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// What gauges say is there: by name, all series together.
fn gauges(machine: &Dispatcher, wanted: &[&str]) -> f64 {
    let measures = machine.metrics();
    let found = measures.iter().filter(|it| it.kind == MeasureKind::Gauge && wanted.contains(&it.name));
    let points = found.flat_map(|measure| &measure.points);
    points.map(|point| if let PointValue::Number(number) = point.value { number } else { 0.0 }).sum()
}

struct Soak {
    random: Random,
    machine: Dispatcher,
    now: Moment,
    waiting: BTreeSet<u64>,
    running: BTreeSet<u64>,
    next: u64,
}

impl Soak {
    fn new(seed: u64) -> Soak {
        let bounds = LimitBounds { seats_min: 4, seats_max: 40, bytes_max: 64 << 20 };
        let start = if seed.is_multiple_of(2) { Opening::ByDoor } else { Opening::Open };
        let machine =
            Dispatcher::new(Setup { bounds, watch_bytes: 4 << 20, cores: 2, start }, Duration::ZERO);
        let random = Random::seeded(seed);
        Soak {
            random,
            machine,
            now: Duration::ZERO,
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            next: 0,
        }
    }

    fn step(&mut self, input: FlowInput) {
        for effect in self.machine.step(input, self.now) {
            match effect {
                // One that was paused goes on.
                FlowEffect::Run { id } if self.running.contains(&id) => {}
                FlowEffect::Run { id } => assert!(self.waiting.remove(&id) && self.running.insert(id)),
                FlowEffect::Reject { id, rejection } => {
                    assert!(self.waiting.remove(&id));
                    assert!((1..=30).contains(&rejection.retry_after));
                }
                FlowEffect::Cut { id } => assert!(self.running.contains(&id)),
            }
        }
    }

    fn any(&self, of: &BTreeSet<u64>) -> Option<u64> {
        of.iter().nth(self.random.below(of.len() as u64) as usize).copied()
    }

    fn arrive(&mut self) {
        let id = self.next;
        self.next += 1;
        let level = ["a", "b", "c", "exempt", "catch-all", "gone"][self.random.below(6) as usize];
        let user = self.random.below(6).to_string();
        let flow = Flow {
            schema: level.into(),
            schema_uid: "".into(),
            level: level.into(),
            hash: flow_hash(level, &user),
            distinguisher: user.as_str().into(),
        };
        let bytes = [0, 4 << 10, 1 << 20, 1 << 30][self.random.below(4) as usize];
        let price = Price { bytes, cpu: Duration::from_micros(self.random.below(5_000)) };
        let access = if self.random.below(2) == 0 { Access::Read } else { Access::Write };
        let mut arrival = Arrival::new(id, flow, price, access, Details::default());
        arrival.wait_max = Duration::from_millis(self.random.below(3_000));
        arrival.watch_bytes = (self.random.below(4) == 0).then_some(50 << 10);
        let comebacks = [None, Some(Comeback::Resume), Some(Comeback::SmallList), Some(Comeback::WatchList)];
        arrival.comeback = comebacks[self.random.below(4) as usize];
        self.waiting.insert(id);
        self.step(FlowInput::Arrived(Box::new(arrival)));
    }

    fn turn(&mut self) {
        self.now += Duration::from_micros(self.random.below(8_000));
        let running = self.any(&self.running);
        match self.random.below(16) {
            0..=4 => self.arrive(),
            5 | 6 => running.into_iter().for_each(|id| {
                self.step(FlowInput::Answered { id, cpu: Duration::from_micros(700) });
            }),
            7 => running.into_iter().for_each(|id| {
                let bytes = self.random.below(2 << 20);
                self.step(FlowInput::GivenBack { id, bytes });
            }),
            8 | 9 => running.into_iter().for_each(|id| {
                self.leave(id);
            }),
            10 => self.any(&self.waiting).into_iter().for_each(|id| {
                self.leave(id);
            }),
            11 | 12 => running.into_iter().for_each(|id| {
                let awaited = if self.random.below(2) == 0 { Awaited::Other } else { Awaited::Store };
                self.step(FlowInput::Paused { id, awaited });
            }),
            13 | 14 => running.into_iter().for_each(|id| self.step(FlowInput::Resumed { id })),
            _ => match self.random.below(8) {
                0 => self.configure(),
                1 => self.step(FlowInput::Memory { left: self.random.below(256 << 20) }),
                _ => self.step(FlowInput::Tick),
            },
        }
    }

    /// It may be refused, or have its turn, by the time alone before it has left.
    fn leave(&mut self, id: u64) {
        self.step(FlowInput::Left { id });
        self.running.remove(&id);
        self.waiting.remove(&id);
    }

    fn configure(&mut self) {
        let names = ["a", "b", "c"].into_iter().filter(|_| self.random.below(3) > 0);
        let names: Vec<&str> = names.collect();
        let levels = names.iter().map(|name| level(&self.random, name)).collect();
        let schemas = names.iter().map(|name| schema(name)).collect();
        self.step(FlowInput::Configured(Configuration { schemas, levels }));
    }
}

#[test]
fn whatever_happens_all_is_given_back_in_the_end() {
    for seed in 0..60 {
        let mut soak = Soak::new(seed);
        soak.configure();
        (0..4_000).for_each(|_| soak.turn());
        assert!(soak.next > 1_000);
        for id in soak.running.clone().into_iter().chain(soak.waiting.clone()) {
            soak.leave(id);
        }
        // Those who got their turn by that.
        while let Some(id) = soak.running.first().copied() {
            soak.leave(id);
        }
        let left = gauges(
            &soak.machine,
            &[
                "apiserver_flowcontrol_current_inqueue_requests",
                "apiserver_flowcontrol_current_inqueue_seats",
                "apiserver_flowcontrol_current_executing_requests",
                "apiserver_flowcontrol_current_executing_seats",
                "forebay_flowcontrol_held_bytes",
                "forebay_flowcontrol_watches",
                "forebay_flowcontrol_watch_bytes",
                "forebay_flowcontrol_waiting_at_door",
            ],
        );
        assert_eq!(left, 0.0, "seed {seed}");
        let requests = soak.machine.dump_requests(std::time::UNIX_EPOCH, DetailsShown::Yes);
        assert_eq!(requests.lines().count(), 1, "seed {seed}: {requests}");
        let levels = soak.machine.dump_priority_levels();
        assert!(levels.lines().skip(1).all(|line| line.contains("true,")), "seed {seed}: {levels}");
    }
}

#[test]
fn a_schema_whose_level_is_not_there_dangles_and_is_not_used() {
    let bounds = LimitBounds { seats_min: 4, seats_max: 40, bytes_max: 64 << 20 };
    let setup = Setup { bounds, watch_bytes: 1 << 20, cores: 2, start: Opening::Open };
    let mut machine = Dispatcher::new(setup, Duration::ZERO);
    let schemas = builtin::schema_objects().map(|(_, it)| FlowSchema::read(&it).unwrap()).collect();
    let levels = builtin::level_objects().map(|(_, it)| PriorityLevel::read(&it).unwrap());
    let levels = levels.filter(|level| &*level.name != "system").collect();
    let configuration = Configuration { schemas, levels };
    let conditions: Vec<_> = configuration.conditions().collect();
    let dangling: Vec<&str> = conditions
        .iter()
        .filter(|condition| condition.dangling)
        .map(|condition| &*condition.schema)
        .collect();
    assert_eq!((conditions.len(), dangling), (11, vec!["system-nodes"]));
    let groups = vec!["system:nodes".to_string(), "system:authenticated".to_string()];
    let node = Caller { name: "system:node:n".into(), groups, ..Caller::anonymous() };
    let asked = Attributes { caller: &node, verb: &Verb::Get, about: About::Path("/x") };
    assert_eq!(&*machine.flow(&asked).schema, "system-nodes", "as long as nothing is known");
    assert!(machine.step(FlowInput::Configured(configuration), Duration::ZERO).is_empty());
    assert_eq!(&*machine.flow(&asked).schema, "global-default");
}
