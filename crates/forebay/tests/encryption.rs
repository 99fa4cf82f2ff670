//! Encryption at rest through the binary, in the embedded store: what is on disk and in snapshots, rotation
//! while it runs, a plugin that comes and goes.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Client, Scratch, Server, WAIT, rv, text};
use forebay_hook::kms::KmsPlugin;
use serde_json::{Value, json};

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// What must not be found. It is not like anything else, so that compression leaves it alone.
const NEEDLE: &str = "hV7qTz2LwXk9";

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": NEEDLE}})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": NEEDLE}})
}

/// Keys by name, each with a secret of its own.
fn keys(names: &[&str]) -> String {
    let key = |name: &&str| {
        let secret: Vec<u8> = name.bytes().cycle().take(32).collect();
        format!("{{name: {name}, secret: {}}}", STANDARD.encode(secret))
    };
    names.iter().map(key).collect::<Vec<_>>().join(", ")
}

/// Writes what encrypts Secrets.
fn write(scratch: &Scratch, providers: &str) -> PathBuf {
    write_of(scratch, "secrets", providers)
}

/// Writes what encrypts these resources.
fn write_of(scratch: &Scratch, resources: &str, providers: &str) -> PathBuf {
    let file = scratch.path().join("encryption.yaml");
    let head = "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\n";
    fs::write(&file, format!("{head}resources: [{{resources: [{resources}], providers: [{providers}]}}]\n"))
        .expect("written");
    file
}

fn flag(file: &Path) -> String {
    format!("--encryption-provider-config={}", file.display())
}

/// Files below `dir` that have `needle`, as it is or in base64.
fn found(dir: &Path, needle: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("listed") {
        let path = entry.expect("an entry").path();
        let kind = fs::symlink_metadata(&path).expect("there").file_type();
        if kind.is_dir() {
            found.extend(self::found(&path, needle));
        } else if kind.is_file() {
            let bytes = fs::read(&path).expect("read");
            let forms = [needle.to_owned(), STANDARD.encode(needle)];
            if forms.iter().any(|form| bytes.windows(form.len()).any(|window| window == form.as_bytes())) {
                found.push(path);
            }
        }
    }
    found
}

async fn value(client: &Client, name: &str) -> String {
    let secret = client.get(&format!("{SECRETS}/{name}")).await.expect(200);
    String::from_utf8(STANDARD.decode(text(&secret, "/data/key")).expect("base64")).expect("UTF-8")
}

async fn is_ok(client: &Client, path: &str) {
    let reply = client.get(path).await;
    assert_eq!((reply.code, reply.text()), (200, "ok"), "{path}");
}

fn run(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_forebay"));
    let output = command.args(arguments).env_clear().stdin(Stdio::null()).output().expect("the binary");
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{arguments:?}: {}", told(&output.stderr));
    told(&output.stdout)
}

