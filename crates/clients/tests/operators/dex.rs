//! dex, an identity provider: its tokens are believed, and nobody's else, through new keys and its absence.
//!
//! The same is asked of kube-apiserver.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::https::{Call, plain};
use forebay_clients::{ControlPlane, pki, ports, wait};
use serde_json::{Value, json};

use super::Operator;

/// Of `password`, by bcrypt.
const HASH: &str = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W";
const USER: &str = "dex:ann@example.com";
/// Keys are read again and caches forget within that time.
const WAIT: Duration = Duration::from_secs(60);

struct Dex {
    https: u16,
    http: u16,
}

impl Dex {
    fn configuration(&self, dir: &Path, lifetime: &str) -> String {
        let client =
            |id: &str| json!({ "id": id, "secret": "s", "name": id, "redirectURIs": ["http://localhost/"] });
        json!({
            "issuer": self.issuer(),
            "storage": { "type": "memory" },
            "web": {
                "https": format!("127.0.0.1:{}", self.https), "http": format!("127.0.0.1:{}", self.http),
                "tlsCert": dir.join("tls.crt"), "tlsKey": dir.join("tls.key"),
            },
            "oauth2": { "passwordConnector": "local", "skipApprovalScreen": true },
            "expiry": { "idTokens": lifetime },
            "enablePasswordDB": true,
            "staticPasswords": [
                { "email": "ann@example.com", "hash": HASH, "username": "ann", "userID": "1" },
            ],
            "staticClients": [client("kube"), client("other")],
        })
        .to_string()
    }

    fn issuer(&self) -> String {
        format!("https://localhost:{}/dex", self.https)
    }

    /// What it answers, as far as it does.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Result<Value, String> {
        let request = format!(
            "{method} /dex/{path} HTTP/1.0\r\nHost: localhost\r\n{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let answer = plain(self.http, &request)?;
        let (_, body) = answer.split_once("\r\n\r\n").ok_or_else(|| format!("half an answer: {answer}"))?;
        serde_json::from_str(body).map_err(|why| format!("{why}: {answer}"))
    }

    /// A token of ann's, for the client `audience`.
    fn token(&self, audience: &str) -> Result<String, String> {
        let headers = format!(
            "Content-Type: application/x-www-form-urlencoded\r\nAuthorization: Basic {}\r\n",
            STANDARD.encode(format!("{audience}:s"))
        );
        let form =
            "grant_type=password&scope=openid+email+groups&username=ann%40example.com&password=password";
        let answer = self.ask("POST", "token", &headers, form)?;
        answer["id_token"].as_str().map(str::to_owned).ok_or_else(|| answer.to_string())
    }
}

/// Both servers, which believe the same provider.
struct Servers {
    ours: ControlPlane,
    theirs: ControlPlane,
}

impl Servers {
    fn start(dex: &Dex, cluster: &Cluster) -> Servers {
        let flags = [
            format!("--oidc-issuer-url={}", dex.issuer()),
            format!("--oidc-ca-file={}", cluster.dir().join("tls.crt").display()),
            "--oidc-client-id=kube".to_owned(),
            "--oidc-username-claim=email".to_owned(),
            "--oidc-username-prefix=dex:".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
        ];
        let ours = ControlPlane::start_told(flags.to_vec()).unwrap_or_else(|why| panic!("{why}"));
        let flags = flags.each_ref().map(String::as_str);
        let theirs = ControlPlane::start_rival_told(cluster, &flags).unwrap_or_else(|why| panic!("{why}"));
        Servers { ours, theirs }
    }

    /// Whose both say a token is, the same; `None` for nobody's.
    fn whose(&self, token: &str) -> Result<Option<String>, String> {
        let [ours, theirs] = [&self.ours, &self.theirs].map(|server| whose(server, token));
        if ours == theirs { Ok(ours) } else { Err(format!("ours {ours:?}, theirs {theirs:?}")) }
    }

    /// Waits until both say the same, and that it is this.
    fn become_sure(&self, what: &str, token: &str, user: Option<&str>) {
        become_sure(what, user, || self.whose(token));
    }
}

fn become_sure(what: &str, user: Option<&str>, mut whose: impl FnMut() -> Result<Option<String>, String>) {
    let known = wait::until(what, WAIT, || match whose()? {
        found if found.as_deref() == user => Ok(()),
        found => Err(format!("{found:?}")),
    });
    known.unwrap_or_else(|why| panic!("{why}"));
}

