//! `cargo xtask fuzz`: the tests that give mutated inputs to parsers, for longer than ci does.
//!
//! In: how many inputs each target gets, and from which seed. Out: the tests' own output; a failure shows its
//! input.

use crate::run::{self, Done};

/// About a hundred times what ci does.
const INPUTS: u64 = 1_000_000;

/// - `args`: `[inputs [seed]]`.
pub fn fuzz(args: &[String]) -> Done {
    let number = |place: usize, default: u64| match args.get(place) {
        None => Ok(default),
        Some(text) => text.parse().map_err(|_| format!("{text:?} is no number; fuzz [inputs [seed]]")),
    };
    let (inputs, seed): (u64, u64) = (number(0, INPUTS)?, number(1, 1)?);
    let mut command = run::cargo(&["test", "--release", "--workspace", "--no-fail-fast", "fuzz_"]);
    command.env("FOREBAY_FUZZ_INPUTS", inputs.to_string()).env("FOREBAY_FUZZ_SEED", seed.to_string());
    run::run(&mut command)
}
