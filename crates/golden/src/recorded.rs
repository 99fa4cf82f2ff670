//! What upstream's own tests ask of a function, and what it answers: its package is tested once more with the
//! function recorded.
//!
//! In: a package of a module, a Go file beside its own, the names that the function gets meanwhile. Out: a
//! line of JSON a call. Never: changes what is in Go's module cache; a copy of the module outlives the test.

use std::fs;
use std::path::Path;
use std::process::Command;

use forebay_scratch::Scratch;
use serde_json::Value;

use crate::{module_dir, or_skip};

/// A function of a package, and how it is recorded.
pub struct Recorded<'a> {
    pub module: &'a str,
    /// In the module.
    pub package: &'a str,
    /// Of the package, with the function.
    pub file: &'a str,
    /// Beginnings of lines, and what they become.
    pub renamed: &'a [(&'a str, &'a str)],
    /// A Go file for the package.
    pub recorder: &'a str,
    /// A directory of this repository whose `go.mod` has all that the package's tests need.
    pub host: &'a str,
}

/// The calls of `what`; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn recorded(what: &Recorded<'_>) -> Option<Vec<Value>> {
    or_skip(calls(what))
}

fn calls(what: &Recorded<'_>) -> Result<Vec<Value>, String> {
    let scratch = Scratch::new();
    let copy = scratch.path().join("module");
    copy_dir(&module_dir(what.module)?, &copy)?;
    let package = copy.join(what.package);
    let own = package.join(what.file);
    let lines = fs::read_to_string(&own).map_err(|error| format!("{}: {error}", own.display()))?;
    write(&own, &lines.lines().map(|line| renamed(line, what.renamed) + "\n").collect::<String>())?;
    write(&package.join("recorded.go"), what.recorder)?;

    let host = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(what.host);
    let host_file = |name: &str| fs::read_to_string(host.join(name)).map_err(|error| error.to_string());
    let modfile = scratch.path().join("host.mod");
    write(&modfile, &replaced(&host_file("go.mod")?, what.module, &copy))?;
    write(&scratch.path().join("host.sum"), &host_file("go.sum")?)?;

    let out = scratch.path().join("calls");
    let done = Command::new("go")
        .args(["test", "-count=1", "-vet=off", "-modfile"])
        .arg(&modfile)
        .arg(format!("{}/{}", what.module, what.package))
        .current_dir(&host)
        .env("FOREBAY_RECORDED", &out)
        .output()
        .map_err(|error| format!("go: {error}"))?;
    if !done.status.success() {
        return Err(
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
        );
    }
    let text = fs::read_to_string(&out).map_err(|error| error.to_string())?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect()
}

fn renamed(line: &str, names: &[(&str, &str)]) -> String {
    let found = names.iter().find_map(|(old, new)| Some(format!("{new}{}", line.strip_prefix(old)?)));
    found.unwrap_or_else(|| line.to_owned())
}

/// A `go.mod` that has `module` from a directory.
fn replaced(text: &str, module: &str, with: &Path) -> String {
    let (arrow, with) = (format!("{module} => "), with.display());
    let is_there = text.contains(&arrow);
    let lines = text.lines().map(|line| match line.trim_start().strip_prefix(&arrow) {
        Some(_) => format!("\t{arrow}{with}\n"),
        None => format!("{line}\n"),
    });
    let lines: String = lines.collect();
    if is_there { lines } else { format!("{lines}replace {arrow}{with}\n") }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy_dir(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    fs::create_dir_all(to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().map_err(failed)?.is_dir() {
            true => copy_dir(&from, &to)?,
            // Its mode with it would be one that cannot be written to.
            false => fs::write(&to, fs::read(&from).map_err(failed)?).map_err(failed)?,
        }
    }
    Ok(())
}
