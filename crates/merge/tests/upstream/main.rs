//! Upstream's own cases: what structured-merge-diff's tests ask of it and what it answers, and random
//! sequences.
//!
//! In: the Go module at the version that the schema's table was made with, out of Go's module cache, at test
//! time. Its code is copied, what is asked of it is written down while its own tests run ([`recorded`]), and
//! all of it is asked of this crate ([`replay`]). Out: an answer that differs fails. Never: a copy of its
//! cases here. Without Go it is a loud skip, and a failure under `CI=true`.

mod recorded;
mod replay;
mod types;

use std::collections::BTreeMap;

/// Random sequences of updates and applies that are run: 3 managers, 2 to 7 steps each.
const SEQUENCES: u32 = 1_000;

/// What must be recorded of upstream's tests at least: fewer would mean that they are not asked any more.
const RECORDS_MIN: usize = 4_000;

/// Asks all of it, and says by file how much is answered alike.
fn check(records: &str) -> usize {
    let mut replayed = replay::Replay::default();
    let mut by_file: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in records.lines() {
        let record = serde_json::from_str(line).expect("a record is JSON");
        let Some(answer) = replayed.ask(&record) else { continue };
        let at = record["at"].as_str().unwrap_or_default();
        let of_file = by_file.entry(at.split(':').next().unwrap_or_default().to_owned()).or_default();
        of_file.1 += 1;
        match answer {
            Ok(()) => of_file.0 += 1,
            Err(why) => wrong.push(format!("{at} {}: {why}\n  {}", record["kind"], short(line))),
        }
    }
    for (file, (right, all)) in &by_file {
        println!("{right:>5} of {all:>5}  {file}");
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong[..wrong.len().min(10)].join("\n"));
    by_file.values().map(|(_, all)| all).sum()
}

fn short(line: &str) -> &str {
    &line[..line.floor_char_boundary(line.len().min(1_500))]
}

#[test]
fn what_upstreams_tests_ask_is_answered_alike() {
    let Some(records) = recorded::of(&["./value", "./fieldpath", "./typed", "./merge"], &[]) else { return };
    let asked = check(&records);
    assert!(asked >= RECORDS_MIN, "{asked}");
}

#[test]
fn random_sequences_end_alike() {
    let number = |name, otherwise| std::env::var(name).map_or(Ok(otherwise), |text| text.parse::<u32>());
    let sequences = number("MERGE_SEQUENCES", SEQUENCES).expect("a number");
    let seed = number("MERGE_SEED", 1).expect("a number");
    let (count, seed) = (sequences.to_string(), seed.to_string());
    let settings = [("RECORD_ONLY", "updater"), ("SEQUENCES", &*count), ("SEED", &*seed)];
    let Some(records) = recorded::of(&["./merge", "-run", "TestRecordSequences"], &settings) else { return };
    let asked = check(&records);
    assert!(asked >= sequences as usize, "{asked}");
}
