//! `cargo xtask mutants core`: shows that the tests of the core bite.
//!
//! In: the files of [`CORE`]. Out: for each how many of the small changes that cargo-mutants makes to it the
//! tests of its own crate notice, and an error when that is less than [`CAUGHT_PERCENT_MIN`] of a crate's. A
//! change that means nothing stands in `.cargo/mutants.toml` with its reason, and is not made; one that
//! stands there and fits no code any more is an error. Never: part of `ci`, as it takes an hour; changes the
//! sources, it works on the copy of `mutants`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::mutants;
use crate::run::{self, Done};

/// How many of the changes that compile and mean something have to be noticed.
const CAUGHT_PERCENT_MIN: usize = 95;

/// Where it stands what means nothing.
const EQUIVALENT: &str = ".cargo/mutants.toml";

/// Changes of this kind cargo-mutants lists, and makes, whatever the pattern (27.1).
const WHATEVER_THE_PATTERN: &str = ": delete field ";

/// A test that takes longer than this, and than five times what all take on the sources as they are, hangs:
/// noticed.
const HANGS_AFTER_SECONDS: &str = "10";

/// Files of a crate, and which of its tests are run.
struct Part {
    package: &'static str,
    files: &'static [&'static str],
    tests: &'static [&'static str],
}

/// What everything else stands on.
const CORE: &[Part] = &[
    Part { package: "forebay-revlog", files: &["crates/revlog/src/*.rs"], tests: &["--lib"] },
    Part {
        package: "forebay-embedded",
        files: &["crates/embedded/src/writer.rs", "crates/embedded/src/batch.rs"],
        tests: &["--tests"],
    },
    Part {
        package: "forebay-watchcache",
        files: &[
            "crates/watchcache/src/seal/window.rs",
            "crates/watchcache/src/snapshot.rs",
            "crates/watchcache/src/tree/*.rs",
            "crates/watchcache/src/watcher.rs",
        ],
        tests: &["--lib"],
    },
];

/// What came of the changes to one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Caught {
    // That compile.
    viable: usize,
    caught: usize,
}

impl Caught {
    fn is_enough(self) -> bool {
        self.caught * 100 >= self.viable * CAUGHT_PERCENT_MIN
    }
}

/// Tries the parts whose packages are in `only`, or all of them.
pub fn core(only: &[String]) -> Done {
    let known: Vec<&str> = CORE.iter().map(|part| part.package).collect();
    let only = run::flags(only, &known)?;
    need_cargo_mutants()?;
    let dir = run::target_dir()?.join("mutants");
    let source = dir.join("source");
    mutants::copy(&source, &[])?;
    equivalents_fit(&source)?;
    let mut short = Vec::new();
    for part in CORE.iter().filter(|part| only.is_empty() || only.contains(&part.package)) {
        let (files, missed) = part.run(&dir)?;
        let mut all = Caught::default();
        for (file, Caught { viable, caught }) in &files {
            println!("{file:<40} {caught:>4} of {viable:>4} caught");
            all.viable += viable;
            all.caught += caught;
        }
        missed.iter().for_each(|name| println!("  not caught: {name}"));
        if !all.is_enough() {
            short.push(format!("{}: {} of {}", part.package, all.caught, all.viable));
        }
    }
    if short.is_empty() {
        return Ok(());
    }
    Err(format!(
        "the tests notice less than {CAUGHT_PERCENT_MIN} % of what is changed:\n  {}",
        short.join("\n  ")
    ))
}

impl Part {
    /// By file what came of its changes, and the names of those that nothing noticed.
    fn run(&self, dir: &Path) -> Result<(BTreeMap<String, Caught>, Vec<String>), String> {
        let output = dir.join(self.package);
        fs::create_dir_all(&output).map_err(|error| format!("{}: {error}", output.display()))?;
        let mut command = run::cargo(&["mutants", "--in-place", "--test-workspace=false"]);
        command.args(["--minimum-test-timeout", HANGS_AFTER_SECONDS, "--package", self.package]);
        command.args(self.files.iter().flat_map(|file| ["--file", file]));
        command.arg("--output").arg(&output).arg("--").args(self.tests);
        command.current_dir(dir.join("source")).env("CARGO_TARGET_DIR", run::target_dir()?);
        let status = command.status().map_err(|error| format!("{}: {error}", run::shown(&command)))?;
        // 2 says that some were missed, 3 that some hung.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            return Err(format!("{} failed: {status}", run::shown(&command)));
        }
        let file = output.join("mutants.out/outcomes.json");
        let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        tally(&text).ok_or_else(|| format!("{} says something else than it did", file.display()))
    }
}

