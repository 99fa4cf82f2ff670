//! Those who ask for too much, and what others feel of it.

use std::time::Duration;

use forebay_apimachinery::Verb;
use forebay_apimachinery::attributes::ResourceAttributes;
use forebay_flow::{Opening, Price, RejectReason};
use forebay_rt::Random;

use crate::server::{Client, Reader, Server};

/// A list of everything: 12 MB, 60 ms.
fn list_of_everything(class: &'static str, user: &str) -> Client {
    let price = Price { bytes: 12 << 20, cpu: Duration::from_millis(60) };
    Client { verb: Verb::List, price, obeys: false, ..Client::new(class, user, &[]) }
}

fn heartbeat(node: u64) -> Client {
    let lease = ResourceAttributes {
        group: "coordination.k8s.io",
        version: "v1",
        resource: "leases",
        namespace: "kube-node-lease",
        ..ResourceAttributes::default()
    };
    let again = Some(Duration::from_secs(10));
    let kubelet = Client::new("heartbeat", &format!("system:node:{node}"), &["system:nodes"]);
    Client { resource: lease, verb: Verb::Update, again, ..kubelet }
}

#[test]
fn heartbeats_are_in_time_beside_a_greedy_user() {
    let mut server = Server::new(2, 0.001, Opening::Open);
    let random = Random::seeded(1);
    for node in 0..1_000 {
        server.asks(heartbeat(node), Duration::from_millis(random.below(10_000)));
    }
    // 500 that stand still, 200 that list again and again, 10,000 watches.
    for at in 0..500 {
        let still = Client { reader: Reader::StandsStill, ..list_of_everything("still", "greedy") };
        server.asks(still, Duration::from_millis(2_000 + at));
    }
    for at in 0..200 {
        let again = Some(Duration::ZERO);
        let lists = Client { again, obeys: true, ..list_of_everything("lists", "greedy") };
        server.asks(lists, Duration::from_millis(2_000 + at));
    }
    for at in 0..10_000 {
        let watch =
            Client { watch_bytes: Some(50 << 10), verb: Verb::Watch, ..Client::new("watch", "greedy", &[]) };
        server.asks(watch, Duration::from_micros(2_000_000 + 100 * at));
    }
    server.run_until(Duration::from_secs(60));
    let heartbeats = &server.outcomes["heartbeat"];
    assert!(heartbeats.latencies.len() > 5_900 && heartbeats.refused == 0);
    let p99 = heartbeats.p99();
    println!(
        "figure: heartbeats p99 {p99:?}, greedy lists answered {}",
        server.outcomes["lists"].latencies.len()
    );
    assert!(p99 <= Duration::from_millis(100), "{p99:?}");
}

#[test]
fn readers_that_stand_still_cost_their_own_flow() {
    let mut server = Server::new(4, 0.001, Opening::Open);
    for at in 0..500 {
        let still = Client { reader: Reader::StandsStill, ..list_of_everything("still", "greedy") };
        server.asks(still, Duration::from_millis(at));
    }
    for at in 0..40 {
        let lists = Client { again: Some(Duration::from_secs(1)), ..list_of_everything("modest", "modest") };
        server.asks(lists, Duration::from_millis(5_000 + 25 * at));
    }
    server.run_until(Duration::from_secs(30));
    let modest = &server.outcomes["modest"];
    println!(
        "figure: modest {} answers, p99 {:?}, refused {}",
        modest.latencies.len(),
        modest.p99(),
        modest.refused
    );
    // Their level is the same; theirs is all that the still ones do not hold.
    assert!(modest.latencies.len() >= 600 && modest.refused == 0, "{}", modest.latencies.len());
    assert!(modest.p99() < Duration::from_secs(2), "{:?}", modest.p99());
}

#[test]
fn a_hundred_thousand_watches_of_one_leave_the_others_as_they_were() {
    let run = |greedy: u64| {
        let mut server = Server::new(2, 0.001, Opening::Open);
        for at in 0..greedy {
            let watch = Client {
                watch_bytes: Some(50 << 10),
                verb: Verb::Watch,
                obeys: false,
                ..Client::new("watch", "greedy", &[])
            };
            server.asks(watch, Duration::from_micros(100 * at));
        }
        for at in 0..2_000 {
            let user = format!("user-{}", at % 100);
            let watch = Client {
                watch_bytes: Some(50 << 10),
                verb: Verb::Watch,
                ..Client::new("others", &user, &[])
            };
            server.asks(watch, Duration::from_millis(11_000 + at));
        }
        server.run_until(Duration::from_secs(20));
        server
    };
    let (alone, beside) = (run(0), run(100_000));
    let (alone, others) = (&alone.outcomes["others"], &beside.outcomes["others"]);
    assert_eq!((others.latencies.len(), others.refused), (2_000, 0));
    assert!(others.p99() <= alone.p99() + Duration::from_millis(10), "{:?} {:?}", others.p99(), alone.p99());
    assert!(beside.outcomes["watch"].refused > 90_000);
    let watches = beside.rejections.iter().filter(|it| matches!(it.reason, RejectReason::Watches { .. }));
    let refused = watches.take(1).next().expect("some were refused for their watches");
    assert_eq!((&*refused.flow.schema, &*refused.flow.distinguisher), ("global-default", "greedy"));
}

#[test]
fn a_level_that_lent_has_its_nominal_share_as_soon_as_it_has_work() {
    let mut server = Server::new(2, 0.001, Opening::Open);
    // 300 of one level have all there is for a minute.
    for at in 0..300 {
        let busy =
            Client { again: Some(Duration::ZERO), ..Client::new("busy", &format!("user-{}", at % 30), &[]) };
        server.asks(busy, Duration::from_millis(at));
    }
    server.run_until(Duration::from_secs(60));
    let accounts = &["system:serviceaccounts"];
    for at in 0..1_000 {
        let pod = Client::new("pod", &format!("system:serviceaccount:ns:{}", at % 50), accounts);
        server.asks(pod, Duration::from_millis(60_000 + at));
    }
    server.run_until(Duration::from_secs(65));
    let pods = &server.outcomes["pod"];
    assert_eq!((pods.latencies.len(), pods.refused), (1_000, 0));
    assert!(pods.p99() < Duration::from_millis(100), "{:?}", pods.p99());
}
