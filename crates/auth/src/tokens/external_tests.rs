//! Tokens that somebody else signs, without that one's socket.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use forebay_api::{Authentication, Authenticator, Presented};
use forebay_apimachinery::Status;
use forebay_rt::Clock;

use super::*;
use crate::authenticators::accounts::Accounts;
use crate::config::{PodTokens, SecretTokens};

const NOW: i64 = 1_800_000_000;

/// Signs with a key that is called `signs_with`, and says these keys, or others once it is asked.
#[derive(Debug)]
struct Somebody {
    keys: Mutex<Arc<[ExternalKey]>>,
    next: Mutex<Option<Arc<[ExternalKey]>>>,
    asked: AtomicUsize,
    signs_with: Mutex<(&'static str, &'static str)>,
}

impl ExternalSigner for Somebody {
    fn sign<'a>(&'a self, claims: &'a str) -> Eventual<'a, Result<(String, String), String>> {
        let (id, pem) = *self.signs_with.lock().expect("no panic");
        if pem.is_empty() {
            return Eventual::Now(Err("while signing jwt: it does not".into()));
        }
        let header = URL_SAFE_NO_PAD.encode(json!({ "alg": "ES256", "kid": id, "typ": "JWT" }).to_string());
        let key = SigningKey::from_pem(&private(pem)).expect("a key");
        let signature = key.sign(format!("{header}.{claims}").as_bytes()).expect("signed");
        Eventual::later(async move { Ok((header, URL_SAFE_NO_PAD.encode(signature))) })
    }

    fn keys(&self) -> Arc<[ExternalKey]> {
        self.keys.lock().expect("no panic").clone()
    }

    fn keys_age_max(&self) -> u64 {
        7
    }

    fn refresh(&self) -> Eventual<'_, ()> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if let Some(next) = self.next.lock().expect("no panic").take() {
            *self.keys.lock().expect("no panic") = next;
        }
        Eventual::Now(())
    }
}

fn private(base64: &str) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{base64}-----END PRIVATE KEY-----\n")
}

const P256: &str = include_str!("testdata/p256.pkcs8.b64");
const P521: &str = include_str!("testdata/p521.pkcs8.b64");

/// The public half of a private key, under a name.
fn key(id: &str, pem: &str, told: ToldToOthers) -> ExternalKey {
    let half = public_halves(&private(pem)).expect("keys").remove(0);
    ExternalKey { half: half.called(id.to_owned()), told }
}

fn tokens(keys: Vec<ExternalKey>) -> (Arc<ServiceAccountTokens>, Arc<Somebody>) {
    let somebody = Arc::new(Somebody {
        keys: Mutex::new(keys.into()),
        next: Mutex::default(),
        asked: AtomicUsize::new(0),
        signs_with: Mutex::new(("first", P256)),
    });
    let config = ServiceAccounts {
        issuers: vec!["https://issuer".into()],
        api_audiences: vec!["api".into()],
        keys: AccountKeys::External(somebody.clone()),
        max_expiration: None,
        pod_tokens: PodTokens::Extended,
        extended_expiration: Duration::from_secs(600),
        secret_tokens: SecretTokens::LookedUp,
        keys_uri: None,
    };
    (Arc::new(ServiceAccountTokens::new(config, "1.2.3.4:6443".into())), somebody)
}

async fn issued(tokens: &ServiceAccountTokens, id: &str) -> Result<String, String> {
    let grant = Grant {
        namespace: "ns".into(),
        account: Reference { name: "robot".into(), uid: "u".into() },
        pod: None,
        secret: None,
        node: None,
        audiences: vec!["api".into()],
        expires_in_seconds: 600,
        warn_after_seconds: None,
        id: id.into(),
    };
    tokens.issue(&grant, NOW).wait().await
}

/// One service account.
#[derive(Clone)]
struct Robot;

impl Grounds for Robot {
    async fn find(&self, _: &str, _: &str, _: &str) -> Result<Found, Status> {
        Ok(serde_json::from_value(json!({ "metadata": { "uid": "u" } })).expect("an object"))
    }

    fn used(&self, _: UsedSecret) {}
}

/// What becomes of a token.
async fn verdict(tokens: &Arc<ServiceAccountTokens>, token: &str) -> String {
    let clock = Clock::manual(NOW.unsigned_abs() * 1000).0;
    let accounts = Accounts { tokens: tokens.clone(), grounds: Robot, clock };
    let audiences = &["api".to_owned()];
    let presented = Presented { token: Some(token.as_bytes()), audiences, ..Presented::default() };
    match accounts.authenticate(&presented).wait().await {
        Authentication::Known(known) => known.caller.name.clone(),
        Authentication::NoOpinion => "nobody's".into(),
        Authentication::Refused(why) => why.into_owned(),
    }
}

/// The names of the keys that others are told.
fn told(tokens: &ServiceAccountTokens) -> Vec<String> {
    let Some(openid) = tokens.openid() else { return Vec::new() };
    let keys: Value = serde_json::from_slice(&openid.keys).expect("JSON");
    let keys = keys["keys"].as_array().expect("keys").iter();
    keys.map(|key| key["kid"].as_str().expect("a name").to_owned()).collect()
}

