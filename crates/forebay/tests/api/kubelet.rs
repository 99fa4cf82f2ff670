//! What only a pod's node can answer, with a kubelet that says what it was asked, and who judges that before.

use base64::Engine as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::common::aggregated::Aggregated;
use crate::common::{Ask, Client, Protocol, Scratch, Server, WAIT, said};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// A server that knows a kubelet, with a pod on its node and one on none.
async fn with_kubelet(scratch: &Scratch) -> (Server, Client, Aggregated) {
    let first = Server::start(scratch, &[]).await;
    let (chain, key) =
        (scratch.file("kubelet.crt", &first.certificate), scratch.file("kubelet.key", &first.key));
    let kubelet = Aggregated::start(&first.authority).await;
    first.kill().await;
    let chain = format!("--kubelet-client-certificate={}", chain.display());
    let key = format!("--kubelet-client-key={}", key.display());
    let server = Server::start(scratch, &[&chain, &key]).await;
    let admin = server.admin_over(Protocol::Http1).await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.port } },
        },
    });
    admin.post("/api/v1/nodes", &node).await.expect(201);
    let pod = |name: &str, node: Option<&str>| {
        let containers = json!([{ "name": "a", "image": "i" }, { "name": "waits", "image": "i" }]);
        let spec = json!({ "containers": containers, "nodeName": node });
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": spec })
    };
    admin.post(PODS, &pod("p", Some("n"))).await.expect(201);
    admin.post(PODS, &pod("q", None)).await.expect(201);
    admin.post(PODS, &pod("lost", Some("gone"))).await.expect(201);
    (server, admin, kubelet)
}

/// Asks for an upgrade, up to the end of what is answered in the head.
async fn upgrade(admin: &Client, path: &str, protocol: &str) -> (TlsStream<TcpStream>, String) {
    let mut stream = admin.raw(64 << 10).await;
    let asked = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(asked.as_bytes()).await.expect("open");
    let mut heard = Vec::new();
    while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(timeout(WAIT, stream.read_buf(&mut heard)).await.expect("in time").expect("open") > 0);
    }
    (stream, String::from_utf8_lossy(&heard).into_owned())
}

#[tokio::test]
async fn a_kubelet_is_asked_for_what_only_it_has() {
    let scratch = Scratch::new();
    let (_server, admin, kubelet) = with_kubelet(&scratch).await;

    let log = Ask::get(format!("{PODS}/p/log?container=a&tailLines=5&follow=true")).header("cookie", "a=b");
    let log = admin.ask(log).await;
    assert_eq!((log.code, log.text()), (200, "/containerLogs/default/p/a?follow=true&tailLines=5\n"));
    let told = ["content-type", "cache-control", "x-own"].map(|name| log.header(name));
    assert_eq!(told, ["text/plain", "no-cache, private", ""], "as a text, whatever the kubelet says");
    let [asked] = &kubelet.asked()[..] else { panic!("asked once") };
    assert!(asked.all("x-remote-user").is_empty() && asked.all("authorization").is_empty());
    assert!(
        asked.all("cookie").is_empty() && asked.all("x-forwarded-for").is_empty(),
        "nothing of the client's"
    );
    for (path, why) in [
        (
            format!("{PODS}/p/log"),
            "400 BadRequest: a container name must be specified for pod p, choose one of: [a waits]",
        ),
        (format!("{PODS}/p/log?container=b"), "400 BadRequest: container b is not valid for pod p"),
        (
            format!("{PODS}/p/log?container=waits"),
            "400 BadRequest: container \"waits\" in pod \"p\" is waiting to start",
        ),
    ] {
        assert_eq!(said(&admin.get(&path).await.json()), why, "{path}");
    }
    assert_eq!(kubelet.asked().len(), 1, "of that container");
    let none = admin.get(&format!("{PODS}/q/log?container=a")).await;
    assert_eq!((none.code, none.text()), (204, ""), "no node has it");
    let none = admin.post(&format!("{PODS}/q/exec?container=a&command=ls"), &json!({})).await;
    assert_eq!(said(&none.json()), "400 BadRequest: pod q does not have a host assigned");
    let none = admin.post(&format!("{PODS}/p/exec?container=a&command=ls"), &json!({})).await;
    assert_eq!(said(&none.json()), "400 BadRequest: Upgrade request required");
    assert_eq!(admin.get(&format!("{PODS}/none/log")).await.code, 404);
    for subresource in ["log", "exec"] {
        let lost = admin.get(&format!("{PODS}/lost/{subresource}?container=a")).await.json();
        assert_eq!(said(&lost), "404 NotFound: pods \"gone\" not found", "{subresource}");
    }
    let deleted = admin.ask(Ask::delete(format!("{PODS}/p/exec?container=a&command=ls"))).await;
    assert_eq!((deleted.code, admin.get(&format!("{PODS}/p/log/more")).await.code), (405, 404));

    // A kubelet that does not say more speaks what those before 1.36 did.
    for (protocol, code) in [
        ("SPDY/3.1", "101"),
        ("websocket\r\nSec-WebSocket-Protocol: v4.channel.k8s.io", "101"),
        ("websocket\r\nSec-WebSocket-Protocol: v5.channel.k8s.io", "400"),
    ] {
        let path = format!("{PODS}/p/exec?container=a&command=ls&stdout=true");
        let (mut stream, head) = upgrade(&admin, &path, protocol).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{protocol}");
        if code == "101" {
            stream.write_all(b"hello").await.expect("open");
            let mut told = [0; 5];
            timeout(WAIT, stream.read_exact(&mut told)).await.expect("in time").expect("open");
            assert_eq!(&told, b"HELLO");
        }
    }
    let [spdy, websocket] = &kubelet.asked()[..] else { panic!("asked twice") };
    for asked in [spdy, websocket] {
        assert_eq!(asked.line, "POST /exec/default/p/a?output=1&command=ls HTTP/1.1");
        assert_eq!(asked.all("x-forwarded-for"), ["127.0.0.1"]);
    }
    assert_eq!(websocket.all("upgrade"), ["websocket"]);
    assert_eq!(websocket.all("sec-websocket-protocol"), ["v4.channel.k8s.io"]);
}

