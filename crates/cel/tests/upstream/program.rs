//! The program that asks upstream: built once for a run, told a case a line.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value as Json;

fn module() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("go")
}

fn go(args: &[&str]) -> Result<String, String> {
    let mut command = Command::new("go");
    command.args(args).current_dir(module()).env("GOFLAGS", "-buildvcs=false").env("CGO_ENABLED", "0");
    let done = command.output().map_err(|error| format!("go: {error}"))?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    String::from_utf8(done.stdout).map_err(|error| error.to_string())
}

fn built() -> &'static Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| {
        let binary = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cel-upstream");
        let path = binary.to_str().ok_or("a path that is no text")?;
        go(&["build", "-mod=readonly", "-trimpath", "-o", path, "."])?;
        Ok(binary)
    })
}

/// Whether the program is there; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn or_skip() -> Option<()> {
    match built() {
        Ok(_) => Some(()),
        Err(why) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("CI=true says that no test may be left out, and this one needs Go: {why}")
        }
        Err(why) => {
            let thread = std::thread::current();
            // Past the test runner's capture; without a standard error there is nobody to tell.
            let name = thread.name().unwrap_or("a test");
            let _ = writeln!(std::io::stderr(), "{name}: SKIPPED: needs Go: {why}");
            None
        }
    }
}

/// What the program prints.
pub fn output(args: &[&str], input: &str) -> Result<String, String> {
    let program = built().as_ref().map_err(Clone::clone)?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().ok_or("it has no standard input")?;
    let input = input.to_owned();
    let writer = std::thread::Builder::new().name("cases".to_owned());
    let writer =
        writer.spawn(move || stdin.write_all(input.as_bytes())).map_err(|error| error.to_string())?;
    let done = child.wait_with_output().map_err(|error| error.to_string())?;
    writer.join().map_err(|_| "the writer failed")?.map_err(|error| error.to_string())?;
    if !done.status.success() {
        return Err(format!("it ended with {}", done.status));
    }
    String::from_utf8(done.stdout).map_err(|error| error.to_string())
}

fn lines(text: &str) -> Vec<Json> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// One answer for each case.
pub fn answers(mode: &str, cases: &[Json]) -> Result<Vec<Json>, String> {
    let input: String = cases.iter().map(|case| format!("{case}\n")).collect();
    Ok(lines(&output(&[mode], &input)?))
}

/// The expressions of upstream's tests in a directory of a module.
pub fn cases(name: &str, dir: &str) -> Vec<Json> {
    printed("cases", name, dir)
}

/// The rules of the CustomResourceDefinitions in a file of a module.
pub fn rules(name: &str, file: &str) -> Vec<Json> {
    printed("rules", name, file)
}

fn printed(mode: &str, name: &str, path: &str) -> Vec<Json> {
    let root = go(&["list", "-m", "-f", "{{.Dir}}", name]).expect("the module is in the cache");
    let path = Path::new(root.trim()).join(path);
    lines(&output(&[mode, path.to_str().expect("a text")], "").expect("it prints"))
}
