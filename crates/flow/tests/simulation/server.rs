//! A server as the machine sees it: cores that share their time among what runs, readers that take their
//! time, clients that obey.
//!
//! In: clients' requests. Out: what became of each, and when. The same from the same seed. Never: a real
//! clock.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use forebay_apimachinery::attributes::{About, ResourceAttributes};
use forebay_apimachinery::{Attributes, Caller, Verb};
use forebay_flow::{
    Access, Arrival, Comeback, Configuration, Details, Dispatcher, FlowEffect, FlowInput, FlowSchema,
    LimitBounds, Moment, Opening, Price, PriorityLevel, Rejection, Setup, builtin,
};

use crate::cores::Cores;

/// What readers do with an answer.
#[derive(Clone, Copy, Debug)]
pub enum Reader {
    Takes(Duration),
    StandsStill,
}

/// A client's request, again and again if it says so.
#[derive(Clone, Debug)]
pub struct Client {
    pub class: &'static str,
    pub caller: Caller,
    pub resource: ResourceAttributes<'static>,
    pub verb: Verb,
    pub price: Price,
    pub reader: Reader,
    pub watch_bytes: Option<u64>,
    pub comeback: Option<Comeback>,
    /// How long after an answer it asks again.
    pub again: Option<Duration>,
    /// Whether it comes back when it is told to; otherwise it does so after a time of its own, or never.
    pub obeys: bool,
    pub insists: Option<Duration>,
}

impl Client {
    pub fn new(class: &'static str, user: &str, groups: &[&str]) -> Client {
        let groups = groups.iter().map(|group| group.to_string()).collect();
        Client {
            class,
            caller: Caller { name: user.to_string(), groups, ..Caller::default() }.authenticated(),
            resource: ResourceAttributes { version: "v1", resource: "pods", ..ResourceAttributes::default() },
            verb: Verb::Get,
            price: Price { bytes: 4 << 10, cpu: Duration::from_micros(200) },
            reader: Reader::Takes(Duration::from_millis(1)),
            watch_bytes: None,
            comeback: None,
            again: None,
            obeys: true,
            insists: None,
        }
    }
}

/// What became of requests of one class.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// From when a client first asked to its answer.
    pub latencies: Vec<Duration>,
    pub answered_at: Vec<Moment>,
    pub refused: u64,
    pub arrivals: Vec<Moment>,
    pub cut: u64,
}

impl Outcome {
    pub fn p99(&self) -> Duration {
        let mut latencies = self.latencies.clone();
        latencies.sort_unstable();
        latencies[(latencies.len() * 99 / 100).min(latencies.len() - 1)]
    }
}

enum What {
    Asks(Box<(Client, Moment)>),
    Took(u64),
    Leaves(u64),
}

/// A machine with the built-in objects.
pub fn dispatcher(setup: Setup, now: Moment) -> Dispatcher {
    let mut dispatcher = Dispatcher::new(setup, now);
    let levels = builtin::level_objects().map(|(_, it)| PriorityLevel::read(&it).unwrap()).collect();
    let schemas = builtin::schema_objects().map(|(_, it)| FlowSchema::read(&it).unwrap()).collect();
    dispatcher.step(FlowInput::Configured(Configuration { schemas, levels }), now);
    dispatcher
}

/// The server and its clients.
pub struct Server {
    pub now: Moment,
    pub dispatcher: Dispatcher,
    pub outcomes: BTreeMap<&'static str, Outcome>,
    pub rejections: Vec<Rejection>,
    cores: Cores,
    events: BTreeMap<(Moment, u64), What>,
    clients: HashMap<u64, (Client, Moment)>,
    sequence: u64,
    /// Free memory, measured each second as what is left of this.
    memory: u64,
}

impl Server {
    pub fn new(cores: u64, thrash: f64, start: Opening) -> Server {
        let bounds = LimitBounds { seats_min: 4, seats_max: 4_096, bytes_max: 1 << 30 };
        Server::bounded(cores, thrash, start, bounds)
    }

    pub fn bounded(cores: u64, thrash: f64, start: Opening, bounds: LimitBounds) -> Server {
        let setup = Setup { bounds, watch_bytes: 512 << 20, cores, start };
        let dispatcher = dispatcher(setup, Duration::ZERO);
        let cores = Cores::new(cores, thrash, Duration::ZERO);
        Server {
            now: Duration::ZERO,
            dispatcher,
            outcomes: BTreeMap::new(),
            rejections: Vec::new(),
            cores,
            events: BTreeMap::new(),
            clients: HashMap::new(),
            sequence: 0,
            memory: 2 << 30,
        }
    }

