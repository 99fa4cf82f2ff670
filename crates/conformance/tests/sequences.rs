//! Sequences of writes by several managers, to ours and to kube-apiserver: the same answers, and the same
//! managedFields after each.
//!
//! In: `FOREBAY_SEQUENCES` sequences from seed `FOREBAY_SEQUENCES_FROM` on, and `FOREBAY_SEQUENCES_PAUSED`
//! more that pause between steps; `cargo xtask sequences` sets them. `FOREBAY_SEQUENCES_KIND` is a plural
//! that alone is written; with `FOREBAY_SEQUENCES_SAME` kube-apiserver is compared with itself, which shows
//! what the comparison takes for a difference, and with `FOREBAY_SEQUENCES_ALL` what is known is shown, too.
//! Out: what differs, by category, the shortest of each shrunk; held against `allowed/sequences.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use forebay_clients::needs;
use forebay_clients::server::Implementation;
use forebay_conformance::sequences::{Mismatch, Sequence, WrittenKind, draw, kinds, prepare, run, shrunk};
use forebay_conformance::{Allowed, Pair};
use futures_util::StreamExt;

/// Sequences of a run that nobody asked more of.
const COUNT: u64 = 200;
const PAUSED: u64 = 12;
/// Sequences in flight.
const AT_ONCE: usize = 8;
/// The same of those that wait most of the time.
const PAUSED_AT_ONCE: usize = 100;
/// Categories of which one is shrunk.
const SHRUNK_MAX: usize = 60;
/// A line says how far it is after so many.
const PROGRESS: usize = 1_000;

struct Different {
    sequence: Sequence,
    mismatch: Mismatch,
}