/// Reads what cargo-mutants wrote.
fn tally(outcomes: &str) -> Option<(BTreeMap<String, Caught>, Vec<String>)> {
    let outcomes: Value = serde_json::from_str(outcomes).ok()?;
    let (mut files, mut missed) = (BTreeMap::<String, Caught>::new(), Vec::new());
    for outcome in outcomes["outcomes"].as_array()? {
        // The other scenario is the sources as they are.
        let Some(mutant) = outcome["scenario"].get("Mutant") else { continue };
        let file = files.entry(mutant["file"].as_str()?.to_owned()).or_default();
        match outcome["summary"].as_str()? {
            "CaughtMutant" | "Timeout" => {
                file.viable += 1;
                file.caught += 1;
            }
            "MissedMutant" => {
                file.viable += 1;
                missed.push(mutant["name"].as_str()?.to_owned());
            }
            "Unviable" => {}
            _ => return None,
        }
    }
    Some((files, missed))
}

/// Each pattern of what means nothing fits something.
fn equivalents_fit(source: &Path) -> Done {
    let text =
        fs::read_to_string(source.join(EQUIVALENT)).map_err(|error| format!("{EQUIVALENT}: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("{EQUIVALENT}: {error}"))?;
    let patterns = table.get("exclude_re").and_then(|list| list.as_array());
    for pattern in patterns.into_iter().flatten().filter_map(|pattern| pattern.as_str()) {
        let mut command = run::cargo(&["mutants", "--list", "--no-config", "--re", pattern]);
        command.args(CORE.iter().flat_map(|part| ["--package", part.package]));
        let listed = run::output(command.current_dir(source))?;
        if !listed.lines().any(|name| !name.contains(WHATEVER_THE_PATTERN)) {
            return Err(format!("{EQUIVALENT}: nothing is there that {pattern:?} fits"));
        }
    }
    Ok(())
}

fn need_cargo_mutants() -> Done {
    let mut command = run::cargo(&["mutants", "--version"]);
    match command.stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err("`mutants core` needs cargo-mutants, and there is none in PATH; `cargo install --locked cargo-mutants` \
             brings it"
            .to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_caught_and_what_does_not_compile_does_not_count() {
        let outcome = |file: &str, name: &str, summary: &str| {
            format!(
                r#"{{"scenario":{{"Mutant":{{"file":"{file}","name":"{name}"}}}},"summary":"{summary}"}}"#
            )
        };
        let outcomes = [
            r#"{"scenario":"Baseline","summary":"Success"}"#.to_owned(),
            outcome("a.rs", "1", "CaughtMutant"),
            outcome("a.rs", "2", "Timeout"),
            outcome("a.rs", "3", "Unviable"),
            outcome("b.rs", "4", "MissedMutant"),
        ];
        let (files, missed) =
            tally(&format!(r#"{{"outcomes":[{}]}}"#, outcomes.join(","))).expect("it is read");
        assert_eq!(files["a.rs"], Caught { viable: 2, caught: 2 });
        assert_eq!(files["b.rs"], Caught { viable: 1, caught: 0 });
        assert_eq!(missed, ["4"]);
        assert!(tally(&format!(r#"{{"outcomes":[{}]}}"#, outcome("a.rs", "5", "Failure"))).is_none());
    }

    #[test]
    fn one_of_twenty_may_go_unnoticed() {
        let is_enough = |caught, viable| Caught { viable, caught }.is_enough();
        assert!(is_enough(19, 20) && is_enough(0, 0) && !is_enough(37, 39));
    }

    #[test]
    fn every_file_of_the_core_is_there() {
        for file in CORE.iter().flat_map(|part| part.files) {
            let path = run::root().join(file.trim_end_matches("*.rs"));
            assert!(path.exists(), "{file}");
        }
    }
}
