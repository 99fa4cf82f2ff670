//! `cargo xtask suites`: tests that others wrote for their own clients, from their Go modules, on what
//! envtest starts, which is ours.
//!
//! In: a suite and packages of its module, or none for all. Out: a line a package, and an error for what
//! fails without wanting what is not there. Never: a source of a module's in the repository, a change to one.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{self, Done};

struct Suite {
    name: &'static str,
    module: &'static str,
    /// As Go sums it up.
    sum: &'static str,
    /// Which of its packages.
    packages: &'static [&'static str],
    /// Tests that fail, by a part of their names, and what they want.
    wanting: &'static [(&'static str, &'static str)],
}

const SUITES: [Suite; 4] = [
    Suite {
        name: "controller-runtime",
        module: "sigs.k8s.io/controller-runtime@v0.25.2",
        sum: "h1:bEkK3PVOIVK9X8QWLGVhJgmFc++47vfT6wakSzAOLsQ=",
        packages: &["./pkg/..."],
        wanting: &[
            ("TestApiMachinery", "an older kube-apiserver, which it fetches"),
            ("TestLazyRestMapperProvider", "an older kube-apiserver, which it fetches"),
            ("argument defaulting when insecure", "a script that may be run: the module cache's may not"),
            ("[It] hits the endpoint in the configured interval", "a machine that does nothing else"),
        ],
    },
    // Flux finds drift by applies that are dry runs.
    Suite {
        name: "flux",
        module: "github.com/fluxcd/pkg/ssa@v0.70.0",
        sum: "h1:IBylYPiTK1IEdCC2DvjKXIhwQcbd5VufXA9WS3zO+tE=",
        packages: &["./..."],
        wanting: &[(
            "TestWaitForSet_JobWithTTL",
            "luck, as on kube-apiserver: its deadline and its limiter race",
        )],
    },
    // Webhooks as envtest installs them, conversion, and a scheduler that writes a lot. Its other packages
    // want definitions of other projects in a directory beside its own.
    Suite {
        name: "kueue",
        module: "sigs.k8s.io/kueue@v0.17.0",
        sum: "h1:7hzb38M4eKGzYW+CFv2s1L+swzzacUCHOCXxZmAV90I=",
        packages: &[
            "./test/integration/singlecluster/controller/core",
            "./test/integration/singlecluster/conversion",
            "./test/integration/singlecluster/scheduler",
            "./test/integration/singlecluster/scheduler/fairsharing",
            "./test/integration/singlecluster/scheduler/podsready",
            "./test/integration/singlecluster/webhook/core",
        ],
        wanting: &[],
    },
    Suite {
        name: "jobset",
        module: "sigs.k8s.io/jobset@v0.11.1",
        sum: "h1:WgLEBnXTeX+4MxfVkIbfm4jIVgjvIY6Jfaei2okxKNk=",
        packages: &["./test/integration/controller", "./test/integration/webhook"],
        wanting: &[(
            "should create two PVC with Delete and Retain policies",
            "luck, as on kube-apiserver: it takes a job of the first JobSet for one of the second",
        )],
    },
];

