//! Starting other programs, and where the repository is.
//!
//! In: a command. Out: `Ok`, or an error that names the command and what became of it.
//! Never: a shell.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

/// What every chore returns; the text is for a person.
pub type Done = Result<(), String>;

/// Returns the root of the workspace that this xtask was built from.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("crates/xtask is two levels down")
        .to_owned()
}

/// A `cargo` command in the workspace's root: the cargo that runs us, where there is one.
pub fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    command
}

/// What cargo knows of the workspace's own crates.
pub fn metadata() -> Result<Value, String> {
    let text = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]))?;
    serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))
}

/// Returns the directory that cargo builds into.
pub fn target_dir() -> Result<PathBuf, String> {
    let metadata = metadata()?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or_else(|| "cargo metadata names no target directory".to_owned())
}

/// Runs to the end with our own output.
pub fn run(command: &mut Command) -> Done {
    let status = command.status().map_err(|e| not_started(command, &e))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{} failed: {status}", shown(command))),
    }
}

/// Runs to the end and returns what it wrote to its standard output.
pub fn output(command: &mut Command) -> Result<String, String> {
    let done = command.stderr(Stdio::inherit()).output().map_err(|e| not_started(command, &e))?;
    if !done.status.success() {
        return Err(format!("{} failed: {}", shown(command), done.status));
    }
    String::from_utf8(done.stdout)
        .map_err(|_| format!("{} wrote something that is not UTF-8", shown(command)))
}

/// Returns `args` if each is one of `known`.
pub fn flags<'a>(args: &'a [String], known: &[&str]) -> Result<Vec<&'a str>, String> {
    match args.iter().find(|arg| !known.contains(&arg.as_str())) {
        Some(other) => Err(format!("no option {other:?} here; known: {}", known.join(", "))),
        None => Ok(args.iter().map(String::as_str).collect()),
    }
}

/// Whether the environment is a CI run, where nothing may be skipped.
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Says clearly that Go is missing, before a command needs it.
pub fn need_go(what_for: &str) -> Done {
    match Command::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        _ => Err(format!(
            "{what_for} needs the Go toolchain, and no working `go` is in PATH; install Go 1.26 or newer (https://go.dev/dl/)"
        )),
    }
}

/// The command line as a person would type it.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

fn not_started(command: &Command, why: &std::io::Error) -> String {
    format!("{} could not be started: {why}", shown(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_option_is_refused_and_the_known_ones_are_named() {
        let args = ["--fsat".to_owned()];
        assert_eq!(flags(&args, &["--fast"]).unwrap_err(), "no option \"--fsat\" here; known: --fast");
        assert_eq!(flags(&["--fast".to_owned()], &["--fast"]).unwrap(), ["--fast"]);
    }

    #[test]
    fn a_failure_names_the_command() {
        let why = run(Command::new("/no/such/dir/tool").arg("--x")).unwrap_err();
        assert!(why.starts_with("tool --x could not be started"), "{why}");
    }
}
