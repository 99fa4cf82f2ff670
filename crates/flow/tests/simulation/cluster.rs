//! Servers behind a balancer, and informers on them that go by client-go's rules; servers die and come back.
//!
//! In: prices, who dies and when. Out: each request and what was answered, when each informer had all, what
//! servers held. The same from the same seed. Never: a real clock.
//!
//! A request costs a server what its head does, until it is answered or its state begins, and then what it
//! takes to send the state, which is no more than shared with all others: as the edge does it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use forebay_apimachinery::attributes::{About, ResourceAttributes};
use forebay_apimachinery::{Attributes, Caller, Verb};
use forebay_client_go_rules::{Aftermath, Ask, Move, Reflector, WatchedEvent};
use forebay_flow::{
    Access, Arrival, Comeback, Details, Dispatcher, FlowEffect, FlowInput, LimitBounds, Moment, Opening,
    Price, Setup,
};
use forebay_rt::Random;

use crate::cores::Cores;
use crate::server::dispatcher;

/// From a client to a server.
const NETWORK: Duration = Duration::from_millis(1);
/// How long the balancer leads clients to a server that is gone.
const BALANCED: Duration = Duration::from_millis(500);
/// Of each request that runs beyond the cores, as in the other simulations.
const THRASH: f64 = 0.001;
/// What the edge has for answers that are read, and for watches with a connection each.
const ANSWERS_BYTES: u64 = 64 << 20;
const WATCHES_BYTES: u64 = 768 << 20;
const WATCH_BYTES: u64 = 32 << 10;
const REVISION: &str = "7";

/// What a server takes.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// Of a new connection: its TLS handshake.
    pub connection: Duration,
    /// Of each request, until it is answered.
    pub head: Duration,
    /// Of a state as a list or a watch-list.
    pub state: Price,
}

impl Costs {
    pub const NOTHING: Costs = Costs {
        connection: Duration::ZERO,
        head: Duration::ZERO,
        state: Price { bytes: 0, cpu: Duration::ZERO },
    };
}

/// Whether a server answers a watch from where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum History {
    Kept,
    Gone,
}

/// A request that came to a server, or to none.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub at: Moment,
    pub is_watch: bool,
    /// Whether a server has named the time at which it comes.
    pub is_slot: bool,
}

enum Happening {
    Next(usize, u64),
    Comes { client: usize, turn: u64, node: usize, life: u64 },
    Dies(usize),
    OutOfBalance(usize),
    Returns(usize),
}

enum Work {
    Handshake(usize, u64),
    Head(u64),
    State(u64),
}

struct Informer {
    caller: Caller,
    reflector: Reflector,
    asks: Option<Ask>,
    /// The server that it has a connection to, and that one's life.
    on: Option<(usize, u64)>,
    /// What was to happen to it in an earlier one does not any more.
    turn: u64,
    is_slot: bool,
    synced: Option<Moment>,
}

struct Node {
    dispatcher: Dispatcher,
    cores: Cores,
    work: HashMap<u64, Work>,
    // request -> who asks; until it has left
    requests: HashMap<u64, (usize, Price)>,
    is_up: bool,
    is_balanced: bool,
    life: u64,
    held: u64,
    watches: u64,
    peak: u64,
}

pub struct Cluster {
    pub now: Moment,
    pub asked: Vec<Asked>,
    pub refused: u64,
    /// States that were sent.
    pub states: u32,
    nodes: Vec<Node>,
    clients: Vec<Informer>,
    events: BTreeMap<(Moment, u64), Happening>,
    sequence: u64,
    random: Random,
    cores: u64,
    costs: Costs,
    history: History,
}

impl Cluster {
    /// - `cores`: of each server.
    pub fn new((servers, cores): (usize, u64), costs: Costs, history: History, seed: u64) -> Cluster {
        let nodes = (0..servers).map(|_| Node::new(cores, Opening::Open, Duration::ZERO, 0)).collect();
        Cluster {
            now: Duration::ZERO,
            asked: Vec::new(),
            refused: 0,
            states: 0,
            nodes,
            clients: Vec::new(),
            events: BTreeMap::new(),
            sequence: 0,
            random: Random::seeded(seed),
            cores,
            costs,
            history,
        }
    }

    /// An informer of `caller` begins, and knows nothing.
    pub fn begins(&mut self, caller: Caller, at: Moment) {
        let reflector = Reflector::new(at, Random::seeded(self.random.next_u64()));
        let informer =
            Informer { caller, reflector, asks: None, on: None, turn: 0, is_slot: false, synced: None };
        self.clients.push(informer);
        self.event(at, Happening::Next(self.clients.len() - 1, 0));
    }

