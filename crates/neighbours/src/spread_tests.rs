//! Three servers, and clients that a balancer leads to any of them: the machine in a small world, one second
//! after the other, each run from a seed.

use std::collections::VecDeque;
use std::time::Duration;

use forebay_rt::Random;

use crate::heard::{Heard, Neighbour};
use crate::limits::{HEAR_PERIOD, REFUSED_PER_SECOND_MAX, ROUND, TELL_PERIOD, WORD_LEASE};
use crate::spread::{Own, Spread};
use crate::word::Word;

/// Where a balancer leads those who come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Balancer {
    Random,
    /// Where there are the fewest connections.
    Least,
    /// Each client to one server, always.
    Sticky,
    /// All to this one.
    To(usize),
}

struct Server {
    spread: Spread,
    connections: u64,
    // Connections that were told to go, and when they end.
    going: VecDeque<u64>,
    capacity: u64,
    // What others can read of it, and when it was written.
    word: Option<(u64, Word)>,
    heard: Heard,
    is_silent: bool,
}

struct World {
    random: Random,
    balancer: Balancer,
    servers: Vec<Server>,
    // Clients between two servers: when they come, and where from.
    between: Vec<(u64, usize)>,
    second: u64,
    moves: u64,
}

impl World {
    fn new(seed: u64, balancer: Balancer, held: &[u64], capacity: u64) -> World {
        let server = |connections: &u64| Server {
            spread: Spread::default(),
            connections: *connections,
            going: VecDeque::new(),
            capacity,
            word: None,
            heard: Heard::default(),
            is_silent: false,
        };
        let servers = held.iter().map(server).collect();
        World { random: Random::seeded(seed), balancer, servers, between: Vec::new(), second: 0, moves: 0 }
    }

    fn held(&self) -> Vec<u64> {
        self.servers.iter().map(|server| server.connections).collect()
    }

    fn run(&mut self, seconds: u64) {
        (0..seconds).for_each(|_| self.step(&[]));
    }

    /// A second. Each of these servers refuses so many requests in it, on a connection each.
    fn step(&mut self, refusing: &[(usize, u64)]) {
        self.second += 1;
        let now = Duration::from_secs(self.second);
        self.arrive();
        for at in 0..self.servers.len() {
            self.tell(at, refusing.iter().any(|(who, _)| *who == at));
            if self.second % HEAR_PERIOD.as_secs() == at as u64 % HEAR_PERIOD.as_secs() {
                self.servers[at].heard = self.heard_by(at);
            }
            if self.servers[at].is_silent {
                continue;
            }
            let server = &mut self.servers[at];
            let own = Own { connections: server.connections, going: server.going.len() as u64 };
            let going = server.spread.step(now, own, &server.heard);
            let refused: u64 = refusing.iter().filter(|(who, _)| *who == at).map(|(_, count)| count).sum();
            let refused =
                (0..refused).take_while(|_| server.spread.refused(now, &server.heard)).count() as u64;
            let staying = own.connections - own.going;
            for _ in 0..(going + refused).min(staying) {
                // Its requests and watches end sooner or later.
                server.going.push_back(self.second + self.random.below(4));
                self.moves += 1;
            }
        }
    }

    fn tell(&mut self, at: usize, is_refusing: bool) {
        let (server, second) = (&mut self.servers[at], self.second);
        let connections = server.connections;
        let room = if is_refusing { 0 } else { server.capacity.saturating_sub(connections) };
        let word = Word { connections, room };
        let is_due = server.word.is_none_or(|(told, before)| {
            word.is_news_after(before) || second >= told + TELL_PERIOD.as_secs()
        });
        if is_due && !server.is_silent {
            server.word = Some((second, word));
        }
    }

    fn heard_by(&self, reader: usize) -> Heard {
        let mut heard = Heard::default();
        for (at, server) in self.servers.iter().enumerate().filter(|(at, _)| *at != reader) {
            let word = server.word.filter(|(told, _)| told + WORD_LEASE.as_secs() > self.second);
            match (word, server.is_silent) {
                (_, true) => heard.note(&format!("server-{at}"), Neighbour::Silent),
                (Some((_, word)), false) => heard.note(&format!("server-{at}"), Neighbour::Tells(word)),
                (None, false) => {}
            }
        }
        heard
    }

    fn arrive(&mut self) {
        let second = self.second;
        for (at, server) in self.servers.iter_mut().enumerate() {
            let before = server.going.len();
            server.going.retain(|end| *end > second);
            let gone = (before - server.going.len()) as u64;
            server.connections -= gone;
            let comes = |_| (second + 1 + self.random.below(3), at);
            self.between.extend((0..gone).map(comes));
        }
        let come: Vec<_> = self.between.extract_if(.., |(at, _)| *at <= second).collect();
        for (_, from) in come {
            let servers = self.servers.len();
            let to = match self.balancer {
                Balancer::Random => self.random.below(servers as u64) as usize,
                Balancer::Least => (0..servers).min_by_key(|at| self.servers[*at].connections).unwrap_or(0),
                Balancer::Sticky => from,
                Balancer::To(at) => at,
            };
            self.servers[to].connections += 1;
        }
    }
}

/// Whether each server is within a quarter of the mean.
fn is_even(held: &[u64]) -> bool {
    let mean = held.iter().sum::<u64>() / held.len() as u64;
    held.iter().all(|one| one.abs_diff(mean) <= mean / 4)
}

