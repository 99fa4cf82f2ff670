//! `cargo xtask mutants`: shows that the simulation and the fuzz targets find what is wrong.
//!
//! In: `crates/sim/mutants/*.mutant`, each a deliberate mistake as an edit of the sources that a seed is to
//! find, and `crates/fuzz/mutants/*.mutant`, which a fuzz target is to find. Out: for each what finds it
//! first; an error when nothing of CI does, when an edit no longer fits, or when something is found with no
//! mistake made. The sources themselves have no hook: the edits are made in a copy, all at once, each behind
//! a switch that an environment variable throws, so that one build has all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::run::{self, Done};

/// Seeds that run with no mistake made: the tests run all of them anyway.
const SOUND_SEEDS: &str = "10";
/// The environment variable that names the mistake to make.
const SWITCH: &str = "FOREBAY_MUTANT";
/// The package and the binary of the simulation.
const SIMULATION: &str = "forebay-sim";
/// Mutants that run at once.
const AT_ONCE: usize = 2;

pub(crate) struct Mutant {
    name: String,
    what: String,
    found_by: Finder,
    edits: Vec<Edit>,
}

/// What is to find a mistake.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Finder {
    /// The first seed of the simulation that does.
    Seeds,
    /// A test among the unit tests of a package, with the inputs that CI gives it.
    Test { package: String, test: String },
}

impl Finder {
    /// The package whose binary finds it.
    fn package(&self) -> &str {
        match self {
            Finder::Seeds => SIMULATION,
            Finder::Test { package, .. } => package,
        }
    }
}

/// One text of one file, there once, and what takes its place.
struct Edit {
    file: String,
    find: String,
    replace: String,
}

/// Builds the copy and runs with each mutant what is to find it.
pub fn mutants() -> Done {
    let mutants = all()?;
    let dir = run::target_dir()?.join("mutants");
    copy(&dir.join("source"), &mutants)?;
    let finders: BTreeSet<&Finder> = mutants.iter().map(|mutant| &mutant.found_by).collect();
    let mut binaries = BTreeMap::new();
    for package in finders.iter().map(|finder| finder.package()) {
        if !binaries.contains_key(package) {
            binaries.insert(package, build(&dir, package)?);
        }
    }
    for finder in finders {
        let sound = try_out(&binaries[finder.package()], finder, "", &["--seeds", SOUND_SEEDS])?;
        if !sound.found.is_empty() {
            return Err(format!("with no mistake made: {}", sound.found));
        }
    }
    let mut missed = Vec::new();
    let run = &|mutant: &Mutant| {
        try_out(&binaries[mutant.found_by.package()], &mutant.found_by, &mutant.name, &["--first"])
    };
    for some in mutants.chunks(AT_ONCE) {
        let runs: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|mutant| scope.spawn(move || run(mutant))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        for (mutant, run) in some.iter().zip(runs) {
            let Run { found, seconds } = run?;
            let shown = if found.is_empty() { "NOT FOUND" } else { &found };
            println!("{:<22} {seconds:>5.1} s  {shown}", mutant.name);
            if found.is_empty() {
                missed.push(format!("{}: {}", mutant.name, mutant.what));
            }
        }
    }
    println!("{} of {} mutants found", mutants.len() - missed.len(), mutants.len());
    if missed.is_empty() { Ok(()) } else { Err(format!("not found\n  {}", missed.join("\n  "))) }
}

/// Every mutant there is.
fn all() -> Result<Vec<Mutant>, String> {
    let mut mutants = Vec::new();
    for dir in ["crates/sim/mutants", "crates/fuzz/mutants"] {
        let some = read_all(&run::root().join(dir))?;
        if some.is_empty() {
            return Err(format!("there are no mutants in {dir}"));
        }
        mutants.extend(some);
    }
    Ok(mutants)
}

struct Run {
    // What the first seed that found something says, or the test; empty when none did.
    found: String,
    seconds: f64,
}

