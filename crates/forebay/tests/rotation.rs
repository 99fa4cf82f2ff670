//! Certificates, authorities, tokens and keys that are replaced on disk while a server runs: real files, a
//! server in this process, which looks at them when it is told to, and clients that were there before and
//! that come later.

mod common;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use common::aggregated::Aggregated;
use common::{Ask, Client, Identity, Protocol, Scratch, text};
use forebay::config::{Host, ServeConfig};
use forebay::flags::argv;
use forebay::flags::layers::Raw;
use forebay::identity::Files;
use forebay::prepare::Prepared;
use forebay::server::{Replacing, Server, Stop};
use forebay_embedded::{Engine, Options};
use forebay_pki::{self as pki, Pki, ServingNames};
use forebay_rt::{Clock, Tasks};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::oneshot;

const ALLOW: &str = "--authorization-mode=AlwaysAllow";
const CHECK: &str = "/api";
const ACCOUNT: &str = "/api/v1/namespaces/default/serviceaccounts/robot";

/// A server, and what looks at its files.
struct Running {
    port: u16,
    files: Files,
    replacing: Replacing,
    stop: Stop,
}

impl Running {
    async fn start(scratch: &Scratch, flags: &[String]) -> Running {
        let data = format!("--data-dir={}", scratch.path().join("data").display());
        let flags = ["--secure-port=0", "--controllers=", data.as_str()]
            .into_iter()
            .map(OsString::from)
            .chain(flags.iter().map(OsString::from));
        let raw = Raw::collect(argv::parse(flags).expect("flags").flags, std::iter::empty()).expect("flags");
        let config = ServeConfig::decide(&raw, &Host::default()).expect("decided");
        let prepared = Prepared::new(config, Timestamp::now(), &mut Vec::new()).expect("prepared");
        let clock = Clock::system();
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("a store");
        let server = Server::listen(&prepared, engine, clock, Tasks::new()).expect("it listens");
        let (port, replacing) = (server.address().port(), server.replacing());
        let (stop, (ready, is_ready)) = (Stop::default(), oneshot::channel());
        let until = stop.clone();
        let say = move || {
            // Whoever asked may have left.
            let _ = ready.send(());
            Ok(())
        };
        tokio::spawn(async move { server.run(&until, say).await });
        is_ready.await.expect("it serves");
        Running { port, files: Files::of(&prepared, port), replacing, stop }
    }

    /// Looks at the files as often as it takes for what has changed to have settled.
    async fn look(&mut self) {
        for _ in 0..2 {
            let settled = self.files.look(Timestamp::now());
            self.files.take_in(settled, &self.replacing).await;
        }
    }

    async fn try_client(&self, trusts: &str, identity: Identity<'_>) -> Result<Client, String> {
        Client::connect(self.port, trusts, Protocol::Http2, identity).await
    }

    /// The administrator whom `by` has signed.
    async fn admin(&self, trusts: &Pki, by: &Pki) -> Client {
        let identity = Identity::Certificate { chain: &by.admin.cert, key: &by.admin.key };
        self.try_client(&trusts.ca_cert, identity).await.expect("a connection")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.at_once.raise();
    }
}

/// Certificates and keys of somebody's, in a directory.
fn made(scratch: &Scratch, name: &str) -> (PathBuf, Pki) {
    let dir = scratch.path().join(name);
    let names = ServingNames { dns: Vec::new(), ips: vec![[127, 0, 0, 1].into()] };
    let pki = pki::ensure(&dir, &names, Timestamp::now(), &mut Vec::new()).expect("made");
    (dir, pki)
}

/// Puts a file in its place in one step, as programs do that renew certificates.
fn put(path: &Path, content: &str) {
    let beside = path.with_extension("new");
    fs::write(&beside, content).expect("written");
    fs::set_permissions(&beside, fs::Permissions::from_mode(0o600)).expect("mode set");
    fs::rename(&beside, path).expect("renamed");
}

async fn code(client: &Client, token: Option<&str>) -> u16 {
    let ask = Ask::get(CHECK);
    client.ask(token.into_iter().fold(ask, |ask, token| ask.bearer(token))).await.code
}

/// The metrics that begin with `name` and are not 0.
async fn metrics(admin: &Client, name: &str) -> Vec<String> {
    let text = admin.get("/metrics").await.text().to_owned();
    let lines = text.lines().filter(|line| line.starts_with(name) && !line.ends_with(" 0"));
    lines.map(|line| line.trim_start_matches(name).to_owned()).collect()
}