/// Asks until the answer is as it should be.
async fn until(client: &Client, path: &str, is_it: impl Fn(u16, &str) -> bool) {
    let asked = async {
        loop {
            let reply = client.get(path).await;
            if is_it(reply.code, reply.text()) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, asked).await.unwrap_or_else(|_| panic!("{path} is not as it should be"));
}

#[tokio::test]
async fn no_secret_is_on_disk_or_in_a_snapshot_and_all_of_it_comes_back() {
    let scratch = Scratch::new();
    let provider = format!("{{aesgcm: {{keys: [{}]}}}}", keys(&["one"]));
    let file = write(&scratch, &provider);
    let server = Server::start(&scratch, &[&flag(&file)]).await;
    let client = server.admin().await;
    client.post(SECRETS, &secret("a")).await.expect(201);
    client.post(MAPS, &map("a")).await.expect(201);
    assert_eq!(value(&client, "a").await, NEEDLE);
    let data = scratch.path().join("data");
    let snapshot = scratch.path().join("saved").join("snapshot");
    fs::create_dir(snapshot.parent().expect("a directory")).expect("made");
    let (saved, at) = (snapshot.display().to_string(), data.display().to_string());
    run(&["snapshot", "save", &saved, "--data-dir", &at]);
    // What is not to be encrypted is found, so what is would be.
    client.delete(&format!("{MAPS}/a")).await.expect(200);
    server.kill().await;
    assert!(!found(&data, NEEDLE).is_empty(), "a ConfigMap was there");

    // Alone, a Secret is nowhere.
    let other = Scratch::new();
    let server = Server::start(&other, &[&flag(&file)]).await;
    let client = server.admin().await;
    client.post(SECRETS, &secret("a")).await.expect(201);
    let first = rv(&client.get(SECRETS).await.expect(200));
    let saved = other.path().join("snapshot").display().to_string();
    let at = other.path().join("data").display().to_string();
    run(&["snapshot", "save", &saved, "--data-dir", &at]);
    server.kill().await;
    assert_eq!(found(other.path(), NEEDLE), Vec::<PathBuf>::new());

    // After a kill, and out of the snapshot, it is read with the key.
    let server = Server::start(&other, &[&flag(&file)]).await;
    let client = server.admin().await;
    assert_eq!(value(&client, "a").await, NEEDLE);
    assert_eq!(rv(&client.get(&format!("{SECRETS}/a")).await.expect(200)), first);
    server.terminate();
    server.ended().await;
    let restored = Scratch::new();
    let at = restored.path().join("data").display().to_string();
    run(&["snapshot", "restore", &saved, "--data-dir", &at]);
    let server = Server::start(&restored, &[&flag(&file)]).await;
    assert_eq!(value(&server.admin().await, "a").await, NEEDLE);
    server.kill().await;

    // Without it, each is said to be unreadable, and nothing is taken for deleted.
    let server = Server::start(&restored, &[]).await;
    let client = server.admin().await;
    let refused = client.get(&format!("{SECRETS}/a")).await.expect(500);
    let why = "data from the storage is not transformable revision=0: identity transformer tried to read encrypted data";
    assert!(text(&refused, "/message").ends_with(why), "{refused}");
    let refused = client.get(SECRETS).await.expect(500);
    let why = "Internal error occurred: unable to transform key \"/registry/secrets/default/a\": \
               identity transformer tried to read encrypted data";
    assert_eq!(text(&refused, "/message"), why);
    client.get("/api/v1/namespaces/kube-system/secrets").await.expect(200);
    client.post(SECRETS, &secret("a")).await.expect(409);
}

#[tokio::test]
async fn a_key_is_rotated_while_the_server_runs_and_a_write_that_changes_nothing_renews() {
    let scratch = Scratch::new();
    let providers =
        |names: &[&str]| format!("{{secretbox: {{keys: [{}]}}}}, {{identity: {{}}}}", keys(names));
    let file = write(&scratch, &providers(&["one"]));
    let reload = "--encryption-provider-config-automatic-reload";
    let server = Server::start(&scratch, &[&flag(&file), reload]).await;
    let client = server.admin().await;
    is_ok(&client, "/healthz/kms-providers").await;
    client.post(SECRETS, &secret("a")).await.expect(201);
    let path = format!("{SECRETS}/a");
    let before = client.get(&path).await.expect(200);
    let same = client.put(&path, &before).await.expect(200);
    assert_eq!(rv(&same), rv(&before), "nothing has changed");

    write(&scratch, &providers(&["two", "one"]));
    let taken = "apiserver_encryption_config_controller_automatic_reloads_total{";
    let is_taken = |text: &str| {
        text.lines().any(|line| line.starts_with(taken) && line.ends_with("status=\"success\"} 1"))
    };
    until(&client, "/metrics", |code, text| code == 200 && is_taken(text)).await;
    let renewed = client.put(&path, &before).await.expect(200);
    assert!(rv(&renewed) > rv(&before), "it was under the old key");
    assert_eq!(rv(&client.put(&path, &renewed).await.expect(200)), rv(&renewed), "and is under the new one");
    let patched = common::Ask::patch(&path, "application/merge-patch+json", "{}");
    assert_eq!(rv(&client.ask(patched).await.expect(200)), rv(&renewed));

    // One that is wrong changes nothing.
    fs::write(&file, "kind: none").expect("written");
    let is_refused =
        |text: &str| text.lines().any(|line| line.starts_with(taken) && line.contains("status=\"failure\""));
    until(&client, "/metrics", |code, text| code == 200 && is_refused(text)).await;
    client.post(SECRETS, &secret("b")).await.expect(201);
    let metrics = client.get("/metrics").await;
    let counted = "apiserver_storage_transformation_operations_total{resource=\"secrets\",status=\"OK\",\
                   transformation_type=\"to_storage\",transformer_prefix=\"k8s:enc:secretbox:v1:\"}";
    assert!(metrics.text().lines().any(|line| line.starts_with(counted)), "{counted}");
    server.kill().await;

    // The old key is not needed any more.
    let file = write(&scratch, &providers(&["two"]));
    let server = Server::start(&scratch, &[&flag(&file)]).await;
    let client = server.admin().await;
    assert_eq!((value(&client, "a").await, value(&client, "b").await), (NEEDLE.into(), NEEDLE.into()));
}

#[tokio::test]
async fn a_key_that_comes_back_brings_back_what_it_encrypted_and_nobody_is_told_that_it_was_gone() {
    let scratch = Scratch::new();
    let providers = |names: &[&str]| format!("{{aesgcm: {{keys: [{}]}}}}", keys(names));
    let reload = "--encryption-provider-config-automatic-reload";
    let file = write(&scratch, &providers(&["one"]));
    let server = Server::start(&scratch, &[&flag(&file), reload]).await;
    server.admin().await.post(SECRETS, &secret("a")).await.expect(201);
    server.kill().await;
    // As one that was not told of a key yet by which another server writes.
    write(&scratch, &providers(&["two"]));
    let server = Server::start(&scratch, &[&flag(&file), reload]).await;
    let client = server.admin().await;
    client.post(SECRETS, &secret("b")).await.expect(201);
    let why = "unable to transform key \"/registry/secrets/default/a\": \
               no matching key was found for the provided AES transformer";
    for query in ["", "?resourceVersion=0", "?limit=1", "?watch=true", "?watch=true&resourceVersion=1"] {
        let refused = client.get(&format!("{SECRETS}{query}")).await.expect(500);
        assert!(text(&refused, "/message").ends_with(why), "{query}: {refused}");
    }
    let all = client.get("/api/v1/secrets").await.expect(500);
    assert!(text(&all, "/message").ends_with(why), "{all}");
    client.get("/api/v1/namespaces/kube-system/secrets").await.expect(200);
    assert_eq!(value(&client, "b").await, NEEDLE);
    client.get(&format!("{SECRETS}/a")).await.expect(500);

    write(&scratch, &providers(&["two", "one"]));
    until(&client, SECRETS, |code, _| code == 200).await;
    let list = client.get(SECRETS).await.expect(200);
    let names: Vec<&str> = (0..2).map(|at| text(&list, &format!("/items/{at}/metadata/name"))).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(value(&client, "a").await, NEEDLE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_the_plugin_serves_all_that_it_does_not_keep() {
    const MAP: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    for (resources, kept) in [
        ("configmaps", MAP),
        ("'*.'", "/api/v1/namespaces/default"),
        ("pods, persistentvolumes", "/api/v1/pods"),
    ] {
        let scratch = Scratch::new();
        let socket = scratch.path().join("kms.sock");
        let plugin = KmsPlugin::start(&socket, "key1");
        let kms = format!(
            "{{kms: {{apiVersion: v2, name: plugin, timeout: 1s, endpoint: '{}'}}}}",
            plugin.endpoint()
        );
        let file = write_of(&scratch, resources, &kms);
        let nodes = ["--authorization-mode=Node,RBAC", "--disable-admission-plugins=ServiceAccount"];
        let flags = [&flag(&file), nodes[0], nodes[1]];
        let server = Server::start(&scratch, &flags).await;
        let client = server.admin().await;
        client.get(kept).await.expect(200);
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
            "spec": {"automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i"}]},
        });
        client.post("/api/v1/namespaces/default/pods", &pod).await.expect(201);
        server.kill().await;

        drop(plugin);
        let server = Server::start(&scratch, &flags).await;
        let client = server.admin().await;
        is_ok(&client, "/livez").await;
        until(&client, "/readyz/kms-providers", |code, _| code == 500).await;
        client.get("/apis/storage.k8s.io/v1/storageclasses").await.expect(200);
        let plugin = KmsPlugin::start(&socket, "key1");
        until(&client, kept, |code, _| code == 200).await;
        until(&client, "/api/v1/namespaces/default/pods/p", |code, _| code == 200).await;
        until(&client, MAP, |code, _| code == 200).await;
        server.kill().await;

        // It is told to end while it waits for the plugin.
        drop(plugin);
        let server = Server::start(&scratch, &flags).await;
        server.terminate();
        server.ended().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_is_gone_is_told_of_by_health_and_what_is_known_is_read() {
    let scratch = Scratch::new();
    let socket = scratch.path().join("kms.sock");
    let plugin = KmsPlugin::start(&socket, "key1");
    let kms =
        format!("{{kms: {{apiVersion: v2, name: plugin, timeout: 1s, endpoint: '{}'}}}}", plugin.endpoint());
    let file = write(&scratch, &kms);
    let server = Server::start(&scratch, &[&flag(&file)]).await;
    let client = server.admin().await;
    is_ok(&client, "/healthz/kms-providers").await;
    is_ok(&client, "/readyz/kms-providers").await;
    assert_eq!(client.get("/livez/kms-providers").await.code, 404);
    client.post(SECRETS, &secret("a")).await.expect(201);
    server.kill().await;
    assert_eq!(found(&scratch.path().join("data/store"), NEEDLE), Vec::<PathBuf>::new());

    // It starts without the plugin, and serves what it stands for once that is there.
    drop(plugin);
    let server = Server::start(&scratch, &[&flag(&file)]).await;
    let client = server.admin().await;
    until(&client, "/healthz/kms-providers", |code, _| code == 500).await;
    is_ok(&client, "/livez").await;
    let refused = client.post(SECRETS, &secret("b")).await;
    assert_eq!(refused.code, 500, "{}", refused.text());
    assert!(refused.text().contains("got unexpected nil transformer"), "{}", refused.text());
    let _plugin = KmsPlugin::start(&socket, "key1");
    until(&client, &format!("{SECRETS}/a"), |code, _| code == 200).await;
    assert_eq!(value(&client, "a").await, NEEDLE);
    until(&client, "/healthz/kms-providers", |code, _| code == 200).await;
    client.post(SECRETS, &secret("b")).await.expect(201);
}

#[tokio::test]
async fn what_is_wrong_with_the_file_ends_the_start_and_names_no_key() {
    let scratch = Scratch::new();
    let file = write(&scratch, "{aesgcm: {keys: [{name: one, secret: c2VjcmV0}]}}");
    let refused = Server::try_start(&scratch, &[&flag(&file)]).await.err().expect("it does not start");
    let expected = "error while parsing file: resources[0].providers[0].aesgcm.keys[0].secret: Invalid value: \
                    \"REDACTED\": secret is not of the expected length, got 6, expected one of [16 24 32]";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    assert!(!refused.stderr.contains("c2VjcmV0"), "{}", refused.stderr);
    assert!(!scratch.path().join("data").exists(), "nothing was made");
    let reload = "--encryption-provider-config-automatic-reload";
    let refused = Server::try_start(&scratch, &[reload]).await.err().expect("it does not start");
    let expected =
        "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}
