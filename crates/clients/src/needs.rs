//! What a test needs from outside the workspace: the peers and Go; and where our own binary is.
//!
//! In: `cargo xtask peers --print`, `go`, cargo's target directory. Out: paths, or a skip that is loud and,
//! under `CI=true`, a failure. Never: another version of kubectl than the tests' expectations were recorded
//! with.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

/// The programs that `cargo xtask peers` built.
#[derive(Debug)]
pub struct Peers {
    pub etcd: PathBuf,
    /// The versions before and after it.
    pub etcd_3_5: PathBuf,
    pub etcd_3_7: PathBuf,
    /// Restores backups of etcd's.
    pub etcdutl: PathBuf,
    pub apiserver: PathBuf,
    pub kubectl: PathBuf,
    pub controller_manager: PathBuf,
    pub scheduler: PathBuf,
    pub kubeadm: PathBuf,
    /// A server to stand behind an APIService.
    pub sample_apiserver: PathBuf,
    /// An interpreter with the `kubernetes` package; absent on a machine without Python.
    pub python: Option<PathBuf>,
}

/// The minor version whose output the tests expect.
const KUBECTL_SERIES: &str = "v1.36.";

/// Returns the peers' paths, or what to do about their absence.
pub fn peers() -> Result<&'static Peers, String> {
    static PEERS: OnceLock<Result<Peers, String>> = OnceLock::new();
    PEERS.get_or_init(locate_peers).as_ref().map_err(Clone::clone)
}

/// Returns whether the peers are there; `false` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn peers_or_skip() -> bool {
    or_skip(&peers().map(drop)).is_some()
}

fn locate_peers() -> Result<Peers, String> {
    let printed = output(cargo().args(["xtask", "peers", "--print"]))
        .map_err(|why| format!("the peers are not there: {why}"))?;
    let known = |name: &str| {
        let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.map(PathBuf::from)
    };
    let path = |name: &str| known(name).ok_or_else(|| format!("cargo xtask peers --print names no {name}"));
    Ok(Peers {
        etcd: path("ETCD")?,
        etcd_3_5: path("ETCD_3_5")?,
        etcd_3_7: path("ETCD_3_7")?,
        etcdutl: path("ETCDUTL")?,
        apiserver: path("KUBE_APISERVER")?,
        kubectl: path("KUBECTL")?,
        controller_manager: path("KUBE_CONTROLLER_MANAGER")?,
        scheduler: path("KUBE_SCHEDULER")?,
        kubeadm: path("KUBEADM")?,
        sample_apiserver: path("SAMPLE_APISERVER")?,
        python: known("PYTHON"),
    })
}

/// Returns a kubectl of the expected version, the peers' first; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn kubectl() -> Option<&'static Path> {
    static KUBECTL: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(KUBECTL.get_or_init(|| match peers() {
        Ok(peers) => Ok(peers.kubectl.clone()),
        Err(why) => kubectl_in_path().map_err(|other| {
            format!("needs Go, for the kubectl that `cargo xtask peers` builds: {why}; {other}")
        }),
    }))
    .map(PathBuf::as_path)
}

fn kubectl_in_path() -> Result<PathBuf, String> {
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .map(|dir| dir.join("kubectl"))
        .find(|path| path.is_file())
        .ok_or("PATH has no kubectl either")?;
    let version = output(Command::new(&found).args(["version", "--client", "-o", "json"]))?;
    let version: serde_json::Value =
        serde_json::from_str(&version).map_err(|e| format!("{}: {e}", found.display()))?;
    let version = version["clientVersion"]["gitVersion"].as_str().unwrap_or_default();
    if !version.starts_with(KUBECTL_SERIES) {
        return Err(format!("{} is {version}, not {KUBECTL_SERIES}x", found.display()));
    }
    say(&format!("The peers are not built: using {} ({version}) from PATH.", found.display()));
    Ok(found)
}

/// Returns the peers for a test that cannot do without them; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn built_peers() -> Option<&'static Peers> {
    static BUILT: OnceLock<Result<&'static Peers, String>> = OnceLock::new();
    or_skip(BUILT.get_or_init(|| {
        peers().map_err(|why| format!("needs Go, for the peers that `cargo xtask peers` builds: {why}"))
    }))
    .copied()
}

/// Returns an interpreter that finds the `kubernetes` package; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Result<&'static Path, String>> = OnceLock::new();
    or_skip(PYTHON.get_or_init(|| {
        let absent = "needs Python 3.10 or newer with venv (Debian: python3-venv), for the client that \
                      `cargo xtask peers` installs";
        let peers = peers().map_err(|why| format!("{absent}: {why}"))?;
        peers.python.as_deref().ok_or_else(|| absent.to_owned())
    }))
    .copied()
}

