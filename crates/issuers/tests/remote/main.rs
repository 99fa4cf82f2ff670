//! Tokens over real connections, of providers and webhooks that are good, slow, wrong, or somebody else.

mod claims;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_api::{Authentication, Authenticator as _, Presented};
use forebay_documents::metrics::{AuthenticationMetrics, Text};
use forebay_hook::Hook;
use forebay_hook::tokens::{Signer, discovery};
use forebay_issuers::{
    RemoteTokens, RemoteTokensConfig, TokenReviewVersion, TokenReviewer, check_authorities,
};
use forebay_oidc::{Algorithm, AuthenticationConfiguration, Issuer, validated};
use forebay_rt::{Clock, Duration, Random};
use forebay_webhook_client::Remote;
use futures_util::future::join_all;
use serde_json::{Value, json};

/// Anything that takes longer than this does not come.
const WAIT: Duration = Duration::from_secs(120);
const NOT_YET: &str = "oidc: authenticator not initialized";
const UNSIGNED: &str = "oidc: verify token: failed to verify signature: failed to verify id token signature";

/// A provider `WHO` at a hook.
struct Provider {
    hook: Arc<Hook>,
    url: String,
}

impl Provider {
    fn at(hook: &Arc<Hook>, who: &str) -> Provider {
        let url = format!("{}/{who}", hook.url());
        let document = discovery(&url, &format!("{}/keys-of-{who}/keys", hook.url()));
        hook.answers(".well-known/openid-configuration", json!({ "raw": document }));
        Provider { hook: hook.clone(), url }
    }

    fn has(&self, keys: Value) {
        self.hook.answers("keys", keys);
    }

    fn has_keys_of(&self, signer: &Signer) {
        self.has(json!({ "raw": signer.keys() }));
    }

    /// How often its keys were asked for since somebody looked last.
    fn asked(&self) -> usize {
        self.hook.asked_of("keys-of-").len()
    }

    fn claims(&self, more: &Value) -> Value {
        let mut claims = json!({ "iss": self.url, "aud": "kube", "sub": "ann", "exp": 99_999_999_999_u64 });
        for (name, value) in more.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        claims
    }

    fn issuers(&self) -> Vec<Issuer> {
        issuers(&[self], &[&self.hook])
    }
}

/// These providers, whose servers are known by what vouches for each of these hooks.
fn issuers(providers: &[&Provider], hooks: &[&Hook]) -> Vec<Issuer> {
    let pem =
        |hook: &&Hook| String::from_utf8(STANDARD.decode(&hook.authority).expect("base64")).expect("PEM");
    let authority: String = hooks.iter().map(pem).collect();
    let jwt = |provider: &&Provider| {
        json!({
            "issuer": { "url": provider.url, "audiences": ["kube"], "certificateAuthority": authority },
            "claimMappings": {
                "username": { "claim": "sub", "prefix": "" }, "groups": { "claim": "groups", "prefix": "" },
            },
        })
    };
    let tree = json!({
        "apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthenticationConfiguration",
        "jwt": providers.iter().map(jwt).collect::<Vec<_>>(),
    });
    let configuration = AuthenticationConfiguration::of(&tree).expect("read");
    validated(&configuration, &[], &Algorithm::ALL, &check_authorities).expect("valid")
}

fn remote(
    issuers: Vec<Issuer>,
    webhook: Option<TokenReviewer>,
) -> (RemoteTokens, Arc<AuthenticationMetrics>) {
    let metrics = Arc::<AuthenticationMetrics>::default();
    let config = RemoteTokensConfig {
        issuers,
        webhook,
        webhook_ttl: Duration::from_secs(120),
        api_audiences: vec!["api".to_owned()],
    };
    let made = RemoteTokens::new(config, Clock::system(), Random::seeded(7), metrics.clone());
    (made.expect("usable"), metrics)
}

async fn verdict(remote: &RemoteTokens, token: &str) -> String {
    match judged(remote, token).await {
        Authentication::Known(known) => known.caller.name.clone(),
        Authentication::NoOpinion => "nobody".to_owned(),
        Authentication::Refused(why) => why.into_owned(),
    }
}

async fn judged(remote: &RemoteTokens, token: &str) -> Authentication {
    let audiences = ["api".to_owned()];
    let presented =
        Presented { token: Some(token.as_bytes()), audiences: &audiences, ..Presented::default() };
    remote.authenticate(&presented).wait().await
}

