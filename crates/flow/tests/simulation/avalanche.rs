//! One of three servers dies, and 5,000 informers that go by client-go's rules come to the others.

use std::collections::BTreeMap;
use std::time::Duration;

use forebay_apimachinery::Caller;
use forebay_flow::{Moment, Price};

use crate::cluster::{Asked, Cluster, Costs, History};

const INFORMERS: u64 = 5_000;
const SERVERS: usize = 3;
const CORES: u64 = 4;
const WINDOW: Duration = Duration::from_secs(2);
/// How long it is calm between two blows, and a server stays away.
const CALM: Duration = Duration::from_secs(20);
/// How long anybody is waited for.
const SYNC_MAX: Duration = Duration::from_secs(300);
const GROWTH_MAX: u64 = 64 << 20;

/// As the prices of 5,000 pods of 8 KB have it.
const PODS: Costs = Costs {
    connection: Duration::from_micros(500),
    head: Duration::from_micros(60),
    state: Price { bytes: 224 << 10, cpu: Duration::from_millis(92) },
};

/// Whose informers they are: pods of one DaemonSet have one account, kubelets have one each.
#[derive(Clone, Copy, Debug)]
enum Whose {
    DaemonSet,
    Kubelets,
}

impl Whose {
    fn caller(self, number: u64) -> Caller {
        let (name, groups) = match self {
            Whose::DaemonSet => ("system:serviceaccount:monitoring:agent".into(), "system:serviceaccounts"),
            Whose::Kubelets => (format!("system:node:node-{number}"), "system:nodes"),
        };
        Caller { name, groups: vec![groups.into()], ..Caller::default() }.authenticated()
    }
}

/// Everybody has all, and has been calm.
fn calm(costs: Costs, history: History, whose: Whose) -> Cluster {
    let mut cluster = Cluster::new((SERVERS, CORES), costs, history, 17);
    // Few at a time: this is no storm.
    for number in 0..INFORMERS {
        cluster.begins(whose.caller(number), Duration::from_millis(20 * number));
    }
    cluster.run_until(Duration::from_millis(20 * INFORMERS) + CALM);
    assert!(cluster.synced().is_some(), "all begin while nothing happens");
    cluster
}

/// What came of a blow.
#[derive(Debug)]
struct Storm {
    asked: Vec<Asked>,
    refused: u64,
    states: u32,
    /// From the blow until all had all.
    took: Duration,
    growth: u64,
}

impl Storm {
    /// Deals the blow, and waits until all have all.
    fn after(cluster: &mut Cluster, blow: impl FnOnce(&mut Cluster)) -> Storm {
        let begun = cluster.now;
        let before = cluster.note();
        blow(cluster);
        // What happens at once has happened.
        cluster.run_until(begun + Duration::from_millis(1));
        let synced = loop {
            match cluster.synced() {
                Some(at) => break at,
                None => assert!(cluster.now < begun + SYNC_MAX, "not all had all in time"),
            }
            let next = cluster.now + Duration::from_millis(100);
            cluster.run_until(next);
        };
        let growth = cluster.growth(&before);
        let (asked, refused, states) = (cluster.asked.clone(), cluster.refused, cluster.states);
        Storm { asked, refused, states, took: synced - begun, growth }
    }

    /// Those that ask for all.
    fn whole(&self) -> usize {
        self.asked.iter().filter(|asked| !asked.is_watch).count()
    }

    /// The fullest window of 2 s against the mean of all, of all that were asked since the blow.
    fn peak(&self, begun: Moment) -> f64 {
        peak(self.asked.iter().map(|asked| asked.at - begun), self.took)
    }

    /// The same of those whose time a server has named, which are whole seconds; against what so many servers
    /// can do meanwhile, where that is more.
    fn peak_of_slots(&self, servers: u64) -> f64 {
        let slots = self.slots();
        let can = (servers * CORES) as f64 * WINDOW.as_secs_f64() / PODS.state.cpu.as_secs_f64();
        let (Some(first), Some(last)) = (slots.iter().min(), slots.iter().max()) else { return 1.0 };
        let span = *last - *first + Duration::from_secs(1);
        let mean = slots.len() as f64 * WINDOW.as_secs_f64() / span.as_secs_f64();
        peak(slots.iter().map(|at| *at - *first), span) * mean / mean.max(can)
    }

