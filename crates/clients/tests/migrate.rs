//! `forebay migrate` between a data directory and a real etcd, with kube-apiserver on the same etcd.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_clients::etcd::{Cluster, Security, Series};
use forebay_clients::relay::Trouble;
use forebay_clients::wait::until;
use forebay_clients::{ControlPlane, DEFINITION, Implementation, needs};
use serde_json::Value;

const MADE: &str = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: moved, labels: {side: embedded}}
data: {text: \"a\\nb\", empty: \"\"}
binaryData: {bytes: AAEC/w==}
---
apiVersion: v1
kind: Secret
metadata: {name: moved}
stringData: {password: secret}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: moved}
spec:
  replicas: 3
  selector: {matchLabels: {a: b}}
  template:
    metadata: {labels: {a: b}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 100m, memory: 1Gi}}}]}
---
apiVersion: v1
kind: Event
metadata: {name: moved, namespace: default}
involvedObject: {kind: Pod, namespace: default, name: web}
reason: Tested
message: it expires in an hour
";

const CUSTOM: &str = "\
apiVersion: example.com/v1
kind: Thing
metadata: {name: moved}
spec: {any: {thing: [1, 2.5, \"x\", null]}}
";

struct Kubectl<'a>(&'a Path, &'a ControlPlane);

impl Kubectl<'_> {
    fn run(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = Command::new(self.0);
        command.arg("--kubeconfig").arg(self.1.kubeconfig()).args(arguments);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("kubectl");
        std::io::Write::write_all(&mut child.stdin.take().expect("its stdin"), input.as_bytes())
            .expect("written");
        child.wait_with_output().expect("it ends")
    }

    fn does(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run(arguments, input);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn create(&self) {
        let made = [&DEFINITION.replace("-SIDE", "").replace("SIDE", ""), MADE].concat();
        self.does(&["create", "-f", "-"], &made);
        self.does(&["wait", "--for=condition=Established", "crd/things.example.com"], "");
        self.does(&["create", "-f", "-"], CUSTOM);
    }

    /// What was made, without what differs from server to server.
    fn shown(&self) -> Value {
        let kinds = "configmaps,secrets,deployments,things,events";
        let text = self.does(&["get", kinds, "-n", "default", "-o", "json"], "");
        let mut list: Value = serde_json::from_str(&text).expect("JSON");
        let items = list["items"].as_array_mut().expect("items");
        items.retain(|item| item["metadata"]["name"] == "moved");
        for item in items.iter_mut() {
            let metadata = item["metadata"].as_object_mut().expect("metadata");
            metadata.remove("resourceVersion");
        }
        assert_eq!(items.len(), 5, "{items:?}");
        list["items"].take()
    }

    fn revision(&self) -> u64 {
        let list = self.does(&["get", "--raw", "/api/v1/namespaces/default/configmaps"], "");
        let list: Value = serde_json::from_str(&list).expect("JSON");
        list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a revision")
    }

    /// Whether who comes with `revision` has to list again.
    fn is_expired(&self, revision: u64) -> bool {
        let path = format!(
            "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion={revision}&timeoutSeconds=1"
        );
        let output = self.run(&["get", "--raw", &path], "");
        let told = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&told).contains("too old resource version")
    }
}

fn migrate(arguments: &[String]) -> Command {
    let mut command = Command::new(needs::forebay().expect("built"));
    command.arg("migrate").args(arguments).env_clear().stdin(Stdio::null());
    command
}

/// Its exit code, and what it said on both ways.
fn migrated(arguments: &[String]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = migrate(arguments).output().expect("the binary");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// `forebay snapshot`
fn snapshot(command: &str, file: &Path, data_dir: &Path) {
    let mut forebay = Command::new(needs::forebay().expect("built"));
    let output = forebay.args(["snapshot", command]).arg(file).arg("--data-dir").arg(data_dir).output();
    assert!(output.expect("the binary").status.success(), "{command}");
}

/// The flags that lead to a cluster, with the way before the first: `--to-etcd-servers=…`.
fn etcd(way: &str, cluster: &Cluster) -> Vec<String> {
    let mut flags = cluster.flags();
    flags[0] = flags[0].replacen("--", &format!("--{way}-"), 1);
    flags
}

fn into_etcd(from: &Path, cluster: &Cluster) -> Vec<String> {
    let mut arguments = etcd("to", cluster);
    arguments.push(format!("--from-data-dir={}", from.display()));
    arguments
}

/// The digests and how many keys, of what was said; both sides have the same.
fn digest(said: &str) -> (String, u64) {
    let of = |side: &str| said.lines().find_map(|line| line.strip_prefix(&format!("digest of the {side} ")));
    let (source, target) = (of("source").expect("a digest"), of("target").expect("a digest"));
    assert_eq!((source, source.len()), (target, 64));
    let keys = said.strip_prefix("Moved ").and_then(|said| said.split(' ').next()?.parse().ok());
    (source.to_owned(), keys.unwrap_or_else(|| panic!("{said}")))
}

fn key(key: &str) -> String {
    STANDARD.encode(key)
}

#[test]
fn all_objects_go_into_etcd_where_kube_apiserver_has_them_and_back_and_clients_list_again() {
    let (Some(_), Some(kubectl)) = (needs::built_peers(), needs::kubectl()) else { return };
    let mut server = ControlPlane::start_as(Implementation::Forebay).expect("starts");
    let data: PathBuf = server.dir().join("data");
    let ours = Kubectl(kubectl, &server);
    ours.create();
    let (made, before) = (ours.shown(), ours.revision());
    server.terminate().expect("ends");

    let cluster = Cluster::start(1, Security::Plain).expect("starts");
    let arguments = into_etcd(&data, &cluster);
    let (code, said, why) = migrated(&arguments);
    assert_eq!(code, Some(0), "{why}");
    let (first, keys) = digest(&said);
    assert!(keys > 50 && said.contains(" keys that expire,"), "{said}");
    assert!(cluster.revision().expect("answers") > before, "no number of before has another meaning");
    let event = format!(r#"{{"key":"{}"}}"#, key("/registry/events/default/moved"));
    let event = cluster.gateway("kv/range", &event).expect("answers");
    let lease = event["kvs"][0]["lease"].as_str().unwrap_or_else(|| panic!("no lease: {event}"));
    let left = cluster.gateway("lease/timetolive", &format!(r#"{{"ID":"{lease}"}}"#)).expect("answers");
    let left: u64 = left["TTL"].as_str().and_then(|text| text.parse().ok()).expect("seconds");
    assert!((3_400..=3_660).contains(&left), "{left} s");
    // What is there stays.
    let (code, said, why) = migrated(&arguments);
    assert_eq!((code, said.as_str()), (Some(1), ""));
    assert!(why.contains("they are left as they are: name another --etcd-prefix, or --overwrite"), "{why}");
    let again: Vec<String> = arguments.iter().cloned().chain(["--overwrite".to_owned()]).collect();
    let (code, said, why) = migrated(&again);
    assert_eq!((code, digest(&said)), (Some(0), (first, keys)), "{why}");

    let mut theirs = ControlPlane::start_on(Implementation::KubeApiserver, &cluster).expect("starts");
    let kube = Kubectl(kubectl, &theirs);
    assert_eq!(kube.shown(), made);
    assert!(kube.is_expired(before) && kube.is_expired(before - 3));
    kube.does(&["label", "configmap/moved", "side=etcd", "--overwrite"], "");
    kube.does(&["patch", "thing/moved", "--type=merge", "-p", r#"{"spec":{"more":"yes"}}"#], "");
    let (changed, newest) = (kube.shown(), kube.revision());
    let broken =
        format!(r#"{{"key":"{}","value":"{}"}}"#, key("/registry/secrets/default/hidden"), key("k8s:enc:x"));
    theirs.kill().expect("ends");
    cluster.gateway("kv/put", &broken).expect("put");

    std::fs::rename(data.join("store"), data.join("store-before")).expect("moved away");
    let mut back = etcd("from", &cluster);
    back.push(format!("--to-data-dir={}", data.display()));
    let strict: Vec<String> = back.iter().cloned().chain(["--fail-fast".to_owned()]).collect();
    let (code, _, why) = migrated(&strict);
    assert_eq!(code, Some(1));
    assert!(why.contains("/registry/secrets/default/hidden cannot be moved: it is encrypted"), "{why}");
    assert!(!data.join("store").exists() && !data.join("store.unfinished").exists());
    let (code, said, why) = migrated(&back);
    assert_eq!(code, Some(1), "not all of it");
    assert!(why.contains("left out /registry/secrets/default/hidden: it is encrypted\n"), "{why}");
    assert!(why.contains("error: 1 keys could not be moved"), "{why}");
    // kube-apiserver has taken over the Lease of its host, which was moved with the rest.
    assert!(digest(&said).1 >= keys, "{keys} before: {said}");
    server.start_again().expect("starts");
    let ours = Kubectl(kubectl, &server);
    assert_eq!(ours.shown(), changed);
    assert!(ours.revision() > newest + (1 << 30));
    assert!(ours.is_expired(before) && ours.is_expired(newest) && ours.is_expired(newest + 5));
}

/// What a client can send before it stands still, of 160,000 that a small store takes: first revisions are
/// passed, then keys are put.
const HELD_AFTER_BYTES: u64 = 30_000;
const KILLED_AFTER_BYTES: u64 = 100_000;

#[test]
fn every_etcd_takes_all_objects_over_tls_and_gives_them_back_though_a_member_is_killed() {
    if needs::built_peers().is_none() {
        return;
    }
    let server = ControlPlane::start_as(Implementation::Forebay).expect("starts");
    let (file, back) = (server.dir().join("backup"), server.dir());
    snapshot("save", &file, &back.join("data"));
    let from = &file;
    // At the same time: most of it is waiting.
    std::thread::scope(|scope| {
        for (series, members) in [(Series::V3_6, 1), (Series::V3_5, 3), (Series::V3_7, 3)] {
            scope
                .spawn(move || goes_there_and_back(series, members, from, &back.join(format!("{series:?}"))));
        }
    });
}

/// Over TLS with client certificates; of three members the one that is spoken to dies on the way.
fn goes_there_and_back(series: Series, members: usize, from: &Path, back: &Path) {
    let mut cluster = Cluster::start_relayed_of(series, members, Security::Mutual).expect("starts");
    let clients = |cluster: &Cluster, trouble| {
        (0..members).for_each(|n| cluster.relays(n).expect("a relay").clients.set(trouble));
    };
    if members == 3 {
        clients(&cluster, Trouble::HoldAfter(HELD_AFTER_BYTES));
    }
    let mut arguments = etcd("to", &cluster);
    arguments.push(format!("--from-snapshot={}", from.display()));
    let mut command = migrate(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary");
    if members == 3 {
        let used = until("a member is asked for more than it hears", Duration::from_secs(60), || {
            let sent = |n: &usize| cluster.relays(*n).map_or(0, |relays| relays.clients.sent_bytes());
            (0..members).find(|n| sent(n) > HELD_AFTER_BYTES).ok_or_else(|| "none is".to_owned())
        });
        cluster.kill(used.expect("it goes on")).expect("killed");
        assert_eq!(child.try_wait().expect("ours"), None, "{series:?}: it was over before");
        clients(&cluster, Trouble::None);
    }
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let (said, why) = (text(output.stdout), text(output.stderr));
    assert_eq!(output.status.code(), Some(0), "{series:?}: {why}");
    assert!(digest(&said).1 > 50, "{said}");

    // Out of the members that are left.
    let mut arguments = etcd("from", &cluster);
    arguments.push(format!("--to-data-dir={}", back.display()));
    let (code, other, why) = migrated(&arguments);
    assert_eq!((code, digest(&other)), (Some(0), digest(&said)), "{series:?}: {why}");
}

#[test]
fn a_migration_that_was_killed_is_known_by_its_mark_and_done_again_when_asked_for() {
    if needs::built_peers().is_none() {
        return;
    }
    let mut server = ControlPlane::start_as(Implementation::Forebay).expect("starts");
    let data = server.dir().join("data");
    let mut cluster = Cluster::start_relayed(Series::V3_6, 1).expect("starts");
    let keys = |prefix: &str, end: &str| {
        let body = format!(r#"{{"key":"{}","range_end":"{}","count_only":true}}"#, key(prefix), key(end));
        let read = cluster.gateway("kv/range", &body).expect("answers");
        read["count"].as_str().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0)
    };
    let all = || keys("/registry/", "/registry0");
    let marks = || keys("forebay-migration", "forebay-migratioo");
    let killed = |arguments: &[String]| {
        let relay = &cluster.relays(0).expect("a relay").clients;
        let before = relay.sent_bytes();
        relay.set(Trouble::HoldAfter(KILLED_AFTER_BYTES));
        let mut command = migrate(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary");
        until("it stands still", Duration::from_secs(60), || {
            let sent = relay.sent_bytes() - before;
            if sent > KILLED_AFTER_BYTES { Ok(()) } else { Err(format!("{sent} bytes")) }
        })
        .expect("it goes on");
        child.kill().expect("it had not ended");
        child.wait().expect("ended");
        relay.cut();
        relay.set(Trouble::None);
        assert!(all() > 0, "it was killed too early");
        assert_eq!(marks(), 1, "it was killed too late");
    };
    let arguments = into_etcd(&data, &cluster);
    let with = |flag: &str| [&arguments[..], &[flag.to_owned()]].concat();
    let refused = |arguments: &[String], said: &str| {
        let (code, _, why) = migrated(arguments);
        assert!(code == Some(1) && why.contains(said), "{code:?} {why}");
    };
    refused(&with("--resume"), "there is nothing to go on with");
    // A server that runs gives out its state.
    killed(&arguments);
    refused(&arguments, "was not finished, and what is below /registry/ is not whole");
    server.terminate().expect("ends");
    killed(&with("--overwrite"));

    // What is as it is to be stays, and nothing else does.
    cluster.put("/registry/configmaps/default/stray", b"x").expect("put");
    cluster.put("/registry/zzz/stray", b"x").expect("put");
    cluster.put("/registry/namespaces/default", b"changed").expect("put");
    let (code, said, why) = migrated(&with("--resume"));
    assert_eq!(code, Some(0), "{why}");
    let kept =
        why.lines().find_map(|line| line.strip_suffix(" keys were there already")?.parse::<u64>().ok());
    let moved = digest(&said);
    assert!(kept.is_some_and(|kept| (1..moved.1).contains(&kept)), "{why}");
    assert!(all() >= moved.1 && marks() == 0);
    let (code, said, why) = migrated(&with("--overwrite"));
    assert_eq!((code, digest(&said)), (Some(0), moved), "{why}");
    cluster.kill(0).expect("ends");
}

#[test]
fn an_etcd_that_is_far_behind_is_raised_as_the_message_says() {
    let Some(peers) = needs::built_peers() else { return };
    let mut server = ControlPlane::start_as(Implementation::Forebay).expect("starts");
    let (data, restored) = (server.dir().join("data"), server.dir().join("restored"));
    let file = server.dir().join("backup").display().to_string();
    snapshot("save", file.as_ref(), &data);
    server.kill().expect("ends");
    // Which goes on 2^30 above.
    snapshot("restore", file.as_ref(), &restored);

    let mut cluster = Cluster::start(1, Security::Plain).expect("starts");
    let current = cluster.revision().expect("answers");
    let arguments = into_etcd(&restored, &cluster);
    let (code, said, why) = migrated(&arguments);
    assert_eq!((code, said.as_str()), (Some(1), ""));
    assert!(why.contains("clients would meet their numbers again with other meanings"), "{why}");
    assert_eq!(cluster.revision(), Ok(current), "nothing was written");
    let words: Vec<_> = why.split_whitespace().collect();
    let bump = words.iter().position(|word| *word == "--bump-revision").expect("what to do");

    cluster.kill(0).expect("ends");
    let (dir, member) = (cluster.dir().to_owned(), cluster.dir().join("etcd-0"));
    let mut etcdutl = Command::new(&peers.etcdutl);
    etcdutl.current_dir(&dir).args(["snapshot", "restore", "etcd-0/member/snap/db", "--skip-hash-check"]);
    etcdutl.args([words[bump], words[bump + 1], words[bump + 2], "--data-dir", "raised"]);
    let output = etcdutl.output().expect("etcdutl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::rename(&member, dir.join("before")).expect("moved away");
    std::fs::rename(dir.join("raised"), &member).expect("moved there");
    cluster.restart(0).expect("starts");

    let (code, said, why) = migrated(&arguments);
    assert_eq!(code, Some(0), "{why}");
    assert!(digest(&said).1 > 50, "{said}");
    assert!(cluster.revision().expect("answers") > 1 << 30);
    // The snapshot has the same, and is of less: it needs no more room.
    let mut again = etcd("to", &cluster);
    again.extend([format!("--from-snapshot={file}"), "--overwrite".to_owned()]);
    let (code, other, why) = migrated(&again);
    assert_eq!((code, digest(&other)), (Some(0), digest(&said)), "{why}");
}

/// A configuration that encrypts Secrets under a key of this name.
fn encrypts(dir: &Path, name: &str) -> String {
    let (file, secret) = (dir.join(format!("{name}.yaml")), STANDARD.encode(format!("{name:0>32}")));
    let text = format!(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  \
         providers: [{{aescbc: {{keys: [{{name: {name}, secret: {secret}}}]}}}}]\n"
    );
    std::fs::write(&file, text).expect("written");
    format!("--encryption-provider-config={}", file.display())
}

#[test]
fn what_is_encrypted_is_moved_and_is_encrypted_there_too() {
    let (Some(_), Some(kubectl)) = (needs::built_peers(), needs::kubectl()) else { return };
    let cluster = Cluster::start(1, Security::Plain).expect("starts");
    let encryption = encrypts(cluster.dir(), "key1");
    let mut server = ControlPlane::start_told(vec![encryption.clone()]).expect("starts");
    Kubectl(kubectl, &server).create();
    let made = Kubectl(kubectl, &server).shown();
    server.terminate().expect("ends");
    let data = server.dir().join("data");
    let mut there = etcd("to", &cluster);
    there.push(format!("--from-data-dir={}", data.display()));
    let (code, _, why) = migrated(&there);
    assert_eq!(code, Some(1), "not all of it");
    let left_out = "left out /registry/secrets/default/moved: it is encrypted, and --encryption-provider-config does not \
                    say with what";
    assert!(why.contains(left_out), "{why}");
    there.extend(["--overwrite".to_owned(), encryption.clone()]);
    let (code, said, why) = migrated(&there);
    assert_eq!(code, Some(0), "{said} {why}");
    let raw = |place: &str| {
        let found = cluster.gateway("kv/range", &format!(r#"{{"key":"{}"}}"#, key(place))).expect("answers");
        STANDARD.decode(found["kvs"][0]["value"].as_str().expect("there")).expect("base64")
    };
    assert!(raw("/registry/secrets/default/moved").starts_with(b"k8s:enc:aescbc:v1:key1:"));
    assert!(raw("/registry/configmaps/default/moved").starts_with(b"k8s\0"));

    // kube-apiserver reads it with the same key.
    let mut theirs = ControlPlane::start_rival_told(&cluster, &[&encryption]).expect("starts");
    assert_eq!(Kubectl(kubectl, &theirs).shown(), made);
    theirs.kill().expect("ends");

    // And back, where it is encrypted as well.
    std::fs::rename(data.join("store"), data.join("store-before")).expect("moved away");
    let mut back = etcd("from", &cluster);
    back.extend([format!("--to-data-dir={}", data.display()), encryption]);
    let (code, said, why) = migrated(&back);
    assert_eq!(code, Some(0), "{said} {why}");
    server.start_again().expect("starts");
    assert_eq!(Kubectl(kubectl, &server).shown(), made);
}