#[tokio::test]
async fn a_log_is_sent_in_messages_over_websocket() {
    let scratch = Scratch::new();
    let (_server, admin, _kubelet) = with_kubelet(&scratch).await;
    let log = "/containerLogs/default/p/a?tailLines=5\n";
    let base64 = base64::engine::general_purpose::STANDARD.encode(log);
    for (container, offered, code, frame) in [
        ("a", "", "101 Switching Protocols", (b'\x82', log)),
        ("a", "binary.k8s.io", "101 Switching Protocols", (b'\x82', log)),
        ("a", "base64.binary.k8s.io", "101 Switching Protocols", (b'\x81', &*base64)),
        ("a", "v4.channel.k8s.io", "403 Forbidden", (0, "")),
        ("waits", "binary.k8s.io", "400 Bad Request", (0, "")),
    ] {
        let mut stream = admin.raw(64 << 10).await;
        let protocol = match offered {
            "" => String::new(),
            offered => format!("Sec-WebSocket-Protocol: {offered}\r\n"),
        };
        let asked = format!(
            "GET {PODS}/p/log?container={container}&tailLines=5 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
             Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n{protocol}\r\n"
        );
        stream.write_all(asked.as_bytes()).await.expect("open");
        let mut heard = Vec::new();
        let is_granted = code.starts_with("101");
        while !(heard.windows(4).any(|four| four == b"\r\n\r\n")
            && (!is_granted || heard.ends_with(b"\x03\xe8")))
        {
            assert!(timeout(WAIT, stream.read_buf(&mut heard)).await.expect("in time").expect("open") > 0);
        }
        let head = String::from_utf8_lossy(&heard).to_ascii_lowercase();
        assert!(head.starts_with(&format!("http/1.1 {code}\r\n").to_ascii_lowercase()), "{head}");
        assert_eq!(
            head.contains(&format!("sec-websocket-protocol: {offered}\r\n")),
            is_granted && !offered.is_empty()
        );
        if is_granted {
            let (opcode, payload) = frame;
            let begun = [opcode, 0];
            let told = [&[opcode, payload.len() as u8][..], payload.as_bytes()].concat();
            let want = [&begun[..], &told, b"\x88\x02\x03\xe8"].concat();
            assert!(heard.ends_with(&want), "{heard:?}");
        }
    }
}

/// One that denies `rm`, one that only warns, and one that has whoever comes use container `a`.
#[tokio::test]
async fn policies_judge_connections_and_say_where_they_go() {
    const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
    let scratch = Scratch::new();
    let (_server, admin, kubelet) = with_kubelet(&scratch).await;
    let rules = json!({ "resourceRules": [{
        "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CONNECT"], "resources": ["pods/exec"] }] });
    let object = |kind: &str, name: &str, spec: Value| {
        let metadata = json!({ "name": name });
        json!({ "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec })
    };
    for (name, expression, action) in
        [("no-rm", "!('rm' in object.command)", "Deny"), ("no-ls", "!('ls' in object.command)", "Warn")]
    {
        let spec = json!({ "matchConstraints": rules, "validations": [{ "expression": expression, "message": name }] });
        let policy = object("ValidatingAdmissionPolicy", name, spec);
        admin.post(&format!("{REGISTRATION}/validatingadmissionpolicies"), &policy).await.expect(201);
        let spec = json!({ "policyName": name, "validationActions": [action] });
        let binding = object("ValidatingAdmissionPolicyBinding", name, spec);
        admin.post(&format!("{REGISTRATION}/validatingadmissionpolicybindings"), &binding).await.expect(201);
    }
    let expression = "[JSONPatch{op: 'add', path: '/container', value: 'a'}]";
    let spec = json!({
        "matchConstraints": rules, "reinvocationPolicy": "Never",
        "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } }],
    });
    let policy = object("MutatingAdmissionPolicy", "in-a", spec);
    admin.post(&format!("{REGISTRATION}/mutatingadmissionpolicies"), &policy).await.expect(201);
    let binding = object("MutatingAdmissionPolicyBinding", "in-a", json!({ "policyName": "in-a" }));
    admin.post(&format!("{REGISTRATION}/mutatingadmissionpolicybindings"), &binding).await.expect(201);

    let denied = admin.post(&format!("{PODS}/p/exec?command=rm&stdout=true"), &json!({})).await;
    assert_eq!(
        said(&denied.json()),
        "422 Invalid: pods \"p\" is forbidden: ValidatingAdmissionPolicy 'no-rm' with binding 'no-rm' denied request: no-rm"
    );
    let (_, head) =
        upgrade(&admin, &format!("{PODS}/p/exec?command=ls&stdout=true&container=waits"), "SPDY/3.1").await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    let warned =
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'no-ls' with binding 'no-ls': no-ls\"";
    assert!(head.contains(warned), "{head}");
    let [asked] = &kubelet.asked()[..] else { panic!("asked once") };
    assert_eq!(asked.line, "POST /exec/default/p/a?output=1&command=ls HTTP/1.1");
    let dry = admin.post(&format!("{PODS}/p/exec?command=ls&dryRun=All"), &json!({})).await;
    assert_eq!(said(&dry.json()), "400 BadRequest: dryRun is not supported");
}
