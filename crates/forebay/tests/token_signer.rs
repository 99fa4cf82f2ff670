//! Tokens of service accounts that somebody else signs: the real binary, and a signer on a Unix socket.

mod common;

use std::process::Stdio;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use common::{Ask, Client, Identity, Protocol, Reply, Scratch, Server, WAIT, text};
use forebay_hook::signer::SignerPlugin;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const NAMESPACE: &str = "/api/v1/namespaces/default";
const TOKENS: &str = "/api/v1/namespaces/default/serviceaccounts/robot/token";
const ROBOT: &str = "system:serviceaccount:default:robot";

/// A server, who signs for it, and the administrator.
struct Rig {
    scratch: Scratch,
    plugin: SignerPlugin,
    server: Server,
    admin: Client,
}

fn plugin(scratch: &Scratch) -> SignerPlugin {
    SignerPlugin::start(&scratch.path().join("signer.sock"), "first")
}

fn flag(plugin: &SignerPlugin) -> String {
    format!("--service-account-signing-endpoint={}", plugin.endpoint())
}

impl Rig {
    async fn new() -> Rig {
        let scratch = Scratch::new();
        let plugin = plugin(&scratch);
        let server = Server::start(&scratch, &[&flag(&plugin)]).await;
        let admin = server.admin().await;
        let account = json!({ "metadata": { "name": "robot" } });
        admin.post(&format!("{NAMESPACE}/serviceaccounts"), &account).await.expect(201);
        Rig { scratch, plugin, server, admin }
    }

    async fn ask_for_token(&self, spec: Value) -> Reply {
        self.admin.post(TOKENS, &json!({ "spec": spec })).await
    }

    async fn token(&self) -> String {
        text(&self.ask_for_token(json!({})).await.expect(201), "/status/token").to_owned()
    }

    /// Whom `token` stands for; the code, if nobody.
    async fn who(&self, token: &str) -> String {
        let nobody = self.server.client(Protocol::Http2, Identity::Nobody).await;
        let reply = nobody.ask(Ask::post(WHO, &json!({})).bearer(token)).await;
        match reply.code {
            201 => text(&reply.json(), "/status/userInfo/username").to_owned(),
            code => code.to_string(),
        }
    }

    /// The names of the keys that others are told.
    async fn told(&self) -> Vec<String> {
        let keys = self.admin.get("/openid/v1/jwks").await.expect(200);
        let keys = keys["keys"].as_array().expect("keys").clone();
        keys.iter().map(|key| text(key, "/kid").to_owned()).collect()
    }
}

