//! Values that nobody can read, under the keys of Secrets: what both servers say of them, and how they are
//! got rid of.

use forebay_clients::etcd::Cluster;
use forebay_clients::https::{Call, Response};
use forebay_clients::wait::until;
use forebay_clients::{ControlPlane, Session};
use serde_json::Value;

use super::SEEN_MAX;

const SECRETS: &str = "/api/v1/namespaces/beside/secrets";
const OPTION: &str = "ignoreStoreReadErrorWithClusterBreakingPotential";

/// A name, what is kept there, and whether both servers say why in the same words.
const BROKEN: [(&str, &[u8], bool); 3] = [
    ("encrypted", b"k8s:enc:aescbc:v1:key1:xxxx", true),
    ("message", b"k8s\0garbage", false),
    ("text", b"garbage", false),
];

fn ask(server: &ControlPlane, method: &str, path: &str, body: &str) -> Response {
    server.ask(Call { method, path, body }).unwrap_or_else(|why| panic!("{method} {path}: {why}"))
}

/// The code and the body of an answer; of a reason that each server has words of its own for, what comes
/// before it.
fn said(answer: &Response, is_same: bool) -> (u16, String) {
    let mut value: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{}", answer.body));
    let cut = |text: &mut Value| {
        let whole = text.as_str().unwrap_or_default();
        if let Some((head, _)) = whole.split_once(" revision=").filter(|_| !is_same) {
            *text = head.into();
        }
    };
    cut(&mut value["message"]);
    value["details"]["causes"]
        .as_array_mut()
        .into_iter()
        .flatten()
        .for_each(|cause| cut(&mut cause["message"]));
    (answer.code, value.to_string())
}

