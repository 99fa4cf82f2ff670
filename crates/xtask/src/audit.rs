//! `cargo xtask audit`: the differential of audit logs, whole.
//!
//! In: how many policies and requests, from which policy. Out: the test's own output; what differs is written
//! to `audit.txt` in cargo's target directory. Never: a judgement of its own.

use crate::run::{self, Done};

/// What issue 32 asks for.
const POLICIES: &str = "20";
const REQUESTS: &str = "2000";

/// - `args`: `[--policies N] [--requests N] [--from P]`.
pub fn audit(args: &[String]) -> Done {
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "audit"]);
    command.env("FOREBAY_AUDIT_POLICIES", POLICIES).env("FOREBAY_AUDIT_REQUESTS", REQUESTS);
    command.env("FOREBAY_AUDIT_POLICIES_FROM", "0");
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("audit.txt"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let variable = match arg.as_str() {
            "--policies" => "FOREBAY_AUDIT_POLICIES",
            "--requests" => "FOREBAY_AUDIT_REQUESTS",
            "--from" => "FOREBAY_AUDIT_POLICIES_FROM",
            other => return Err(format!("audit has no {other}")),
        };
        command.env(variable, args.next().ok_or_else(|| format!("{arg} needs a value"))?);
    }
    run::run(command.args(["--", "--nocapture"]))
}
