//! `cargo xtask sequences`: the differential of server-side apply, whole.
//!
//! In: how many sequences, from which seed, and how many of those that pause. Out: the test's own output;
//! what differs is shrunk, and written to `sequences.txt` in cargo's target directory. Never: a judgement
//! of its own.

use crate::run::{self, Done};

/// What issue 30 asks for.
const COUNT: &str = "20000";
const PAUSED: &str = "500";

/// - `args`: `[--count N] [--from S] [--paused N] [--kind PLURAL] [--same] [--all] [--release]`.
pub fn sequences(args: &[String]) -> Done {
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "sequences"]);
    command.env("FOREBAY_SEQUENCES", COUNT).env("FOREBAY_SEQUENCES_PAUSED", PAUSED);
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("sequences.txt"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut set = |variable: &str| match args.next() {
            Some(value) => {
                command.env(variable, value);
                Ok(())
            }
            None => Err(format!("{arg} needs a value")),
        };
        match arg.as_str() {
            "--count" => set("FOREBAY_SEQUENCES")?,
            "--from" => set("FOREBAY_SEQUENCES_FROM")?,
            "--paused" => set("FOREBAY_SEQUENCES_PAUSED")?,
            "--kind" => set("FOREBAY_SEQUENCES_KIND")?,
            "--same" => drop(command.env("FOREBAY_SEQUENCES_SAME", "1")),
            "--all" => drop(command.env("FOREBAY_SEQUENCES_ALL", "1")),
            "--release" => drop(command.arg("--release")),
            other => return Err(format!("sequences has no {other}")),
        }
    }
    run::run(command.args(["--", "--nocapture"]))
}
