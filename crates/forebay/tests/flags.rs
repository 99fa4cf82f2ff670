//! What single flags of kube-apiserver make of a server: certificates by name, curves, what browsers are
//! told, privileged containers. The real binary, and handshakes over TCP.

mod common;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use common::{Ask, Client, Identity, Protocol, Scratch, Server, WAIT, said};
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, NamedGroup, SignatureScheme, SupportedProtocolVersion};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Believes any certificate whose key the server has.
#[derive(Debug)]
struct TakesAny(CryptoProvider);

impl ServerCertVerifier for TakesAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A client's half of a handshake.
struct Hello {
    version: &'static SupportedProtocolVersion,
    /// Those that ring has, if none is said.
    groups: Vec<NamedGroup>,
}

impl Hello {
    const fn of(version: &'static SupportedProtocolVersion) -> Hello {
        Hello { version, groups: Vec::new() }
    }

    /// The certificate that is shown, and the group by which keys were exchanged.
    ///
    /// - `name`: an address is not asked for.
    async fn says(&self, to: SocketAddr, name: &str) -> Result<(Vec<u8>, NamedGroup), String> {
        let mut provider = ring::default_provider();
        if !self.groups.is_empty() {
            provider.kx_groups.retain(|group| self.groups.contains(&group.name()));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
            .with_protocol_versions(&[self.version])
            .expect("spoken")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(TakesAny(provider)))
            .with_no_client_auth();
        let tcp = TcpStream::connect(to).await.expect("a server");
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let stream = timeout(WAIT, TlsConnector::from(Arc::new(config)).connect(name, tcp)).await;
        let stream = stream.expect("in time").map_err(|error| error.to_string())?;
        let session = stream.get_ref().1;
        let shown = session.peer_certificates().expect("shown")[0].to_vec();
        Ok((shown, session.negotiated_key_exchange_group().expect("exchanged").name()))
    }
}

/// A certificate with its key, in files: a common name, and those that it covers.
fn made(scratch: &Scratch, file: &str, common_name: &str, covers: &[&str]) -> (Vec<u8>, String) {
    let key = KeyPair::generate().expect("a key");
    let covers: Vec<_> = covers.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(covers).expect("names");
    params.distinguished_name.push(DnType::CommonName, common_name);
    let made = params.self_signed(&key).expect("signed");
    let cert = scratch.file(&format!("{file}.crt"), &made.pem());
    let key = scratch.file(&format!("{file}.key"), &key.serialize_pem());
    (made.der().to_vec(), format!("--tls-sni-cert-key={},{}", cert.display(), key.display()))
}