    /// All informers begin again, and know nothing.
    pub fn anew(&mut self) {
        for client in 0..self.clients.len() {
            self.hangs_up(client);
            let random = Random::seeded(self.random.next_u64());
            let informer = &mut self.clients[client];
            informer.reflector = Reflector::new(self.now, random);
            (informer.is_slot, informer.synced) = (false, None);
            self.again(client, self.now);
        }
    }

    /// A server dies, and comes back after that time.
    pub fn kill(&mut self, node: usize, away: Duration) {
        self.event(self.now, Happening::Dies(node));
        self.event(self.now + BALANCED, Happening::OutOfBalance(node));
        self.event(self.now + away, Happening::Returns(node));
    }

    /// When the last informer had all, if each has.
    pub fn synced(&self) -> Option<Moment> {
        self.clients.iter().map(|informer| informer.synced).max_by_key(|at| at.unwrap_or(Moment::MAX))?
    }

    /// The most that any server held for its clients since [`Cluster::note`], beyond what it did then.
    pub fn growth(&self, base: &[u64]) -> u64 {
        let grown = self.nodes.iter().zip(base).map(|(node, base)| node.peak.saturating_sub(*base));
        grown.max().unwrap_or(0)
    }

    /// What each server holds for its clients; peaks and requests count from here on.
    pub fn note(&mut self) -> Vec<u64> {
        self.asked.clear();
        (self.refused, self.states) = (0, 0);
        self.nodes.iter_mut().for_each(|node| node.peak = node.bytes());
        self.nodes.iter().map(Node::bytes).collect()
    }

    /// All that happens until then.
    pub fn run_until(&mut self, end: Moment) {
        loop {
            let event = self.events.first_key_value().map(|((at, _), _)| *at);
            let nodes = self.nodes.iter().filter(|node| node.is_up);
            let times = nodes.flat_map(|node| [node.cores.next_end(), Some(node.dispatcher.wakes_at())]);
            let next = times.chain([event]).flatten().min().expect("servers wake").max(self.now);
            if next > end {
                break;
            }
            let second = next.as_secs() > self.now.as_secs();
            self.now = next;
            for node in 0..self.nodes.len() {
                self.pass(node, second);
            }
            if event == Some(next) {
                let (_, what) = self.events.pop_first().expect("it was there");
                self.happens(what);
            }
        }
        self.now = end;
        self.nodes.iter_mut().for_each(|node| node.cores.advance(end));
    }

    /// Time has passed for a server.
    fn pass(&mut self, node: usize, is_second: bool) {
        self.nodes[node].cores.advance(self.now);
        if !self.nodes[node].is_up {
            return;
        }
        if is_second {
            self.step(node, FlowInput::Memory { left: 2 << 30 });
        } else if self.nodes[node].dispatcher.wakes_at() <= self.now {
            self.step(node, FlowInput::Tick);
        }
        while let Some(done) = self.nodes[node].cores.done() {
            match self.nodes[node].work.remove(&done).expect("it is worked on") {
                Work::Handshake(client, turn) => self.asks(client, turn, node),
                Work::Head(id) => self.headed(node, id),
                Work::State(id) => self.stated(node, id),
            }
        }
    }

