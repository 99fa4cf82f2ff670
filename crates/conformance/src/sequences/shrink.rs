//! The least of a sequence that still parts two servers.
//!
//! In: a sequence that does, and where. Out: one with fewer steps and edits that does, in the same place.
//! Never: more than [`TRIES_MAX`] runs.

use super::kinds::WrittenKind;
use super::run::{Mismatch, run};
use super::step::Sequence;
use crate::pair::Pair;

/// Runs for one sequence; it has at most 17 steps of 5 edits.
const TRIES_MAX: usize = 150;

/// Takes steps and edits away from `sequence` for as long as it still parts them.
///
/// - `name`: begins the names of its objects.
///
/// # Errors
/// What kept a request from being answered.
pub async fn shrunk(
    pair: &Pair,
    kind: &WrittenKind,
    sequence: &Sequence,
    mismatch: Mismatch,
    name: &str,
) -> Result<(Sequence, Mismatch), String> {
    let mut best = (sequence.clone(), mismatch);
    // What comes after the step that differs does not matter.
    best.0.steps.truncate(best.1.step + 1);
    let mut tries = 0;
    let mut is_smaller = true;
    while is_smaller {
        is_smaller = false;
        let mut candidates = smaller(&best.0);
        while let Some(candidate) = candidates.pop() {
            tries += 1;
            if tries > TRIES_MAX {
                return Ok(best);
            }
            let outcome = run(pair, kind, &candidate, &format!("{name}-{tries}")).await?;
            if let Some(found) = outcome.mismatch.filter(|found| found.category == best.1.category) {
                best = (candidate, found);
                best.0.steps.truncate(best.1.step + 1);
                candidates = smaller(&best.0);
                is_smaller = true;
            }
        }
    }
    Ok(best)
}

/// Those with one step less, which are tried first and stand last, and those with one edit less.
fn smaller(sequence: &Sequence) -> Vec<Sequence> {
    let mut all = Vec::new();
    for (at, step) in sequence.steps.iter().enumerate() {
        for edit in 0..step.edits.len() {
            let mut less = sequence.clone();
            less.steps[at].edits.remove(edit);
            all.push(less);
        }
    }
    // The last step is the one that differs.
    for at in (0..sequence.steps.len().saturating_sub(1)).rev() {
        let mut less = sequence.clone();
        less.steps.remove(at);
        all.push(less);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequences::{draw, kinds};

    #[test]
    fn each_candidate_has_a_step_or_an_edit_less() {
        let kinds = kinds().expect("the kinds");
        let size = |sequence: &Sequence| {
            sequence.steps.len() + sequence.steps.iter().map(|step| step.edits.len()).sum::<usize>()
        };
        for seed in 0..50 {
            let sequence = draw(&kinds, seed, false);
            let all = smaller(&sequence);
            assert!(all.iter().all(|less| size(less) < size(&sequence)));
            assert_eq!(all.len(), size(&sequence) - 1);
        }
    }
}
