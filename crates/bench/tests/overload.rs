//! The scenarios of overload at size 10 against our own server on an etcd: they run, and what they say adds
//! up.
//!
//! In: the `forebay` binary that cargo put beside this test, and the peers, for etcd; without them the tests
//! are left out, loudly.

mod small;

use std::path::PathBuf;
use std::time::Duration;

use forebay_bench::client::Protocol;
use forebay_bench::lab::Lab;
use forebay_bench::overload::Overload;
use forebay_bench::scenarios::{Results, Scenario};
use forebay_clients::needs;

use crate::small::{forebay, lab};

fn overloaded(peers: PathBuf) -> Lab {
    let overload = Overload {
        pods: 10,
        readers: 10,
        informers: 0,
        writes: 20,
        nodes: 10,
        watches: 20,
        standing: 4,
        list_mb: 2,
        peers,
        span: Duration::from_millis(200),
        cage: 3 << 30,
    };
    Lab { overload, ..lab(Protocol::Http1) }
}

/// Runs `scenario` once; `None` after a skip was announced.
async fn run(scenario: Scenario) -> Option<Results> {
    if !needs::peers_or_skip() {
        return None;
    }
    let etcd = needs::peers().expect("they are there").etcd.clone();
    let lab = overloaded(etcd.parent().expect("it is in a directory").to_owned());
    Some(scenario.run(&lab, &forebay()).await.unwrap_or_else(|why| panic!("{why}")))
}

fn only(results: &Results, name: &str) -> f64 {
    let metric = results.metrics.iter().find(|metric| metric.name == name);
    metric.unwrap_or_else(|| panic!("{name} is missing: {results:?}")).samples[0]
}

#[tokio::test]
async fn avalanche_at_size_ten() {
    let Some(results) = run(Scenario::Avalanche).await else { return };
    for blow in ["killed", "killed again", "fullest killed", "all begin anew"] {
        assert_eq!(only(&results, &format!("{blow}: not synced in time")), 0.0, "{blow}");
        assert_eq!(only(&results, &format!("{blow}: heartbeats missed")), 0.0, "{blow}");
    }
    // Whoever lost a connection asks again; whoever begins anew asks for all.
    assert!(only(&results, "killed: requests") > 0.0);
    assert_eq!(only(&results, "all begin anew: lists and watch-lists"), 10.0);
    assert_eq!(only(&results, "servers that died by themselves"), 0.0);
    assert!(only(&results, "peak memory of a server") > 1.0);
    let phases: Vec<&str> = results.waves[0].iter().map(|wave| wave.phase).collect();
    assert_eq!(phases, ["killed", "killed again", "fullest killed", "all begin anew"]);
}

#[tokio::test]
async fn fairness_at_size_ten() {
    let Some(results) = run(Scenario::Fairness).await else { return };
    for way in ["with", "without"] {
        assert!(only(&results, &format!("{way}, goodput: the best")) >= 0.0);
        assert!(only(&results, &format!("{way}, goodput at 3 times")) >= 0.0);
        assert_eq!(only(&results, &format!("{way}, beside the greedy: deaths")), 0.0);
        assert!(only(&results, &format!("{way}, the greedy: watches")) > 0.0);
        assert!(only(&results, &format!("{way}: peak memory")) > 1.0);
    }
}
