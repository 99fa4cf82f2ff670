//! Every scenario at size 10 against our own server: they run, and what they say adds up.
//!
//! In: the `forebay` binary that cargo put beside this test. Never: the rival, so no Go.

mod small;

use forebay_bench::client::Protocol;
use forebay_bench::lab::Lab;
use forebay_bench::scenarios::{Results, Scenario};
use forebay_bench::series::Phase;

use crate::small::{forebay, lab};

/// Runs `scenario` once and checks that it has a positive figure of each name.
async fn check(scenario: Scenario, protocol: Protocol, names: &[&str]) -> Results {
    let outcome = scenario.run(&lab(protocol), &forebay()).await.unwrap_or_else(|why| panic!("{why}"));
    for name in names {
        let metric = outcome.metrics.iter().find(|metric| metric.name == *name);
        let samples = &metric.unwrap_or_else(|| panic!("{name} is missing: {outcome:?}")).samples;
        assert!(samples.len() == 1 && samples[0] > 0.0, "{name}: {samples:?}");
    }
    outcome
}

#[tokio::test]
async fn start_at_size_ten() {
    check(Scenario::Start, Protocol::Http1, &["ready", "resident then"]).await;
}

#[tokio::test]
async fn create_at_size_ten() {
    let names = [
        "creates",
        "latency p50",
        "latency p99",
        "object sent",
        "object returned",
        "resident after",
        "on disk",
    ];
    let metrics = check(Scenario::Create, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0]);
    assert!(only("latency p50") <= only("latency p99"), "{metrics:?}");
    assert!(only("object returned") >= only("object sent"), "{metrics:?}");
}

#[tokio::test]
async fn creates_by_somebody_with_rights_of_their_own_at_size_ten() {
    let lab = Lab { is_governed: true, ..lab(Protocol::Http1) };
    let outcome = Scenario::Create.run(&lab, &forebay()).await.unwrap_or_else(|why| panic!("{why}"));
    let creates = outcome.metrics.iter().find(|metric| metric.name == "creates").expect("creates");
    assert!(creates.samples[0] > 0.0, "{outcome:?}");
}

#[tokio::test]
async fn webhooks_at_size_ten() {
    let names = ["nobody asked: p99", "a webhook of 1 ms: p99", "beside one that hangs: p99"];
    let metrics = check(Scenario::Webhooks, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0]);
    assert!(only("a webhook of 1 ms: p50") >= Some(1.0), "it is waited for: {metrics:?}");
}

#[tokio::test]
async fn conversion_at_size_ten() {
    let names = ["first LIST: answered after", "first LIST: calls", "second LIST: answered after"];
    let metrics = check(Scenario::Conversion, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0]);
    let before = only("calls before the first LIST").unwrap_or_default();
    assert!(before + only("first LIST: calls").unwrap_or_default() >= 1.0, "{metrics:?}");
    assert_eq!(only("second LIST: calls"), Some(0.0), "what was converted is kept: {metrics:?}");
}

#[tokio::test]
async fn create_at_size_ten_over_http2() {
    check(Scenario::Create, Protocol::Http2, &["creates"]).await;
}

#[tokio::test]
async fn restart_at_size_ten() {
    let names =
        ["SIGTERM to gone", "ready", "first LIST", "resident once settled", "ready, API server alone"];
    check(Scenario::Restart, Protocol::Http1, &names).await;
}

#[tokio::test]
async fn owners_at_size_ten() {
    let names = [
        "without: JSON",
        "without: resident quiet",
        "owned: JSON",
        "owned: resident loaded",
        "owned: resident quiet",
        "gzip LIST: body",
        "LIST that drops managedFields: body",
    ];
    let metrics = check(Scenario::Owners, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0]);
    // Fields of three managers.
    assert!(only("owned: JSON") > only("without: JSON").map(|bytes| bytes * 1.2), "{metrics:?}");
    assert!(only("LIST that drops managedFields: body") < only("owned: JSON"), "{metrics:?}");
}

/// ADR 75 has 206 B of each of 20,000 pods; of so few it is 306, as there are fewer neighbours alike.
#[tokio::test]
async fn what_three_managers_own_takes_little_in_blocks() {
    // Enough for blocks that are full.
    const PODS: usize = 300;
    let lab = Lab { size: PODS, ..lab(Protocol::Http1) };
    let outcome = Scenario::Owners.run(&lab, &forebay()).await.unwrap_or_else(|why| panic!("{why}"));
    let only = |name: &str| outcome.metrics.iter().find(|metric| metric.name == name).unwrap().samples[0];
    let deflated = |what: &str| only(&format!("{what}: JSON")) / only(&format!("{what}: block ratio"));
    let bytes = (deflated("owned") - deflated("without")) * f64::from(1 << 20) / PODS as f64;
    assert!((100.0..350.0).contains(&bytes), "{bytes} B a pod");
}

