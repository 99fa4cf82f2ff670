//! Runs a test of `python/` beside this crate: the Python client as its users have it.
//!
//! In: the name of a test and a server. Out: its failure as ours.
//! Never: anything written beside the tests; a test that was not there and so passed.

use std::path::Path;
use std::process::Command;

use crate::{ControlPlane, needs};

/// Longest run of one test, as `timeout` reads it.
const RUN_MAX: &str = "300s";

/// An interpreter that finds the client.
pub struct Python {
    interpreter: &'static Path,
}

impl Python {
    /// Finds what `cargo xtask peers` installed; `None` after a skip was announced, for want of it.
    pub fn installed() -> Option<Python> {
        needs::python().map(|interpreter| Python { interpreter })
    }

    /// Runs the test `name`, `module.Class.method`, against `server`.
    ///
    /// # Panics
    /// When it fails.
    pub fn run(&self, name: &str, server: &ControlPlane) {
        let done = Command::new("timeout")
            .arg(RUN_MAX)
            .arg(self.interpreter)
            .args(["-m", "unittest", "-v", name])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("python"))
            .env("KUBECONFIG", server.kubeconfig())
            .env("FOREBAY_TEST_SERVER", format!("{:?}", server.implementation()))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTHONFAULTHANDLER", "1")
            // Files that the client caches go with the server.
            .env("TMPDIR", server.dir())
            .output()
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let said = String::from_utf8_lossy(&done.stderr);
        let passed = done.status.success() && said.contains("Ran 1 test ") && !said.contains("skipped");
        assert!(passed, "{name}: {}\n{said}{}", done.status, server.log_end());
    }
}
