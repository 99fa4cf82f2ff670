//! `cargo xtask plugins`: the differential of admission plugins, whole.
//!
//! In: how many cases of each, from which seed, of which plugins. Out: the test's own output; what differs is
//! written to `plugins.txt` in cargo's target directory. Never: a judgement of its own.

use crate::run::{self, Done};

/// What issue 31 asks for.
const COUNT: &str = "2000";

/// - `args`: `[--count N] [--from S] [--of NAME,...]`.
pub fn plugins(args: &[String]) -> Done {
    let mut command =
        run::cargo(&["test", "--package", "forebay-conformance", "--test", "admission_plugins"]);
    command.env("FOREBAY_PLUGIN_CASES", COUNT);
    command.env("FOREBAY_CONFORMANCE_REPORT", run::target_dir()?.join("plugins.txt"));
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let variable = match arg.as_str() {
            "--count" => "FOREBAY_PLUGIN_CASES",
            "--from" => "FOREBAY_PLUGIN_CASES_FROM",
            "--of" => "FOREBAY_PLUGIN_CASES_OF",
            other => return Err(format!("plugins has no {other}")),
        };
        command.env(variable, args.next().ok_or_else(|| format!("{arg} needs a value"))?);
    }
    run::run(command.args(["--", "--nocapture"]))
}