/// - `args`: a suite and packages of its module, such as `controller-runtime pkg/client`.
pub fn suites(args: &[String]) -> Done {
    run::need_go("suites")?;
    let (name, packages) = args.split_first().map_or((None, args), |(name, rest)| (Some(name), rest));
    let asked: Vec<&Suite> =
        SUITES.iter().filter(|suite| name.is_none_or(|name| name == suite.name)).collect();
    if asked.is_empty() {
        return Err(format!(
            "no suite {name:?}; known: {}",
            SUITES.each_ref().map(|suite| suite.name).join(", ")
        ));
    }
    run::run(&mut run::cargo(&["build", "--package", "forebay", "--bin", "forebay"]))?;
    let target = run::target_dir()?;
    let (assets, temporary) = (target.join("suites/assets"), target.join("suites/tmp"));
    for dir in [&assets, &temporary] {
        fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    for name in ["etcd", "kube-apiserver"] {
        link(&target.join("debug/forebay"), &assets.join(name))?;
    }
    let mut faults = Vec::new();
    for suite in asked {
        faults.append(&mut suite.run(packages, &assets, &temporary)?);
    }
    // Some of the tests leave what they made.
    fs::remove_dir_all(&temporary).map_err(|e| format!("{}: {e}", temporary.display()))?;
    if faults.is_empty() { Ok(()) } else { Err(format!("these fail:\n{}", faults.join("\n"))) }
}

impl Suite {
    /// What fails.
    fn run(&self, packages: &[String], assets: &Path, temporary: &Path) -> Result<Vec<String>, String> {
        let module = self.downloaded()?;
        let (mut passed, mut faults) = (0, Vec::new());
        for package in self.packages(&module, packages)? {
            let mut tests = go(&module, &["test", "-trimpath", "-count=1", "-timeout=10m", "-v", &package]);
            tests.env("KUBEBUILDER_ASSETS", assets).env("TMPDIR", temporary);
            let done = tests.output().map_err(|e| format!("{}: {e}", run::shown(&tests)))?;
            let text = plain(&String::from_utf8_lossy(&done.stdout));
            let verdict = Verdict::of(&text, done.status.success());
            println!("{package}: {} passed, {} failed", verdict.passed, verdict.failed.len());
            passed += verdict.passed;
            for failed in verdict.failed {
                match self.wanting(&failed) {
                    Some(what) => println!("  wants {what}: {failed}"),
                    None => {
                        println!("{text}");
                        faults.push(format!("{package}: {failed}"));
                    }
                }
            }
        }
        println!("{}: {passed} passed", self.name);
        Ok(faults)
    }

    /// Where Go keeps the module, whose sources are those that were looked at.
    fn downloaded(&self) -> Result<PathBuf, String> {
        let mut command = Command::new("go");
        command.args(["mod", "download", "-json", self.module]).current_dir(run::target_dir()?);
        let text = run::output(&mut command)?;
        let known: Value = serde_json::from_str(&text).map_err(|e| format!("go mod download: {e}"))?;
        match (known["Sum"].as_str(), known["Dir"].as_str()) {
            (Some(sum), Some(dir)) if sum == self.sum => Ok(PathBuf::from(dir)),
            (sum, _) => Err(format!("{} has the sum {sum:?}, not {}", self.module, self.sum)),
        }
    }

    /// Those that were asked for, or all.
    fn packages(&self, module: &Path, asked: &[String]) -> Result<Vec<String>, String> {
        if !asked.is_empty() {
            return Ok(asked.iter().map(|name| format!("./{}", name.trim_start_matches("./"))).collect());
        }
        let with_tests = "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}";
        let listed = run::output(go(module, &["list", "-f", with_tests]).args(self.packages))?;
        Ok(listed.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    fn wanting(&self, failed: &str) -> Option<&'static str> {
        self.wanting.iter().find(|(name, _)| failed.contains(name)).map(|(_, what)| *what)
    }
}

/// What envtest starts by that name is `binary`.
fn link(binary: &Path, name: &Path) -> Done {
    if name.is_symlink() {
        fs::remove_file(name).map_err(|e| format!("{}: {e}", name.display()))?;
    }
    symlink(binary, name).map_err(|e| format!("{}: {e}", name.display()))
}

/// A command in the module, which is read only.
fn go(module: &Path, args: &[&str]) -> Command {
    let mut command = Command::new("go");
    command.args(args).current_dir(module).env("GOFLAGS", "-mod=readonly").env("CGO_ENABLED", "0");
    command
}

/// A text without its colours.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| out + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// What became of a package's tests.
#[derive(Debug, PartialEq, Eq)]
struct Verdict {
    passed: usize,
    failed: Vec<String>,
}

impl Verdict {
    /// Of the output of `go test -v`, where a Go test may be a suite of Ginkgo's, which tells of its own.
    fn of(text: &str, succeeded: bool) -> Verdict {
        let go_tests = |mark: &str| -> Vec<&str> {
            text.lines().filter_map(|line| line.strip_prefix(mark)?.split(' ').next()).collect()
        };
        let tally = text.lines().find_map(|line| line.split_once("! -- ")?.1.split_once(" Passed"));
        let specs = tally.and_then(|(count, _)| count.parse::<usize>().ok());
        let mut failed: Vec<String> =
            text.lines().filter_map(|line| line.strip_prefix("  [FAIL] ")).map(str::to_owned).collect();
        if failed.is_empty() {
            failed = go_tests("--- FAIL: ").into_iter().map(str::to_owned).collect();
        }
        if failed.is_empty() && !succeeded {
            failed.push(text.lines().last().unwrap_or("it says nothing").to_owned());
        }
        Verdict { passed: specs.unwrap_or(0) + go_tests("--- PASS: ").len(), failed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_tells_of_its_specs_and_other_tests_of_themselves() {
        let suite = "  [FAIL] DryRunClient [It] should refuse\nFAIL! -- 27 Passed | 1 Failed | 0 Pending | 0 Skipped\n--- FAIL: TestClient (6.87s)\n";
        let failed = vec!["DryRunClient [It] should refuse".to_owned()];
        assert_eq!(Verdict::of(suite, false), Verdict { passed: 27, failed });
        let plain = "--- PASS: TestOne (0.1s)\n    --- PASS: TestOne/sub (0.1s)\n--- FAIL: TestTwo (0.1s)\n";
        assert_eq!(Verdict::of(plain, false), Verdict { passed: 1, failed: vec!["TestTwo".to_owned()] });
        let broken = Verdict::of("# it does not build\n", false);
        assert_eq!(broken, Verdict { passed: 0, failed: vec!["# it does not build".to_owned()] });
    }

    #[test]
    fn what_wants_nothing_is_a_fault() {
        let [suite, ..] = SUITES;
        assert_eq!(
            suite.wanting("TestApiMachinery/default"),
            Some("an older kube-apiserver, which it fetches")
        );
        assert_eq!(suite.wanting("DryRunClient [It] should not create an object"), None);
    }

    #[test]
    fn colours_are_taken_off() {
        assert_eq!(plain("a\x1b[38;5;9mFAIL\x1b[0m!"), "aFAIL!");
    }
}