#[tokio::test]
async fn a_client_is_shown_the_certificate_of_the_name_that_it_asks_for() {
    let scratch = Scratch::new();
    let (own, own_flag) = made(&scratch, "own", "cn.example.org", &["own.example.org", "*.own.example.org"]);
    let (said, said_flag) = made(&scratch, "said", "said", &["unsaid.example.org"]);
    let (late, late_flag) = made(&scratch, "late", "late", &["x.example.org"]);
    let flags = [
        "--bind-address=0.0.0.0".to_owned(),
        own_flag,
        format!("{said_flag}:a.example.org,*.example.org,127.0.0.2"),
        format!("{late_flag}:a.example.org,cn.example.org"),
    ];
    let flags: Vec<_> = flags.iter().map(String::as_str).collect();
    let server = Server::start(&scratch, &flags).await;
    let to = |last: u8| SocketAddr::from(([127, 0, 0, last], server.port));
    for version in [&TLS12, &TLS13] {
        let hello = Hello::of(version);
        let made = hello.says(to(1), "127.0.0.1").await.expect("shown").0;
        assert!(![&own, &said, &late].contains(&&made));
        for (name, want) in [
            ("own.example.org", &own),
            ("x.own.example.org", &own),
            // What is said goes before what is in a certificate, and the first before others.
            ("cn.example.org", &late),
            ("a.example.org", &said),
            ("A.Example.ORG", &said),
            ("b.example.org", &said),
            // Its own pattern goes before the certificate that has just that name.
            ("x.example.org", &said),
            ("x.y.example.org", &made),
            ("example.org", &made),
            ("localhost", &made),
            ("kubernetes.default.svc", &made),
        ] {
            let (shown, _) = hello.says(to(1), name).await.expect("shown");
            assert!(shown == *want, "{name} {version:?}");
        }
        // By the address that it came to, where it asks for none.
        assert!(hello.says(to(2), "127.0.0.2").await.expect("shown").0 == said);
        assert!(hello.says(to(3), "127.0.0.3").await.expect("shown").0 == made);
        assert!(hello.says(to(2), "localhost").await.expect("shown").0 == made);
    }
    server.admin().await.get("/api").await.expect(200);
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_for_its_names_ends_the_start() {
    let scratch = Scratch::new();
    let (_, one) = made(&scratch, "one", "one", &["a.example.org"]);
    made(&scratch, "other", "other", &["b.example.org"]);
    let path = |name: &str| scratch.path().join(name).display().to_string();
    let mixed = format!("--tls-sni-cert-key={},{}", path("one.crt"), path("other.key"));
    let missing = format!("--tls-sni-cert-key={},{}", path("none.crt"), path("none.key"));
    for (flag, want) in [
        (mixed, "other.key: is not the private key of the certificate in"),
        (missing, "none.crt"),
        (format!("{one}:"), "empty names list is not allowed"),
    ] {
        let refused = Server::try_start(&scratch, &[flag.as_str()]).await.err().expect("refused");
        assert!(refused.stderr.contains(want) && refused.code != Some(0), "{flag}: {}", refused.stderr);
    }
}

#[tokio::test]
async fn keys_are_exchanged_by_the_curves_that_are_named_and_no_others() {
    use NamedGroup::{X25519, secp256r1, secp384r1};
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &["--tls-curve-preferences=24,23"]).await;
    let to = SocketAddr::from((IpAddr::from(Ipv4Addr::LOCALHOST), server.port));
    for version in [&TLS12, &TLS13] {
        for (groups, want) in [
            (vec![X25519, secp256r1, secp384r1], Some(secp256r1)),
            (vec![X25519, secp384r1], Some(secp384r1)),
            (vec![X25519], None),
        ] {
            let by = Hello { version, groups: groups.clone() }.says(to, "localhost").await;
            assert_eq!(by.ok().map(|(_, group)| group), want, "{groups:?} {version:?}");
        }
    }
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let to = SocketAddr::from((IpAddr::from(Ipv4Addr::LOCALHOST), server.port));
    let by = Hello { version: &TLS13, groups: vec![X25519] }.says(to, "localhost").await;
    assert_eq!(by.expect("spoken").1, X25519);
}

#[tokio::test]
async fn every_answer_tells_browsers_to_insist_on_https_where_it_is_to() {
    const SAYS: &str = "strict-transport-security";
    const FLAG: &str = "--strict-transport-security-directives=max-age=31536000,includeSubDomains,preload";
    let said = |of: &http::HeaderMap| {
        let all = of.get_all(SAYS).iter().map(|value| value.to_str().expect("text").to_owned());
        all.collect::<Vec<_>>()
    };
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[FLAG]).await;
    let asks = || {
        [
            (Ask::get("/healthz"), 200),
            (Ask::get("/api/v1/namespaces"), 200),
            (Ask::get("/openapi/v2"), 200),
            (Ask::get("/no/such/path"), 404),
            (Ask::get(format!("{PODS}/none")), 404),
            (Ask::post(PODS, &json!({ "metadata": { "name": "p" } })), 422),
            (Ask::delete("/api/v1/namespaces/default"), 403),
            (Ask::get(format!("{PODS}?watch=1&timeoutSeconds=1")), 200),
        ]
    };
    for protocol in Protocol::BOTH {
        let admin = server.admin_over(protocol).await;
        for (ask, code) in asks() {
            let reply = admin.ask(ask.clone()).await;
            assert_eq!(reply.code, code, "{ask:?}");
            let all = ["max-age=31536000; includeSubDomains; preload"];
            assert_eq!(said(&reply.headers), all, "{ask:?} {protocol:?}");
        }
        let nobody = server.client(protocol, Identity::Nobody).await;
        let refused = nobody.get("/api").await;
        assert_eq!((refused.code, said(&refused.headers).len()), (403, 1), "{protocol:?}");
        // Before it is known what is asked for.
        let broken = admin.get("/%zz").await;
        assert_eq!((broken.code, said(&broken.headers).len()), (400, 0), "{protocol:?}");
    }
    // What is no answer of HTTP any more.
    let upgrade = Ask::get(format!("{PODS}?watch=1"))
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("origin", "https://localhost")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    let upgraded = server.admin_over(Protocol::Http1).await.open_reply(upgrade).await.expect("a head");
    assert_eq!((upgraded.status().as_u16(), said(upgraded.headers()).len()), (101, 0));
    server.kill().await;

    let server = Server::start(&scratch, &[]).await;
    for (ask, _) in asks() {
        assert_eq!(said(&server.admin().await.ask(ask).await.headers), Vec::<String>::new());
    }
}