fn whose(server: &ControlPlane, token: &str) -> Option<String> {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": { "token": token } });
    let call = Call {
        method: "POST",
        path: "/apis/authentication.k8s.io/v1/tokenreviews",
        body: &review.to_string(),
    };
    let answer = server.ask(call).unwrap_or_else(|why| panic!("{why}"));
    let answer: Value = serde_json::from_str(&answer.body).unwrap_or_else(|why| panic!("{why}: {answer:?}"));
    let status = &answer["status"];
    (status["authenticated"] == true)
        .then(|| status["user"]["username"].as_str().unwrap_or_default().to_owned())
}

/// The provider's process, which ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts it, with keys that nobody knows yet.
    ///
    /// - `lifetime`: of its tokens, as Go writes it.
    fn start(operator: &Operator, dex: &Dex, dir: &Path, lifetime: &str) -> Running {
        let path = dir.join("dex.json");
        fs::write(&path, dex.configuration(dir, lifetime)).unwrap_or_else(|why| panic!("{why}"));
        let mut command = operator.command();
        command.arg("serve").arg(&path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(command.spawn().unwrap_or_else(|why| panic!("{why}")));
        let ready =
            wait::until("dex answers", WAIT, || dex.ask("GET", ".well-known/openid-configuration", "", ""));
        ready.unwrap_or_else(|why| panic!("{why}"));
        running
    }
}

/// `token` under another header, with another signature.
fn forged(token: &str, header: &Value, signature: &[u8]) -> String {
    let claims = token.split('.').nth(1).unwrap_or_default();
    let part = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    format!("{}.{claims}.{}", part(header.to_string().as_bytes()), part(signature))
}

#[test]
fn dex_is_believed_through_new_keys_and_its_absence_and_nobody_in_its_name() {
    let Some(operator) = Operator::asked("dex") else { return };
    let cluster = Cluster::start(1, Security::Plain).unwrap_or_else(|why| panic!("{why}"));
    pki::write_webhook(cluster.dir()).unwrap_or_else(|why| panic!("{why}"));
    let [https, http] = ports::free().unwrap_or_else(|why| panic!("{why}"));
    let dex = Dex { https, http };
    let start = |lifetime: &str| Running::start(&operator, &dex, cluster.dir(), lifetime);
    let running = start("1h");
    let servers = Servers::start(&dex, &cluster);
    let token = |audience: &str| dex.token(audience).unwrap_or_else(|why| panic!("{why}"));

    let first = token("kube");
    servers.become_sure("a token of dex", &first, Some(USER));
    servers.become_sure("a token for somebody else", &token("other"), None);
    let keys = dex.ask("GET", "keys", "", "").unwrap_or_else(|why| panic!("{why}"));
    let (id, modulus) = (&keys["keys"][0]["kid"], keys["keys"][0]["n"].as_str().unwrap_or_default());
    let public = URL_SAFE_NO_PAD.decode(modulus).unwrap_or_else(|why| panic!("{why}"));
    let signed = |algorithm: &str| {
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public);
        let header = json!({ "alg": algorithm, "kid": id });
        let text = forged(&first, &header, b"");
        ring::hmac::sign(&key, text.trim_end_matches('.').as_bytes()).as_ref().to_vec()
    };
    for algorithm in ["none", "HS256", "RS256", "ES256"] {
        let signature = if algorithm == "none" { Vec::new() } else { signed(algorithm) };
        let token = forged(&first, &json!({ "alg": algorithm, "kid": id }), &signature);
        assert_eq!(servers.whose(&token), Ok(None), "{algorithm}");
    }
    operator.saw("its token is ann's; one for another client, and four that are forged, are nobody's");

    drop(running);
    assert_eq!(servers.whose(&first), Ok(Some(USER.to_owned())), "the keys are known");
    let _running = start("20s");
    // kube-apiserver does not look for new keys for as long as the provider says that the old ones are good,
    // which are ten minutes.
    let ours = |what: &str, token: &str, user: Option<&str>| {
        become_sure(what, user, || Ok(whose(&servers.ours, token)));
    };
    let second = token("kube");
    ours("a token by a new key", &second, Some(USER));
    ours("a token by a key that is no more", &first, None);
    operator.saw("its new key is found out about, and the old one forgotten");
    ours("a token whose time is over", &second, None);
    operator.saw("a token whose time is over is nobody's");
}
