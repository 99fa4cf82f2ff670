//! The catalogue of hostile requests and connections at size 10 against our own server: it survives each,
//! answers as it may, grows no more than it may, and no bystander is failed. Times are not looked at: those
//! are for the bench.
//!
//! In: the `forebay` binary that cargo put beside this test. Never: the rival, so no Go.

use std::path::PathBuf;
use std::time::Duration;

use forebay_bench::client::Protocol;
use forebay_bench::contender::Contender;
use forebay_bench::forebay::Forebay;
use forebay_bench::hostile::{Contest, rows};
use forebay_bench::lab::Lab;
use forebay_bench::objects::Objects;
use forebay_bench::overload::Overload;
use forebay_bench::scenarios::Scenario;

/// `target/<profile>/forebay`: this test is `target/<profile>/deps/hostile-<hash>`.
fn forebay() -> Contender {
    let this = std::env::current_exe().expect("a test knows its own path");
    let profile: PathBuf = this.ancestors().nth(2).expect("cargo puts tests two levels down").to_owned();
    Contender::Forebay(Forebay::at(&profile.join("forebay")).unwrap_or_else(|why| panic!("{why}")))
}

fn small(only: &[&str]) -> Lab {
    Lab {
        size: 10,
        objects: Objects::Pods,
        is_governed: false,
        clients: 1,
        listers: 1,
        rounds: 1,
        watchers: 1,
        crowd: 1,
        servers: 1,
        runs: Some(1),
        protocol: Protocol::Http1,
        settle: Duration::ZERO,
        static_server: None,
        sizes: vec![10],
        crowds: vec![1],
        rival_max: 10,
        storm_writes: 0,
        million: 10,
        only: only.iter().map(|name| (*name).to_owned()).collect(),
        overload: Overload::default(),
        base: std::env::temp_dir(),
    }
}

/// Tries all rows of `families`, each of which has to be within the law.
async fn check(families: &[&str]) {
    let (lab, who) = (small(&[]), forebay());
    let mut contest = Contest::new(&lab, &who);
    let mut broken = Vec::new();
    for row in families.iter().flat_map(|family| rows::of(family)) {
        let measure = contest.run(row).await.unwrap_or_else(|why| panic!("{}: {why}", row.name));
        if !measure.broken.is_empty() {
            let seen = &measure.seen.first_failure;
            broken.push(format!("{}: {}: {measure:?} {seen}", row.name, measure.broken.join(", ")));
        }
    }
    assert!(broken.is_empty(), "{} rows:\n{}", broken.len(), broken.join("\n"));
}

#[tokio::test]
async fn hostile_bodies_at_size_10_hurt_nobody() {
    check(&["yaml", "json", "protobuf", "objects", "tokens"]).await;
}

#[tokio::test]
async fn hostile_patches_and_definitions_at_size_10_hurt_nobody() {
    check(&["patches", "definitions", "requests"]).await;
}

#[tokio::test]
async fn hostile_heads_and_connections_at_size_10_hurt_nobody() {
    check(&["queries", "headers", "http1", "websocket", "tls"]).await;
}

#[tokio::test]
async fn hostile_webhooks_and_policies_at_size_10_hurt_nobody() {
    check(&["webhooks", "policies"]).await;
}

#[tokio::test]
async fn hostile_conversions_and_aggregated_servers_at_size_10_hurt_nobody() {
    check(&["conversions", "aggregated"]).await;
}

#[tokio::test]
async fn hostile_authorizers_and_plugins_at_size_10_hurt_nobody() {
    check(&["audit", "authorizers", "encryption", "signers"]).await;
}

#[tokio::test]
async fn hostile_frames_at_size_10_hurt_nobody() {
    check(&["http2"]).await;
}

#[tokio::test]
async fn the_scenario_hostile_has_a_line_for_each_row_that_was_chosen() {
    let names = ["queries-name-with-nul", "headers-front-proxy"];
    let outcome =
        Scenario::Hostile.run(&small(&names), &forebay()).await.unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(outcome.rows.len(), 2, "{outcome:?}");
    let survived = outcome.metrics.iter().find(|metric| metric.name == "rows survived");
    assert_eq!(survived.map(|metric| metric.samples.clone()), Some(vec![2.0]));
}
