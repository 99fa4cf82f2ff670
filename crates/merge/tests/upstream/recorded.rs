//! What upstream's code is asked and answers, written down.
//!
//! In: the Go module. Out: a line of JSON for each question. Never: changes the module: a copy of it is,
//! where each function that is asked is wrapped by one that writes (`go/`).

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_scratch::Scratch;
use serde_json::Value;

const MODULE: &str = "sigs.k8s.io/structured-merge-diff/v6";

/// Where what it was that wraps is put, and what it wraps: the file, the receiver, the functions.
const WRAPPED: &[(&str, &str, &[&str])] = &[
    ("value/value.go", "func ", &["Compare", "Equals"]),
    (
        "fieldpath/set.go",
        "func (s *Set) ",
        &[
            "Union",
            "Intersection",
            "Difference",
            "RecursiveDifference",
            "Leaves",
            "EnsureNamedFieldsAreMembers",
            "FilterIncludeMatches",
            "Has",
            "Equals",
        ],
    ),
    ("fieldpath/serialize.go", "func (s *Set) ", &["ToJSON", "FromJSON"]),
    ("fieldpath/element.go", "func (e PathElement) ", &["Compare", "Less"]),
    (
        "typed/typed.go",
        "func (tv TypedValue) ",
        &["Validate", "ToFieldSet", "Merge", "Compare", "RemoveItems", "ExtractItems"],
    ),
    ("typed/reconcile_schema.go", "func ", &["ReconcileFieldSetWithSchema"]),
    ("merge/update.go", "func (s *Updater) ", &["Update", "Apply"]),
];

/// What some of its tests ask; `None` after a skip was announced.
///
/// - `tests`: arguments of `go test`.
/// - `settings`: for the environment.
pub fn of(tests: &[&str], settings: &[(&str, &str)]) -> Option<String> {
    announced(record(tests, settings))
}

/// `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
fn announced<T>(found: Result<T, String>) -> Option<T> {
    match found {
        Ok(found) => Some(found),
        Err(why) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("CI=true says that no test may be left out, and this one needs Go: {why}")
        }
        Err(why) => {
            let thread = std::thread::current();
            let name = thread.name().unwrap_or("a test");
            // Past the test runner's capture; without a standard error there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{name}: SKIPPED: needs Go: {why}");
            None
        }
    }
}

/// An error is that there is no Go or no module; what is wrong with either is a panic.
fn record(tests: &[&str], settings: &[(&str, &str)]) -> Result<String, String> {
    let module = module_dir(MODULE)?;
    let scratch = Scratch::new();
    let copy = scratch.path().join("module");
    copy_tree(&module, &copy);
    copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join("go"), &copy);
    for (file, receiver, functions) in WRAPPED {
        wrap(&copy.join(file), receiver, functions);
    }
    replace(
        &copy.join("merge/update.go"),
        "for version, managed := range managedAtVersion {",
        "for _, version := range sortedVersions(managedAtVersion) {\n\t\tmanaged := managedAtVersion[version]",
    );
    let records = scratch.path().join("records");
    let done = Command::new("go")
        .args(["test", "-vet=off", "-count=1"])
        .args(tests)
        .envs(settings.iter().copied())
        .env("RECORD_FILE", &records)
        .current_dir(&copy)
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", text(&done.stdout), text(&done.stderr));
    Ok(fs::read_to_string(records).expect("the records"))
}

/// Where a module is, at the version that the schema's table was made with.
fn module_dir(name: &str) -> Result<PathBuf, String> {
    let done = Command::new("go")
        .args(["mod", "download", "-json", name])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/gen"))
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let printed: Value = serde_json::from_slice(&done.stdout).map_err(|error| error.to_string())?;
    match (&printed["Dir"], &printed["Error"]) {
        (Value::String(dir), Value::Null) => Ok(dir.into()),
        (_, why) => Err(format!("{name}: {why}")),
    }
}

/// The copy can be written, which the module cache cannot.
fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory to read") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_tree(&entry.path(), &target),
            false => fs::write(&target, fs::read(entry.path()).expect("a file")).expect("a copy"),
        }
    }
}

/// Renames the functions, whose names the wrappers have then.
fn wrap(file: &Path, receiver: &str, functions: &[&str]) {
    for name in functions {
        replace(file, &format!("\n{receiver}{name}("), &format!("\n{receiver}upstream{name}("));
    }
}

fn replace(file: &Path, before: &str, after: &str) {
    let source = fs::read_to_string(file).expect("a source");
    assert_eq!(source.matches(before).count(), 1, "{before}");
    fs::write(file, source.replace(before, after)).expect("a source");
}