/// - `seeds`: the arguments of the simulation.
fn try_out(binary: &Path, finder: &Finder, mutant: &str, seeds: &[&str]) -> Result<Run, String> {
    let began = Instant::now();
    let mut command = Command::new(binary);
    let sign = match finder {
        Finder::Seeds => {
            command.args(seeds);
            "seed "
        }
        Finder::Test { test, .. } => {
            command.args([test.as_str(), "--nocapture"]);
            // What the fuzzer says of an input, and what a test says that makes its inputs itself.
            "thread "
        }
    };
    let output = command.env(SWITCH, mutant).env("RUST_BACKTRACE", "0").stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{}: {error}", run::shown(&command)))?;
    let said = String::from_utf8_lossy(&output.stderr);
    // A panic's message stands on the line below its place.
    let found = said.lines().skip_while(|line| !line.starts_with(sign));
    let found = match finder {
        Finder::Seeds => found.take(1).collect::<String>(),
        Finder::Test { .. } => found.skip(1).take(1).collect(),
    };
    if output.status.success() != found.is_empty() {
        return Err(format!("{mutant}: ended with {}, and said: {said}", output.status));
    }
    let found = found.chars().take(150).collect();
    Ok(Run { found, seconds: began.elapsed().as_secs_f64() })
}

/// Builds the copy where everything is built, so that other people's crates are built once. The binary has
/// the name of the real one there, so it is taken away at once.
fn build(dir: &Path, package: &str) -> Result<PathBuf, String> {
    let what: &[&str] = match package {
        SIMULATION => &["build", "--bin", SIMULATION],
        _ => &["test", "--lib", "--no-run"],
    };
    let mut command = run::cargo(what);
    command.args(["--quiet", "--package", package, "--message-format=json-render-diagnostics"]);
    command.current_dir(dir.join("source")).env("CARGO_TARGET_DIR", run::target_dir()?);
    let said = run::output(&mut command)?;
    let built =
        said.lines().rev().find_map(executable).ok_or_else(|| format!("{package}: nothing was built"))?;
    let binary = dir.join(package);
    fs::copy(&built, &binary).map_err(|error| format!("{}: {error}", built.display()))?;
    Ok(binary)
}

/// The file that a message of cargo says was built.
fn executable(message: &str) -> Option<PathBuf> {
    let (_, rest) = message.split_once("\"executable\":\"")?;
    rest.split_once('"').map(|(file, _)| PathBuf::from(file))
}

/// Copies what git knows of, with every edit made. What did not change is left alone, so that cargo builds no
/// more than it must.
pub(crate) fn copy(to: &Path, mutants: &[Mutant]) -> Done {
    let mut edits: BTreeMap<&str, Vec<(&str, &Edit)>> = BTreeMap::new();
    for mutant in mutants {
        for edit in &mutant.edits {
            edits.entry(&edit.file).or_default().push((&mutant.name, edit));
        }
    }
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard"]).current_dir(run::root());
    let files = run::output(&mut git)?;
    forget(to, to, &files.lines().map(Path::new).collect())?;
    for file in files.lines() {
        let Ok(mut bytes) = fs::read(run::root().join(file)) else { continue };
        if file == "Cargo.toml" {
            bytes = another_version(bytes)?;
        }
        if let Some(edits) = edits.remove(file) {
            let text = String::from_utf8(bytes).map_err(|_| format!("{file} is not UTF-8"))?;
            bytes = edit_all(file, text, &edits)?.into_bytes();
        }
        let place = to.join(file);
        if fs::read(&place).is_ok_and(|there| there == bytes) {
            continue;
        }
        let made = fs::create_dir_all(place.parent().unwrap_or(to)).and_then(|()| fs::write(&place, bytes));
        made.map_err(|error| format!("{}: {error}", place.display()))?;
    }
    match edits.into_iter().next() {
        Some((file, edits)) => Err(format!("{}: there is no {file}", edits[0].0)),
        None => Ok(()),
    }
}

/// Deletes what is below `dir` in the copy and no longer in the original.
fn forget(copy: &Path, dir: &Path, files: &BTreeSet<&Path>) -> Done {
    let told = |error| format!("{}: {error}", dir.display());
    let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(told)?;
        let path = entry.path();
        if entry.file_type().map_err(told)?.is_dir() {
            forget(copy, &path, files)?;
        } else if !path.strip_prefix(copy).is_ok_and(|file| files.contains(file)) {
            fs::remove_file(&path).map_err(told)?;
        }
    }
    Ok(())
}