#[tokio::test]
async fn storm_at_size_ten() {
    let names = [
        "resident loaded",
        "resident peak in the storm",
        "resident 0 s after",
        "LIST throughput",
        "LIST body",
        "LIST latency p50",
        "LIST latency max",
    ];
    let outcome = check(Scenario::Storm, Protocol::Http1, &names).await;
    let only = |name: &str| outcome.metrics.iter().find(|metric| metric.name == name).unwrap().samples[0];
    // 4 clients, once from the cache and once consistent.
    assert_eq!((only("LISTs whole"), only("LISTs failed")), (8.0, 0.0));
    // 10 pods of about 8 KB.
    assert!((0.06..0.12).contains(&only("LIST body")), "{}", only("LIST body"));
    let growth = only("resident peak in the storm") - only("resident loaded");
    assert!((only("growth in the storm") - growth).abs() < 0.001, "{outcome:?}");
    assert_eq!(outcome.series.len(), 1);
    assert!(Phase::ALL.iter().all(|phase| outcome.series[0].span(*phase).is_some()), "{outcome:?}");
}

#[tokio::test]
async fn envtest_at_size_two() {
    let names = [
        "all ready",
        "resident, all",
        "resident, all: etcd",
        "resident, shared pages once",
        "that, for each",
    ];
    let metrics = check(Scenario::Envtest, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0]);
    assert!(only("resident, shared pages once") < only("resident, all"), "{metrics:?}");
}

#[tokio::test]
async fn storm_at_size_ten_over_http2() {
    check(Scenario::Storm, Protocol::Http2, &["LIST throughput"]).await;
}

#[tokio::test]
async fn fanout_at_ten_watchers() {
    let names = ["delay p50, own connection", "delay p99, 100 on one"];
    check(Scenario::Fanout, Protocol::Http1, &names).await;
}

#[tokio::test]
async fn crowd_and_lanes_at_ten_watchers() {
    let names = ["delay p50, own connection", "delay p99, 100 on one"];
    check(Scenario::Crowd, Protocol::Http1, &names).await;
    let names = ["updates", "delay p50", "delay p99", "server CPU per update"];
    check(Scenario::Lanes, Protocol::Http1, &names).await;
}

#[tokio::test]
async fn idle_at_ten_watchers() {
    // Memory of ten may come out of what is free already.
    let outcome = check(Scenario::Idle, Protocol::Http1, &[]).await;
    let metric = outcome.metrics.iter().find(|metric| metric.name == "resident per watcher, own connection");
    assert!(metric.is_some_and(|metric| metric.samples.len() == 1), "{outcome:?}");
}