const ROBOT: &str = "system:serviceaccount:ns:robot";
const UNKNOWN: &str = "invalid signature, no keys found";
const FORGED: &str = "go-jose/go-jose: error in cryptographic primitive";

#[tokio::test]
async fn a_token_is_what_the_signer_puts_around_claims_and_is_verified_by_its_key() {
    let (tokens, somebody) = tokens(vec![key("first", P256, ToldToOthers::Yes)]);
    let token = issued(&tokens, "a").await.expect("a token");
    let claims = token.split('.').nth(1).expect("three parts");
    let claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).expect("base64")).expect("JSON");
    assert_eq!((&claims["iss"], &claims["jti"]), (&json!("https://issuer"), &json!("a")));
    // The second time it has been seen.
    for _ in 0..2 {
        assert_eq!(verdict(&tokens, &token).await, ROBOT);
    }
    assert_eq!(somebody.asked.load(Ordering::Relaxed), 0);
    *somebody.signs_with.lock().expect("no panic") = ("first", P521);
    // Under the name of another key.
    let forged = issued(&tokens, "b").await.expect("a token");
    assert_eq!(verdict(&tokens, &forged).await, FORGED);
    assert_eq!(somebody.asked.load(Ordering::Relaxed), 0, "its key is known");
    *somebody.signs_with.lock().expect("no panic") = ("first", "");
    assert_eq!(issued(&tokens, "c").await, Err("while signing jwt: it does not".into()));
}

#[tokio::test]
async fn a_key_that_nobody_knows_is_asked_for_and_keys_that_are_gone_take_their_tokens_along() {
    let first = key("first", P256, ToldToOthers::Yes);
    let (tokens, somebody) = tokens(vec![first.clone()]);
    let old = issued(&tokens, "a").await.expect("a token");
    *somebody.signs_with.lock().expect("no panic") = ("second", P256);
    let new = issued(&tokens, "b").await.expect("a token");
    assert_eq!(verdict(&tokens, &new).await, UNKNOWN);
    assert_eq!((somebody.asked.load(Ordering::Relaxed), verdict(&tokens, &old).await), (1, ROBOT.into()));
    let second = key("second", P256, ToldToOthers::Yes);
    *somebody.next.lock().expect("no panic") = Some(vec![second.clone(), first].into());
    assert_eq!(verdict(&tokens, &new).await, ROBOT);
    assert_eq!((told(&tokens), tokens.openid_age_max()), (vec!["second".to_owned(), "first".into()], 7));
    assert_eq!((somebody.asked.load(Ordering::Relaxed), verdict(&tokens, &old).await), (2, ROBOT.into()));
    *somebody.next.lock().expect("no panic") = Some(vec![second].into());
    somebody.refresh().wait().await;
    assert_eq!((verdict(&tokens, &old).await, verdict(&tokens, &new).await), (UNKNOWN.into(), ROBOT.into()));
    assert_eq!(told(&tokens), ["second"]);
}

#[tokio::test]
async fn a_key_that_is_not_told_to_others_is_believed_here_and_what_was_told_stays() {
    let kept = key("first", P256, ToldToOthers::No);
    let (tokens, somebody) = tokens(vec![kept.clone()]);
    let token = issued(&tokens, "a").await.expect("a token");
    assert_eq!((verdict(&tokens, &token).await, told(&tokens)), (ROBOT.into(), vec![]));
    assert!(tokens.openid().is_none(), "there was none to be told ever");
    *somebody.next.lock().expect("no panic") =
        Some(vec![key("other", P521, ToldToOthers::Yes), kept.clone()].into());
    somebody.refresh().wait().await;
    assert_eq!(told(&tokens), ["other"]);
    let configuration: Value =
        serde_json::from_slice(&tokens.openid().expect("documents").configuration).expect("JSON");
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES512"]));
    *somebody.next.lock().expect("no panic") = Some(vec![kept].into());
    somebody.refresh().wait().await;
    assert_eq!((told(&tokens), verdict(&tokens, &token).await), (vec!["other".into()], ROBOT.into()));
}

#[tokio::test]
async fn tokens_that_are_somebody_elses_ask_nobody() {
    let (tokens, somebody) = tokens(vec![key("first", P256, ToldToOthers::Yes)]);
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let under = |issuer: &str| {
        let header = part(json!({ "alg": "ES256", "kid": "else", "typ": "JWT" }));
        format!("{header}.{}.AAAA", part(json!({ "iss": issuer, "aud": "api" })))
    };
    for (token, want, asked) in [
        (under("https://else"), "nobody's", 0),
        ("a.b.c".to_owned(), "nobody's", 0),
        (under("https://issuer"), UNKNOWN, 1),
        (under("kubernetes/serviceaccount"), UNKNOWN, 2),
    ] {
        assert_eq!(verdict(&tokens, &token).await, want, "{token}");
        assert_eq!(somebody.asked.load(Ordering::Relaxed), asked, "{token}");
    }
    // A key of this server's own files is nothing here.
    let own = TokenKeys::from_pem(&private(P521), &[]).expect("keys");
    tokens.replace_keys(own);
    let token = issued(&tokens, "a").await.expect("a token");
    assert_eq!(verdict(&tokens, &token).await, ROBOT);
}