/// The workspace under another version. By name, version and place below the root cargo tells what it has
/// built, and the copy must not be taken for the original.
fn another_version(manifest: Vec<u8>) -> Result<Vec<u8>, String> {
    let text = String::from_utf8(manifest).map_err(|_| "Cargo.toml is not UTF-8".to_owned())?;
    let (before, after) =
        text.split_once("[workspace.package]\nversion = \"").ok_or("Cargo.toml has no version")?;
    let (version, after) = after.split_once('"').ok_or("Cargo.toml has no version")?;
    Ok(format!("{before}[workspace.package]\nversion = \"{version}-mutants\"{after}").into_bytes())
}

fn edit_all(file: &str, text: String, edits: &[(&str, &Edit)]) -> Result<String, String> {
    edits.iter().try_fold(text, |text, (name, edit)| match text.matches(&edit.find).count() {
        1 => Ok(text.replacen(&edit.find, &edit.replace.replace("{on}", &switch(name)), 1)),
        times => Err(format!("{name}: what it edits is in {file} {times} times, not once")),
    })
}

/// An expression: whether this mutant is on.
fn switch(name: &str) -> String {
    format!(
        "{{ static ON: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| \
         std::env::var(\"{SWITCH}\").is_ok_and(|name| name == \"{name}\")); *ON }}"
    )
}

fn read_all(dir: &Path) -> Result<Vec<Mutant>, String> {
    let failed = |error| format!("{}: {error}", dir.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.retain(|file| file.extension().is_some_and(|extension| extension == "mutant"));
    files.sort();
    let read = |file: &PathBuf| {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        parse(&name, &text).ok_or_else(|| format!("{}: cannot be read", file.display()))
    };
    files.iter().map(read).collect()
}

/// A line that says what it is, and for a fuzz target another one, `found by: <package> <test>`; then
/// `file: …`, `find:`, lines, `replace:`, lines, `end`, as often as need be.
fn parse(name: &str, text: &str) -> Option<Mutant> {
    let (what, mut rest) = text.split_once('\n')?;
    let mut found_by = Finder::Seeds;
    if let Some(after) = rest.strip_prefix("found by: ") {
        let (finder, after) = after.split_once('\n')?;
        let (package, test) = finder.split_once(' ')?;
        found_by = Finder::Test { package: package.into(), test: test.into() };
        rest = after;
    }
    let (mut edits, mut rest) = (Vec::new(), rest.trim_start_matches('\n'));
    while !rest.is_empty() {
        let (file, after) = rest.strip_prefix("file: ")?.split_once("\nfind:\n")?;
        let (find, after) = after.split_once("\nreplace:\n")?;
        let (replace, after) = after.split_once("\nend\n")?;
        edits.push(Edit { file: file.into(), find: find.into(), replace: replace.into() });
        rest = after.trim_start_matches('\n');
    }
    Some(Mutant { name: name.into(), what: what.into(), found_by, edits })
        .filter(|mutant| !mutant.edits.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_fits_the_sources() {
        let mutants = all().expect("they can be read");
        assert!(mutants.len() >= 14, "{} mutants", mutants.len());
        for mutant in mutants {
            for edit in &mutant.edits {
                let text = fs::read_to_string(run::root().join(&edit.file)).expect("the file is there");
                edit_all(&edit.file, text, &[(&mutant.name, edit)]).expect("it fits");
            }
        }
    }

    #[test]
    fn an_edit_that_does_not_fit_exactly_once_is_an_error() {
        let text = "Does nothing.\n\nfile: a.rs\nfind:\n  b();\nreplace:\n  if !{on} { b(); }\nend\n";
        let mutant = parse("idle", text).expect("it can be read");
        let edit = |text: &str| edit_all("a.rs", text.to_owned(), &[("idle", &mutant.edits[0])]);
        assert!(edit("a();\n  b();\n").expect("once").contains("name == \"idle\""));
        for (text, times) in [("a();\n", 0), ("  b();\n  b();\n", 2)] {
            let why = edit(text).expect_err("not once");
            assert_eq!(why, format!("idle: what it edits is in a.rs {times} times, not once"));
        }
    }
}
