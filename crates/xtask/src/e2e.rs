//! `cargo xtask e2e`: upstream's own end-to-end specs of what an API server does.
//!
//! In: which specs, and whose server. Out: the specs' own output, and an exit code that says whether those
//! that failed are the ones that `crates/conformance/allowed/e2e.txt` knows. Never: a judgement of its own.

use crate::peers;
use crate::run::{self, Done};

/// - `args`: `[--focus REGEX] [--rival] [--release]`.
pub fn e2e(args: &[String]) -> Done {
    let mut command = run::cargo(&["test", "--package", "forebay-conformance", "--test", "e2e"]);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--focus" => {
                command.env("FOREBAY_E2E_FOCUS", args.next().ok_or("--focus needs a value")?);
            }
            "--rival" => {
                command.env("FOREBAY_TEST_SERVER", "kube-apiserver");
            }
            "--release" => {
                command.arg("--release");
            }
            other => return Err(format!("e2e has no {other}")),
        }
    }
    peers::ensure_all()?;
    command.env("FOREBAY_E2E", peers::ensure_e2e()?);
    run::run(command.args(["--", "--nocapture"]))
}
