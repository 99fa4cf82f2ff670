//! Clients that come back all at once, and obey.

use std::time::Duration;

use forebay_apimachinery::Verb;
use forebay_flow::{Comeback, Moment, Opening, Price};
use forebay_rt::Random;

use crate::server::{Client, Server};

const CLIENTS: u64 = 5_000;

/// The most in any 2 s, by the mean, from the first to the last.
fn peak(times: &[Moment]) -> f64 {
    let mut times: Vec<u64> = times.iter().map(|at| at.as_millis() as u64).collect();
    times.sort_unstable();
    let most =
        times.iter().enumerate().map(|(first, at)| times[first..].partition_point(|it| *it < at + 2_000));
    let span = (times[times.len() - 1] - times[0] + 1_000).max(2_000);
    most.max().unwrap() as f64 / (times.len() as f64 * 2_000.0 / span as f64)
}

#[test]
fn refused_clients_that_obey_come_one_after_another() {
    let mut server = Server::new(2, 0.001, Opening::Open);
    let random = Random::seeded(3);
    for at in 0..CLIENTS {
        let price = Price { bytes: 256 << 10, cpu: Duration::from_millis(8) };
        let user = format!("user-{}", at % 600);
        let list = Client { verb: Verb::List, price, ..Client::new("list", &user, &[]) };
        server.asks(list, Duration::from_micros(random.below(100_000)));
    }
    server.run_until(Duration::from_secs(120));
    let lists = &server.outcomes["list"];
    assert_eq!(lists.latencies.len() as u64, CLIENTS);
    assert!(lists.refused > 1_000);
    let back: Vec<Moment> = lists.arrivals[CLIENTS as usize..].to_vec();
    let (peak, done) = (peak(&back), lists.answered_at.last().unwrap());
    println!("figure: {} came back, peak {peak:.2} of the mean, all done after {done:?}", back.len());
    assert!(peak <= 1.3, "{peak}");
    // Two cores have 20 s of work.
    assert!(*done <= Duration::from_secs(40), "{done:?}");
}

/// A third of them comes back twice a second until it is answered.
#[test]
fn those_who_obey_come_one_after_another_beside_those_who_do_not() {
    let mut server = Server::new(2, 0.001, Opening::Open);
    let random = Random::seeded(4);
    for at in 0..CLIENTS {
        let price = Price { bytes: 256 << 10, cpu: Duration::from_millis(8) };
        let obeys = at % 3 != 0;
        let class = if obeys { "obeys" } else { "does not" };
        let user = format!("{class}-{}", at % 600);
        let insists = (!obeys).then_some(Duration::from_millis(500));
        let list = Client { verb: Verb::List, price, obeys, insists, ..Client::new(class, &user, &[]) };
        server.asks(list, Duration::from_micros(random.below(100_000)));
    }
    server.run_until(Duration::from_secs(180));
    let obeying = &server.outcomes["obeys"];
    let asked = CLIENTS - CLIENTS.div_ceil(3);
    assert_eq!(obeying.latencies.len() as u64, asked);
    let back: Vec<Moment> = obeying.arrivals[asked as usize..].to_vec();
    let (peak, done) = (peak(&back), obeying.answered_at.last().unwrap());
    let others = server.outcomes["does not"].refused;
    println!(
        "figure: {} came back, peak {peak:.2} of the mean, done after {done:?}; the others refused {others} times",
        back.len()
    );
    assert!(peak <= 1.3, "{peak}");
}

#[test]
fn resumed_watches_come_in_first_and_all_are_there_in_twice_the_ideal() {
    let mut server = Server::new(4, 0.001, Opening::ByDoor);
    let random = Random::seeded(5);
    let kinds = [
        ("resume", Comeback::Resume, 100),
        ("small", Comeback::SmallList, 2_000),
        ("state", Comeback::WatchList, 40_000),
    ];
    let mut ideal = 0.0;
    for at in 0..CLIENTS {
        let (class, comeback, micros) = kinds[if at % 10 < 7 { 0 } else { (at % 10 - 6).min(2) as usize }];
        let price = Price { bytes: micros << 5, cpu: Duration::from_micros(micros) };
        let watch_bytes = (comeback != Comeback::SmallList).then_some(50 << 10);
        let node = Client::new(class, &format!("system:node:{at}"), &["system:nodes"]);
        let client = Client { price, comeback: Some(comeback), watch_bytes, ..node };
        server.asks(client, Duration::from_micros(random.below(500_000)));
        ideal += micros as f64 / 1e6 / 4.0;
    }
    server.run_until(Duration::from_secs(120));
    let last = |class: &str| *server.outcomes[class].answered_at.last().unwrap();
    let (resumed, all) = (last("resume"), last("state"));
    let refused: u64 = server.outcomes.values().map(|outcome| outcome.refused).sum();
    println!("figure: resumed after {resumed:?}, all after {all:?}, ideal {ideal:.1} s, {refused} refused");
    let answered: usize = server.outcomes.values().map(|outcome| outcome.latencies.len()).sum();
    assert_eq!(answered as u64, CLIENTS);
    assert!(resumed <= Duration::from_secs(10) && all.as_secs_f64() <= 2.0 * ideal, "{resumed:?} {all:?}");
}
