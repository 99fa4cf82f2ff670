//! Configurations of webhooks and what they answer, drawn from a seed: ours and kube-apiserver ask the same
//! webhooks the same, in the same order, and make the same of the answers.
//!
//! In: `FOREBAY_HOOK_CASES` cases from seed `FOREBAY_HOOK_CASES_FROM` on; `cargo xtask hooks` sets them. Out:
//! every difference.

use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_conformance::Peer;
use forebay_conformance::hooks::{
    HookCase, HookPair, ODD, compare, draw, odd_cases, wide_case, wide_definition,
};
use forebay_conformance::pair::Request;
use futures_util::StreamExt;
use http::Method;

/// Cases of a run that nobody asked more of.
const COUNT: u64 = 60;
const AT_ONCE: usize = 8;
/// A line says how far it is after so many.
const PROGRESS: usize = 500;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_are_asked_the_same_and_what_they_answer_is_taken_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let asked = |name: &str, default: u64| {
        let text = std::env::var(format!("FOREBAY_HOOK_CASES{name}")).unwrap_or_default();
        if text.is_empty() { default } else { text.parse().expect("a number") }
    };
    let (count, from) = (asked("", COUNT), asked("_FROM", 1));
    let servers = HookPair::start().await.expect("both servers");
    let (mut steps, mut reviews, mut refused, mut different) = (0, 0, 0, 0);
    let mut failure = String::new();
    let servers = &servers;
    let cases = futures_util::stream::iter((from..from + count).map(draw));
    let runs = cases.map(|case| async move { (compare(servers, &case).await, case) });
    let mut found = runs.buffer_unordered(AT_ONCE).enumerate();
    while let Some((at, (compared, case))) = found.next().await {
        let compared = compared.unwrap_or_else(|why| panic!("{}: {why}", case.name));
        steps += compared.steps;
        reviews += compared.asked;
        refused += compared.refused;
        if !compared.lines.is_empty() {
            different += 1;
            let _ = writeln!(failure, "{}\nunder {:?}\n", compared.lines.join("\n"), case.configurations);
        }
        if (at + 1) % PROGRESS == 0 {
            eprintln!("{} of {count} cases, {different} differ", at + 1);
        }
    }
    println!("figure: {count} cases, {steps} answers, {refused} of them refusals, {reviews} reviews");
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &failure).expect("the report");
    }
    assert!(different == 0, "{different} of {count} cases differ:\n{failure}");
}

/// What is counted of calls.
const COUNTED: [&str; 3] = [
    "apiserver_admission_webhook_request_total{",
    "apiserver_admission_webhook_rejection_count{",
    "apiserver_admission_webhook_fail_open_count{",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_answers_are_taken_and_counted_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let servers = HookPair::start().await.expect("both servers");
    let only = std::env::var("FOREBAY_HOOK_ODD").unwrap_or_default();
    let is_wanted = |case: &HookCase| format!("{:?}", case.configurations).contains(&format!("{only}\""));
    let cases: Vec<HookCase> =
        odd_cases().into_iter().filter(|case| only.is_empty() || is_wanted(case)).collect();
    let (count, servers) = (cases.len(), &servers);
    let runs =
        futures_util::stream::iter(cases).map(|case| async move { (compare(servers, &case).await, case) });
    let mut found = runs.buffer_unordered(AT_ONCE);
    let mut different = Vec::new();
    while let Some((compared, case)) = found.next().await {
        let compared = compared.unwrap_or_else(|why| panic!("{}: {why}", case.name));
        if !compared.lines.is_empty() {
            different.push(format!("{}\nunder {:?}\n", compared.lines.join("\n"), case.configurations));
        }
    }
    let (ours, theirs) = (counted(&servers.pair.ours).await, counted(&servers.pair.theirs).await);
    let missing = |of: &[String], line: &&String| !of.contains(line);
    let more: Vec<_> = ours.iter().filter(|line| missing(&theirs, line)).collect();
    let fewer: Vec<_> = theirs.iter().filter(|line| missing(&ours, line)).collect();
    println!("figure: {count} odd answers, {} series", theirs.len());
    different.sort();
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, format!("{}\n{more:#?}\n{fewer:#?}", different.join("\n"))).expect("the report");
    }
    assert!(different.is_empty(), "{} of {count} cases differ:\n{}", different.len(), different.join("\n"));
    assert!(more.is_empty() && fewer.is_empty(), "ours alone counts {more:#?}, theirs alone {fewer:#?}");
}

/// What a server has counted of the webhooks with odd answers.
async fn counted(peer: &Peer) -> Vec<String> {
    let asked = peer.ask(&Request::new(Method::GET, "/metrics".to_owned()), "*/*").await;
    let text = String::from_utf8_lossy(&asked.expect("metrics").body).into_owned();
    let is_of = |line: &&str| line.contains(ODD) && COUNTED.iter().any(|name| line.starts_with(name));
    let mut all: Vec<String> = text.lines().filter(is_of).map(String::from).collect();
    all.sort();
    all
}

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// How often it is looked whether the definition is served; a look takes half a millisecond.
const LOOKS_MAX: usize = 20_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_verb_subresource_and_version_is_asked_about_the_same() {
    if !needs::peers_or_skip() {
        return;
    }
    let servers = HookPair::start().await.expect("both servers");
    for peer in [&servers.pair.ours, &servers.pair.theirs] {
        let made = peer.send(Method::POST, DEFINITIONS, Some(&wide_definition())).await.expect("an answer");
        assert_eq!(made.code, 201, "{:?}", made.body);
        for version in ["v1", "v2"] {
            let path = format!("/apis/wide.example.com/{version}/namespaces/default/wides");
            for look in 0.. {
                assert!(look < LOOKS_MAX, "{version} is not served");
                if peer.send(Method::GET, &path, None).await.is_ok_and(|answer| answer.code == 200) {
                    break;
                }
            }
        }
    }
    let compared = compare(&servers, &wide_case()).await.expect("a comparison");
    println!("figure: {} answers, {} reviews", compared.steps, compared.asked);
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, compared.lines.join("\n")).expect("the report");
    }
    assert!(compared.lines.is_empty(), "{}", compared.lines.join("\n"));
}
