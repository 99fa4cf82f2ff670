//! What whoever operates the server has of it: certificates for users, pages about the process, spans of its
//! requests, and controllers that may do no more than their roles say.

mod common;

use std::convert::Infallible;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use common::{Ask, Identity, Protocol, Scratch, Server, WAIT, rv};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn a_user_who_is_approved_is_known_by_the_certificate() {
    let scratch = Scratch::new();
    let controllers = "--controllers=certificatesigningrequest-signing-controller";
    let server = Server::start(&scratch, &[controllers, "--cluster-signing-duration=2h"]).await;
    let admin = server.admin().await;
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "readers");
    params.distinguished_name.push(DnType::CommonName, "jane");
    let request = params.serialize_request(&key).expect("a request").pem().expect("PEM");
    let body = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "jane"},
        "spec": {
            "request": STANDARD.encode(request), "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    });
    let mut made = admin.post(REQUESTS, &body).await.expect(201);
    let start = rv(&made);
    made["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "Known"}]});
    admin.put(&format!("{REQUESTS}/jane/approval"), &made).await.expect(200);
    let mut watch = admin.watch(&format!("{REQUESTS}?watch=true&resourceVersion={start}")).await;
    let certificate = loop {
        let event = watch.event().await;
        if let Some(certificate) = event.object["status"]["certificate"].as_str() {
            break String::from_utf8(STANDARD.decode(certificate).expect("base64")).expect("PEM");
        }
    };
    let identity = Identity::Certificate { chain: &certificate, key: &key.serialize_pem() };
    let jane = server.client(Protocol::Http2, identity).await;
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let known = jane.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await.expect(201);
    let user = &known["status"]["userInfo"];
    assert_eq!((&user["username"], &user["groups"][0]), (&"jane".into(), &"readers".into()));
    assert!(jane.get(MAPS).await.code == 403, "nobody gave her a role");
}

#[tokio::test]
async fn a_controller_may_do_what_its_role_says() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--controllers=root-ca-certificate-publisher-controller"]).await;
    let admin = server.admin().await;
    let role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:controller:root-ca-cert-publisher";
    let kept = admin.get(role).await.expect(200);
    let namespaces = "/api/v1/namespaces";
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let map = |namespace: &str| format!("{namespaces}/{namespace}/configmaps/kube-root-ca.crt");
    let start = rv(&admin.post(namespaces, &namespace("may")).await.expect(201));
    let all = format!("/api/v1/configmaps?watch=true&resourceVersion={start}");
    let mut watch = admin.watch(&all).await;
    while watch.event().await.object["metadata"]["namespace"] != "may" {}
    let managers = admin.get(&map("may")).await.expect(200)["metadata"]["managedFields"].clone();
    assert_eq!(managers[0]["manager"], "kube-controller-manager");

    admin.delete(role).await.expect(200);
    admin.post(namespaces, &namespace("may-not")).await.expect(201);
    // It may still put right what is there, and does: so it has had its turn, and was refused.
    let mut again = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "system:controller:root-ca-cert-publisher"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["update"]}],
    });
    admin.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &again).await.expect(201);
    let spoiled = r#"{"data":{"ca.crt":"spoiled"}}"#;
    let spoil = Ask::patch(map("kube-public"), "application/merge-patch+json", spoiled);
    admin.ask(spoil).await.expect(200);
    let mut was_spoiled = false;
    loop {
        let object = watch.event().await.object;
        if object["metadata"]["namespace"] == "kube-public" {
            match object["data"]["ca.crt"] == "spoiled" {
                true => was_spoiled = true,
                false if was_spoiled => break,
                false => {}
            }
        }
    }
    assert_eq!(admin.get(&map("may-not")).await.code, 404);
    again["rules"] = kept["rules"].clone();
    admin.put(role, &again).await.expect(200);
    while watch.event().await.object["metadata"]["namespace"] != "may-not" {}
}

