//! `cargo xtask rights`: the differential of authorization, whole.
//!
//! In: how many questions, over how many policies. Out: the test's own output; what differs is written to
//! `rights.txt` in cargo's target directory. Never: a judgement of its own.

use crate::run::{self, Done};

/// What issue 32 asks for.
const COUNT: &str = "20000";
const POLICIES: &str = "200";

/// - `args`: `[--count N] [--policies N]`.
pub fn rights(args: &[String]) -> Done {
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "authorization"]);
    command.env("FOREBAY_RIGHTS", COUNT);
    command.env("FOREBAY_RIGHTS_POLICIES", POLICIES);
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("rights.txt"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let variable = match arg.as_str() {
            "--count" => "FOREBAY_RIGHTS",
            "--policies" => "FOREBAY_RIGHTS_POLICIES",
            other => return Err(format!("rights has no {other}")),
        };
        command.env(variable, args.next().ok_or_else(|| format!("{arg} needs a value"))?);
    }
    run::run(command.args(["--", "--nocapture"]))
}