#[tokio::test]
async fn resident_at_size_ten() {
    let names = [
        "resident, empty",
        "resident loaded",
        "resident after a quiet minute",
        "resident a minute after the storm",
        "JSON",
        "an object",
        "block ratio",
    ];
    let metrics = check(Scenario::Resident, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().samples[0];
    assert!((6_000.0..12_000.0).contains(&only("an object")), "{metrics:?}");
    assert!((2.0..20.0).contains(&only("block ratio")), "{metrics:?}");
}

#[tokio::test]
async fn list_at_size_ten() {
    let names = [
        "identity LIST, Http2: time",
        "identity LIST, Http2: throughput",
        "identity LIST, Http1: body",
        "gzip LIST: body",
        "gzip LIST, 20 updates a second: time",
        "LIST as Table: body",
        "LIST as protobuf: body",
        "LIST in pages of 500: body",
        "LIST by node: time",
    ];
    let metrics = check(Scenario::List, Protocol::Http2, &names).await.metrics;
    let body =
        |name: &str| metrics.iter().find(|metric| metric.name == format!("{name}: body")).unwrap().samples[0];
    assert!((0.06..0.12).contains(&body("identity LIST, Http1")), "{metrics:?}");
    assert!(body("LIST as metadata") < body("identity LIST, Http1"), "{metrics:?}");
    assert!(body("LIST by a label few have") < body("identity LIST, Http1"), "{metrics:?}");
}

#[tokio::test]
async fn readers_at_size_ten() {
    let names = ["fast readers: throughput", "fast readers: latency max"];
    let metrics = check(Scenario::Readers, Protocol::Http2, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap().samples[0];
    let counted = ["fast readers: LISTs whole", "fast readers: LISTs failed", "slow readers: still reading"];
    assert_eq!(counted.map(only), [80.0, 0.0, 20.0]);
}

#[tokio::test]
async fn prices_at_size_ten() {
    let names = ["identity LIST, Http2: foreseen", "LIST as Table: foreseen", "gzip LIST: foreseen"];
    let metrics = check(Scenario::Prices, Protocol::Http2, &names).await.metrics;
    for name in ["foreseen within a fifth", "foreseen within a fifth, again", "gzip LIST, again: taken"] {
        assert!(metrics.iter().any(|metric| metric.name == name), "{name}: {metrics:?}");
    }
}

#[tokio::test]
async fn watchlist_at_size_ten() {
    let names = ["LIST: throughput", "watch list: throughput", "gzip watch list: throughput"];
    let metrics = check(Scenario::Watchlist, Protocol::Http2, &names).await.metrics;
    let sent = |way: &str| {
        let name = format!("{way}: sent to each");
        metrics.iter().find(|metric| metric.name == name).unwrap().samples[0]
    };
    assert!(sent("watch list") > sent("LIST"), "{metrics:?}");
    assert!(sent("gzip watch list") <= sent("watch list"), "{metrics:?}");
}

#[tokio::test]
async fn curve_at_size_ten() {
    let names = [
        "LIST: time, 10 objects",
        "gzip LIST: time, 10 objects",
        "resident, 10 objects",
        "delay p99, 2 watchers",
    ];
    check(Scenario::Curve, Protocol::Http1, &names).await;
}

#[tokio::test]
async fn million_at_size_ten() {
    let names = [
        "loaded: objects",
        "resident, loaded",
        "JSON",
        "identity LIST, Http2: body",
        "watched: an update's delay",
        "restarted: ready",
        "restarted: first LIST",
        "resident, restarted and quiet",
    ];
    check(Scenario::Million, Protocol::Http2, &names).await;
}

#[tokio::test]
async fn kep_shapes_at_size_ten() {
    let name = |what: &str| format!("10 of 10000 B, 4 readers: {what}");
    for scenario in [Scenario::Kep3157, Scenario::Kep2340] {
        let metrics = check(scenario, Protocol::Http1, &[&name("LISTs whole"), &name("took")]).await.metrics;
        let only = |what: &str| metrics.iter().find(|metric| metric.name == name(what)).unwrap().samples[0];
        assert_eq!((only("LISTs whole"), only("LISTs lost")), (4.0, 0.0), "{metrics:?}");
    }
}

#[tokio::test]
async fn informer_at_size_ten() {
    let names = [
        "forebay-informer: synced",
        "forebay-informer: at rest",
        "kube-rs: synced",
        "kube-rs-streaming: peak",
        "JSON",
    ];
    check(Scenario::Informer, Protocol::Http1, &names).await;
}

#[tokio::test]
async fn informer_paths_at_size_ten() {
    let names = [
        "forebay-informer: connections of 10 informers",
        "kube-rs: connections of 10 informers",
        "hot: get by key",
        "hot: serde",
        "a list of what is unchanged: resident before",
        "a start with state on disk: synced",
    ];
    let metrics = check(Scenario::InformerPaths, Protocol::Http1, &names).await.metrics;
    let only = |name: &str| metrics.iter().find(|metric| metric.name == name).map(|metric| metric.samples[0]);
    assert_eq!(only("a list of what is unchanged: lists"), Some(1.0));
    assert_eq!(only("a list of what is unchanged: notices"), Some(0.0));
    assert_eq!(only("a start with state on disk: lists"), Some(0.0));
    assert_eq!(only("forebay-informer: connections of 10 informers"), Some(1.0));
    let told = |client| only(&format!("{client}: an event to 10 handlers, one by one: told of each"));
    assert_eq!(told("forebay-informer"), Some(1.0), "{metrics:?}");
    // kube-rs tells of an object twice when it is in the list and in an event of the watch that follows.
    for client in ["kube-rs", "kube-rs-streaming"] {
        assert!(told(client) >= Some(1.0), "{client}: {metrics:?}");
    }
}
