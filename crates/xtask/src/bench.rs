//! `cargo xtask bench`: builds forebay and the bench, both optimised, and hands over.
//!
//! In: the bench's own arguments, passed on as they are. Out: the bench's output.
//! Never: a measurement.

use std::process::Command;

use crate::peers;
use crate::run::{self, Done};

/// Runs `forebay-bench` with `args`, the release build of forebay and the peers.
pub fn bench(args: &[String]) -> Done {
    let asked = |options: &[&str]| args.iter().any(|arg| options.contains(&arg.as_str()));
    let help = asked(&["--help", "-h"]);
    if !help && !asked(&["--ours-only"]) {
        peers::ensure_all()?;
    }
    let mut build = run::cargo(&["build", "--release", "--package", "forebay-bench"]);
    if !help && !asked(&["--theirs-only"]) {
        build.args(["--package", "forebay"]);
    }
    run::run(&mut build)?;
    let release = run::target_dir()?.join("release");
    run::run(
        Command::new(release.join("forebay-bench"))
            .arg("--forebay")
            .arg(release.join("forebay"))
            .arg("--peers")
            .arg(peers::bin_dir()?)
            .args(args),
    )
}