    /// A client asks at that time.
    pub fn asks(&mut self, client: Client, at: Moment) {
        self.event(at, What::Asks(Box::new((client, at))));
    }

    fn event(&mut self, at: Moment, what: What) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), what);
    }

    /// All that happens until then.
    pub fn run_until(&mut self, end: Moment) {
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let next = [event, self.cores.next_end(), Some(self.dispatcher.wakes_at().max(self.now))];
            let next = next.into_iter().flatten().min().expect("it wakes at some time");
            if next > end {
                break;
            }
            let memory = next.as_secs() > self.now.as_secs();
            self.now = next;
            self.cores.advance(next);
            if memory {
                self.step(FlowInput::Memory { left: self.memory });
            }
            self.end_work();
            if event == Some(next) {
                let (_, what) = self.events.pop_first().expect("it was there");
                self.happens(what);
            } else {
                self.step(FlowInput::Tick);
            }
        }
        self.now = end;
        self.cores.advance(end);
    }

    fn end_work(&mut self) {
        while let Some(id) = self.cores.done() {
            self.answered(id);
        }
    }

    fn answered(&mut self, id: u64) {
        let (client, first) = self.clients[&id].clone();
        let outcome = self.outcomes.entry(client.class).or_default();
        outcome.latencies.push(self.now - first);
        outcome.answered_at.push(self.now);
        self.step(FlowInput::Answered { id, cpu: client.price.cpu });
        if client.watch_bytes.is_none()
            && let Reader::Takes(time) = client.reader
        {
            self.event(self.now + time, What::Took(id));
        }
    }

    fn happens(&mut self, what: What) {
        match what {
            What::Asks(asked) => self.arrives(*asked),
            What::Took(id) => {
                let bytes = self.clients[&id].0.price.bytes;
                self.step(FlowInput::GivenBack { id, bytes });
                self.event(self.now, What::Leaves(id));
            }
            What::Leaves(id) => self.leaves(id),
        }
    }

    fn leaves(&mut self, id: u64) {
        self.step(FlowInput::Left { id });
        let (client, _) = self.clients.remove(&id).expect("it was there");
        if let Some(again) = client.again {
            self.asks(client, self.now + again);
        }
    }

    fn arrives(&mut self, (client, first): (Client, Moment)) {
        self.sequence += 1;
        let id = self.sequence;
        let about = About::Resource(client.resource);
        let asked = Attributes { caller: &client.caller, verb: &client.verb, about };
        let access = if client.verb.is_read_only() { Access::Read } else { Access::Write };
        let details = Details::of(&asked, "/api/v1");
        let mut arrival = Arrival::new(id, self.dispatcher.flow(&asked), client.price, access, details);
        (arrival.watch_bytes, arrival.comeback) = (client.watch_bytes, client.comeback);
        self.outcomes.entry(client.class).or_default().arrivals.push(self.now);
        self.clients.insert(id, (client, first));
        self.step(FlowInput::Arrived(Box::new(arrival)));
    }

    fn step(&mut self, input: FlowInput) {
        for effect in self.dispatcher.step(input, self.now) {
            match effect {
                FlowEffect::Run { id } => {
                    let cpu = self.clients[&id].0.price.cpu;
                    self.cores.begin(id, cpu);
                }
                FlowEffect::Reject { id, rejection } => {
                    let (client, first) = self.clients.remove(&id).expect("it was there");
                    self.outcomes.entry(client.class).or_default().refused += 1;
                    let wait = match (client.obeys, client.insists) {
                        (true, _) => Some(Duration::from_secs(rejection.retry_after)),
                        (false, insists) => insists,
                    };
                    if let Some(wait) = wait {
                        let at = self.now + wait;
                        self.event(at, What::Asks(Box::new((client, first))));
                    }
                    self.rejections.push(*rejection);
                }
                FlowEffect::Cut { id } => {
                    self.outcomes.entry(self.clients[&id].0.class).or_default().cut += 1;
                    self.event(self.now, What::Leaves(id));
                }
            }
        }
    }
}