#[tokio::test]
async fn the_process_tells_of_itself_to_who_may_hear() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--event-ttl=30m"]).await;
    let admin = server.admin().await;
    admin.get("/readyz").await;
    let slis = admin.get("/metrics/slis").await;
    assert_eq!(slis.code, 200);
    assert!(
        slis.text().contains("kubernetes_healthcheck{name=\"ping\",type=\"readyz\"} 1\n"),
        "{}",
        slis.text()
    );
    let kind = "as=Flagz;v=v1beta1;g=config.k8s.io";
    let flags = admin.ask(Ask::get("/flagz").accept(&format!("application/json;{kind}"))).await;
    assert_eq!(flags.header("content-type"), "application/json;g=config.k8s.io;v=v1beta1;as=Flagz");
    let flags = flags.expect(200);
    assert_eq!(flags["flags"]["event-ttl"], "30m");
    assert_eq!(flags["flags"]["authorization-mode"], "[RBAC]");
    let yaml = admin.ask(Ask::get("/flagz").accept(&format!("application/yaml;{kind}"))).await;
    assert!(yaml.text().contains("\nkind: Flagz\n"), "{}", yaml.text());
    let old = admin
        .ask(Ask::get("/statusz").accept("application/json;as=Statusz;v=v1alpha1;g=config.k8s.io"))
        .await;
    assert_eq!(
        old.warnings(),
        ["299 - \"This version of the statusz endpoint is deprecated. Please use a newer version.\""]
    );
    let old = old.expect(200);
    assert_eq!((&old["kind"], &old["apiVersion"]), (&"Statusz".into(), &"config.k8s.io/v1alpha1".into()));
    assert!(old["uptimeSeconds"].is_number() && old["paths"].as_array().is_some_and(|all| all.len() > 3));
    let text = admin.get("/statusz").await;
    assert_eq!(text.header("content-type"), "text/plain; charset=utf-8");
    assert!(text.text().starts_with("\napiserver statusz\nWarning: "), "{}", text.text());
    let nobody = server.client(Protocol::Http2, Identity::Nobody).await;
    for path in ["/statusz", "/flagz", "/metrics/slis"] {
        assert_eq!(nobody.get(path).await.code, 403, "{path}");
    }
}

/// Takes what comes to a collector of spans.
async fn collect(listener: TcpListener, told: mpsc::Sender<Bytes>) {
    while let Ok((stream, _)) = listener.accept().await {
        let told = told.clone();
        let answer = service_fn(move |request: Request<Incoming>| {
            let told = told.clone();
            async move {
                let body = request.into_body().collect().await.expect("a body").to_bytes();
                let _ = told.send(body).await;
                let mut response = Response::new(Full::new(Bytes::new()));
                response.headers_mut().insert("grpc-status", HeaderValue::from_static("0"));
                Ok::<_, Infallible>(response)
            }
        });
        let serving = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        tokio::spawn(async move {
            // It ends with its client.
            let _ = serving.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

#[tokio::test]
async fn spans_of_requests_reach_a_collector() {
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("listens");
    let endpoint = listener.local_addr().expect("bound");
    let (told, mut came) = mpsc::channel(64);
    tokio::spawn(collect(listener, told));
    let file = scratch.file(
        "tracing.yaml",
        &format!(
            "apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: {endpoint}\n"
        ),
    );
    let flags = ["--tracing-config-file", file.to_str().expect("UTF-8")];
    let server = Server::start(&scratch, &flags).await;
    let admin = server.admin().await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told"}});
    admin.post(MAPS, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "untold"}})).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    admin.ask(Ask::post(MAPS, &map).header("traceparent", parent)).await.expect(201);
    server.terminate();
    assert!(server.ended().await.success());
    let mut all = Vec::new();
    while let Ok(Some(message)) = timeout(WAIT, came.recv()).await {
        all.extend_from_slice(&message);
        if holds(&all, b"Commit") {
            break;
        }
    }
    let trace =
        [0x4b, 0xf9, 0x2f, 0x35, 0x77, 0xb3, 0x4d, 0xa6, 0xa3, 0xce, 0x92, 0x9d, 0x0e, 0x0e, 0x47, 0x36];
    for part in [
        &b"POST /api/v1/namespaces/{:namespace}/configmaps"[..],
        b"Commit",
        b"apiserver",
        b"http.response.status_code",
        &trace,
    ] {
        assert!(holds(&all, part), "{}", String::from_utf8_lossy(part));
    }
    // The request, and its commit; and nothing of what nobody asked to be told of.
    assert_eq!(all.windows(trace.len()).filter(|window| *window == trace).count(), 2);
}

fn holds(message: &[u8], part: &[u8]) -> bool {
    message.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn a_tracing_configuration_that_is_wrong_keeps_the_server_from_starting() {
    let scratch = Scratch::new();
    let file = scratch.file("tracing.yaml", "kind: TracingConfiguration\n");
    let refused =
        Server::try_start(&scratch, &["--tracing-config-file", file.to_str().expect("UTF-8")]).await;
    let Err(refused) = refused else { panic!("it starts") };
    assert!(format!("{refused:?}").contains("no kind"), "{refused:?}");
}
