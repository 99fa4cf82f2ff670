//! `cargo xtask sim`: builds the simulation and runs seeds.
//!
//! In: the simulation's own arguments, passed on as they are, and `--release`. Out: the simulation's output.
//! Never: a judgement of its own.

use crate::run::{self, Done};

/// Runs `forebay-sim` with `args`.
pub fn sim(args: &[String]) -> Done {
    let (build, own): (Vec<&str>, Vec<&str>) =
        args.iter().map(String::as_str).partition(|arg| *arg == "--release");
    let mut command = run::cargo(&["run", "--quiet", "--package", "forebay-sim"]);
    run::run(command.args(build).arg("--").args(own))
}