#[tokio::test]
async fn a_renewed_serving_certificate_is_shown_to_who_comes_then() {
    let scratch = Scratch::new();
    let ((_, one), (_, other)) = (made(&scratch, "one"), made(&scratch, "other"));
    let (cert, key) = (scratch.path().join("tls.crt"), scratch.path().join("tls.key"));
    put(&cert, &one.serving.cert);
    put(&key, &one.serving.key);
    let flags = [
        format!("--tls-cert-file={}", cert.display()),
        format!("--tls-private-key-file={}", key.display()),
        format!("--client-ca-file={}", scratch.path().join("one/ca.crt").display()),
    ];
    let mut server = Running::start(&scratch, &flags).await;
    let early = server.admin(&one, &one).await;
    assert_eq!(code(&early, None).await, 200);
    server.look().await;
    assert_eq!(metrics(&early, "forebay_identity_").await, Vec::<String>::new());

    // While the two do not belong together, or one of them is cut off or gone, it stays.
    let half = &other.serving.cert[..other.serving.cert.len() / 2];
    for step in 0..3 {
        match step {
            0 => put(&cert, &other.serving.cert),
            1 => put(&cert, half),
            _ => fs::remove_file(&cert).expect("removed"),
        }
        server.look().await;
        assert!(server.try_client(&one.ca_cert, Identity::Nobody).await.is_ok());
        let refused = metrics(&early, "forebay_identity_").await;
        assert_eq!(refused, [r#"refused{part="serving-certificate"} 1"#], "{step}");
    }
    put(&cert, &other.serving.cert);
    put(&key, &other.serving.key);
    server.look().await;
    assert!(server.try_client(&one.ca_cert, Identity::Nobody).await.is_err());
    let late = server.admin(&other, &one).await;
    assert_eq!(code(&late, None).await, 200);
    assert_eq!(code(&early, None).await, 200, "who was there goes on");
    let replaced = [r#"replaced_total{part="serving-certificate"} 1"#];
    assert_eq!(metrics(&early, "forebay_identity_").await, replaced);
    let kubeconfig = fs::read_to_string(scratch.path().join("data/admin.kubeconfig")).expect("written");
    use base64::Engine as _;
    let authority = base64::engine::general_purpose::STANDARD.encode(&other.serving.cert);
    assert!(kubeconfig.contains(&authority), "whom the administrator is to trust now");
}

#[tokio::test]
async fn certificates_for_names_are_renewed_beside_the_one_for_everybody_else() {
    let scratch = Scratch::new();
    let ((_, one), (_, other)) = (made(&scratch, "one"), made(&scratch, "other"));
    let (cert, key) = (scratch.path().join("sni.crt"), scratch.path().join("sni.key"));
    put(&cert, &one.serving.cert);
    put(&key, &one.serving.key);
    // Clients that come to this address ask for no name.
    let flag = format!("--tls-sni-cert-key={},{}:127.0.0.1", cert.display(), key.display());
    let mut server = Running::start(&scratch, &[flag]).await;
    let made_ca = fs::read_to_string(scratch.path().join("data/pki/ca.crt")).expect("made");
    let made_admin = |name: &str| {
        let file = scratch.path().join("data/pki").join(name);
        fs::read_to_string(file).expect("made")
    };
    let (chain, admin_key) = (made_admin("admin.crt"), made_admin("admin.key"));
    let admin = Identity::Certificate { chain: &chain, key: &admin_key };
    let early = server.try_client(&one.ca_cert, admin).await.expect("a connection");
    assert!(server.try_client(&made_ca, Identity::Nobody).await.is_err());
    server.look().await;
    assert_eq!(metrics(&early, "forebay_identity_").await, Vec::<String>::new());

    put(&cert, &other.serving.cert);
    server.look().await;
    assert!(server.try_client(&one.ca_cert, Identity::Nobody).await.is_ok(), "the key is another's");
    let refused = metrics(&early, "forebay_identity_").await;
    assert_eq!(refused, [r#"refused{part="sni-certificates"} 1"#]);
    put(&key, &other.serving.key);
    server.look().await;
    assert!(server.try_client(&other.ca_cert, Identity::Nobody).await.is_ok());
    assert!(server.try_client(&one.ca_cert, Identity::Nobody).await.is_err());
    assert_eq!(code(&early, None).await, 200, "who was there goes on");
    let replaced = [r#"replaced_total{part="sni-certificates"} 1"#];
    assert_eq!(metrics(&early, "forebay_identity_").await, replaced);
}

#[tokio::test]
async fn a_replaced_client_ca_takes_its_clients_along_and_lets_others_in() {
    let scratch = Scratch::new();
    let ((_, one), (_, other)) = (made(&scratch, "one"), made(&scratch, "other"));
    let authorities = scratch.path().join("clients.crt");
    put(&authorities, &one.ca_cert);
    let flags = [format!("--client-ca-file={}", authorities.display())];
    let mut server = Running::start(&scratch, &flags).await;
    let own = fs::read_to_string(scratch.path().join("data/pki/ca.crt")).expect("made");
    let identity = |of: &'static str, pki: &Pki| (of, pki.admin.cert.clone(), pki.admin.key.clone());
    let mut clients = Vec::new();
    for (_, chain, key) in [identity("one", &one), identity("other", &other)] {
        let identity = Identity::Certificate { chain: &chain, key: &key };
        clients.push(server.try_client(&own, identity).await.expect("a connection"));
    }
    // Over the connections that are there, whoever was believed when they were made.
    let both = async |clients: &[Client]| [code(&clients[0], None).await, code(&clients[1], None).await];
    assert_eq!(both(&clients).await, [200, 401]);
    for (authority, want) in [
        (&other.ca_cert, [401, 200]),
        (&format!("{}{}", one.ca_cert, other.ca_cert), [200, 200]),
        (&one.ca_cert, [200, 401]),
        // Cut off: nothing changes.
        (&one.ca_cert[..one.ca_cert.len() / 2].to_owned(), [200, 401]),
    ] {
        put(&authorities, authority);
        server.look().await;
        assert_eq!(both(&clients).await, want);
    }
    const PUBLISHED: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let published: Value = clients[0].get(PUBLISHED).await.expect(200);
    let published = text(&published, "/data/client-ca-file");
    assert!(
        published.contains(other.ca_cert.trim()) && published.contains(one.ca_cert.trim()),
        "{published}"
    );
}

#[tokio::test]
async fn tokens_come_and_go_with_their_file() {
    let scratch = Scratch::new();
    let file = scratch.path().join("tokens.csv");
    put(&file, "old,ann,1\nkept,bob,2\n");
    let flags = [ALLOW.to_owned(), format!("--token-auth-file={}", file.display())];
    let mut server = Running::start(&scratch, &flags).await;
    let own = fs::read_to_string(scratch.path().join("data/pki/ca.crt")).expect("made");
    let client = server.try_client(&own, Identity::Nobody).await.expect("a connection");
    let all = async || {
        [
            code(&client, Some("old")).await,
            code(&client, Some("kept")).await,
            code(&client, Some("new")).await,
        ]
    };
    assert_eq!(all().await, [200, 200, 401]);
    // The second line is not finished.
    put(&file, "kept,bob,2\nnew,c");
    server.look().await;
    assert_eq!(all().await, [200, 200, 401]);
    put(&file, "kept,bob,2\nnew,carl,3\n");
    let first = server.files.look(Timestamp::now());
    assert!(first.is_empty(), "somebody may be writing it");
    server.look().await;
    assert_eq!(all().await, [401, 200, 200]);
    // In place, and of the same length.
    fs::write(&file, "kept,bob,2\nold,carl,3\n").expect("written");
    server.look().await;
    assert_eq!(all().await, [200, 200, 401]);
}

#[tokio::test]
async fn a_service_accounts_token_ends_with_the_key_that_signed_it() {
    let scratch = Scratch::new();
    let ((_, one), (_, other)) = (made(&scratch, "one"), made(&scratch, "other"));
    let (signing, verifying) = (scratch.path().join("sign.key"), scratch.path().join("verify.key"));
    put(&signing, &one.service_account_key.0);
    put(&verifying, &one.service_account_key.0);
    let flags = [
        format!("--client-ca-file={}", scratch.path().join("one/ca.crt").display()),
        format!("--service-account-signing-key-file={}", signing.display()),
        format!("--service-account-key-file={}", verifying.display()),
        ALLOW.to_owned(),
    ];
    let mut server = Running::start(&scratch, &flags).await;
    let own = fs::read_to_string(scratch.path().join("data/pki/ca.crt")).expect("made");
    let identity = Identity::Certificate { chain: &one.admin.cert, key: &one.admin.key };
    let admin = server.try_client(&own, identity).await.expect("a connection");
    let nobody = server.try_client(&own, Identity::Nobody).await.expect("a connection");
    let account = json!({ "metadata": { "name": "robot" } });
    admin.post("/api/v1/namespaces/default/serviceaccounts", &account).await.expect(201);
    let issue = async || {
        let granted = admin.post(&format!("{ACCOUNT}/token"), &json!({ "spec": {} })).await.expect(201);
        text(&granted, "/status/token").to_owned()
    };
    let keys = async || admin.get("/openid/v1/jwks").await.expect(200)["keys"].as_array().map_or(0, Vec::len);
    let old = issue().await;
    assert_eq!((code(&nobody, Some(&old)).await, keys().await), (200, 1));
    // First both are believed, then the new one signs, then the old one goes.
    put(&verifying, &format!("{}{}", one.service_account_key.0, other.service_account_key.0));
    server.look().await;
    assert_eq!((code(&nobody, Some(&old)).await, keys().await), (200, 2));
    put(&signing, &other.service_account_key.0);
    server.look().await;
    let new = issue().await;
    assert_eq!((code(&nobody, Some(&old)).await, code(&nobody, Some(&new)).await), (200, 200));
    put(&verifying, &other.service_account_key.0);
    server.look().await;
    assert_eq!((code(&nobody, Some(&old)).await, code(&nobody, Some(&new)).await), (401, 200));
    assert_eq!(keys().await, 1);
    put(&verifying, "-----BEGIN");
    server.look().await;
    assert_eq!(code(&nobody, Some(&new)).await, 200);
}

#[tokio::test]
async fn what_was_made_may_be_replaced_too() {
    let scratch = Scratch::new();
    let (other_dir, other) = made(&scratch, "other");
    let mut server = Running::start(&scratch, &[]).await;
    let own = scratch.path().join("data/pki");
    let ca_cert = fs::read_to_string(own.join("ca.crt")).expect("made");
    let read = |name: &str| fs::read_to_string(own.join(name)).expect("made");
    let (chain, key) = (read("admin.crt"), read("admin.key"));
    let identity = Identity::Certificate { chain: &chain, key: &key };
    let early = server.try_client(&ca_cert, identity).await.expect("a connection");
    assert_eq!(code(&early, None).await, 200);
    // One file after the other: the certificates count once all of them fit.
    let names = ["apiserver.crt", "apiserver.key", "admin.crt", "admin.key", "sa.key", "ca.key", "ca.crt"];
    for name in names {
        assert!(server.try_client(&ca_cert, Identity::Nobody).await.is_ok(), "before {name}");
        put(&own.join(name), &fs::read_to_string(other_dir.join(name)).expect("made"));
        server.look().await;
    }
    assert!(server.try_client(&ca_cert, Identity::Nobody).await.is_err());
    assert_eq!(code(&early, None).await, 401, "its authority is gone");
    let late = server.admin(&other, &other).await;
    assert_eq!(code(&late, None).await, 200);
    assert_eq!(metrics(&late, "forebay_identity_refused").await, Vec::<String>::new());
    let kubeconfig = fs::read_to_string(scratch.path().join("data/admin.kubeconfig")).expect("written");
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(&other.admin.cert);
    assert!(kubeconfig.contains(&encoded), "the administrator's certificate");
}

#[tokio::test]
async fn the_binary_looks_at_its_files_by_itself() {
    let scratch = Scratch::new();
    let file = scratch.path().join("tokens.csv");
    put(&file, "old,ann,1\n");
    let flags = [ALLOW, "--token-auth-file", file.to_str().expect("UTF-8")];
    let server = common::Server::start(&scratch, &flags).await;
    let client = server.client(Protocol::Http2, Identity::Nobody).await;
    assert_eq!(code(&client, Some("old")).await, 200);
    put(&file, "new,ann,1\n");
    let came = async {
        while code(&client, Some("new")).await != 200 {
            Clock::system().sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(common::WAIT, came).await.expect("it is taken in");
    assert_eq!(code(&client, Some("old")).await, 401);
}

/// Whom a proxy is believed that its request is from; the code, if nobody.
async fn from_jane(client: &Client) -> String {
    const SELF: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let reply = client.ask(Ask::post(SELF, &review).header("X-Remote-User", "jane")).await;
    match reply.code {
        201 => text(&reply.json(), "/status/userInfo/username").to_owned(),
        code => code.to_string(),
    }
}

#[tokio::test]
async fn replaced_authorities_of_proxies_take_those_along_and_let_others_in() {
    const TRUST: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let scratch = Scratch::new();
    let ((_, one), (_, other)) = (made(&scratch, "one"), made(&scratch, "other"));
    let authorities = scratch.path().join("proxies.crt");
    put(&authorities, &one.ca_cert);
    let flags = [ALLOW.to_owned(), format!("--requestheader-client-ca-file={}", authorities.display())];
    let mut server = Running::start(&scratch, &flags).await;
    let own = fs::read_to_string(scratch.path().join("data/pki/ca.crt")).expect("made");
    let proxy = async |server: &Running, pki: &Pki| {
        let identity = Identity::Certificate { chain: &pki.admin.cert, key: &pki.admin.key };
        server.try_client(&own, identity).await.expect("a connection")
    };
    let (early, stranger) = (proxy(&server, &one).await, proxy(&server, &other).await);
    assert_eq!((from_jane(&early).await, from_jane(&stranger).await), ("jane".to_owned(), "401".to_owned()));
    put(&authorities, "nothing");
    server.look().await;
    assert_eq!(from_jane(&early).await, "jane", "what is none changes nothing");
    put(&authorities, &other.ca_cert);
    server.look().await;
    assert_eq!((from_jane(&early).await, from_jane(&stranger).await), ("401".to_owned(), "jane".to_owned()));
    let (key, cert) = (scratch.path().join("data/pki/admin.key"), scratch.path().join("data/pki/admin.crt"));
    let read = |path: &Path| fs::read_to_string(path).expect("made");
    let (chain, key) = (read(&cert), read(&key));
    let identity = Identity::Certificate { chain: &chain, key: &key };
    let admin = server.try_client(&own, identity).await.expect("a connection");
    let told = admin.get(TRUST).await.expect(200);
    let told = text(&told, "/data/requestheader-client-ca-file").to_owned();
    assert!(told.contains(other.ca_cert.trim()), "programs beside it are told: {told}");
}

/// A kubelet that knows the authority of `second` alone, and for which nobody vouches.
#[tokio::test]
async fn a_certificate_for_kubelets_is_read_again_and_who_wants_that_needs_nobody_to_vouch_for_them() {
    const PODS: &str = "/api/v1/namespaces/default/pods";
    let scratch = Scratch::new();
    let ((_, first), (_, second)) = (made(&scratch, "first"), made(&scratch, "second"));
    let file = |name: &str| scratch.path().join(name);
    let (chain, key, authority) = (file("kubelet.crt"), file("kubelet.key"), file("kubelets.crt"));
    put(&chain, &first.admin.cert);
    put(&key, &first.admin.key);
    put(&authority, &first.ca_cert);
    let kubelet = Aggregated::start(&second.ca_cert).await;
    let flags = [
        format!("--cert-dir={}", scratch.path().join("first").display()),
        ALLOW.to_owned(),
        "--disable-admission-plugins=ServiceAccount".to_owned(),
        format!("--kubelet-client-certificate={}", chain.display()),
        format!("--kubelet-client-key={}", key.display()),
        format!("--kubelet-certificate-authority={}", authority.display()),
    ];
    let mut server = Running::start(&scratch, &flags).await;
    let admin = server.admin(&first, &first).await;
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n" },
        "status": {
            "addresses": [{ "type": "InternalIP", "address": "127.0.0.1" }],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": kubelet.port } },
        },
    });
    admin.post("/api/v1/nodes", &node).await.expect(201);
    let spec = json!({ "containers": [{ "name": "a", "image": "i" }], "nodeName": "n" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": spec });
    admin.post(PODS, &pod).await.expect(201);
    let (log, unverified) =
        (format!("{PODS}/p/log"), format!("{PODS}/p/log?insecureSkipTLSVerifyBackend=true"));

    let refused = admin.get(&log).await;
    let (told, url) =
        (refused.json(), format!("https://127.0.0.1:{}/containerLogs/default/p/a", kubelet.port));
    let why = told["message"].as_str().unwrap_or_default();
    assert!(refused.code == 500 && told["reason"].is_null(), "{told}");
    assert!(why.starts_with(&format!("Get {url:?}: tls: failed to verify certificate: x509: ")), "{why}");
    assert_eq!(admin.get(&unverified).await.code, 500, "it does not know whom it is shown");

    put(&chain, &second.admin.cert);
    put(&key, &second.admin.key);
    server.look().await;
    let answer = admin.get(&unverified).await;
    assert_eq!((answer.code, answer.text()), (200, "/containerLogs/default/p/a\n"));
    assert_eq!(admin.get(&log).await.code, 500, "nobody vouches for it");
    fs::write(&chain, "nothing").expect("written");
    server.look().await;
    assert_eq!(admin.get(&unverified).await.code, 200, "what cannot be used changes nothing");
}
