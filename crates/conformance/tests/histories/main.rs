//! Histories of many concurrent clients of a server that is killed under them, recorded and judged.
//!
//! On ours, or on kube-apiserver with `FOREBAY_TEST_SERVER=kube-apiserver`, which is not killed: its clients
//! list again. `FOREBAY_TEST_EVENTS=1000000` makes the long run. Figures are printed:
//! `cargo test ... -- --nocapture`.

mod api;
mod run;

use std::time::Duration;

use api::Resource;
use forebay_clients::server::Implementation;
use forebay_conformance::history::{Notification, Start, Stream};
use run::{Habit, Plan};

const PLAIN: Habit =
    Habit { label: None, bookmarks: false, from_state: false, cut_after: usize::MAX, slow: 0 };

/// What comes of kills is promised by ours only.
fn kills(count: usize) -> usize {
    if Implementation::asked() == Ok(Implementation::Forebay) { count } else { 0 }
}

fn is_runnable() -> bool {
    Implementation::asked() == Ok(Implementation::Forebay) || forebay_clients::needs::peers_or_skip()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn histories_under_faults_keep_every_promise() {
    if !is_runnable() {
        return;
    }
    let watchers = vec![
        PLAIN,
        Habit { cut_after: 7, ..PLAIN },
        Habit { cut_after: 1, bookmarks: true, ..PLAIN },
        Habit { bookmarks: true, ..PLAIN },
        Habit { slow: 40, ..PLAIN },
        Habit { label: Some("x"), slow: 25, cut_after: 50, ..PLAIN },
        Habit { label: Some("x"), cut_after: 3, ..PLAIN },
        Habit { label: Some("y"), bookmarks: true, cut_after: 11, ..PLAIN },
        Habit { label: Some("y"), ..PLAIN },
        Habit { from_state: true, cut_after: 30, ..PLAIN },
        Habit { from_state: true, label: Some("x"), cut_after: 12, ..PLAIN },
    ];
    let plan = Plan { resource: Resource::ConfigMaps, writes: 1_500, keys: 12, watchers, kills: kills(3) };
    let record = plan.run(Duration::from_secs(300)).await;
    println!("figure: {}", record.figure());
    record.judge();
}

/// As kubernetes' own `watchtotalorder`: whoever comes back, and however often, is told the same in the same
/// order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_watchers_that_come_back_are_told_one_sequence() {
    if !is_runnable() {
        return;
    }
    let watchers: Vec<Habit> = (1..=200).map(|cut_after| Habit { cut_after, ..PLAIN }).collect();
    let plan = Plan { resource: Resource::Widgets, writes: 120, keys: 5, watchers, kills: 0 };
    let record = plan.run(Duration::from_secs(300)).await;
    println!("figure: {}", record.figure());
    record.judge();
    let sequence = |stream: &Stream| -> Vec<Notification> { stream.items.clone() };
    let first = sequence(&record.streams[0]);
    assert_eq!(first.len(), record.log.entries.len());
    assert!(record.streams.iter().all(|stream| sequence(stream) == first));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_million_events_are_told_each_once() {
    if !is_runnable() {
        return;
    }
    const WATCHERS: usize = 40;
    let asked = std::env::var("FOREBAY_TEST_EVENTS").ok().and_then(|count| count.parse().ok());
    let events: usize = asked.unwrap_or(50_000);
    let watchers = (0..WATCHERS).map(|number| Habit {
        bookmarks: number % 2 == 0,
        cut_after: if number % 4 == 3 { usize::MAX } else { 100 + 37 * number },
        slow: if number % 10 == 9 { 500 } else { 0 },
        ..PLAIN
    });
    let writes = events.div_ceil(WATCHERS);
    let (keys, watchers) = (writes as u64 / 50 + 1, watchers.collect());
    let plan =
        Plan { resource: Resource::ConfigMaps, writes, keys, watchers, kills: kills(1 + events / 250_000) };
    let record = plan.run(Duration::from_secs(1_800)).await;
    record.judge();
    println!("figure: {}", record.figure());
    assert!(record.events() >= events, "{}", record.events());
}

/// A client that comes back after a kill goes on from whatever it saw last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_kill_a_watch_goes_on_from_every_revision() {
    if Implementation::asked() != Ok(Implementation::Forebay) {
        return;
    }
    for resource in [Resource::ConfigMaps, Resource::Widgets, Resource::Events] {
        let watchers = vec![PLAIN];
        let plan = Plan { resource, writes: 120, keys: 6, watchers, kills: 1 };
        let mut record = plan.run(Duration::from_secs(300)).await;
        record.judge();
        record.server.kill().expect("killed");
        record.server.start_again().expect("started again");
        let mut begins: Vec<u64> = record.log.entries.iter().map(|entry| entry.revision).collect();
        begins.insert(0, record.start);
        let mut told = 0;
        for after in &begins {
            for label in [None, Some("x")] {
                let expected = record.log.told(label, *after);
                let mut query = format!("resourceVersion={after}");
                if let Some(label) = label {
                    query += &format!("&labelSelector=on%3D{label}");
                }
                let mut watch = record.api.watch(&query).await.expect("at once, and not 429");
                let mut stream = Stream {
                    name: format!("{resource:?}"),
                    start: Start::After(*after),
                    label: label.map(str::to_owned),
                    items: Vec::new(),
                    cut: true,
                };
                while stream.items.len() < expected.len() {
                    stream.items.push(watch.next().await.expect("an event, and not the end"));
                }
                stream.check(&record.log).unwrap_or_else(|why| panic!("{why}"));
                told += stream.items.len();
            }
        }
        println!(
            "figure: {resource:?}: after a kill, watches from each of {} revisions were told {told} events: 0 lost, 0 repeated, no 410",
            begins.len()
        );
    }
}
