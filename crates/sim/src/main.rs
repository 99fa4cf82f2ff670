//! Runs seeds: `forebay-sim [--seeds N] [--from S] [--print] [--first]`; N is CI's unless given, `--first`
//! ends with the first failure.
//!
//! Out: what happened in all of them together, and each failure with its seed.

#![allow(clippy::disallowed_methods, reason = "it says how long it took; nothing simulated sees that")]

use std::process::ExitCode;
use std::time::Instant;

use forebay_sim::{CI_SEEDS, Seen, run};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str| {
        let at = args.iter().position(|arg| arg == flag)?;
        args.get(at + 1)?.parse::<u64>().ok()
    };
    let (from, seeds) = (number("--from").unwrap_or(0), number("--seeds").unwrap_or(CI_SEEDS));
    let first = args.iter().any(|arg| arg == "--first");
    let print = args.iter().any(|arg| arg == "--print");
    let (began, mut seen, mut failures, mut ms) = (Instant::now(), Seen::default(), 0, 0);
    for seed in from..from + seeds {
        match run(seed, print) {
            Ok(report) => {
                ms += report.ms;
                seen += report.seen;
            }
            Err(failure) => {
                failures += 1;
                eprintln!("{failure}");
                if first {
                    break;
                }
            }
        }
    }
    let took = began.elapsed().as_secs_f64();
    println!("{seen}");
    println!(
        "{seeds} seeds from {from}, {failures} failed; {took:.1} s, {:.1} seeds/s, {:.1} h simulated",
        seeds as f64 / took,
        ms as f64 / 3.6e6
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
