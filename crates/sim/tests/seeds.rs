//! The seeds that CI runs: nothing is wrong in any of them, everything that may happen happens, and a seed
//! repeats itself.

use std::sync::{Mutex, PoisonError};

use forebay_sim::{CI_SEEDS, Seen, run};

/// Seeds that have found something once; docs/robustness.md says what.
const KEPT: [u64; 5] = [1003, 1007, 1024, 1169, 1370];
/// Of the seeds of CI so many are run once more.
const REPEATED: u64 = 15;

// Caches share what is one for a process, so runs take turns.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn no_client_of_any_seed_is_told_anything_wrong() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut seen, mut failures) = (Seen::default(), Vec::new());
    for seed in (0..CI_SEEDS).chain(KEPT) {
        match run(seed, false) {
            Ok(report) => seen += report.seen,
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    assert!(failures.is_empty(), "{} seeds failed\n{}", failures.len(), failures.join("\n"));
    let never: Vec<_> = seen.all().into_iter().filter(|(_, count)| *count == 0).collect();
    assert!(never.is_empty(), "what never happened proves nothing: {never:?} of {seen}");
}

#[test]
fn a_seed_repeats_itself() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for seed in 0..REPEATED {
        let (first, second) = (run(seed, false), run(seed, false));
        assert_eq!(first.ok(), second.ok(), "seed {seed}");
    }
}
