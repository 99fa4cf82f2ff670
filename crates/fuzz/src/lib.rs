//! Mutated inputs for parsers, as ordinary tests: each parser's crate has a test named `fuzz` that calls
//! [`run`].
//!
//! In: inputs that are good, words that mean something in them, and what to do with an input. Out: nothing,
//! or the panic of the check with the input that made it. What the check returns guides the search: an input
//! with an answer that no other had is mutated further, so that the inputs work their way behind the first
//! error. From the same seed come the same inputs.
//!
//! What each input costs is held to a [law] as well: bytes asked of the allocator, at a time and in all, and
//! steps, against the length of the input and what the target [says](charged) was charged for it.
//!
//! `FOREBAY_FUZZ_INPUTS` is how many inputs each target gets (`cargo xtask fuzz` sets it for a long run),
//! `FOREBAY_FUZZ_SEED` where they begin. Never: reads the clock.

pub mod law;
mod mutate;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use forebay_rt::Random;

pub use crate::law::{charged, paid, peak_of, stepped};
use crate::mutate::Mutator;

/// Inputs of a target unless the environment says otherwise: a second or so in a debug build.
const INPUTS: u64 = 10_000;

/// Inputs that are mutated further; later ones take the place of earlier ones.
const KEPT_MAX: usize = 1_024;

/// What a target begins with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Corpus<'a> {
    /// Inputs, good ones for the most part.
    pub inputs: &'a [&'a [u8]],
    /// What is put into them.
    pub words: &'a [&'a str],
    /// Longest input; 0 is 4 KiB.
    pub bytes_max: usize,
    /// Share of the usual number of inputs, for slow targets: one in so many; 0 is all.
    pub one_in: u64,
}

/// Gives `check` the inputs of `corpus`, and mutations of them.
///
/// - `check`: panics when the input shows a fault; what it returns is the answer that guides the search: `Ok`
///   or which error, and what else tells two ways through the parser apart.
///
/// # Panics
/// When `check` does; the input is printed before.
pub fn run<A: Hash>(name: &str, corpus: &Corpus<'_>, mut check: impl FnMut(&[u8]) -> A) {
    let (seed, inputs) = (setting("FOREBAY_FUZZ_SEED", 1), setting("FOREBAY_FUZZ_INPUTS", INPUTS));
    let mut kept: Vec<Vec<u8>> = corpus.inputs.iter().map(|input| input.to_vec()).collect();
    let mut answers = HashSet::new();
    for input in &kept {
        answers.insert(answer(name, input, &mut check));
    }
    let bytes_max = if corpus.bytes_max == 0 { 4 << 10 } else { corpus.bytes_max };
    let given = kept.len();
    let mutator = Mutator { random: Random::seeded(seed), words: corpus.words, bytes_max };
    for _ in 0..inputs / corpus.one_in.max(1) {
        let input = mutator.next(&kept, given);
        if !answers.insert(answer(name, &input, &mut check)) {
            continue;
        }
        match kept.len() < KEPT_MAX {
            true => kept.push(input),
            false => {
                // Never one that it began with.
                kept.remove(given + mutator.random.below((KEPT_MAX - given) as u64) as usize);
                kept.push(input);
            }
        }
    }
}

/// What `check` says of `input`, in short.
fn answer<A: Hash>(name: &str, input: &[u8], check: &mut impl FnMut(&[u8]) -> A) -> u64 {
    let shown = Shown { name, input };
    let mut hasher = DefaultHasher::new();
    law::held(input.len(), || check(input).hash(&mut hasher));
    drop(shown);
    hasher.finish()
}

/// Prints the input when the check panics.
struct Shown<'a> {
    name: &'a str,
    input: &'a [u8],
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: the input was b\"{}\"", self.name, self.input.escape_ascii());
        }
    }
}

/// An error's words without the numbers and quoted parts that come from the input: what tells errors apart.
pub fn gist(error: impl std::fmt::Display) -> String {
    let mut gist = String::new();
    let mut quoted = false;
    for char in error.to_string().chars().take(200) {
        match char {
            '"' | '\'' | '`' => quoted = !quoted,
            _ if quoted || char.is_ascii_digit() => {}
            _ => gist.push(char),
        }
    }
    gist
}

/// A number of the environment.
pub fn setting(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const LOCK: &[u8] = b"open sesame!";

    /// How far the key is right: what a parser with steps would answer.
    fn right(key: &[u8]) -> usize {
        key.iter().zip(LOCK).take_while(|(have, want)| have == want).count()
    }

    #[test]
    fn answers_lead_the_inputs_behind_the_first_error() {
        let best = RefCell::new(0);
        let corpus = Corpus { inputs: &[b"open seXXXXX"], words: &["sam", "e!"], ..Corpus::default() };
        run("lock", &corpus, |key| {
            let right = right(key);
            best.replace_with(|best| right.max(*best));
            right
        });
        // Each step alone is likely within 10,000 inputs, all at once from the first input are not.
        assert_eq!(best.into_inner(), LOCK.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_inputs_and_none_is_too_long() {
        let seen = || {
            let mut seen = Vec::new();
            let corpus = Corpus { inputs: &[b"{}"], words: &["[", "null"], bytes_max: 64, one_in: 100 };
            run("all", &corpus, |input| seen.push(input.to_vec()));
            seen
        };
        let (first, again) = (seen(), seen());
        assert_eq!(first, again);
        assert!(first.len() == 101 && first.iter().all(|input| input.len() <= 64));
        assert!(first.iter().collect::<HashSet<_>>().len() > 50);
    }

    #[test]
    #[should_panic(expected = "found")]
    fn a_check_that_panics_ends_the_run() {
        let corpus = Corpus { inputs: &[b"aaaa"], ..Corpus::default() };
        run("fault", &corpus, |input| assert!(input.len() == 4, "found"));
    }

    #[test]
    fn the_gist_of_an_error_leaves_out_what_came_from_the_input() {
        assert_eq!(gist("found \"x\\y\" at 17, wanted 'a'"), "found  at , wanted ");
    }
}
