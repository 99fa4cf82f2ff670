//! `cargo xtask bench`: builds forebay and the bench, both optimised, and what LISTs are measured beside, and
//! hands over.
//!
//! In: the bench's own arguments, passed on as they are. Out: the bench's output.
//! Never: a measurement.

use std::path::Path;
use std::process::Command;

use crate::peers;
use crate::run::{self, Done};

/// Runs `forebay-bench` with `args`, the release build of forebay, the peers and the static server.
pub fn bench(args: &[String]) -> Done {
    let asked = |options: &[&str]| args.iter().any(|arg| options.contains(&arg.as_str()));
    let help = asked(&["--help", "-h"]);
    if !help && !asked(&["--ours-only"]) {
        peers::ensure_all()?;
    }
    let mut build =
        run::cargo(&["build", "--release", "--package", "forebay-bench", "--package", "forebay-faults"]);
    if !help && !asked(&["--theirs-only"]) {
        build.args(["--package", "forebay"]);
    }
    run::run(&mut build)?;
    let release = run::target_dir()?.join("release");
    let mut bench = Command::new(release.join("forebay-bench"));
    bench.arg("--forebay").arg(release.join("forebay")).arg("--peers").arg(peers::bin_dir()?);
    if !help {
        let server = release.join("forebay-bench-static");
        static_server(&server)?;
        client_go("mirrored", &release.join("forebay-mirrored-client-go"))?;
        client_go("crowd", &release.join("forebay-crowd-client-go"))?;
        bench.arg("--static-server").arg(server);
    }
    run::run(bench.args(args))
}

/// Builds the file server in Go at `program`; it needs nothing but Go's own packages.
fn static_server(program: &Path) -> Done {
    let source = run::root().join("crates/bench/static/main.go");
    run::run(Command::new("go").arg("build").arg("-o").arg(program).arg(source))
}

/// Builds informers of client-go at `program`, which the scenarios informer, informer-paths and avalanche
/// look for beside their own.
fn client_go(command: &str, program: &Path) -> Done {
    let module = run::root().join("crates/faults/go");
    let mut go = Command::new("go");
    go.current_dir(module).env("GOFLAGS", "-buildvcs=false").env("CGO_ENABLED", "0");
    run::run(go.args(["build", "-mod=readonly", "-trimpath", "-o"]).arg(program).arg(format!("./{command}")))
}
