//! Runs the Go module `envtest/` beside this crate: a manager of controller-runtime on what envtest starts.
//!
//! In: the name of a Go test. Out: its failure as ours. envtest starts the binary under the names to which
//! `forebay envtest` links it, or the rival's programs. Never: a server that outlives the test, a directory
//! that it leaves behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::server::Implementation;
use crate::watchdog::Watchdog;
use crate::{clientgo, needs};

/// Longest run of one test; Go ends it then and shows where it stands.
const RUN_MAX: &str = "200s";

/// Runs the Go test `name`, unless a skip was announced, for want of Go.
///
/// # Panics
/// When it fails, or leaves something behind.
pub fn run(name: &str) {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    if !needs::go() {
        return;
    }
    let done =
        BUILT.get_or_init(|| clientgo::build("envtest")).clone().and_then(|binary| run_built(&binary, name));
    done.unwrap_or_else(|why| panic!("{name}: {why}"));
}

fn run_built(binary: &Path, name: &str) -> Result<(), String> {
    let watchdog = Watchdog::new()?;
    let assets = assets(watchdog.dir())?;
    let temporary = watchdog.dir().join("tmp");
    fs::create_dir(&temporary).map_err(|e| e.to_string())?;
    let mut command = Command::new(binary);
    command
        .args(["-test.v", "-test.count=1", "-test.timeout", RUN_MAX, "-test.run"])
        .arg(format!("^{name}$"))
        .current_dir(watchdog.dir())
        .env("KUBEBUILDER_ASSETS", assets)
        .env("CRD_DIR", module().join("crds"))
        .env("TMPDIR", &temporary);
    let output = needs::output(&mut command)?;
    if !output.contains(&format!("--- PASS: {name}")) {
        return Err(format!("it was not run\n{output}"));
    }
    let left: Vec<_> = fs::read_dir(&temporary).map_err(|e| e.to_string())?.flatten().collect();
    if left.is_empty() { Ok(()) } else { Err(format!("it left {left:?}")) }
}

/// Where envtest finds its programs.
fn assets(dir: &Path) -> Result<PathBuf, String> {
    match Implementation::asked()? {
        Implementation::Forebay => linked(&dir.join("assets")),
        Implementation::KubeApiserver => {
            let etcd = &needs::peers()?.etcd;
            etcd.parent().map(Path::to_owned).ok_or_else(|| format!("{} is nowhere", etcd.display()))
        }
    }
}

/// What a user's shell has after the lines that `forebay envtest` prints.
fn linked(dir: &Path) -> Result<PathBuf, String> {
    let script = "eval \"$(\"$0\" envtest \"$1\")\" && printf %s \"$KUBEBUILDER_ASSETS\"";
    let mut shell = Command::new("sh");
    needs::output(shell.args(["-c", script]).arg(needs::forebay()?).arg(dir)).map(PathBuf::from)
}

fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("envtest")
}
