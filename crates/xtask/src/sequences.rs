//! `cargo xtask sequences`: the differential of server-side apply, whole.
//!
//! In: how many sequences, from which seed, and how many of those that pause. Out: the test's own output;
//! what differs is shrunk, and written to `sequences.txt` in cargo's target directory, what became of each to
//! `sequences.state` there. Never: a judgement of its own.
//!
//! A run may be stopped at any time: `--resume` goes on from that file, `--seconds` stops by itself.

use crate::run::{self, Done};

/// What issue 30 asks for.
const COUNT: &str = "20000";
const PAUSED: &str = "500";
/// Of each kind that changes meanwhile.
const REDEFINED: &str = "100";

/// - `args`: `[--count N] [--from S] [--paused N] [--redefined N] [--kind PLURAL] [--at-once N] [--seconds S]
///   [--resume] [--same] [--all] [--release]`.
pub fn sequences(args: &[String]) -> Done {
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "sequences"]);
    command.env("FOREBAY_SEQUENCES", COUNT).env("FOREBAY_SEQUENCES_PAUSED", PAUSED);
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("sequences.txt"));
    let state = run::target_dir()?.join("sequences.state");
    let is_resumed = args.iter().any(|arg| arg == "--resume");
    if !is_resumed {
        match std::fs::remove_file(&state) {
            Err(why) if why.kind() != std::io::ErrorKind::NotFound => {
                return Err(format!("{}: {why}", state.display()));
            }
            _ => {}
        }
    }
    command.env("FOREBAY_SEQUENCES_STATE", &state);
    // Of those nothing is kept.
    command.env("FOREBAY_SEQUENCES_REDEFINED", if is_resumed { "0" } else { REDEFINED });
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
            "--redefined" => set("FOREBAY_SEQUENCES_REDEFINED")?,
            "--kind" => set("FOREBAY_SEQUENCES_KIND")?,
            "--at-once" => set("FOREBAY_SEQUENCES_AT_ONCE")?,
            "--seconds" => set("FOREBAY_SEQUENCES_SECONDS")?,
            "--resume" => {}
            "--same" => drop(command.env("FOREBAY_SEQUENCES_SAME", "1")),
            "--all" => drop(command.env("FOREBAY_SEQUENCES_ALL", "1")),
            "--release" => drop(command.arg("--release")),
            other => return Err(format!("sequences has no {other}")),
        }
    }
    run::run(command.args(["--", "--nocapture"]))
}