    fn event(&mut self, at: Moment, what: Happening) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), what);
    }

    fn happens(&mut self, what: Happening) {
        match what {
            Happening::Next(client, turn) if self.clients[client].turn == turn => self.next(client),
            Happening::Comes { client, turn, node, life } if self.clients[client].turn == turn => {
                self.comes(client, node, life);
            }
            Happening::Next(..) | Happening::Comes { .. } => {}
            Happening::Dies(node) => self.dies(node),
            Happening::OutOfBalance(node) => self.nodes[node].is_balanced = self.nodes[node].is_up,
            Happening::Returns(node) => {
                let life = self.nodes[node].life;
                self.nodes[node] = Node::new(self.cores, Opening::ByDoor, self.now, life);
            }
        }
    }

    /// An informer does what its rules say.
    fn next(&mut self, client: usize) {
        let informer = &mut self.clients[client];
        match informer.reflector.next(self.now) {
            Move::Wait(wait) => self.again(client, self.now + wait),
            Move::Send(ask) => {
                informer.asks = Some(ask);
                let node = match informer.on {
                    Some((node, life)) => Some((node, life)),
                    None => self.balance(),
                };
                let turn = self.clients[client].turn;
                match node {
                    Some((node, life)) => {
                        self.event(self.now + NETWORK, Happening::Comes { client, turn, node, life });
                    }
                    None => self.hears(client, Aftermath::Refused),
                }
            }
        }
    }

    /// Where the balancer leads a new connection.
    fn balance(&self) -> Option<(usize, u64)> {
        let balanced = self.nodes.iter().enumerate().filter(|(_, node)| node.is_balanced);
        let nodes: Vec<(usize, u64)> = balanced.map(|(at, node)| (at, node.life)).collect();
        let at = self.random.below(nodes.len() as u64) as usize;
        nodes.get(at).copied()
    }

    /// A request, or the connection for it, comes to a server.
    fn comes(&mut self, client: usize, node: usize, life: u64) {
        let informer = &self.clients[client];
        let is_watch = matches!(informer.asks, Some(Ask::Watch { .. }));
        self.asked.push(Asked { at: self.now, is_watch, is_slot: informer.is_slot });
        if !self.nodes[node].is_up || self.nodes[node].life != life {
            let why = if informer.on.is_some() { Aftermath::Lost } else { Aftermath::Refused };
            return self.hears(client, why);
        }
        let turn = informer.turn;
        if informer.on.is_some() || self.costs.connection.is_zero() {
            return self.asks(client, turn, node);
        }
        let connection = self.costs.connection;
        self.works(node, Work::Handshake(client, turn), connection);
    }

    fn works(&mut self, node: usize, work: Work, cpu: Duration) {
        self.sequence += 1;
        self.nodes[node].cores.begin(self.sequence, cpu);
        self.nodes[node].work.insert(self.sequence, work);
    }

    fn asks(&mut self, client: usize, turn: u64, node: usize) {
        let informer = &mut self.clients[client];
        let Some(ask) = informer.asks.clone().filter(|_| informer.turn == turn) else { return };
        informer.on = Some((node, self.nodes[node].life));
        self.sequence += 1;
        let id = self.sequence;
        let caller = self.clients[client].caller.clone();
        let resource =
            ResourceAttributes { version: "v1", resource: "pods", ..ResourceAttributes::default() };
        let is_list = matches!(ask, Ask::List { .. });
        let verb = if is_list { Verb::List } else { Verb::Watch };
        let asked = Attributes { caller: &caller, verb: &verb, about: About::Resource(resource) };
        let (price, comeback) = match ask {
            Ask::Watch { .. } => (Price { bytes: 0, cpu: self.costs.head }, Comeback::Resume),
            Ask::WatchList { .. } | Ask::List { .. } => (self.costs.state, Comeback::WatchList),
        };
        let flow = self.nodes[node].dispatcher.flow(&asked);
        let details = Details::of(&asked, "/api/v1/pods");
        let mut arrival = Arrival::new(id, flow, price, Access::Read, details);
        (arrival.watch_bytes, arrival.comeback) = ((!is_list).then_some(WATCH_BYTES), Some(comeback));
        self.nodes[node].requests.insert(id, (client, price));
        self.step(node, FlowInput::Arrived(Box::new(arrival)));
    }

    fn step(&mut self, node: usize, input: FlowInput) {
        let now = self.now;
        for effect in self.nodes[node].dispatcher.step(input, now) {
            match effect {
                FlowEffect::Run { id } => {
                    let price = self.nodes[node].requests[&id].1;
                    self.nodes[node].hold(price.bytes);
                    let head = self.costs.head;
                    self.works(node, Work::Head(id), head);
                }
                FlowEffect::Reject { id, rejection } => {
                    let (client, _) = self.nodes[node].requests.remove(&id).expect("it was there");
                    self.refused += 1;
                    let retry_after = Some(rejection.retry_after);
                    self.hears(client, Aftermath::Status { code: 429, retry_after, is_too_large: false });
                }
                FlowEffect::Cut { id } => panic!("{id} was cut, and all readers go on"),
            }
        }
    }

    /// A request is answered, or its state begins.
    fn headed(&mut self, node: usize, id: u64) {
        let Some((client, price)) = self.nodes[node].requests.get(&id).copied() else { return };
        match self.clients[client].asks {
            Some(Ask::Watch { .. }) => {
                self.step(node, FlowInput::Answered { id, cpu: price.cpu });
                match self.history {
                    History::Kept => self.watches(node, client),
                    History::Gone => {
                        self.leaves(node, id);
                        self.hears(client, Aftermath::Error { code: 410, is_too_large: false });
                    }
                }
            }
            Some(Ask::WatchList { .. }) => {
                self.step(node, FlowInput::Begun { id, cpu: price.cpu });
                self.works(node, Work::State(id), price.cpu);
            }
            Some(Ask::List { .. }) | None => {
                self.step(node, FlowInput::Answered { id, cpu: price.cpu });
                self.works(node, Work::State(id), price.cpu);
            }
        }
    }

    /// A state was sent.
    fn stated(&mut self, node: usize, id: u64) {
        let Some((client, price)) = self.nodes[node].requests.get(&id).copied() else { return };
        self.step(node, FlowInput::GivenBack { id, bytes: price.bytes });
        self.nodes[node].held -= price.bytes;
        self.states += 1;
        let revision = REVISION.to_string();
        if let Some(Ask::List { .. }) = self.clients[client].asks {
            self.leaves(node, id);
            return self.hears(client, Aftermath::Listed { revision, token: String::new() });
        }
        self.step(node, FlowInput::Answered { id, cpu: price.cpu });
        let end = WatchedEvent::Bookmark { revision, ends_initial: true };
        self.clients[client].reflector.event(self.now, end);
        self.watches(node, client);
    }

    /// A watch is open, and has said so by a bookmark.
    fn watches(&mut self, node: usize, client: usize) {
        self.nodes[node].watches += 1;
        self.nodes[node].hold(0);
        let informer = &mut self.clients[client];
        let bookmark = WatchedEvent::Bookmark { revision: REVISION.into(), ends_initial: false };
        informer.reflector.event(self.now, bookmark);
        informer.synced = Some(self.now);
        informer.is_slot = false;
    }

    fn leaves(&mut self, node: usize, id: u64) {
        self.nodes[node].requests.remove(&id);
        self.step(node, FlowInput::Left { id });
    }

    /// A request of an informer is over.
    fn hears(&mut self, client: usize, what: Aftermath) {
        let informer = &mut self.clients[client];
        (informer.asks, informer.synced) = (None, None);
        informer.is_slot = matches!(what, Aftermath::Status { retry_after: Some(_), .. });
        if matches!(what, Aftermath::Lost | Aftermath::Refused | Aftermath::Ended) {
            informer.on = None;
        }
        informer.reflector.heard(self.now, what);
        self.again(client, self.now);
    }

    fn again(&mut self, client: usize, at: Moment) {
        self.clients[client].turn += 1;
        let turn = self.clients[client].turn;
        self.event(at, Happening::Next(client, turn));
    }

    /// An informer closes its connection.
    fn hangs_up(&mut self, client: usize) {
        let Some((node, life)) = self.clients[client].on.take() else { return };
        if !self.nodes[node].is_up || self.nodes[node].life != life {
            return;
        }
        assert!(self.clients[client].synced.is_some(), "whoever hangs up has all");
        let own = |(id, (of, _)): (&u64, &(usize, Price))| (*of == client).then_some(*id);
        let watch = self.nodes[node].requests.iter().find_map(own).expect("its watch is open");
        self.nodes[node].watches -= 1;
        self.leaves(node, watch);
    }

    /// All its connections are lost.
    fn dies(&mut self, node: usize) {
        let now = self.now;
        let Node { life, .. } = self.nodes[node];
        let mut gone = Node::new(self.cores, Opening::ByDoor, now, life + 1);
        (gone.is_up, gone.is_balanced) = (false, true);
        self.nodes[node] = gone;
        for client in 0..self.clients.len() {
            let informer = &self.clients[client];
            if informer.on != Some((node, life)) {
                continue;
            }
            let is_open = informer.synced.is_some();
            if is_open || informer.asks.is_some() {
                self.hears(client, if is_open { Aftermath::Ended } else { Aftermath::Lost });
            } else {
                // It waits, and finds out when it asks.
                self.clients[client].on = None;
            }
        }
    }
}

impl Node {
    fn new(cores: u64, start: Opening, now: Moment, life: u64) -> Node {
        let bounds = LimitBounds { seats_min: 16, seats_max: 4_096, bytes_max: ANSWERS_BYTES };
        Node {
            dispatcher: dispatcher(Setup { bounds, watch_bytes: WATCHES_BYTES, cores, start }, now),
            cores: Cores::new(cores, THRASH, now),
            work: HashMap::new(),
            requests: HashMap::new(),
            is_up: true,
            is_balanced: true,
            life,
            held: 0,
            watches: 0,
            peak: 0,
        }
    }

    fn bytes(&self) -> u64 {
        self.held + self.watches * WATCH_BYTES
    }

    fn hold(&mut self, bytes: u64) {
        self.held += bytes;
        self.peak = self.peak.max(self.bytes());
    }
}
