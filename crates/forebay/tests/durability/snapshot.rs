//! `forebay snapshot`: from a server that runs and from one that does not, and what clients of before meet
//! afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use bytes::Bytes;
use forebay_embedded::limits::RESTORE_GAP;
use forebay_embedded::snapshot::{Encoder, Entry, Head};
use serde_json::Value;

use super::common::{Scratch, Server, names, rv, text};
use super::{PATH, object};

/// Runs `forebay snapshot`: its stdout, or what it said instead.
fn snapshot(arguments: &[&str]) -> Result<String, String> {
    let output = command(arguments).output().expect("the binary");
    let Output { status, stdout, stderr } = output;
    let told = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    if status.success() {
        return Ok(told(stdout));
    }
    assert_eq!(status.code(), Some(1));
    assert!(stdout.is_empty(), "half of an answer: {}", told(stdout));
    Err(told(stderr))
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    command.arg("snapshot").args(arguments).env_clear().stdin(Stdio::null());
    command
}

fn status(file: &Path) -> Value {
    let json = snapshot(&["status", path(file), "-o", "json"]).expect("whole");
    serde_json::from_str(&json).expect("JSON")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn data(scratch: &Scratch) -> PathBuf {
    scratch.path().join("data")
}

/// What is in the collection, by name and resourceVersion.
fn known(list: &Value) -> Vec<(String, String)> {
    let items = list["items"].as_array().expect("items");
    let one = |item: &Value, pointer| text(item, pointer).to_owned();
    items.iter().map(|item| (one(item, "/metadata/name"), one(item, "/metadata/resourceVersion"))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_snapshot_of_a_running_server_is_put_back_and_nobody_goes_on_as_if_nothing_was() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for number in 0..20 {
        client.post(PATH, &object(&format!("object-{number}"), 0)).await.expect(201);
    }
    client.delete(&format!("{PATH}/object-7")).await.expect(200);
    let saved = client.get(PATH).await.expect(200);
    let file = scratch.path().join("backup");
    let said = snapshot(&["save", path(&file), "--data-dir", path(&data(&scratch))]).expect("saved");
    assert!(said.starts_with(&format!("Snapshot saved at {}: revision ", file.display())), "{said}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("there").permissions());
    assert_eq!(mode & 0o777, 0o600, "Secrets are in it");

    // What comes after it is not in it.
    client.put(&format!("{PATH}/object-3"), &object("object-3", 1)).await.expect(200);
    client.post(PATH, &object("later", 0)).await.expect(201);
    let newest = rv(&client.get(PATH).await.expect(200));
    server.terminate();
    server.ended().await;
    let other = scratch.path().join("other");
    snapshot(&["save", path(&other), "--data-dir", path(&data(&scratch))]).expect("saved");
    let (first, second) = (status(&file), status(&other));
    assert_eq!(
        (first["keys"].as_u64(), second["revision"].as_u64() > first["revision"].as_u64()),
        (second["keys"].as_u64().map(|keys| keys - 1), true)
    );
    assert_ne!(first["digest"], second["digest"]);
    let table = snapshot(&["status", path(&file)]).expect("whole");
    let (head, row) = table.trim_end().split_once('\n').expect("two lines");
    assert_eq!(head.split_whitespace().collect::<Vec<_>>(), ["REVISION", "KEYS", "BYTES", "TAKEN", "DIGEST"]);
    let cells: Vec<_> = row.split_whitespace().collect();
    let revision = first["revision"].as_u64().expect("a revision");
    assert_eq!((cells[0].parse().ok(), cells[4]), (Some(revision), text(&first, "/digest")));

    // It is not put over what is there.
    let refused =
        snapshot(&["restore", path(&file), "--data-dir", path(&data(&scratch))]).expect_err("there");
    assert!(refused.contains("has a store already, and is left as it is"), "{refused}");

    for bump in [None, Some(0), Some(5_000)] {
        let scratch = Scratch::new();
        let flag = bump.map(|bump| format!("--bump-revision={bump}"));
        let dir = data(&scratch);
        let mut arguments = vec!["restore", path(&file), "--data-dir", path(&dir)];
        arguments.extend(flag.as_deref());
        snapshot(&arguments).expect("restored");
        let server = Server::start(&scratch, &[]).await;
        let client = server.admin().await;
        let list = client.get(PATH).await.expect(200);
        assert_eq!(known(&list), known(&saved), "{bump:?}");
        let bump = bump.unwrap_or(RESTORE_GAP);
        assert!(rv(&list) >= revision + bump, "{} of {revision} and {bump}", rv(&list));
        // From before: gone, all of it, unless it is exactly what the snapshot has.
        let mut gone = vec![rv(&saved["items"][0]), revision - 1];
        if bump > 0 {
            gone.extend([revision, newest]);
        }
        for before in gone {
            let watch =
                client.get(&format!("{PATH}?watch=true&resourceVersion={before}&timeoutSeconds=1")).await;
            let watch = if watch.code == 200 { watch.json()["object"].clone() } else { watch.json() };
            assert_eq!((watch["code"].as_u64(), text(&watch, "/reason")), (Some(410), "Expired"), "{before}");
        }
        if bump == 0 {
            let mut watch = client.watch(&format!("{PATH}?watch=true&resourceVersion={revision}")).await;
            client.post(PATH, &object("new", 0)).await.expect(201);
            assert_eq!(watch.event().await.short(), "ADDED new");
        }
        let new = client.put(&format!("{PATH}/object-5"), &object("object-5", 9)).await.expect(200);
        assert!(rv(&new) > newest.max(revision + bump) || bump == 0);
        server.kill().await;
        // And it is a store as any other.
        let server = Server::start(&scratch, &[]).await;
        let list = server.admin().await.get(PATH).await.expect(200);
        assert!(rv(&list) >= rv(&new));
        assert!(names(&list).contains(&"object-5".to_owned()));
        server.kill().await;
    }
}

/// The byte of `file` so far before its end, which has 65.
fn from_end(file: &mut [u8], before: usize) -> &mut u8 {
    let at = file.len() - before;
    &mut file[at]
}

/// A file of so many keys with values that do not compress.
fn file(scratch: &Scratch, keys: u64) -> PathBuf {
    let head =
        Head { revision: forebay_apimachinery::Revision::from_log(keys + 1), taken_ms: 1_700_000_000_000 };
    let (mut encoder, mut bytes) = Encoder::begin(head);
    let mut random = super::Random(1);
    for block in 0..keys.div_ceil(256) {
        let entry = |number: u64| Entry {
            key: forebay_apimachinery::Key::new(&format!("/registry/configmaps/default/{number:08}")),
            revision: forebay_apimachinery::Revision::from_log(number + 2),
            expires_ms: None,
            value: (0..512).flat_map(|_| random.below(u64::MAX).to_le_bytes()).collect::<Bytes>(),
        };
        let mut entries = Vec::new();
        entries.extend((block * 256..keys.min(block * 256 + 256)).map(entry));
        bytes.extend(encoder.block(&entries));
    }
    bytes.extend(encoder.finish().0);
    let path = scratch.path().join("made");
    fs::write(&path, bytes).expect("written");
    path
}

type Change = fn(&mut Vec<u8>);

#[test]
fn a_snapshot_that_is_not_whole_is_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let whole = fs::read(file(&scratch, 600)).expect("made");
    let cases: [(&str, Change, &str); 9] = [
        ("empty", |file| file.clear(), "is truncated: it ends at byte 0, within the header"),
        ("text", |file| file[0] = b'{', "is not a snapshot of a store"),
        ("newer", |file| file[8] = 2, "has format 2, this version reads 1"),
        ("header", |file| file[13] ^= 1, "is damaged: the header, which begins at byte 0, does not have"),
        ("length", |file| file[36 + 9] ^= 0x80, "is damaged: block 1, which begins at byte 36"),
        ("block", |file| *from_end(file, 85) ^= 1, "is damaged: block 3"),
        ("half", |file| file.truncate(file.len() / 2), "is truncated: it ends at byte"),
        ("end", |file| *from_end(file, 35) ^= 1, "is damaged: the end"),
        ("more", |file| file.push(0), "has more behind its end"),
    ];
    for (name, change, want) in cases {
        let mut bytes = whole.clone();
        change(&mut bytes);
        let (file, dir) = (scratch.path().join(name), scratch.path().join("data"));
        fs::write(&file, bytes).expect("written");
        for command in ["status", "restore"] {
            let dir = format!("--data-dir={}", dir.display());
            let arguments = [command, path(&file), &dir];
            let said = snapshot(&arguments[..if command == "status" { 2 } else { 3 }]).expect_err(name);
            assert!(said.starts_with(&format!("error: {} {want}", file.display())), "{name}: {said}");
        }
        assert!(!dir.exists(), "{name}");
    }
    let missing = scratch.path().join("missing");
    let said = snapshot(&["status", path(&missing)]).expect_err("missing");
    assert!(said.starts_with(&format!("error: read {}: No such file", missing.display())), "{said}");
    let said = snapshot(&["save", path(&missing), "--data-dir", path(scratch.path())]).expect_err("no store");
    assert!(said.contains("has no store"), "{said}");
    assert!(!missing.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_that_is_killed_leaves_nothing_that_is_taken_for_a_store() {
    let scratch = Scratch::new();
    let file = file(&scratch, 8_000);
    let (file, dir) = (path(&file), data(&scratch));
    let arguments = ["restore", file, "--data-dir", path(&dir)];
    let mut restore =
        command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary");
    let beside = dir.join("store.unfinished/store.redb");
    // In the middle: something is written, and not all of it.
    while fs::metadata(&beside).map_or(0, |file| file.len()) < 4 << 20 {
        assert!(restore.try_wait().expect("a child").is_none(), "it ended before it was killed");
        std::thread::yield_now();
    }
    restore.kill().expect("killed");
    restore.wait().expect("ended");
    assert!(!dir.join("store").exists() && beside.exists());
    let refused = Server::try_start(&scratch, &[]).await.err().expect("it is not an empty store either");
    assert!(refused.stderr.contains("was not finished: do that again, or remove"), "{}", refused.stderr);
    let said = snapshot(&arguments).expect("again");
    assert!(said.contains(": 8000 keys of revision 8001, "), "{said}");
    assert!(!dir.join("store.unfinished").exists());
    let again = scratch.path().join("again");
    snapshot(&["save", path(&again), "--data-dir", path(&dir)]).expect("saved");
    assert_eq!(status(&again)["digest"], status(Path::new(file))["digest"]);
}
