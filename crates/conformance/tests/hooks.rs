//! Configurations of webhooks and what they answer, drawn from a seed: ours and kube-apiserver ask the same
//! webhooks the same, in the same order, and make the same of the answers.
//!
//! In: `FOREBAY_HOOK_CASES` cases from seed `FOREBAY_HOOK_CASES_FROM` on; `cargo xtask hooks` sets them. Out:
//! every difference.

use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_conformance::hooks::{HookPair, compare, draw};
use futures_util::StreamExt;

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
