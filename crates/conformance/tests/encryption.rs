//! Encryption at rest, ours and kube-apiserver's on one etcd: what one writes the other reads, with each
//! provider, through a rotation of every key and a kill in the middle of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::https::{self, Call};
use forebay_clients::wait::until;
use forebay_clients::{ControlPlane, needs};
use forebay_hook::kms::KmsPlugin;
use serde_json::{Value, json};

const SEEN_MAX: Duration = Duration::from_secs(60);
/// What must not be found in etcd.
const NEEDLE: &str = "hV7qTz2LwXk9";
/// Secrets that are rewritten while a server is killed.
const MANY: usize = 40;

/// A resource, by the provider that keeps it: bytes of its keys, or a plugin.
struct Kept {
    /// As a rule names it.
    rule: &'static str,
    provider: &'static str,
    key_bytes: usize,
    path: &'static str,
    /// Where it is in etcd.
    place: &'static str,
    body: fn() -> Value,
}

const KEPT: &[Kept] = &[
    kept("configmaps", "aescbc", 32, "/api/v1/namespaces/default/configmaps", "configmaps/default"),
    kept(
        "serviceaccounts",
        "secretbox",
        32,
        "/api/v1/namespaces/default/serviceaccounts",
        "serviceaccounts/default",
    ),
    kept(
        "roles.rbac.authorization.k8s.io",
        "aesgcm",
        24,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
        "roles/default",
    ),
    kept(
        "leases.coordination.k8s.io",
        "aesgcm",
        16,
        "/apis/coordination.k8s.io/v1/namespaces/default/leases",
        "leases/default",
    ),
    kept("limitranges", "aescbc", 16, "/api/v1/namespaces/default/limitranges", "limitranges/default"),
    Kept {
        body: pod_template,
        ..kept(
            "podtemplates",
            "aescbc",
            24,
            "/api/v1/namespaces/default/podtemplates",
            "podtemplates/default",
        )
    },
    Kept {
        body: panda,
        ..kept(
            "'*.*'",
            "aesgcm",
            32,
            "/apis/bears.example/v1/namespaces/default/pandas",
            "bears.example/pandas/default",
        )
    },
    kept("secrets", "kms", 0, "/api/v1/namespaces/default/secrets", "secrets/default"),
];

const fn kept(
    rule: &'static str,
    provider: &'static str,
    key_bytes: usize,
    path: &'static str,
    place: &'static str,
) -> Kept {
    Kept { rule, provider, key_bytes, path, place, body: plain }
}

fn plain() -> Value {
    json!({})
}