/// What a part of a token says.
fn part(token: &str, number: usize) -> Value {
    let part = token.split('.').nth(number).expect("three parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_signed_by_who_was_named_and_verified_by_its_keys_as_they_change() {
    let rig = Rig::new().await;
    let old = rig.token().await;
    assert_eq!(part(&old, 0), json!({ "alg": "ES256", "kid": "first", "typ": "JWT" }));
    assert_eq!(rig.who(&old).await, ROBOT);
    let reply = rig.admin.get("/openid/v1/jwks").await;
    let kept = reply.header("cache-control").strip_prefix("public, max-age=").map(str::parse::<u64>);
    assert!(
        kept.is_some_and(|seconds| seconds.is_ok_and(|seconds| seconds <= 3600)),
        "the signer's own word"
    );
    assert_eq!(rig.told().await, ["first"]);
    let configuration = rig.admin.get("/.well-known/openid-configuration").await.expect(200);
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));

    // Another key signs: it is asked for when it is first seen, and told from then on.
    let keys =
        [rig.plugin.key("second", false), rig.plugin.key("first", false), rig.plugin.key("kept", true)];
    rig.plugin.change(|says| {
        says.keys = keys.to_vec();
        says.signs_with = "second".into();
    });
    let new = rig.token().await;
    assert_eq!((rig.who(&new).await, rig.who(&old).await), (ROBOT.into(), ROBOT.into()));
    assert_eq!(rig.told().await, ["second", "first"]);
    // The first one is given up: its tokens are nobody's once that is known.
    let third = rig.plugin.key("third", false);
    rig.plugin.change(|says| {
        says.keys = vec![third, keys[0].clone()];
        says.signs_with = "third".into();
    });
    let third = rig.token().await;
    assert_eq!((rig.who(&third).await, rig.who(&new).await), (ROBOT.into(), ROBOT.into()));
    assert_eq!(
        (rig.who(&old).await, rig.told().await),
        ("401".into(), vec!["third".to_owned(), "second".into()])
    );
    // What was signed by somebody else under the name of a key.
    let (head, _) = old.rsplit_once('.').expect("three parts");
    let (_, signature) = third.rsplit_once('.').expect("three parts");
    assert_eq!(rig.who(&format!("{head}.{signature}")).await, "401");

    let metrics = rig.admin.get("/metrics").await;
    let metrics = metrics.text();
    for line in [
        "apiserver_externaljwt_sign_request_total{code=\"OK\"} 3",
        "apiserver_externaljwt_fetch_keys_data_timestamp 1700000000.5",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}");
    }
    for name in [
        "fetch_keys_success_timestamp ",
        "fetch_keys_request_total{code=\"OK\"} ",
        "request_duration_seconds_bucket{",
    ] {
        let name = format!("apiserver_externaljwt_{name}");
        assert!(metrics.lines().any(|line| line.starts_with(&name)), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_lives_no_longer_than_its_signer_signs_for() {
    let rig = Rig::new().await;
    let two_days = rig.ask_for_token(json!({ "expirationSeconds": 172_800 })).await;
    let warning = "requested expiration of 172800 seconds shortened to 86400 seconds";
    assert!(two_days.header("warning").contains(warning), "{}", two_days.header("warning"));
    let claims = part(text(&two_days.expect(201), "/status/token"), 1);
    let life =
        |claims: &Value| claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(exp, iat)| exp - iat);
    assert_eq!(life(&claims), Some(86_400));
    // What pods mount is extended to a year elsewhere.
    let pod = json!({
        "metadata": { "name": "web" },
        "spec": { "serviceAccountName": "robot", "containers": [{ "name": "a", "image": "a" }] },
    });
    rig.admin.post(&format!("{NAMESPACE}/pods"), &pod).await.expect(201);
    let bound = json!({ "kind": "Pod", "apiVersion": "v1", "name": "web" });
    let spec = json!({ "expirationSeconds": 3607, "boundObjectRef": bound });
    let mounted = rig.ask_for_token(spec).await.expect(201);
    let claims = part(text(&mounted, "/status/token"), 1);
    assert_eq!(life(&claims), Some(86_400));
    let warns = claims["kubernetes.io"]["warnafter"].as_i64().zip(claims["iat"].as_i64());
    assert_eq!(warns.map(|(at, iat)| at - iat), Some(3607));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_signer_is_away_its_tokens_are_good_and_there_are_no_new_ones() {
    let mut rig = Rig::new().await;
    let token = rig.token().await;
    rig.plugin.die();
    assert_eq!(rig.who(&token).await, ROBOT);
    assert_eq!(rig.told().await, ["first"]);
    assert_eq!(rig.admin.get("/readyz").await.code, 200);
    let none = rig.admin.post(&format!("{TOKENS}?timeout=1s"), &json!({ "spec": {} })).await;
    assert!(matches!(none.code, 500 | 504), "{}: {}", none.code, none.text());
    // What others write goes on.
    let map = json!({ "metadata": { "name": "a" } });
    rig.admin.post(&format!("{NAMESPACE}/configmaps"), &map).await.expect(201);
    rig.plugin.restart();
    let signed = async {
        loop {
            let reply = rig.ask_for_token(json!({})).await;
            if reply.code == 201 {
                return text(&reply.json(), "/status/token").to_owned();
            }
        }
    };
    let again = timeout(WAIT, signed).await.expect("nobody signs");
    assert_eq!(rig.who(&again).await, ROBOT);

    // One that lies is told of.
    rig.plugin.change(|says| says.header = Some(r#"{"alg":"ES256","kid":"first","typ":"JOSE"}"#.into()));
    let refused = rig.ask_for_token(json!({})).await.expect(500);
    let why = "Internal error occurred: failed to generate token: while validating header: bad type";
    assert_eq!(text(&refused, "/message"), why);
    drop(rig.scratch);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_does_not_start_with_a_signer_that_cannot_be_used() {
    let scratch = Scratch::new();
    let plugin = plugin(&scratch);
    let refused = async |flags: &[&str]| {
        let refused = Server::try_start(&scratch, flags).await.err().expect("it does not start");
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        refused.stderr
    };
    let flag = flag(&plugin);
    let stderr = refused(&[&flag, "--service-account-key-file=nowhere"]).await;
    assert!(stderr.contains("(They are mutually exclusive)"), "{stderr}");
    plugin.change(|says| says.max_seconds = 300);
    let why = "while setting up external-jwt-signer: max token life supported by external-jwt-signer (300s) is less \
               than acceptable (min 600s)";
    let stderr = refused(&[&flag]).await;
    assert!(stderr.contains(why), "{stderr}");
    plugin.change(|says| says.max_seconds = 600);
    let why = "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
               service-account-signing-endpoint: 1h0m0s > 10m0s";
    let stderr = refused(&[&flag, "--service-account-max-token-expiration=1h"]).await;
    assert!(stderr.contains(why), "{stderr}");
}

#[tokio::test]
async fn a_server_that_waits_for_its_signer_ends_when_it_is_told_to() {
    let scratch = Scratch::new();
    let socket = scratch.path().join("nobody.sock");
    let mut child = Command::new(env!("CARGO_BIN_EXE_forebay"))
        .args(["serve", "--secure-port=0", "--data-dir"])
        .arg(scratch.path().join("data"))
        .arg(format!("--service-account-signing-endpoint={}", socket.display()))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("the binary");
    let mut lines = BufReader::new(child.stderr.take().expect("its stderr")).lines();
    let waits = async {
        while let Some(line) = lines.next_line().await.expect("its stderr") {
            if line.contains("waiting for the external signer") {
                return true;
            }
        }
        false
    };
    assert!(timeout(WAIT, waits).await.expect("no word from it"), "it ended before");
    let id = child.id().expect("it runs").try_into().ok().and_then(Pid::from_raw).expect("a process");
    kill_process(id, Signal::TERM).expect("a signal");
    let ended = timeout(WAIT, child.wait()).await.expect("it does not end").expect("its end");
    assert_eq!(ended.code(), Some(0));
}
