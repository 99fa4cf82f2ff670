//! What only a pod's node can answer, with a kubelet that says what it was asked.

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::common::aggregated::Aggregated;
use crate::common::{Protocol, Scratch, Server, WAIT, said};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test]
async fn a_kubelet_is_asked_for_what_only_it_has() {
    let scratch = Scratch::new();
    let first = Server::start(&scratch, &[]).await;
    let (chain, key) =
        (scratch.file("kubelet.crt", &first.certificate), scratch.file("kubelet.key", &first.key));
    let kubelet = Aggregated::start(&first.authority).await;
    first.kill().await;
    let chain = format!("--kubelet-client-certificate={}", chain.display());
    let key = format!("--kubelet-client-key={}", key.display());
    let server = Server::start(&scratch, &[&chain, &key]).await;
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

    let log = admin.get(&format!("{PODS}/p/log?container=a&tailLines=5&follow=true")).await;
    assert_eq!((log.code, log.text()), (200, "/containerLogs/default/p/a?follow=true&tailLines=5\n"));
    let [asked] = &kubelet.asked()[..] else { panic!("asked once") };
    assert!(asked.all("x-remote-user").is_empty() && asked.all("authorization").is_empty());
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
    assert_eq!(admin.get(&format!("{PODS}/q/log?container=a")).await.code, 405, "no node has it");
    assert_eq!(admin.get(&format!("{PODS}/none/log")).await.code, 404);

    for (protocol, code) in [("SPDY/3.1", "101"), ("websocket", "400")] {
        let mut stream = admin.raw(64 << 10).await;
        let asked = format!(
            "POST {PODS}/p/exec?container=a&command=ls&stdout=true HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
             Upgrade: {protocol}\r\nContent-Length: 0\r\n\r\n"
        );
        stream.write_all(asked.as_bytes()).await.expect("open");
        let mut heard = Vec::new();
        while !heard.windows(4).any(|four| four == b"\r\n\r\n") {
            assert!(timeout(WAIT, stream.read_buf(&mut heard)).await.expect("in time").expect("open") > 0);
        }
        assert!(heard.starts_with(format!("HTTP/1.1 {code} ").as_bytes()), "{protocol}");
        if code == "101" {
            stream.write_all(b"hello").await.expect("open");
            let mut told = [0; 5];
            timeout(WAIT, stream.read_exact(&mut told)).await.expect("in time").expect("open");
            assert_eq!(&told, b"HELLO");
        }
    }
    let [asked] = &kubelet.asked()[..] else { panic!("asked once") };
    assert_eq!(asked.line, "POST /exec/default/p/a?output=1&command=ls HTTP/1.1");
}
