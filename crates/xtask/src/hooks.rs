//! `cargo xtask hooks`: the differential of admission webhooks, whole.
//!
//! In: how many cases, from which seed. Out: the test's own output; what differs is written to `hooks.txt` in
//! cargo's target directory. Never: a judgement of its own.

use crate::run::{self, Done};

/// What issue 31 asks for.
const COUNT: &str = "2000";

/// - `args`: `[--count N] [--from S]`.
pub fn hooks(args: &[String]) -> Done {
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "hooks"]);
    command.env("FOREBAY_HOOK_CASES", COUNT);
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("hooks.txt"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let variable = match arg.as_str() {
            "--count" => "FOREBAY_HOOK_CASES",
            "--from" => "FOREBAY_HOOK_CASES_FROM",
            other => return Err(format!("hooks has no {other}")),
        };
        command.env(variable, args.next().ok_or_else(|| format!("{arg} needs a value"))?);
    }
    run::run(command.args(["--", "--nocapture"]))
}
