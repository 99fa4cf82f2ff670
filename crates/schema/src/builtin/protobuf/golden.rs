//! The golden files of Kubernetes' own modules: every kind, filled in, as JSON and as protobuf.
//!
//! In: the Go modules at the versions that the table was made from, out of Go's module cache. Out: a skip that is
//! loud where Go is missing and, under `CI=true`, a failure. Never: a copy of the files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use forebay_apimachinery::Lease;
use serde_json::Value;

use super::super::codec::{normalize, write_json};
use super::super::{Kind, TYPES, table};
use super::*;

/// Modules with golden files, and where they are in them.
const GOLDENS: [(&str, &str); 2] =
    [("k8s.io/api", "testdata/HEAD"), ("k8s.io/apiextensions-apiserver", "pkg/apis/testdata/HEAD")];

/// A kind's golden files.
pub(super) struct Golden {
    pub(super) name: String,
    pub(super) kind: &'static Kind,
    pub(super) json: Value, // without kind and apiVersion
    pub(super) body: Vec<u8>,
}

/// Returns the golden files of all kinds that the table has; `None` after a skip was announced.
///
/// # Panics
/// Instead of a skip, under `CI=true`.
pub(super) fn goldens() -> Option<Vec<Golden>> {
    let found = GOLDENS.iter().map(|(module, path)| Ok(read(&module_dir(module)?.join(path))));
    match found.collect::<Result<Vec<_>, String>>() {
        Ok(found) => Some(found.into_iter().flatten().collect()),
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

fn module_dir(module: &str) -> Result<PathBuf, String> {
    let prefix = format!("# from {module} ");
    let version =
        TYPES.lines().find_map(|line| line.strip_prefix(&prefix)).ok_or("the table names no version")?;
    let wanted = format!("{module}@{version}");
    let done = Command::new("go")
        .args(["mod", "download", "-json", &wanted])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/gen"))
        .output()
        .map_err(|error| format!("go: {error}"))?;
    let printed: Value = serde_json::from_slice(&done.stdout).map_err(|error| error.to_string())?;
    match (&printed["Dir"], &printed["Error"]) {
        (Value::String(dir), Value::Null) => Ok(dir.into()),
        (_, why) => Err(format!("{wanted}: {why}")),
    }
}

fn read(dir: &Path) -> Vec<Golden> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap().file_name().to_str()?.strip_suffix(".pb")?.to_owned()))
        .collect();
    names.sort();
    names.into_iter().filter_map(|name| read_one(dir, name)).collect()
}

fn read_one(dir: &Path, name: String) -> Option<Golden> {
    let body = fs::read(dir.join(format!("{name}.pb"))).unwrap();
    let text = fs::read(dir.join(format!("{name}.json"))).unwrap();
    let mut json: Value = serde_json::from_slice(&text).unwrap();
    let envelope = decode_envelope(&body).unwrap();
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let kind = match &*envelope.kind {
        "" => table().kind("", "v1", name.strip_prefix("core.v1.")?), // WatchEvent does not say what it is
        kind => table().kind(group, version, kind),
    }?;
    let members = json.as_object_mut().unwrap();
    assert_eq!(members.remove("apiVersion").unwrap_or_default().as_str().unwrap_or(""), envelope.api_version);
    assert_eq!(members.remove("kind").unwrap_or_default().as_str().unwrap_or(""), envelope.kind, "{name}");
    Some(Golden { name, kind, json, body })
}

#[test]
fn every_golden_decodes_to_its_json() {
    let Some(goldens) = goldens() else { return };
    assert!(goldens.len() > 180, "{}", goldens.len());
    for golden in goldens {
        let ty = golden.kind.ty;
        let mut want = golden.json;
        assert_eq!(normalize(ty, &mut want).unwrap(), [], "{}", golden.name);
        let got = decode(ty, decode_envelope(&golden.body).unwrap().raw, &Lease::of_server()).unwrap();
        let known = decode_known(ty, decode_envelope(&golden.body).unwrap().raw, &Lease::of_server());
        assert_eq!(known.as_ref(), Ok(&got), "{}", golden.name);
        let mut again = got.clone();
        assert_eq!(normalize(ty, &mut again).unwrap(), [], "{}", golden.name);
        assert_eq!(again, got, "{}", golden.name);
        let written = |value| {
            let mut out = Vec::new();
            write_json(ty, value, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&got), written(&want), "{}", golden.name);
        assert_eq!(got, want, "{}", golden.name);
    }
}

#[test]
fn every_golden_is_written_from_its_json() {
    for golden in goldens().unwrap_or_default() {
        let Golden { name, kind, mut json, body } = golden;
        normalize(kind.ty, &mut json).unwrap();
        let want = decode_envelope(&body).unwrap();
        let (mut message, mut got) = (Vec::new(), Vec::new());
        encode(kind.ty, &json, &mut message).unwrap();
        Envelope::new(&want.api_version, &want.kind).write(&message, &mut got);
        assert!(got == body, "{name}: {:?}", decode_envelope(&got).unwrap().raw);
    }
}
