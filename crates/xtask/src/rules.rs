//! `cargo xtask rules`: the differential over operators' definitions, whole; what an evaluation takes.
//!
//! In: which definitions, all unless said otherwise; or `--times`. Out: the test's own output; what differs
//! is written to `rules.txt` in cargo's target directory. Never: a judgement of its own.

use crate::run::{self, Done};

/// - `args`: `[NAME] [--show] [--release]`, or `--times`.
pub fn rules(args: &[String]) -> Done {
    if args == ["--times"] {
        let mut command =
            run::cargo(&["test", "--release", "--package", "forebay-cel", "--test", "upstream", "times"]);
        return run::run(command.env("FOREBAY_RULE_TIMES", "1").args(["--", "--nocapture"]));
    }
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "rules"]);
    command.env("FOREBAY_RULES", "all");
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("rules.txt"));
    for arg in args {
        match arg.as_str() {
            "--show" => drop(command.env("FOREBAY_RULES_SHOW", "1")),
            "--release" => drop(command.arg("--release")),
            other if other.starts_with('-') => return Err(format!("rules has no {other}")),
            name => drop(command.env("FOREBAY_RULES", name)),
        }
    }
    run::run(command.args(["--", "--nocapture"]))
}
