//! `cargo xtask ci`: every check, in the order in which they are cheap.
//!
//! In: the checkout. Out: each step with its duration, the lines of `cargo test`, and last what failed, once
//! more, and `N passed, N failed`. Never: a test left out in a CI run; what needs the Go peers gets them
//! built first.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::generate::{self, Mode};
use crate::run::{self, Done};
use crate::{arch, dependencies, peers};

/// What computes, while the tests of whole servers wait for other processes and for time to pass. In this
/// order: cargo lets one build at a time go on, and tests that are built need none.
const BESIDE: &[(&str, &[&str])] = &[
    ("unit tests", &["test", "--workspace", "--no-fail-fast", "--lib", "--bins"]),
    ("documentation tests", &["test", "--workspace", "--no-fail-fast", "--doc"]),
    ("clippy", &["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"]),
    // By cargo: the step before may have replaced the file that this process runs from.
    ("mutants", &["run", "--quiet", "--package", "xtask", "--", "mutants"]),
];

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
    // Some tests start the binaries, and cargo builds those for their own package's tests only.
    step("build", &mut || run::run(&mut run::cargo(&["build", "--workspace", "--all-targets"])));
    let beside = Beside::start(BESIDE);
    let mut tally = Tally::default();
    step("tests", &mut || test(&mut tally));
    for (name, done) in beside.finish() {
        step(name, &mut || {
            let done = done.as_ref().map_err(|why| format!("{name}: {why}"))?;
            done.show(&mut tally)
        });
    }
    // Thousands of lines stand between where it was said and here, and often only the last ones are kept.
    tally.failures.iter().for_each(|line| println!("{line}"));
    if !failed.is_empty() {
        println!("failed: {}", failed.join(", "));
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("failed: {}", failed.join(", "))),
    }
}

/// Runs the workspace's integration tests, showing their output as it comes, and adds up their result lines.
fn test(tally: &mut Tally) -> Done {
    let mut command = run::cargo(&["test", "--workspace", "--no-fail-fast", "--test", "*"]);
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

/// Cargo's own commands, one after the other while something else runs; what they say is shown when they are
/// waited for.
struct Beside {
    running: JoinHandle<Vec<(&'static str, std::io::Result<Said>)>>,
}

/// What a command said, and how long it took.
struct Said {
    output: Output,
    took: Duration,
}

impl Beside {
    fn start(commands: &'static [(&'static str, &'static [&'static str])]) -> Beside {
        let run = |(name, args): &(&'static str, &[&str])| {
            let start = Instant::now();
            let said = run::cargo(args).output().map(|output| Said { output, took: start.elapsed() });
            (*name, said)
        };
        Beside { running: std::thread::spawn(move || commands.iter().map(run).collect()) }
    }

    /// Waits for their end.
    fn finish(self) -> Vec<(&'static str, std::io::Result<Said>)> {
        self.running.join().expect("no panic")
    }
}

impl Said {
    /// Shows it, and adds the result lines that are in it.
    fn show(&self, tally: &mut Tally) -> Done {
        let Output { stdout, stderr, status } = &self.output;
        let said = String::from_utf8_lossy(stdout);
        print!("{said}");
        eprint!("{}", String::from_utf8_lossy(stderr));
        said.lines().for_each(|line| tally.add(line));
        println!("it took {}, beside the tests", shown(self.took));
        match status.success() {
            true => Ok(()),
            false => Err(format!("{status}")),
        }
    }
}

/// How many lines of failures are said once more; what failed first is the likeliest to explain the rest.
const FAILURE_LINES: usize = 150;
/// A line of a failure may be a whole object; this much of it, in characters, is said once more.
const FAILURE_LINE: usize = 600;

/// What the lines of `cargo test` come to.
#[derive(Default, Debug, PartialEq)]
struct Tally {
    passed: u64,
    failed: u64,
    /// What tests that failed have said, and their names.
    failures: Vec<String>,
    /// Whether such lines are being read: from the first `failures:` of a test binary to its result.
    failing: bool,
}

impl Tally {
    /// Adds a `test result: ok. 3 passed; 1 failed; …` line, and keeps what is said of failures before it;
    /// other lines count nothing.
    fn add(&mut self, line: &str) {
        self.failing |= line == "failures:";
        if self.failing && self.failures.len() < FAILURE_LINES {
            self.failures.push(line.chars().take(FAILURE_LINE).collect());
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        self.failing = false;
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
        assert_eq!(tally, Tally { passed: 15, failed: 1, ..Tally::default() });
    }

    #[test]
    fn what_a_failed_test_said_is_kept_and_what_others_say_is_not() {
        let mut tally = Tally::default();
        let said =
            ["failures:", "", "---- a::b stdout ----", "it is 2, not 1", "", "failures:", "    a::b", ""];
        let result = "test result: FAILED. 3 passed; 1 failed; 0 ignored";
        let after = ["running 1 test", "test c ... ok", "test result: ok. 1 passed; 0 failed; 0 ignored"];
        for line in std::iter::once(&"test a::b ... FAILED").chain(&said).chain([&result]).chain(&after) {
            tally.add(line);
        }
        assert_eq!(tally.failures[..said.len()], said);
        assert_eq!(tally.failures[said.len()..], [result]);
        tally.add("failures:");
        (0..2 * FAILURE_LINES).for_each(|_| tally.add(&"x".repeat(2 * FAILURE_LINE)));
        assert_eq!(tally.failures.len(), FAILURE_LINES);
        assert_eq!(tally.failures.last().map(String::len), Some(FAILURE_LINE));
    }
}
