//! `cargo xtask e2e`: upstream's own end-to-end specs of what an API server does.
//!
//! In: which specs, and whose server. Out: the specs' own output, and an exit code that says whether those
//! that failed are the ones that `crates/conformance/allowed/e2e.txt` knows. All runs in a network of its
//! own, so that pods have an address and ports that nothing else has; where there is none to be had, specs
//! that need pods are left out, and under `CI=true` none is run. Never: a judgement of its own.

use std::process::{Command, Stdio};

use crate::peers;
use crate::run::{self, Done};

/// Begins what follows as the root of a user and a network namespace of its own.
const APART: [&str; 4] = ["unshare", "--user", "--map-root-user", "--net"];
/// Of the range for networks that are tried out; the only one there but loopback.
const ADDRESS: &str = "198.18.0.1";
/// Brings both up, and begins the rest of the line.
const SET_UP: &str = "ip link set lo up && ip address add \"$0/32\" dev lo && exec \"$@\"";

/// - `args`: `[--focus REGEX] [--rival] [--release]`.
pub fn e2e(args: &[String]) -> Done {
    let mut test = run::cargo(&["test", "--package", "forebay-conformance", "--test", "e2e"]);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--focus" => {
                test.env("FOREBAY_E2E_FOCUS", args.next().ok_or("--focus needs a value")?);
            }
            "--rival" => {
                test.env("FOREBAY_TEST_SERVER", "kube-apiserver");
            }
            "--release" => {
                test.arg("--release");
            }
            other => return Err(format!("e2e has no {other}")),
        }
    }
    peers::ensure_all()?;
    let [specs, agnhost] = peers::ensure_e2e()?;
    test.env("FOREBAY_E2E", specs).env("FOREBAY_AGNHOST", agnhost);
    // While there is a network to fetch from; the server may be built by the test.
    run::run(&mut run::cargo(&["fetch", "--locked"]))?;
    run::run(like(&test, test.get_program().into()).args(test.get_args()).arg("--no-run"))?;
    test.args(["--", "--nocapture"]);
    match network() {
        Ok(()) => {
            let mut apart = like(&test, APART[0].into());
            apart.args(&APART[1..]).args(["sh", "-c", SET_UP, ADDRESS]);
            apart.arg(test.get_program()).args(test.get_args()).env("FOREBAY_E2E_ADDRESS", ADDRESS);
            run::run(&mut apart)
        }
        Err(why) if run::in_ci() => Err(why),
        Err(why) => {
            eprintln!("{why}: specs that need pods are left out");
            run::run(&mut test)
        }
    }
}

/// A command of another program, where `command` runs and with what it is told by its environment.
fn like(command: &Command, program: std::ffi::OsString) -> Command {
    let mut other = Command::new(program);
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.current_dir(command.get_current_dir().unwrap_or(&run::root()));
    other
}

/// Whether a network of one's own can be had.
fn network() -> Done {
    let mut tried = Command::new(APART[0]);
    tried.args(&APART[1..]).args(["sh", "-c", SET_UP, ADDRESS, "true"]).stdin(Stdio::null());
    run::output(&mut tried).map(drop).map_err(|why| format!("no network namespace: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_like_another_has_its_place_and_its_variables() {
        let mut one = Command::new("a");
        one.arg("x").current_dir("/").env("B", "c").env_remove("D");
        let other = like(&one, "e".into());
        assert_eq!((other.get_program(), other.get_args().len()), ("e".as_ref(), 0));
        assert_eq!(other.get_current_dir(), one.get_current_dir());
        assert_eq!(other.get_envs().collect::<Vec<_>>(), [("B".as_ref(), Some("c".as_ref()))]);
    }
}