/// Returns whether `go` runs; `false` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub fn go() -> bool {
    static GO: OnceLock<Result<(), String>> = OnceLock::new();
    let found = GO.get_or_init(|| {
        output(Command::new("go").arg("version"))
            .map(drop)
            .map_err(|why| format!("needs Go 1.26 or newer (https://go.dev/dl/), for client-go: {why}"))
    });
    or_skip(found).is_some()
}

fn or_skip<T>(found: &Result<T, String>) -> Option<&T> {
    match found {
        Ok(found) => Some(found),
        Err(why) if std::env::var("CI").is_ok_and(|ci| ci == "true") => {
            panic!("CI=true says that no test may be left out, and this one {why}")
        }
        Err(why) => {
            let thread = std::thread::current();
            say(&format!("{}: SKIPPED: {why}", thread.name().unwrap_or("a test")));
            None
        }
    }
}

/// Past the test runner's capture, which keeps what a passing test prints to itself.
fn say(line: &str) {
    // Without a standard error there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Returns what `FOREBAY_TEST_BINARY` names, or `target/<profile>/forebay` of the build that this test
/// belongs to, built anew if a source is newer.
pub fn forebay() -> Result<PathBuf, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let named = std::env::var_os("FOREBAY_TEST_BINARY").filter(|path| !path.is_empty());
    BUILT.get_or_init(|| named.map_or_else(built_forebay, |path| Ok(path.into()))).clone()
}

fn built_forebay() -> Result<PathBuf, String> {
    let profile = profile_dir()?;
    let binary = profile.join(format!("forebay{}", std::env::consts::EXE_SUFFIX));
    if !is_fresh(&binary) {
        let flags: &[&str] = if profile.ends_with("release") { &["--release"] } else { &[] };
        output(cargo().args(["build", "--quiet", "--package", "forebay", "--bin", "forebay"]).args(flags))?;
    }
    match binary.is_file() {
        true => Ok(binary),
        false => Err(format!("cargo build left no {}", binary.display())),
    }
}

/// Whether `binary` is newer than every source that cargo's dep-info file beside it names.
fn is_fresh(binary: &Path) -> bool {
    let modified = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let Some(built) = modified(binary) else { return false };
    let Ok(dep_info) = fs::read_to_string(binary.with_extension("d")) else { return false };
    sources(&dep_info)
        .iter()
        .all(|source| modified(source).is_some_and(|changed: SystemTime| changed <= built))
}

/// The paths behind the colon of a dep-info line, where a space in a name is `\ `.
fn sources(dep_info: &str) -> Vec<PathBuf> {
    let Some((_, list)) = dep_info.split_once(": ") else { return Vec::new() };
    list.trim_end()
        .replace("\\ ", "\0")
        .split(' ')
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(path.replace('\0', " ")))
        .collect()
}

/// A test is `target/<profile>/deps/<name>-<hash>`, a program that uses this crate `target/<profile>/<name>`.
fn profile_dir() -> Result<PathBuf, String> {
    let this = std::env::current_exe().map_err(|e| e.to_string())?;
    let dir = this.parent().map(|dir| if dir.ends_with("deps") { dir.parent() } else { Some(dir) });
    dir.flatten().map(Path::to_owned).ok_or_else(|| format!("{} is too short", this.display()))
}

/// A directory in cargo's target directory that outlives a run.
pub fn cache_dir() -> Result<PathBuf, String> {
    let profile = profile_dir()?;
    let dir = profile.parent().unwrap_or(&profile).join("tmp").join("forebay-clients");
    fs::create_dir_all(&dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    Ok(dir)
}

/// The cargo that runs us, in the workspace, with the target directory that we are in.
fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    if let Some(target) = profile_dir().ok().as_deref().and_then(Path::parent) {
        command.env("CARGO_TARGET_DIR", target);
    }
    command
}

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."))
}

/// Runs to the end; standard output, or an error with all that was said.
pub fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command.output().map_err(|e| format!("{shown}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match done.status.success() {
        true => Ok(text(&done.stdout)),
        false => Err(format!("{shown}: {}\n{}{}", done.status, text(&done.stdout), text(&done.stderr))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_from_dep_info() {
        assert_eq!(
            sources("/t/debug/forebay: /a/b.rs /c\\ d/e.rs\n"),
            [PathBuf::from("/a/b.rs"), PathBuf::from("/c d/e.rs")]
        );
        assert_eq!(sources("nothing"), [] as [PathBuf; 0]);
    }

    #[test]
    fn a_binary_that_is_not_there_is_not_fresh() {
        assert!(!is_fresh(Path::new("/no/such/forebay")));
    }

    #[test]
    fn a_failure_shows_what_was_run_and_what_it_said() {
        let why = output(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"])).unwrap_err();
        assert!(why.contains("exit status: 3\nout\nerr\n"), "{why}");
    }
}
