//! Runs a scenario of a Go module beside this crate: client-go as controllers use it in `go/`, Helm's library
//! in `helm/`, of Helm 4 in `helm4/`.
//!
//! In: the name of a Go test and a server. Out: its output, and its failure as ours; on a line `@kill`,
//! `@terminate` or `@start` of it the server is ended by SIGKILL, by SIGTERM, or started again, and a line on
//! its standard input says when that is done. Other lines that begin with `@` go to whoever runs the test. A
//! line `figure: ...` is shown, whatever comes of the test. Never: built twice at once; a scenario that was
//! not there and so passed.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::{ControlPlane, needs, ports};

/// Longest run of one scenario; Go ends it then and shows where it stands.
const RUN_MAX: &str = "10m";

/// client-go's own comparison of each watch list with a list at the same revision; a difference panics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detector {
    On,
    Off,
}

/// The scenarios of a module, built.
pub struct Scenario {
    binary: &'static Path,
}

impl Scenario {
    /// Builds the module of client-go; `None` after a skip was announced, for want of Go.
    ///
    /// # Panics
    /// When it does not build.
    pub fn built() -> Option<Scenario> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        Scenario::of("go", &BUILT)
    }

    /// Builds the module of Helm, apart from the other because it takes so much longer; else as
    /// [`Scenario::built`].
    ///
    /// # Panics
    /// When it does not build.
    pub fn helm() -> Option<Scenario> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        Scenario::of("helm", &BUILT)
    }

    /// Builds the module of Helm 4; else as [`Scenario::helm`].
    ///
    /// # Panics
    /// When it does not build.
    pub fn helm4() -> Option<Scenario> {
        static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        Scenario::of("helm4", &BUILT)
    }

    fn of(module: &str, built: &'static OnceLock<Result<PathBuf, String>>) -> Option<Scenario> {
        needs::go().then(|| match built.get_or_init(|| build(module)) {
            Ok(binary) => Scenario { binary },
            Err(why) => panic!("{why}"),
        })
    }

    /// Runs the Go test `name` against `server`.
    ///
    /// # Panics
    /// When it fails.
    pub fn run(&self, name: &str, server: &mut ControlPlane, detector: Detector) {
        self.run_with(name, server, detector, |order| Err(format!("nobody knows {order}")));
    }

    /// The same, with orders of the test's own.
    ///
    /// # Panics
    /// When it fails, or an order does.
    pub fn run_with(
        &self,
        name: &str,
        server: &mut ControlPlane,
        detector: Detector,
        mut obey: impl FnMut(&str) -> Result<(), String>,
    ) {
        let mut child = self.start(name, server, detector);
        let done = converse(&mut child, server, &mut obey);
        // Its input ends here, should it still wait for an answer.
        drop(child.stdin.take());
        if done.is_err() {
            let _ = child.kill();
        }
        let status = child.wait().unwrap_or_else(|e| panic!("{name}: {e}"));
        // The reason comes last: the end is what is read of a long text.
        let output = done.unwrap_or_else(|why| panic!("{}\n{name}: {why}", server.log_end()));
        let passed = status.success() && output.contains(&format!("--- PASS: {name}"));
        assert!(passed, "{}\n{output}{name}: {status}", server.log_end());
    }

    fn start(&self, name: &str, server: &ControlPlane, detector: Detector) -> Child {
        // For a test that listens itself.
        let [port] = ports::free().unwrap_or_else(|why| panic!("{name}: {why}"));
        Command::new(self.binary)
            .args(["-test.v", "-test.count=1", "-test.timeout", RUN_MAX, "-test.run"])
            .arg(format!("^{name}$"))
            .current_dir(server.dir())
            .env("KUBECONFIG", server.kubeconfig())
            // Where Helm and kubectl's library keep what they discovered.
            .env("HOME", server.dir())
            .env("FOREBAY_TEST_SERVER", format!("{:?}", server.implementation()))
            .env("FOREBAY_TEST_PORT", port.to_string())
            .envs(server.told().iter().map(|(variable, value)| (variable, value)))
            .env("KUBE_WATCHLIST_INCONSISTENCY_DETECTOR", (detector == Detector::On).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap_or_else(|e| panic!("{name}: {e}"))
    }
}

/// Reads to the end of the child's output, and does what it asks for.
fn converse(
    child: &mut Child,
    server: &mut ControlPlane,
    obey: &mut dyn FnMut(&str) -> Result<(), String>,
) -> Result<String, String> {
    let (Some(stdout), Some(stdin)) = (child.stdout.take(), child.stdin.as_mut()) else {
        return Err("it has no pipes".into());
    };
    let mut output = String::new();
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|e| e.to_string())?;
        match line.as_str() {
            "@kill" => server.kill()?,
            "@terminate" => server.terminate()?,
            "@start" => server.start_again()?,
            order if order.starts_with('@') => obey(order).map_err(|why| format!("{order}: {why}"))?,
            _ => {
                if line.starts_with("figure: ") {
                    println!("{line}");
                }
                output += &line;
                output.push('\n');
                continue;
            }
        }
        stdin.write_all(b"done\n").map_err(|e| format!("it does not listen: {e}"))?;
    }
    Ok(output)
}

/// Builds the tests of a module beside this crate.
pub(crate) fn build(module: &str) -> Result<PathBuf, String> {
    let binary = needs::cache_dir()?.join(format!("{module}.test"));
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join(module);
    let mut command = Command::new("go");
    command.args(["test", "-c", "-mod=readonly", "-trimpath", "-o"]).arg(&binary).arg(".");
    needs::output(command.current_dir(module).env("GOFLAGS", "-buildvcs=false").env("CGO_ENABLED", "0"))?;
    Ok(binary)
}