    /// When those came whose time a server has named.
    fn slots(&self) -> Vec<Moment> {
        self.asked.iter().filter(|asked| asked.is_slot).map(|asked| asked.at).collect()
    }
}

/// As the bench counts it, in windows of 2 s, one after the other; against what is the mean of that time.
fn peak(since: impl Iterator<Item = Duration>, span: Duration) -> f64 {
    let mut windows: BTreeMap<u128, u64> = BTreeMap::new();
    since.for_each(|since| *windows.entry(since.as_millis() / WINDOW.as_millis()).or_default() += 1);
    let all: u64 = windows.values().sum();
    let mean = all as f64 * WINDOW.as_secs_f64() / span.max(WINDOW).as_secs_f64();
    windows.into_values().max().unwrap_or(0) as f64 / mean.max(1.0)
}

fn kill_first(cluster: &mut Cluster) {
    cluster.kill(0, CALM);
}

#[test]
fn where_history_exists_the_clients_of_a_dead_server_resume_and_nobody_lists() {
    for whose in [Whose::DaemonSet, Whose::Kubelets] {
        let mut cluster = calm(PODS, History::Kept, whose);
        // What clients and the balancer do by themselves: the same with servers that take no time.
        let mut ideal = calm(Costs::NOTHING, History::Kept, whose);
        // The first; and once that is back, with nobody on it, one that has half of them.
        for victim in [0, 1] {
            let blow = |cluster: &mut Cluster| {
                let begun = cluster.now;
                let storm = Storm::after(cluster, |cluster| cluster.kill(victim, CALM));
                cluster.run_until(begun + 3 * CALM);
                (storm.peak(begun), storm)
            };
            let ((peak, storm), (ideal_peak, ideal)) = (blow(&mut cluster), blow(&mut ideal));
            let growth = storm.growth >> 20;
            println!(
                "figure: {whose:?}: {} asked, peak {peak:.2} of the mean, by itself {ideal_peak:.2}; all after {:?}, ideal {:?}; a neighbour grew by {growth} MiB, {} refused",
                storm.asked.len(),
                storm.took,
                ideal.took,
                storm.refused
            );
            assert_eq!((storm.whole(), storm.refused), (0, 0));
            assert!(peak <= 1.3 * ideal_peak, "{peak} of {ideal_peak}");
            assert!(storm.took <= 2 * ideal.took, "{:?} of {:?}", storm.took, ideal.took);
            assert!(storm.growth <= GROWTH_MAX, "{growth} MiB");
        }
    }
}

#[test]
fn where_it_does_not_they_list_one_after_another() {
    for whose in [Whose::DaemonSet, Whose::Kubelets] {
        let mut cluster = calm(PODS, History::Gone, whose);
        let storm = Storm::after(&mut cluster, kill_first);
        // What clients do by themselves: a lost connection, a wait, a place in history that is gone.
        let mut ideal = calm(Costs::NOTHING, History::Gone, whose);
        check_states(whose, &storm, SERVERS as u64 - 1, Storm::after(&mut ideal, kill_first).took);
    }
}

#[test]
fn all_begin_anew_and_are_there_in_twice_the_ideal() {
    for whose in [Whose::DaemonSet, Whose::Kubelets] {
        let mut cluster = calm(PODS, History::Kept, whose);
        let storm = Storm::after(&mut cluster, Cluster::anew);
        check_states(whose, &storm, SERVERS as u64, Duration::ZERO);
    }
}

/// - `by_itself`: what it takes where servers take no time.
fn check_states(whose: Whose, storm: &Storm, servers: u64, by_itself: Duration) {
    let ideal = by_itself + PODS.state.cpu * storm.states / (servers * CORES) as u32;
    let (slots, growth) = (storm.slots(), storm.growth >> 20);
    let peak = storm.peak_of_slots(servers);
    println!(
        "figure: {whose:?}: {} asked, {} of them for all, {} refused, {} came when they were told to, peak {peak:.2} of the mean, all after {:?}, ideal {ideal:?}, a server grew by {growth} MiB",
        storm.asked.len(),
        storm.whole(),
        storm.refused,
        slots.len(),
        storm.took
    );
    assert!(storm.took <= 2 * ideal, "{:?} of {ideal:?}", storm.took);
    assert!(storm.growth <= GROWTH_MAX, "{growth} MiB");
    assert!(peak <= 1.3, "{peak}");
}
