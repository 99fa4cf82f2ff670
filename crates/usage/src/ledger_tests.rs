//! A ledger under many clients, and over time.

use super::*;
use crate::account::Gauge;
use crate::counts::{Count, ListedAt};
use crate::report::{Client, Used};

fn who<'a>(user: &'a str, agent: &'a str) -> Who<'a> {
    Who { user, agent, resource: "pods", schema: "global", level: "low", ..Who::default() }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn of<'r>(report: &'r Flows, agent: &str) -> Option<&'r Client> {
    report.clients.iter().find(|client| client.user_agent == agent)
}

fn requests(used: [&Used; 3]) -> [u64; 3] {
    used.map(|used| used.requests)
}

#[test]
fn hundreds_of_thousands_of_agents_take_no_more_room_and_drive_out_nobody_who_is_heavy() {
    let ledger = Ledger::new(seconds(0), 1);
    let heavy = ["controller", "exporter", "backup"];
    for number in 0..200_000_u64 {
        let now = Duration::from_micros(number * 250);
        ledger.account(&who("mallory", &format!("agent-{number}")), now).add(Count::Requests, 1);
        // One request in a hundred, each as heavy as ten.
        if number % 100 == 0 {
            let account = ledger.account(&who("somebody", heavy[(number / 100 % 3) as usize]), now);
            account.add(Count::Requests, 1);
            account.add(Count::CpuNanos, 2_000_000);
        }
    }
    let report = ledger.report(seconds(50));
    assert_eq!(report.clients.len(), ROWS_MAX);
    for (place, agent) in heavy.iter().enumerate() {
        let total = &report.clients[place].figures.total;
        assert!(heavy.contains(&report.clients[place].user_agent.as_str()), "{place}");
        assert!(of(&report, agent).is_some_and(|client| client.figures.total.requests >= 666), "{agent}");
        assert!(total.cpu_us >= 1_332_000, "{total:?}");
    }
    // Nothing is lost of it.
    assert_eq!(report.all.total.requests, 202_000);
    let named: u64 = report.clients.iter().map(|client| client.figures.total.requests).sum();
    assert_eq!(named + report.others.total.requests, 202_000);
    assert_eq!(report.folded as usize, 200_003 - ROWS_MAX);
}

#[test]
fn windows_forget_and_the_whole_does_not() {
    let ledger = Ledger::new(seconds(100), 1);
    let ask = |at: u64, times: u64| ledger.account(&who("a", "x"), seconds(at)).add(Count::Requests, times);
    let seen = |at: u64| {
        let report = ledger.report(seconds(at));
        let usage = &report.clients[0].figures;
        let spans = [report.seconds.minute, report.seconds.ten_minutes, report.seconds.total];
        (requests([&usage.minute, &usage.ten_minutes, &usage.total]), spans.map(|span| span as u64))
    };
    ask(100, 1);
    assert_eq!(seen(105), ([1, 1, 1], [5, 5, 5]));
    ask(130, 2);
    assert_eq!(seen(155), ([3, 3, 3], [55, 55, 55]));
    // The first ten seconds are over a minute ago.
    assert_eq!(seen(165), ([2, 3, 3], [55, 65, 65]));
    ask(200, 4);
    assert_eq!(seen(205), ([4, 7, 7], [55, 105, 105]));
    assert_eq!(seen(600), ([0, 7, 7], [50, 500, 500]));
    assert_eq!(seen(705), ([0, 4, 7], [55, 545, 605]));
    assert_eq!(seen(100_000), ([0, 0, 7], [50, 540, 99_900]));
}

#[test]
fn who_is_folded_takes_its_past_along() {
    let ledger = Ledger::new(seconds(0), 1);
    ledger.account(&who("first", "x"), seconds(1)).add(Count::Requests, 5);
    for number in 0..=ROWS_MAX {
        let account = ledger.account(&who("later", &number.to_string()), seconds(90));
        account.add(Count::CpuNanos, 1_000_000_000);
    }
    let report = ledger.report(seconds(95));
    assert!(of(&report, "x").is_none());
    let others = &report.others;
    // What it asked before the last minute is not what others asked within it.
    assert_eq!(requests([&others.minute, &others.ten_minutes, &others.total]), [0, 5, 5]);
}

#[test]
fn what_was_heavy_gives_way_when_it_has_been_quiet() {
    let ledger = Ledger::new(seconds(0), 1);
    ledger.account(&who("yesterday", "x"), seconds(0)).add(Count::CpuNanos, 1 << 40);
    let fill = |at: u64| {
        for number in 0..ROWS_MAX {
            ledger.account(&who("today", &number.to_string()), seconds(at)).add(Count::CpuNanos, 1 << 20);
        }
    };
    fill(60);
    assert!(of(&ledger.report(seconds(60)), "x").is_some());
    fill(1_000);
    assert!(of(&ledger.report(seconds(1_000)), "x").is_none());
}

#[test]
fn an_open_watch_counts_where_its_client_is_counted_and_nowhere_when_it_is_gone() {
    let ledger = Ledger::new(seconds(0), 1);
    let watch = ledger.account(&who("watcher", "x"), seconds(0));
    watch.shift(Gauge::Watches, 1);
    watch.shift(Gauge::Behind, 1);
    watch.shift(Gauge::BehindSinceMs, 2_000);
    let report = ledger.report(seconds(5));
    let now = &report.clients[0].figures.now;
    assert_eq!((now.watches, now.behind, now.lag_ms), (1, 1, 3_000));
    for number in 0..=ROWS_MAX {
        ledger.account(&who("later", &number.to_string()), seconds(5)).add(Count::CpuNanos, 1 << 30);
    }
    let report = ledger.report(seconds(6));
    assert_eq!((report.others.now.watches, report.others.now.lag_ms), (1, 4_000));
    watch.shift(Gauge::Behind, -1);
    watch.shift(Gauge::BehindSinceMs, -2_000);
    watch.shift(Gauge::Watches, -1);
    drop(watch);
    let report = ledger.report(seconds(6));
    assert_eq!((report.others.now.watches, report.all.now.watches, report.all.now.behind), (0, 0, 0));
}

#[test]
fn a_report_is_json_both_ways_and_leaves_out_what_is_nothing() {
    let ledger = Ledger::new(seconds(0), 1);
    let account = ledger.account(&who("a", "kubectl/v1.36"), seconds(1));
    account.add(Count::Requests, 1);
    account.listed(ListedAt::Unset, false, seconds(1));
    let report = ledger.report(seconds(2));
    let json = serde_json::to_string(&report).expect("JSON");
    assert_eq!(serde_json::from_str::<Flows>(&json).expect("a report"), report);
    let client = serde_json::to_string(&report.clients[0]).expect("JSON");
    let used = r#"{"requests":1,"lists":{"unset":1},"causes":{"start":1}}"#;
    assert_eq!(
        client,
        format!(
            r#"{{"user":"a","userAgent":"kubectl/v1.36","resource":"pods","flow":{{"schema":"global","level":"low"}},"now":{{}},"minute":{used},"tenMinutes":{used},"total":{used}}}"#
        )
    );
}