/// Puts what is broken into etcd, past both servers, and asks both of it.
pub fn values(
    cluster: &Cluster,
    (ours, here): (&ControlPlane, &Session<'_>),
    (theirs, there): (&ControlPlane, &Session<'_>),
) {
    let mut watching = here.follow("kubectl get secrets -w -o name");
    let key = |name: &str| format!("/registry/secrets/beside/{name}");
    let path = |name: &str| format!("{SECRETS}/{name}");
    here.run("kubectl create secret generic readable");
    here.run("kubectl create secret generic breaks");
    watching.until("secret/breaks");
    for (name, value, _) in BROKEN {
        cluster.put(&key(name), value).expect("put");
    }
    // One that could be read.
    cluster.put(&key("breaks"), BROKEN[0].1).expect("put");
    both_say(ours, theirs);
    delete_is_not_enough(there);
    nothing_is_whole_without_what_is_encrypted(ours);
    let body = format!(r#"{{"kind":"DeleteOptions","apiVersion":"v1","{OPTION}":true}}"#);
    assert_eq!(ask(ours, "DELETE", &path("breaks"), &body).code, 200);
    let [(encrypted, ..), malformed @ ..] = BROKEN;
    is_deleted(cluster, encrypted, ours, [ours, theirs]);
    left_out_by_name(ours, malformed.map(|(name, ..)| name));

    // Others are heard of, and written.
    let mut watching = here.follow("kubectl get secrets -w -o name");
    here.run("kubectl create secret generic later");
    watching.until("secret/later");
    here.run("kubectl delete secret later");

    for ((name, ..), server) in malformed.iter().zip([theirs, ours]) {
        is_deleted(cluster, name, server, [ours, theirs]);
    }
    let left = ask(ours, "GET", SECRETS, "");
    assert!(!left.head.to_lowercase().contains("warning:"), "{}", left.head);
    // The name can be used again.
    here.run("kubectl create secret generic encrypted");
    watching.until("secret/encrypted");
}

/// Each server deletes what it is told to, whatever it cannot read of it.
fn is_deleted(cluster: &Cluster, name: &str, server: &ControlPlane, both: [&ControlPlane; 2]) {
    let path = format!("{SECRETS}/{name}");
    let deleted = ask(server, "DELETE", &format!("{path}?{OPTION}=true"), "");
    let value: Value = serde_json::from_str(&deleted.body).expect("JSON");
    let expected = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": name, "kind": "Secret" }, "code": 200,
    });
    assert_eq!((deleted.code, value), (200, expected), "{name}");
    assert!(!cluster.has(&format!("/registry/secrets/beside/{name}")).expect("answers"), "{name}");
    until("it is gone for both", SEEN_MAX, || match both.map(|server| ask(server, "GET", &path, "").code) {
        [404, 404] => Ok(()),
        codes => Err(format!("{name}: {codes:?}")),
    })
    .expect("gone");
}

/// What is the same on both.
fn both_say(ours: &ControlPlane, theirs: &ControlPlane) {
    let option = |more: &str| format!("{SECRETS}/encrypted?{OPTION}=true{more}");
    let collection = format!(r#"{{"kind":"DeleteOptions","apiVersion":"v1","{OPTION}":true}}"#);
    let secret =
        |name: &str| format!(r#"{{"apiVersion":"v1","kind":"Secret","metadata":{{"name":"{name}"}}}}"#);
    let mut cases: Vec<(&str, String, String, u16, bool)> = vec![
        ("DELETE", SECRETS.to_owned(), collection, 422, true),
        ("POST", SECRETS.to_owned(), secret("encrypted"), 409, true),
        ("GET", format!("{SECRETS}/none"), String::new(), 404, true),
        ("DELETE", format!("{SECRETS}/none?{OPTION}=true"), String::new(), 422, true),
        ("DELETE", format!("{SECRETS}/readable?{OPTION}=true"), String::new(), 422, true),
    ];
    for more in [
        "&dryRun=All",
        "&propagationPolicy=Orphan",
        "&orphanDependents=true",
        "&gracePeriodSeconds=0",
        "&uid=x",
        "&dryRun=All&propagationPolicy=Nope&gracePeriodSeconds=1",
    ] {
        cases.push(("DELETE", option(more), String::new(), 422, true));
    }
    for (name, _, is_same) in BROKEN {
        cases.push(("GET", format!("{SECRETS}/{name}"), String::new(), 500, is_same));
        cases.push(("DELETE", format!("{SECRETS}/{name}"), String::new(), 500, is_same));
    }
    for (method, path, body, code, is_same) in cases {
        let [here, there] = [ours, theirs].map(|server| said(&ask(server, method, &path, &body), is_same));
        assert_eq!(here, there, "{method} {path}");
        assert_eq!(here.0, code, "{method} {path}: {}", here.1);
    }
    // Both refuse to replace it; theirs in words that depend on what is wrong with it.
    for (name, ..) in BROKEN {
        let answered = ask(ours, "PUT", &format!("{SECRETS}/{name}"), &secret(name));
        assert_eq!(answered.code, 500, "{}", answered.body);
    }
}

/// Who may delete only: the words of theirs, which are those that ours has.
fn delete_is_not_enough(there: &Session<'_>) {
    there.run("kubectl create role deletes --verb=delete --resource=secrets");
    there.run("kubectl create rolebinding deletes --role=deletes --user=bob");
    let delete = format!("kubectl delete --raw '{SECRETS}/encrypted?{OPTION}=true' --as bob");
    let said = r#"secrets "encrypted" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason:"#;
    until("its authorizer has the role", SEEN_MAX, || {
        let told = there.transcript(&delete);
        if told.contains(said) { Ok(()) } else { Err(told) }
    })
    .expect("refused");
}

/// A list of ours is refused where something is encrypted, and says what; so is a watch. The log and the
/// metrics have all.
fn nothing_is_whole_without_what_is_encrypted(ours: &ControlPlane) {
    let why = r#"unable to transform key \"/registry/secrets/beside/breaks\": identity transformer tried to read encrypted data"#;
    for query in ["", "?resourceVersion=0", "?limit=500", "?watch=true"] {
        let refused = ask(ours, "GET", &format!("{SECRETS}{query}"), "");
        assert_eq!(refused.code, 500, "{query}: {}", refused.body);
        assert!(refused.body.contains(why), "{query}: {}", refused.body);
    }
    assert_eq!(ask(ours, "GET", "/api/v1/namespaces/default/secrets", "").code, 200);
    let log = ours.log_end();
    for name in BROKEN.iter().map(|(name, ..)| *name).chain(["breaks"]) {
        assert!(log.contains(&format!("/registry/secrets/beside/{name}")), "{name}: {log}");
    }
    let metrics = ask(ours, "GET", "/metrics", "").body;
    let line = r#"forebay_watch_cache_unreadable_values{group="",resource="secrets"} 4"#;
    assert!(metrics.lines().any(|found| found == line), "{line}");
}

/// A list of ours shows what can be read, and names what it leaves out.
fn left_out_by_name(ours: &ControlPlane, names: [&str; 2]) {
    for query in ["", "?resourceVersion=0", "?limit=500"] {
        let list = ask(ours, "GET", &format!("{SECRETS}{query}"), "");
        assert_eq!(list.code, 200, "{query}: {}", list.body);
        assert!(list.body.contains(r#""name":"readable""#), "{query}: {}", list.body);
        for name in names {
            assert!(!list.body.contains(&format!(r#""name":"{name}""#)), "{query}: {}", list.body);
            let key = format!("cannot be read in the store: /registry/secrets/beside/{name}");
            assert!(list.head.contains(&key), "{query}: {}", list.head);
        }
    }
    let elsewhere = ask(ours, "GET", "/api/v1/namespaces/default/secrets", "");
    assert!(!elsewhere.head.contains("cannot be read"), "only to who asks for them: {}", elsewhere.head);
}