fn pod_spec(privileged: bool) -> Value {
    json!({ "containers": [{ "name": "c", "image": "i", "securityContext": { "privileged": privileged } }] })
}

fn pod(name: &str, privileged: bool) -> Value {
    json!({ "metadata": { "name": name }, "spec": pod_spec(privileged) })
}

fn deployment(name: &str, privileged: bool) -> Value {
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": pod_spec(privileged) });
    let spec = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template });
    json!({ "metadata": { "name": name }, "spec": spec })
}

/// What becomes of a change of labels.
async fn labelled(admin: &Client, path: &str) -> Value {
    let patch = json!({ "metadata": { "labels": { "changed": "yes" } } }).to_string();
    let reply = admin.ask(Ask::patch(path, "application/merge-patch+json", patch)).await;
    serde_json::from_slice(&reply.body).expect("JSON")
}

#[tokio::test]
async fn a_privileged_container_is_neither_taken_in_nor_changed_where_none_is_allowed() {
    const WHY: &str = "securityContext.privileged: Forbidden: disallowed by cluster policy";
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let admin = server.admin().await;
    admin.post(PODS, &pod("there", true)).await.expect(201);
    admin.post(DEPLOYMENTS, &deployment("there", true)).await.expect(201);
    server.kill().await;

    let server = Server::start(&scratch, &["--allow-privileged=false"]).await;
    let admin = server.admin().await;
    let invalid = |kind: &str, name: &str, at: &str| {
        format!(r#"422 Invalid: {kind} "{name}" is invalid: {at}.containers[0].{WHY}"#)
    };
    let refused = admin.post(PODS, &pod("new", true)).await;
    assert_eq!(said(&refused.expect(422)), invalid("Pod", "new", "spec"));
    let refused = admin.post(DEPLOYMENTS, &deployment("new", true)).await;
    assert_eq!(said(&refused.expect(422)), invalid("Deployment.apps", "new", "spec.template.spec"));
    admin.post(PODS, &pod("new", false)).await.expect(201);
    admin.post(DEPLOYMENTS, &deployment("new", false)).await.expect(201);

    let there = labelled(&admin, &format!("{PODS}/there")).await;
    assert_eq!(said(&there), invalid("Pod", "there", "spec"));
    let there = labelled(&admin, &format!("{DEPLOYMENTS}/there")).await;
    assert_eq!(said(&there), invalid("Deployment.apps", "there", "spec.template.spec"));
    let scale = Ask::patch(
        format!("{DEPLOYMENTS}/there/scale"),
        "application/merge-patch+json",
        r#"{"spec":{"replicas":3}}"#,
    );
    let scaled = admin.ask(scale).await.expect(422);
    assert_eq!(said(&scaled), invalid("Deployment.apps", "there", "spec.template.spec"));
    assert_eq!(labelled(&admin, &format!("{PODS}/new")).await["metadata"]["labels"]["changed"], "yes");
    let status = Ask::patch(
        format!("{PODS}/there/status"),
        "application/merge-patch+json",
        r#"{"status":{"message":"m"}}"#,
    );
    assert_eq!(admin.ask(status).await.expect(200)["status"]["message"], "m");
    admin.delete(&format!("{DEPLOYMENTS}/there")).await.expect(200);
    server.kill().await;

    let server = Server::start(&scratch, &["--allow-privileged"]).await;
    let admin = server.admin().await;
    admin.post(PODS, &pod("newer", true)).await.expect(201);
    assert_eq!(labelled(&admin, &format!("{PODS}/there")).await["metadata"]["labels"]["changed"], "yes");
}
