//! More than a server can, and how much of what it can it does.

use std::time::Duration;

use forebay_flow::{Opening, Price};
use forebay_rt::Random;

use crate::server::{Client, Server};

const SECONDS: u64 = 24;
const CPU: Duration = Duration::from_millis(10);
/// An answer that comes later is of no use.
const USEFUL: Duration = Duration::from_secs(5);
/// For each core as many requests as there are cores, beyond those, make all slower by that much.
const THRASH: f64 = 0.004;

/// Useful answers a second at so many times what the cores can, after the first quarter.
fn goodput(cores: u64, load: f64) -> f64 {
    let mut server = Server::new(cores, THRASH / cores as f64, Opening::Open);
    let random = Random::seeded(cores);
    let most = cores as f64 / CPU.as_secs_f64();
    let gap = Duration::from_secs_f64(1.0 / (most * load));
    let mut at = Duration::ZERO;
    while at < Duration::from_secs(SECONDS) {
        let user = format!("user-{}", random.below(200));
        let mut client = Client::new("all", &user, &[]);
        client.price.cpu = CPU;
        client.obeys = false;
        server.asks(client, at);
        at += gap.mul_f64(2.0 * random.below(1_000) as f64 / 1_000.0);
    }
    server.run_until(Duration::from_secs(SECONDS));
    let all = &server.outcomes["all"];
    let from = Duration::from_secs(SECONDS / 4);
    let answers = all.answered_at.iter().zip(&all.latencies);
    let useful = answers.filter(|(at, latency)| **at >= from && **latency <= USEFUL).count();
    useful as f64 / (SECONDS - SECONDS / 4) as f64
}

/// Gets, small lists, and lists of everything: each third of the work. Useful CPU time a second, as a part of
/// what the cores have.
fn mixed_goodput(load: f64) -> f64 {
    const CORES: u64 = 4;
    let mut server = Server::new(CORES, THRASH / CORES as f64, Opening::Open);
    let random = Random::seeded(11);
    // Whoever asks for everything waits as long as for a turn at most: of as much work as another's its share
    // takes longer.
    let kinds = [
        ("get", 1_000, 4 << 10, USEFUL),
        ("small", 5_000, 128 << 10, USEFUL),
        ("everything", 200_000, 768 << 10, Duration::from_secs(15)),
    ];
    for (class, micros, bytes, _) in kinds {
        let cpu = Duration::from_micros(micros);
        let gap = cpu.mul_f64(3.0 / (CORES as f64 * load));
        let mut at = Duration::ZERO;
        while at < Duration::from_secs(SECONDS) {
            let mut client = Client::new(class, &format!("{class}-{}", random.below(100)), &[]);
            client.price = Price { bytes, cpu };
            client.obeys = false;
            server.asks(client, at);
            at += gap.mul_f64(2.0 * random.below(1_000) as f64 / 1_000.0);
        }
    }
    server.run_until(Duration::from_secs(SECONDS));
    let from = Duration::from_secs(SECONDS / 4);
    let work = kinds.iter().map(|(class, micros, _, useful)| {
        let all = &server.outcomes[class];
        let answers = all.answered_at.iter().zip(&all.latencies);
        let useful = answers.filter(|(at, latency)| **at >= from && *latency <= useful).count();
        useful as f64 * *micros as f64 / 1e6
    });
    work.sum::<f64>() / ((SECONDS - SECONDS / 4) * CORES) as f64
}

#[test]
fn ten_times_too_much_of_three_kinds_keeps_most_of_what_it_can() {
    let parts = [1.0, 2.0, 3.0, 10.0].map(mixed_goodput);
    println!("figure: of what the cores can, at 1, 2, 3 and 10 times: {parts:.2?}");
    let best = parts.into_iter().fold(0.0, f64::max);
    assert!(best >= 0.8 && parts.iter().all(|part| *part >= 0.85 * best), "{parts:?}");
}

#[test]
fn three_times_too_much_keeps_most_of_what_it_can_from_2_to_32_cores() {
    for cores in [2, 8, 32] {
        let best = [0.8, 0.95].map(|load| goodput(cores, load)).into_iter().fold(0.0, f64::max);
        let at_most = cores as f64 / CPU.as_secs_f64();
        let over = goodput(cores, 3.0);
        println!(
            "figure: {cores} cores: {best:.0} a second at best, {over:.0} at 3 times, {at_most:.0} in theory"
        );
        assert!(best >= 0.9 * 0.95 * at_most, "{cores} cores: {best}");
        assert!(over >= 0.85 * best, "{cores} cores: {over} of {best}");
    }
}
