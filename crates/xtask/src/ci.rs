//! `cargo xtask ci`: every check, in the order in which they are cheap.
//!
//! In: the checkout. Out: each step with its duration, the lines of `cargo test`, and last
//! `N passed, N failed`. Never: a test left out in a CI run; what needs the Go peers gets them built first.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::generate::{self, Mode};
use crate::run::{self, Done};
use crate::{arch, dependencies, peers};

/// Runs all steps, also after one has failed; the tests come last, and what they would miss after them.
pub fn ci(fast: bool) -> Done {
    if fast && run::in_ci() {
        return Err("--fast leaves out tests, and CI=true says that none may be left out".into());
    }
    let mut failed = Vec::new();
    let mut step = |name: &str, work: &mut dyn FnMut() -> Done| {
        println!("== {name}");
        let start = Instant::now();
        let done = work();
        let outcome = if done.is_ok() { "ok" } else { "FAILED" };
        println!("== {name}: {outcome} in {}\n", shown(start.elapsed()));
        if let Err(why) = done {
            eprintln!("{name}: {why}");
            failed.push(name.to_owned());
        }
    };
    if !fast {
        step("peers", &mut peers::build);
        step("generated table", &mut || generate::generate(Mode::Check));
    }
    step("format", &mut || run::run(&mut run::cargo(&["fmt", "--all", "--check"])));
    step("architecture", &mut || arch::check(arch::Drawing::Check));
    step("dependencies", &mut dependencies::check);
    step("clippy", &mut || {
        run::run(&mut run::cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--keep-going",
            "--",
            "-D",
            "warnings",
        ]))
    });
    // Some tests start the binaries, and cargo builds those for their own package's tests only.
    step("build", &mut || run::run(&mut run::cargo(&["build", "--workspace", "--all-targets"])));
    // Tests wait a lot, for other processes and for time to pass; the mutants build and compute meanwhile.
    let mut mutants = Some(Beside::start("mutants"));
    let mut tally = Tally::default();
    step("tests", &mut || test(&mut tally));
    step("mutants", &mut || mutants.take().map_or(Ok(()), Beside::finish));
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// Runs the workspace's tests, showing their output as it comes, and adds up their result lines.
fn test(tally: &mut Tally) -> Done {
    let mut command = run::cargo(&["test", "--workspace", "--no-fail-fast"]);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(|e| format!("cargo test: {e}"))?;
    let stdout = child.stdout.take().expect("it was asked for");
    for line in BufReader::new(stdout).lines() {
        let line = line.map_err(|e| format!("cargo test: {e}"))?;
        println!("{line}");
        tally.add(&line);
    }
    let status = child.wait().map_err(|e| format!("cargo test: {e}"))?;
    match (status.success(), tally.passed) {
        (true, 0) => Err("no test ran".into()),
        (true, _) => Ok(()),
        (false, _) => Err(format!("{} failed: {status}", run::shown(&command))),
    }
}

/// Another of our own commands, which runs at the same time; what it says is shown when it is waited for.
struct Beside {
    name: &'static str,
    running: JoinHandle<std::io::Result<Output>>,
}

impl Beside {
    fn start(name: &'static str) -> Beside {
        // By cargo: the step before may have replaced the file that this process runs from.
        let work = move || run::cargo(&["run", "--quiet", "--package", "xtask", "--", name]).output();
        Beside { name, running: std::thread::spawn(work) }
    }

    /// Waits for its end.
    fn finish(self) -> Done {
        let done = self.running.join().expect("no panic").map_err(|e| format!("{}: {e}", self.name))?;
        print!("{}", String::from_utf8_lossy(&done.stdout));
        eprint!("{}", String::from_utf8_lossy(&done.stderr));
        match done.status.success() {
            true => Ok(()),
            false => Err(format!("cargo xtask {} failed: {}", self.name, done.status)),
        }
    }
}

#[derive(Default, Debug, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
}

impl Tally {
    /// Adds a `test result: ok. 3 passed; 1 failed; …` line; other lines count nothing.
    fn add(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = result.split_whitespace().collect();
        let before = |label: &str| {
            let at = words.iter().position(|word| word.trim_end_matches(';') == label)?;
            words.get(at.checked_sub(1)?)?.parse::<u64>().ok()
        };
        self.passed += before("passed").unwrap_or(0);
        self.failed += before("failed").unwrap_or(0);
    }
}

fn shown(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_added_up_and_nothing_else() {
        let mut tally = Tally::default();
        for line in [
            "running 4 tests",
            "test a ... ok",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s",
            "test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "  99 passed; 99 failed",
        ] {
            tally.add(line);
        }
        assert_eq!(tally, Tally { passed: 15, failed: 1 });
    }
}
