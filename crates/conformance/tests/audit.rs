//! Audit logs: under the same policy ours and kube-apiserver note the same of the same requests.
//!
//! In: `FOREBAY_AUDIT_POLICIES` policies from `FOREBAY_AUDIT_POLICIES_FROM` on, each with
//! `FOREBAY_AUDIT_REQUESTS` requests; `cargo xtask audit` sets them. Out: every difference.

use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_conformance::audits::{POLICIES, compare, draw};

/// Policies and requests of a run that nobody asked more of.
const COUNT: usize = 2;
const REQUESTS: usize = 300;
/// The policies that a short run begins with: the one that has most in its log.
const FROM: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_is_noted_of_the_same_requests() {
    if !needs::peers_or_skip() {
        return;
    }
    let asked = |name: &str, default: usize| {
        let text = std::env::var(format!("FOREBAY_AUDIT_{name}")).unwrap_or_default();
        if text.is_empty() { default } else { text.parse().expect("a number") }
    };
    let (count, from) = (asked("POLICIES", COUNT), asked("POLICIES_FROM", FROM));
    let requests = asked("REQUESTS", REQUESTS);
    let (mut events, mut different, mut failure) = (0, 0, String::new());
    for at in 0..count {
        let number = (from + at) % POLICIES.len();
        let (name, policy) = POLICIES[number];
        let script = draw(number as u64, requests);
        let compared = compare(policy, &script).await.unwrap_or_else(|why| panic!("{name}: {why}"));
        events += compared.events;
        different += compared.lines.len();
        for line in compared.lines {
            let _ = writeln!(failure, "{name}: {line}\n");
        }
        eprintln!("{} of {count} policies, {different} requests differ", at + 1);
    }
    println!("figure: {count} policies, {requests} requests each, {events} events");
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &failure).expect("the report");
    }
    assert!(different == 0, "{different} requests differ:\n{failure}");
}