fn pod_template() -> Value {
    json!({ "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } } })
}

fn panda() -> Value {
    json!({ "apiVersion": "bears.example/v1", "kind": "Panda" })
}

impl Kept {
    fn object(&self, name: &str) -> Value {
        let mut body = (self.body)();
        body["metadata"] = json!({ "name": name, "annotations": { "needle": NEEDLE } });
        body
    }

    fn place(&self, name: &str) -> String {
        format!("/registry/{}/{name}", self.place)
    }

    /// What is kept begins with this.
    fn prefix(&self, key: &str) -> String {
        match self.provider {
            "kms" => "k8s:enc:kms:v2:plugin:".to_owned(),
            provider => format!("k8s:enc:{provider}:v1:{key}:"),
        }
    }
}

/// Writes a configuration in which every provider has the keys `names`, the first of which writes.
fn write(file: &Path, names: &[&str], plugin: &KmsPlugin) {
    let mut text =
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n".to_owned();
    let (last, others): (Vec<&Kept>, Vec<&Kept>) = KEPT.iter().partition(|kept| kept.rule.starts_with('\''));
    for Kept { rule, provider, key_bytes, .. } in others.into_iter().chain(last) {
        let provider = match *provider {
            "kms" => {
                format!(
                    "kms: {{apiVersion: v2, name: plugin, timeout: 5s, endpoint: '{}'}}",
                    plugin.endpoint()
                )
            }
            provider => {
                let key = |name: &&str| {
                    let secret: Vec<u8> =
                        name.bytes().chain(provider.bytes()).cycle().take(*key_bytes).collect();
                    format!("{{name: {name}, secret: {}}}", STANDARD.encode(secret))
                };
                let keys: Vec<String> = names.iter().map(key).collect();
                format!("{provider}: {{keys: [{}]}}", keys.join(", "))
            }
        };
        text.push_str(&format!("- resources: [{rule}]\n  providers: [{{{provider}}}, {{identity: {{}}}}]\n"));
    }
    fs::write(file, text).expect("written");
}

fn ask(server: &ControlPlane, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let text = if body.is_null() { String::new() } else { body.to_string() };
    let answer = server.ask(Call { method, path, body: &text }).unwrap_or_else(|why| panic!("{path}: {why}"));
    (answer.code, serde_json::from_str(&answer.body).unwrap_or(Value::String(answer.body)))
}

/// What etcd has.
fn raw(cluster: &Cluster, key: &str) -> Vec<u8> {
    let asked = json!({ "key": STANDARD.encode(key) }).to_string();
    let answer = cluster.gateway("kv/range", &asked).expect("etcd answers");
    let value = answer["kvs"][0]["value"].as_str().unwrap_or_else(|| panic!("{key} is not there"));
    STANDARD.decode(value).expect("base64")
}

fn has(bytes: &[u8], needle: &str) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
}

fn is_under(cluster: &Cluster, kept: &Kept, name: &str, key: &str) {
    let raw = raw(cluster, &kept.place(name));
    let shown = String::from_utf8_lossy(&raw);
    assert!(raw.starts_with(kept.prefix(key).as_bytes()), "{} {name}: {shown}", kept.rule);
    assert!(!has(&raw, NEEDLE), "{} {name}: {shown}", kept.rule);
    if kept.provider == "kms" {
        // Its key's name is told beside what is encrypted.
        assert!(has(&raw, key), "{name} is not under {key}: {shown}");
    }
}

/// Both read everything, alike.
fn both_read(ours: &ControlPlane, theirs: &ControlPlane, names: &[&str]) {
    for kept in KEPT {
        for name in names {
            let path = format!("{}/{name}", kept.path);
            let [here, there] = [ours, theirs].map(|server| ask(server, "GET", &path, &Value::Null));
            assert_eq!(here.0, 200, "{path}: {}", here.1);
            assert_eq!(here, there, "{path}");
            assert_eq!(here.1["metadata"]["annotations"]["needle"], NEEDLE, "{path}");
        }
        let listed = |server| {
            let (code, list) = ask(server, "GET", kept.path, &Value::Null);
            assert_eq!(code, 200, "{}: {list}", kept.path);
            let items = list["items"].as_array().expect("items").iter();
            items.map(|item| (item["metadata"]["name"].to_string(), item.clone())).collect::<BTreeMap<_, _>>()
        };
        assert_eq!(listed(ours), listed(theirs), "{}", kept.path);
    }
}

/// Writes what is there again, as it is; the resourceVersion of before and after.
fn renew(server: &ControlPlane, path: &str) -> (String, String) {
    let (code, object) = ask(server, "GET", path, &Value::Null);
    assert_eq!(code, 200, "{path}: {object}");
    let (code, written) = ask(server, "PUT", path, &object);
    assert_eq!(code, 200, "{path}: {written}");
    let version =
        |object: &Value| object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    (version(&object), version(&written))
}

fn define(server: &ControlPlane) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "pandas.bears.example" },
        "spec": {
            "group": "bears.example", "scope": "Namespaced",
            "names": { "plural": "pandas", "singular": "panda", "kind": "Panda" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    let (code, made) =
        ask(server, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition);
    assert_eq!(code, 201, "{made}");
}

#[test]
fn what_one_encrypts_the_other_reads_through_rotation_and_a_kill() {
    if needs::built_peers().is_none() {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cluster = Cluster::start(1, Security::Plain).expect("starts");
    let plugin = {
        let _within = runtime.enter();
        KmsPlugin::start(&cluster.dir().join("kms.sock"), "key1")
    };
    let file = cluster.dir().join("encryption.yaml");
    write(&file, &["key1"], &plugin);
    let flag = format!("--encryption-provider-config={}", file.display());
    let mut theirs = ControlPlane::start_rival_told(&cluster, &[&flag]).expect("theirs starts");
    let own = [flag, "--authorization-mode=AlwaysAllow".to_owned()];
    let mut ours =
        ControlPlane::start_told(cluster.flags().into_iter().chain(own).collect()).expect("ours starts");
    define(&theirs);
    for kept in KEPT {
        let wait = |server: &ControlPlane| {
            let served = || match ask(server, "GET", kept.path, &Value::Null) {
                (200, _) => Ok(()),
                (code, answer) => Err(format!("{code} {answer}")),
            };
            until("it is served", SEEN_MAX, served).unwrap_or_else(|why| panic!("{}: {why}", kept.path));
        };
        wait(&ours);
        wait(&theirs);
        for (server, name) in [(&ours, "ours"), (&theirs, "theirs")] {
            let (code, made) = ask(server, "POST", kept.path, &kept.object(name));
            assert_eq!(code, 201, "{} {name}: {made}", kept.path);
            is_under(&cluster, kept, name, "key1");
        }
    }
    both_read(&ours, &theirs, &["ours", "theirs"]);
    // A write of what is there writes nothing, of either server's.
    for server in [&ours, &theirs] {
        for kept in KEPT {
            for name in ["ours", "theirs"] {
                let path = format!("{}/{name}", kept.path);
                let (before, after) = renew(server, &path);
                // A custom object is JSON, which both write in their own way: once, and then no more.
                let is_custom = kept.path.contains("/bears.example/");
                let (before, after) = if is_custom { renew(server, &path) } else { (before, after) };
                assert_eq!(before, after, "{path}");
            }
        }
    }
    let secrets = KEPT.last().expect("Secrets");
    for number in 0..MANY {
        let server = if number % 2 == 0 { &ours } else { &theirs };
        let (code, made) = ask(server, "POST", secrets.path, &secrets.object(&format!("many-{number}")));
        assert_eq!(code, 201, "{made}");
    }

    // Another key everywhere: both start with it, and ours is killed while it renews.
    write(&file, &["key2", "key1"], &plugin);
    plugin.use_key("key2");
    for server in [&mut ours, &mut theirs] {
        server.kill().expect("killed");
        server.start_again().unwrap_or_else(|why| panic!("{why}"));
    }
    both_read(&ours, &theirs, &["ours", "theirs"]);
    let renewed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (port, credentials) = (ours.port(), ours.credentials().expect("known"));
        let renewed = &renewed;
        let renewing = scope.spawn(move || {
            for number in 0..MANY {
                let path = format!("{}/many-{number}", secrets.path);
                let get = Call { method: "GET", path: &path, body: "" };
                let Ok(found) = https::call(port, &credentials, &get) else { return };
                let put = Call { method: "PUT", path: &path, body: &found.body };
                let Ok(_) = https::call(port, &credentials, &put) else { return };
                renewed.fetch_add(1, Ordering::SeqCst);
            }
        });
        until("some are renewed", SEEN_MAX, || match renewed.load(Ordering::SeqCst) {
            count if count * 3 >= MANY => Ok(()),
            count => Err(format!("{count}")),
        })
        .expect("renewed");
        ours.kill().expect("killed");
        renewing.join().expect("no panic");
    });
    let before_kill = renewed.load(Ordering::SeqCst);
    println!("figure: killed when {before_kill} of {MANY} were renewed");
    ours.start_again().unwrap_or_else(|why| panic!("{why}"));
    both_read(&ours, &theirs, &["ours", "theirs"]);
    for number in 0..MANY {
        let server = if number % 2 == 0 { &theirs } else { &ours };
        renew(server, &format!("{}/many-{number}", secrets.path));
        is_under(&cluster, secrets, &format!("many-{number}"), "key2");
    }
    for kept in KEPT {
        // Each renews what the other wrote.
        for (server, name) in [(&ours, "theirs"), (&theirs, "ours")] {
            let path = format!("{}/{name}", kept.path);
            let (before, after) = renew(server, &path);
            assert_ne!(before, after, "{path} was under the old key");
            is_under(&cluster, kept, name, "key2");
            let (before, after) = renew(server, &path);
            assert_eq!(before, after, "{path} is under the new one");
        }
    }
    both_read(&ours, &theirs, &["ours", "theirs"]);
}