#[test]
fn shares_come_within_a_quarter_of_the_mean_in_bounded_time_and_then_nobody_moves() {
    for seed in 0..60 {
        let random = Random::seeded(seed);
        let clients = 600 + random.below(6_000);
        let first = random.below(clients);
        let held = [first, random.below(clients - first), 0];
        let held = [held[0], held[1], clients - held[0] - held[1]];
        let balancer = if seed % 3 == 0 { Balancer::Least } else { Balancer::Random };
        let mut world = World::new(seed, balancer, &held, 100_000);
        let even_after = (0..1_200).find(|_| {
            world.step(&[]);
            is_even(&world.held()) && world.between.is_empty()
        });
        assert!(even_after.is_some(), "{seed}: {held:?} became {:?}", world.held());
        world.run(300);
        let (moves, settled) = (world.moves, world.held());
        world.run(900);
        assert!(is_even(&world.held()), "{seed}: {held:?} became {:?}", world.held());
        assert_eq!(world.moves, moves, "{seed}: {settled:?} goes on");
        let above: u64 = held.iter().map(|one| one.saturating_sub(clients / 3)).sum();
        // Of those who are led to any of three, one comes where there was nothing.
        assert!(moves <= 3 * above + clients / 10, "{seed}: {moves} moves for {above}");
    }
}

#[test]
fn a_server_that_was_killed_gets_its_share_back_and_two_that_hold_the_same_do_not_pass_clients_to_and_fro() {
    for seed in 0..20 {
        let mut world = World::new(seed, Balancer::Random, &[1_500, 1_500, 0], 100_000);
        world.run(600);
        assert!(is_even(&world.held()), "{seed}: {:?}", world.held());
        assert!(
            world.moves <= 3_000,
            "{seed}: {} moves, one of three to the empty one, to move 1,000",
            world.moves
        );
        let mut even = World::new(seed, Balancer::Random, &[1_000, 1_000], 100_000);
        even.run(600);
        assert_eq!(even.moves, 0);
    }
}

#[test]
fn clients_go_slowly() {
    let mut world = World::new(1, Balancer::Random, &[9_000, 0, 0], 100_000);
    for _ in 0..300 {
        let before = world.moves;
        world.step(&[]);
        assert!(world.moves - before <= crate::limits::SHARE_PER_SECOND_MAX);
    }
    assert!(world.moves > 1_000);
}

#[test]
fn who_is_always_led_back_is_let_alone() {
    let mut world = World::new(2, Balancer::Sticky, &[3_000, 300, 300], 100_000);
    world.run(2 * ROUND.as_secs());
    let tried = world.moves;
    assert!(tried > 0);
    world.run(6 * 3_600);
    // A round after 5, 10, 20, 40 and then each 80 minutes.
    let rounds = 5 + 6 * 60 / 80;
    assert!(world.moves <= tried + rounds * (ROUND.as_secs() + 2) * 20, "{}", world.moves);
    assert_eq!(world.held().iter().sum::<u64>() + world.between.len() as u64, 3_600, "nobody is lost");
}

#[test]
fn a_storm_never_exceeds_the_room_that_the_neighbours_told_of() {
    for seed in 0..20 {
        for balancer in [Balancer::Random, Balancer::Least, Balancer::To(2)] {
            let mut world = World::new(seed, balancer, &[5_000, 400, 460], 500);
            // The first is far above what it can hold, and refuses whatever comes; so does the second, later.
            for second in 0..900 {
                world.step(if second < 450 { &[(0, 1_000)] } else { &[(0, 1_000), (1, 1_000)] });
                for at in [1, 2] {
                    let held = world.servers[at].connections;
                    assert!(held <= 500, "{seed} {balancer:?}: {at} holds {held} after {second} s");
                }
            }
            if balancer == Balancer::To(2) {
                assert!(world.held()[2] >= 495, "{seed}: it is used: {:?}", world.held());
            }
        }
    }
}

#[test]
fn no_client_is_sent_where_a_neighbour_says_nothing_or_where_nobody_is_heard() {
    for silent in [true, false] {
        let mut world = World::new(3, Balancer::Random, &[3_000, 10, 0], 100_000);
        world.servers[2].is_silent = silent;
        if !silent {
            world.servers.truncate(1);
        }
        (0..600).for_each(|_| world.step(&[(0, 1_000)]));
        assert_eq!(world.moves, 0, "{silent}");
    }
}

#[test]
fn who_is_refused_goes_at_a_limited_rate() {
    let (mut spread, mut heard) = (Spread::default(), Heard::default());
    heard.note("b", Neighbour::Tells(Word { connections: 0, room: 1_000 }));
    for second in 0..5 {
        let now = Duration::from_secs(100 + second);
        let goes = (0..1_000).filter(|_| spread.refused(now, &heard)).count() as u64;
        assert_eq!(goes, REFUSED_PER_SECOND_MAX);
    }
    heard.note("b", Neighbour::Tells(Word { connections: 0, room: 110 }));
    let goes = |spread: &mut Spread, second| {
        (0..1_000).filter(|_| spread.refused(Duration::from_secs(second), &heard)).count()
    };
    assert_eq!(goes(&mut spread, 105), 10, "those who are on their way count");
    assert_eq!(goes(&mut spread, 106), 0);
    // The first came, and the word that was heard tells of them.
    assert_eq!(goes(&mut spread, 116), 20);
}
