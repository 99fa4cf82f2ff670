//! Kubernetes' own packages, asked.
//!
//! In: what is asked, and questions. Out: a line of JSON for each. Never: changes the module cache: the
//! program (`go/`) is built in a copy, beside the module file of the peers. Without Go it is a loud skip, and
//! a failure under `CI=true`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use forebay_scratch::Scratch;
use serde_json::Value;

/// Where the module file is that has the version of Kubernetes that this server is compared with.
const MODULE_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/peers/kubernetes-1.36");

/// The answers; `None` after a skip was announced.
pub fn ask(what: &[&str], questions: &str) -> Option<Vec<Value>> {
    let answers = announced(run(what, questions))?;
    Some(answers.lines().map(|line| serde_json::from_str(line).expect("an answer is JSON")).collect())
}

/// Where the published definitions of Kubernetes are.
pub fn definitions() -> Option<PathBuf> {
    let module = announced(module_dir("k8s.io/kubernetes"))?;
    Some(module.join("api/openapi-spec/v3"))
}

/// Where the strategies of all resources are.
pub fn strategies() -> Option<Vec<PathBuf>> {
    let registries = [
        ("k8s.io/kubernetes", "pkg/registry"),
        ("k8s.io/kube-aggregator", "pkg/registry"),
        ("k8s.io/apiextensions-apiserver", "pkg/registry/customresourcedefinition"),
    ];
    let dir = |(module, below)| Some(announced(module_dir(module))?.join(below));
    registries.into_iter().map(dir).collect()
}

/// What upstream's own tests of its field manager ask and are answered.
pub fn recorded() -> Option<Vec<Value>> {
    let records = announced(record())?;
    Some(records.lines().map(|line| serde_json::from_str(line).expect("a record is JSON")).collect())
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
            let thread = thread::current();
            let name = thread.name().unwrap_or("a test");
            // Past the test runner's capture; without a standard error there is nobody to tell.
            let _ = writeln!(std::io::stderr(), "{name}: SKIPPED: needs Go: {why}");
            None
        }
    }
}

/// As [`run`], of the tests in a copy of their module.
fn record() -> Result<String, String> {
    let module = module_dir("k8s.io/apimachinery")?;
    let definitions = module_dir("k8s.io/kubernetes")?.join("api/openapi-spec/swagger.json");
    let scratch = Scratch::new();
    // The tests read the definitions where they are in Kubernetes' own repository: seven levels above.
    let root = scratch.path().join("src/k8s.io");
    let copied = root.join("kubernetes/staging/src/apimachinery");
    copy_tree(&module, &copied);
    fs::create_dir_all(root.join("api/openapi-spec")).expect("a directory");
    fs::copy(definitions, root.join("api/openapi-spec/swagger.json")).expect("a copy");
    let package = copied.join("pkg/util/managedfields/internal");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("go/recorded"), &package);
    let wrapped = package.join("fieldmanager.go");
    let mut source = fs::read_to_string(&wrapped).expect("a source");
    for name in ["Update", "Apply"] {
        let method = format!("\nfunc (f *FieldManager) {name}(");
        assert_eq!(source.matches(&method).count(), 1, "{name}");
        source = source.replace(&method, &format!("\nfunc (f *FieldManager) upstream{name}("));
    }
    fs::write(&wrapped, source).expect("a source");
    let records = scratch.path().join("records");
    let done = Command::new("go")
        .args(["test", "-vet=off", "-count=1", "./pkg/util/managedfields/..."])
        .env("RECORD_FILE", &records)
        .current_dir(&copied)
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(done.status.success(), "{}\n{}", text(&done.stdout), text(&done.stderr));
    Ok(fs::read_to_string(records).expect("the records"))
}

/// The copy can be written, which the module cache cannot.
fn copy_tree(from: &Path, to: &Path) {
    copy(from, to);
    for entry in fs::read_dir(from).expect("a directory to read") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_dir() {
            copy_tree(&entry.path(), &to.join(entry.file_name()));
        }
    }
}

/// An error is that there is no Go or no module; what is wrong with either is a panic.
fn run(what: &[&str], questions: &str) -> Result<String, String> {
    module_dir("k8s.io/kubernetes")?;
    let scratch = Scratch::new();
    let program = scratch.path().join("program");
    copy(Path::new(MODULE_FILE), &program);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("go"), &program);
    let built = Command::new("go")
        .args(["build", "-o", "upstream", "."])
        .current_dir(&program)
        .output()
        .map_err(|error| format!("go: {error}"))?;
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut running = Command::new(program.join("upstream"))
        .args(what)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("what was built runs");
    let mut input = running.stdin.take().expect("a pipe");
    let questions = questions.to_owned();
    let asking = thread::Builder::new().name("questions".to_owned());
    let asking = asking.spawn(move || input.write_all(questions.as_bytes())).expect("a thread");
    let done = running.wait_with_output().expect("it ends");
    asking.join().expect("a thread").expect("all questions are read");
    assert!(done.status.success(), "{what:?} failed");
    Ok(String::from_utf8(done.stdout).expect("JSON is UTF-8"))
}

/// Where a module is, at the version of the module file.
fn module_dir(name: &str) -> Result<PathBuf, String> {
    let done = Command::new("go")
        .args(["mod", "download", "-json", name])
        .current_dir(MODULE_FILE)
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let printed: Value = serde_json::from_slice(&done.stdout).map_err(|error| error.to_string())?;
    match (&printed["Dir"], &printed["Error"]) {
        (Value::String(dir), Value::Null) => Ok(dir.into()),
        (_, why) => Err(format!("{name}: {why}")),
    }
}

/// Copies the files of a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory to read") {
        let entry = entry.expect("an entry");
        if entry.file_type().expect("a type").is_file() {
            fs::write(to.join(entry.file_name()), fs::read(entry.path()).expect("a file")).expect("a copy");
        }
    }
}
