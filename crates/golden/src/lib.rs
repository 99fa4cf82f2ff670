//! The golden files of Kubernetes' own modules: every kind, filled in, as JSON and as protobuf; what their
//! tests ask and are answered.
//!
//! In: the Go modules at the versions that the schema's table was made from, out of Go's module cache. Out:
//! the files, or a skip that is loud where Go is missing and, under `CI=true`, a failure. Never: a copy of
//! the files; used but in tests.

mod recorded;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

pub use recorded::{Recorded, recorded};

/// Says which versions of the modules it was made from.
const TYPES: &str = include_str!("../../schema/data/builtin.txt");

/// A module with golden files, and where they are in it.
type Module = (&'static str, &'static str);

/// The kinds of the API.
pub const API: Module = ("k8s.io/api", "testdata/HEAD");

/// CustomResourceDefinitions.
pub const EXTENSIONS: Module = ("k8s.io/apiextensions-apiserver", "pkg/apis/testdata/HEAD");

/// An object of a kind.
pub struct Golden {
    /// `GROUP.VERSION.KIND`, with `core` for the core group.
    pub name: String,
    pub json: String,
    /// Its message in the envelope that Kubernetes has around one.
    pub protobuf: Vec<u8>,
}

/// The golden objects of `modules`, by module and name; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn goldens(modules: &[Module]) -> Option<Vec<Golden>> {
    let found = modules.iter().map(|(module, path)| Ok(read(&module_dir(module)?.join(path))));
    Some(or_skip(found.collect::<Result<Vec<_>, String>>())?.into_iter().flatten().collect())
}

/// The sources of `modules` that `is_wanted`, in no order; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn sources(modules: &[&str], is_wanted: impl Fn(&Path) -> bool) -> Option<Vec<String>> {
    let mut found = Vec::new();
    for module in modules {
        let mut open = vec![or_skip(module_dir(module))?];
        while let Some(dir) = open.pop() {
            for entry in fs::read_dir(dir).expect("it is there") {
                let path = entry.expect("an entry").path();
                match path.is_dir() {
                    true => open.push(path),
                    false if is_wanted(&path) => found.push(fs::read_to_string(&path).expect("a source")),
                    false => {}
                }
            }
        }
    }
    Some(found)
}

/// What needs Go; `None` after a skip was announced.
fn or_skip<T>(found: Result<T, String>) -> Option<T> {
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

/// Where Go has `module` at `version`; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn module_at(module: &str, version: &str) -> Option<PathBuf> {
    or_skip(downloaded(module, version))
}

fn module_dir(module: &str) -> Result<PathBuf, String> {
    let prefix = format!("# from {module} ");
    let version =
        TYPES.lines().find_map(|line| line.strip_prefix(&prefix)).ok_or("the table names no version")?;
    downloaded(module, version)
}

fn downloaded(module: &str, version: &str) -> Result<PathBuf, String> {
    let wanted = format!("{module}@{version}");
    let done = Command::new("go")
        .args(["mod", "download", "-json", &wanted])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../schema/gen"))
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let printed: Value = serde_json::from_slice(&done.stdout).map_err(|error| error.to_string())?;
    match (&printed["Dir"], &printed["Error"]) {
        (Value::String(dir), Value::Null) => Ok(dir.into()),
        (_, why) => Err(format!("{wanted}: {why}")),
    }
}

fn read(dir: &Path) -> Vec<Golden> {
    let files = fs::read_dir(dir).expect("it is there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> =
        files.filter_map(|name| Some(name.to_str()?.strip_suffix(".pb")?.to_owned())).collect();
    names.sort();
    let read_one = |name: String| {
        let json = fs::read_to_string(dir.join(format!("{name}.json"))).expect(&name);
        let protobuf = fs::read(dir.join(format!("{name}.pb"))).expect(&name);
        Golden { name, json, protobuf }
    };
    names.into_iter().map(read_one).collect()
}