/// What is said of a token, once that is something else than `not_yet`.
async fn verdict_after(remote: &RemoteTokens, token: &str, not_yet: &str) -> String {
    let said = async {
        loop {
            let said = verdict(remote, token).await;
            if said != not_yet {
                return said;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(WAIT, said).await.expect("in time")
}

#[tokio::test]
async fn keys_are_fetched_once_for_all_who_wait_and_again_when_they_rotate() {
    let hook = Arc::new(Hook::start().await);
    let (first, second) = (Signer::new("first"), Signer::new("second"));
    let provider = Provider::at(&hook, "idp");
    provider.has_keys_of(&first);
    let (remote, metrics) = remote(provider.issuers(), None);
    let token =
        |signer: &Signer, name: String| signer.token("ES256", &provider.claims(&json!({ "sub": name })));
    // Until it is known where its keys are nobody is known.
    let refused = first.token("ES256", &provider.claims(&json!({ "aud": "other" })));
    let said = verdict_after(&remote, &refused, NOT_YET).await;
    assert_eq!(said, "oidc: verify token: oidc: expected audience \"kube\" got [\"other\"]");
    assert_eq!(provider.asked(), 1);
    let all: Vec<String> = (0..50).map(|at| token(&first, format!("u{at}"))).collect();
    let said = join_all(all.iter().map(|token| verdict(&remote, token))).await;
    assert!(said.iter().enumerate().all(|(at, said)| *said == format!("u{at}")), "{said:?}");
    assert_eq!(provider.asked(), 0, "they are known");
    // Other keys, and the old ones are gone.
    provider.has_keys_of(&second);
    let all: Vec<String> = (0..50).map(|at| token(&second, format!("v{at}"))).collect();
    let said = join_all(all.iter().map(|token| verdict_after(&remote, token, UNSIGNED))).await;
    assert!(said.iter().enumerate().all(|(at, said)| *said == format!("v{at}")), "{said:?}");
    assert_eq!(provider.asked(), 1, "one look for all of them");
    assert_eq!(verdict(&remote, &all[0]).await, "v0");
    let gone = token(&first, "again".to_owned());
    assert_eq!(verdict_after(&remote, &gone, "").await, UNSIGNED);
    let mut text = Text::default();
    metrics.write(&mut text);
    let text = text.finish();
    let hash = forebay_issuers::hash_of(&second.keys());
    assert!(text.contains(&format!("hash=\"{hash}\"")), "{text}");
    assert!(text.contains("authentication_token_cache_request_total{status=\"hit\"}"), "{text}");
}

#[tokio::test]
async fn tokens_of_nobody_make_a_provider_be_asked_no_more_often_than_a_limit_says() {
    let hook = Arc::new(Hook::start().await);
    let (own, other) = (Signer::new("own"), Signer::new("other"));
    let provider = Provider::at(&hook, "idp");
    provider.has_keys_of(&own);
    let (remote, _) = remote(provider.issuers(), None);
    let good = own.token("RS256", &provider.claims(&Value::Null));
    assert_eq!(verdict_after(&remote, &good, NOT_YET).await, "ann");
    let before = Clock::system().now();
    for at in 0..200 {
        let header = json!({ "alg": "ES256", "kid": format!("k{at}") });
        assert_eq!(
            verdict(&remote, &other.token_under(header, &provider.claims(&Value::Null))).await,
            UNSIGNED
        );
    }
    let seconds = (Clock::system().now() - before).as_secs() as usize;
    assert!(provider.asked() <= 2 + seconds, "once in a second");
    for (algorithm, refused) in [("none", "\"none\""), ("HS256", "\"HS256\""), ("", "\"\"")] {
        let said = verdict(&remote, &own.token(algorithm, &provider.claims(&Value::Null))).await;
        assert!(said.ends_with(&format!("got {refused}")), "{said}");
    }
    let elsewhere = provider.claims(&json!({ "iss": "https://elsewhere" }));
    assert_eq!(verdict(&remote, &own.token("RS256", &elsewhere)).await, "nobody");
    for text in ["", "x", "a.b.c", "abcdef.0123456789abcdef"] {
        assert_eq!(verdict(&remote, text).await, "nobody", "{text}");
    }
}

#[tokio::test]
async fn keys_that_are_too_many_or_none_are_not_taken_and_those_that_were_stay() {
    let hook = Arc::new(Hook::start().await);
    let (own, other) = (Signer::new("own"), Signer::new("other"));
    let provider = Provider::at(&hook, "idp");
    provider.has_keys_of(&own);
    let (remote, metrics) = remote(provider.issuers(), None);
    let good = own.token("RS256", &provider.claims(&Value::Null));
    assert_eq!(verdict_after(&remote, &good, NOT_YET).await, "ann");
    let fetching = "oidc: verify token: failed to verify signature: fetching keys";
    for (answer, said) in [
        (json!({ "flood": 10 << 20 }), "it is longer than 1048576 bytes"),
        (json!({ "raw": "<html>" }), "failed to decode keys"),
        (json!({ "raw": "no", "code": 503 }), "503 Service Unavailable: no"),
        (json!({ "cut": true }), ": EOF"),
    ] {
        provider.has(answer.clone());
        let unknown = other.token("ES256", &provider.claims(&Value::Null));
        let why = verdict_after(&remote, &unknown, UNSIGNED).await;
        assert!(why.starts_with(fetching) && why.contains(said), "{answer}: {why}");
        // Who was known is known.
        let another = own.token("RS256", &provider.claims(&json!({ "sub": "ben" })));
        assert_eq!(verdict(&remote, &another).await, "ben", "{answer}");
    }
    let mut text = Text::default();
    metrics.write(&mut text);
    assert!(text.finish().contains("result=\"failure\""));
}

#[tokio::test]
async fn a_provider_that_hangs_holds_up_nobody_whom_it_is_not_needed_for() {
    let hook = Arc::new(Hook::start().await);
    let (own, other) = (Signer::new("own"), Signer::new("other"));
    let provider = Provider::at(&hook, "idp");
    provider.has_keys_of(&own);
    let (remote, _) = remote(provider.issuers(), None);
    let good = own.token("RS256", &provider.claims(&Value::Null));
    assert_eq!(verdict_after(&remote, &good, NOT_YET).await, "ann");
    provider.has(json!({ "hang": true }));
    let unknown = other.token("ES256", &provider.claims(&Value::Null));
    // A second after the last look there is another, and it hangs.
    let waits = async { verdict_after(&remote, &unknown, UNSIGNED).await };
    let others = async {
        hook.was_asked(3).await;
        let another = own.token("RS256", &provider.claims(&json!({ "sub": "ben" })));
        assert_eq!(verdict(&remote, &another).await, "ben");
        tokio::time::pause();
    };
    let (said, ()) = tokio::join!(waits, others);
    assert!(said.contains("deadline exceeded"), "{said}");
}

#[tokio::test]
async fn issuers_are_replaced_once_the_new_ones_are_there() {
    let hook = Arc::new(Hook::start().await);
    let signer = Signer::new("own");
    let old = Provider::at(&hook, "old");
    old.has_keys_of(&signer);
    let (remote, _) = remote(old.issuers(), None);
    let of_old = signer.token("RS256", &old.claims(&Value::Null));
    assert_eq!(verdict_after(&remote, &of_old, NOT_YET).await, "ann");
    // One that does not say who it is is not there.
    hook.answers(".well-known/openid-configuration", json!({ "hang": true }));
    let new = Provider { hook: hook.clone(), url: format!("{}/new", hook.url()) };
    let issuers = remote.issuers();
    let refused = async {
        hook.was_asked(3).await;
        tokio::time::pause();
    };
    let (replaced, ()) = tokio::join!(issuers.replace(new.issuers()), refused);
    tokio::time::resume();
    let why = replaced.expect_err("it is not there");
    assert!(why.contains("/new\" is not healthy: Get \"https://"), "{why}");
    assert!(why.contains("deadline exceeded"), "{why}");
    assert_eq!(verdict(&remote, &of_old).await, "ann");
    let new = Provider::at(&hook, "new");
    assert_eq!(issuers.replace(new.issuers()).await, Ok(()));
    let of_new = signer.token("RS256", &new.claims(&json!({ "sub": "eve" })));
    assert_eq!(verdict(&remote, &of_new).await, "eve");
    assert_eq!(verdict(&remote, &of_old).await, "nobody", "though it was remembered");
}

fn webhook(hook: &Hook) -> TokenReviewer {
    let tree = json!({
        "clusters": [{ "name": "c", "cluster": {
            "server": format!("{}/hook/review", hook.url()), "certificate-authority-data": hook.authority,
        } }],
        "contexts": [{ "name": "x", "context": { "cluster": "c" } }],
        "current-context": "x",
    });
    let no_file = |_: &std::path::Path| Err("no file".to_owned());
    let remote = Remote::of_kubeconfig(&tree, &no_file, &Clock::system()).expect("usable");
    TokenReviewer { remote, version: TokenReviewVersion::V1 }
}

/// What it says of every token.
fn says(hook: &Hook, status: &Value) {
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status });
    hook.answers("review", json!({ "raw": review.to_string() }));
}

#[tokio::test]
async fn a_webhooks_word_counts_for_a_while_be_it_yes_or_no_and_what_it_could_not_say_does_not() {
    let hook = Hook::start().await;
    let (remote, _) = remote(Vec::new(), Some(webhook(&hook)));
    says(&hook, &json!({ "authenticated": true, "user": { "username": "ann" } }));
    let said = join_all((0..20).map(|_| verdict(&remote, "good"))).await;
    assert!(said.iter().all(|said| said == "ann"), "{said:?}");
    let asked = hook.asked();
    assert_eq!(asked.len(), 1, "once for all who wait");
    assert_eq!(asked[0].review["spec"], json!({ "token": "good", "audiences": ["api"] }));
    says(&hook, &json!({ "authenticated": false }));
    for _ in 0..2 {
        assert_eq!(verdict(&remote, "bad").await, "nobody");
        assert_eq!(verdict(&remote, "good").await, "ann");
    }
    assert_eq!(hook.asked().len(), 1, "a no is remembered too");
    says(&hook, &json!({ "authenticated": false, "error": "no disk" }));
    for _ in 0..2 {
        assert_eq!(verdict(&remote, "unlucky").await, "no disk");
    }
    assert_eq!(hook.asked().len(), 2, "an error is not");
    let status = json!({ "kind": "Status", "message": "come back later" });
    hook.answers("review", json!({ "raw": status.to_string(), "code": 503 }));
    assert_eq!(verdict(&remote, "later").await, "come back later");
    hook.answers("review", json!({ "flood": 10 << 20 }));
    let said = verdict(&remote, "flood").await;
    assert!(said.contains("the answer is longer than 262144 bytes"), "{said}");
    hook.answers("review", json!({ "raw": "{}" }));
    let said = verdict(&remote, "none").await;
    assert!(said.starts_with("unable to decode a TokenReview"), "{said}");
    assert_eq!(hook.asked().len(), 3);
}

#[tokio::test]
async fn a_webhook_that_cannot_now_is_asked_again_and_one_that_hangs_is_left() {
    let hook = Arc::new(Hook::start().await);
    let (remote, _) = remote(Vec::new(), Some(webhook(&hook)));
    let status = json!({ "kind": "Status", "message": "an internal error" });
    hook.answers("review", json!({ "raw": status.to_string(), "code": 500 }));
    assert_eq!(verdict(&remote, "t").await, "an internal error");
    assert_eq!(hook.asked().len(), 5, "as often as upstream asks");
    hook.answers("review", json!({ "hang": true }));
    let waits = verdict(&remote, "t");
    let time = async {
        hook.was_asked(6).await;
        tokio::time::pause();
    };
    let (said, ()) = tokio::join!(waits, time);
    assert!(said.contains("deadline exceeded"), "{said}");
}

#[tokio::test]
async fn a_provider_is_heard_before_a_webhook_and_both_are_told_of() {
    let hook = Arc::new(Hook::start().await);
    let signer = Signer::new("own");
    let provider = Provider::at(&hook, "idp");
    provider.has_keys_of(&signer);
    let (remote, _) = remote(provider.issuers(), Some(webhook(&hook)));
    says(&hook, &json!({ "authenticated": false, "error": "never seen" }));
    let good = signer.token("RS256", &provider.claims(&Value::Null));
    assert_eq!(verdict_after(&remote, &good, &format!("{NOT_YET}, never seen")).await, "ann");
    let late = signer.token("RS256", &provider.claims(&json!({ "exp": 1 })));
    let said = verdict(&remote, &late).await;
    assert!(said.contains("token is expired") && said.ends_with(", never seen"), "{said}");
    says(&hook, &json!({ "authenticated": true, "user": { "username": "hooked" } }));
    assert_eq!(verdict(&remote, &late).await, "hooked", "who is known to somebody is known");
}