fn asked(name: &str, default: u64) -> u64 {
    let text = std::env::var(format!("FOREBAY_SEQUENCES{name}")).unwrap_or_default();
    if text.is_empty() { default } else { text.parse().unwrap_or_else(|e| panic!("{name}: {text}: {e}")) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_writes_leave_the_same_owners_of_fields() {
    if !needs::peers_or_skip() {
        return;
    }
    let (count, from, paused) = (asked("", COUNT), asked("_FROM", 1), asked("_PAUSED", PAUSED));
    let is_same = asked("_SAME", 0) == 1;
    let ours = if is_same { Implementation::KubeApiserver } else { Implementation::Forebay };
    let mut kinds = kinds().expect("the kinds");
    let wanted = std::env::var("FOREBAY_SEQUENCES_KIND").unwrap_or_default();
    kinds.retain(|kind| wanted.is_empty() || kind.plural == wanted);
    let pair = Pair::start_with(ours).await.expect("both servers");
    prepare(&pair, &kinds).await.unwrap_or_else(|why| panic!("{why}"));

    let all = (from..from + count).map(|seed| draw(&kinds, seed, false)).collect();
    let mut codes = BTreeMap::new();
    let mut found = differences(&pair, &kinds, all, AT_ONCE, &mut codes).await;
    let all = (from..from + paused).map(|seed| draw(&kinds, seed, true)).collect();
    found.extend(differences(&pair, &kinds, all, PAUSED_AT_ONCE, &mut codes).await);

    let shows_all = is_same || asked("_ALL", 0) == 1;
    let known = if shows_all { "" } else { include_str!("../allowed/sequences.txt") };
    let mut allowed = Allowed::parse(known).expect("the allowed differences");
    // category, with its kind -> the sequences
    let mut categories: BTreeMap<String, Vec<Different>> = BTreeMap::new();
    for different in found {
        let plural = &kinds[different.sequence.kind].plural;
        categories.entry(format!("{plural}: {}", different.mismatch.category)).or_default().push(different);
    }
    let all: usize = categories.values().map(Vec::len).sum();
    categories.retain(|category, _| !allowed.permits(category));
    let different: usize = categories.values().map(Vec::len).sum();
    let equal = count + paused - all as u64;
    println!(
        "figure: {equal} of {} sequences are equal, {} differ as is known",
        count + paused,
        all - different
    );
    println!("figure: steps by kube-apiserver's answer: {codes:?}");
    let report = report(&pair, &kinds, &categories).await;
    if let Some(path) = std::env::var_os("FOREBAY_CONFORMANCE_REPORT") {
        std::fs::write(path, &report).expect("the report");
    }
    // Others than the sample need not find all that is known.
    let is_sample = wanted.is_empty() && (count, from, paused) == (COUNT, 1, PAUSED);
    let stale = if is_sample { allowed.stale() } else { Vec::new() };
    assert!(categories.is_empty(), "{different} of {} sequences differ:\n{report}", count + paused);
    assert!(stale.is_empty(), "no longer different: {stale:#?}");
}

/// Sends all of them, so many at once, and counts steps by their answer's code.
async fn differences(
    pair: &Pair,
    kinds: &[WrittenKind],
    all: Vec<Sequence>,
    at_once: usize,
    codes: &mut BTreeMap<u16, usize>,
) -> Vec<Different> {
    let count = all.len();
    let runs = all.into_iter().map(|sequence| async move {
        let kind = &kinds[sequence.kind];
        let name = format!("s{}{}", sequence.seed, if sequence.pauses { "p" } else { "" });
        let outcome = run(pair, kind, &sequence, &name).await;
        (outcome.unwrap_or_else(|why| panic!("{name}: {why}\n{}", sequence.shown(kind))), sequence)
    });
    let mut found = Vec::new();
    let mut answers = futures_util::stream::iter(runs).buffer_unordered(at_once).enumerate();
    while let Some((at, (outcome, sequence))) = answers.next().await {
        outcome.codes.iter().for_each(|code| *codes.entry(*code).or_default() += 1);
        found.extend(outcome.mismatch.map(|mismatch| Different { sequence, mismatch }));
        if (at + 1) % PROGRESS == 0 {
            eprintln!("{} of {count} sequences, {} differ", at + 1, found.len());
        }
    }
    found
}

async fn report(pair: &Pair, kinds: &[WrittenKind], categories: &BTreeMap<String, Vec<Different>>) -> String {
    let mut text = String::new();
    // category -> the kinds
    let mut summary: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for (category, all) in categories {
        let (plural, category) = category.split_once(": ").unwrap_or(("", category));
        let (count, plurals) = summary.entry(category).or_default();
        *count += all.len();
        plurals.push(plural);
    }
    let mut summary: Vec<_> = summary.into_iter().collect();
    summary.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (category, (count, plurals)) in &summary {
        let _ = writeln!(text, "{count:5} {category}: {}", plurals.join(" "));
    }
    for (at, (category, (_, plurals))) in summary.iter().take(SHRUNK_MAX).enumerate() {
        let all =
            plurals.iter().filter_map(|plural| categories.get(&format!("{plural}: {category}"))).flatten();
        let shown = |different: &Different| different.sequence.shown(&kinds[different.sequence.kind]);
        // The shortest needs least shrinking. One that pauses would take minutes.
        let shortest = all.min_by_key(|different| (different.sequence.pauses, shown(different).len()));
        let Some(Different { sequence, mismatch }) = shortest else { continue };
        let kind = &kinds[sequence.kind];
        let (mut sequence, mut mismatch) = (sequence.clone(), mismatch.clone());
        if !sequence.pauses {
            match shrunk(pair, kind, &sequence, mismatch.clone(), &format!("shrunk-{at}")).await {
                Ok(less) => (sequence, mismatch) = less,
                Err(why) => {
                    let _ = writeln!(text, "\n{category}: cannot be shrunk: {why}");
                }
            }
        }
        let _ = writeln!(
            text,
            "\n{}: {category}\n  seed {}{}\n{}  {}\n  ours   {}\n  theirs {}",
            kind.plural,
            sequence.seed,
            if sequence.pauses { ", pauses" } else { "" },
            sequence.shown(kind),
            mismatch.request,
            mismatch.ours,
            mismatch.theirs
        );
    }
    text
}
