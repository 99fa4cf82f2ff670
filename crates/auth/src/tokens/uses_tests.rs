//! How tokens are used, as an audit log and metrics have it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Mutex;

use forebay_api::{Presented, TokenUse, TokenUses};
use forebay_apimachinery::Status;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

/// A service account with a Secret that a controller made, and that Secret.
struct Held {
    labels: Value,
    used: Mutex<Vec<UsedSecret>>,
}

impl Held {
    fn with(labels: Value) -> Held {
        Held { labels, used: Mutex::default() }
    }
}

impl Grounds for Held {
    async fn find(&self, resource: &str, _: &str, name: &str) -> Result<Found, Status> {
        let object = match resource {
            "serviceaccounts" => json!({"metadata": {"uid": "u"}, "secrets": [{"name": "made"}]}),
            _ => {
                json!({"metadata": {"name": name, "uid": "s", "labels": self.labels}, "data": {"token": STANDARD.encode("text")}})
            }
        };
        Ok(serde_json::from_value(object).expect("an object"))
    }

    fn used(&self, secret: UsedSecret) {
        self.used.lock().expect("no panic").push(secret);
    }
}

/// What is heard of a token that says `claims` at second 1000, and whether it stands.
async fn heard(claims: Value, labels: Value) -> (bool, Vec<TokenUse>) {
    let uses = TokenUses::default();
    let presented = Presented { token: Some(b"text"), uses: Some(&uses), ..Presented::default() };
    let stands = stands(&Held::with(labels), claims, 1_000, &presented, true).await;
    (stands, uses.heard())
}

async fn stands(held: &Held, claims: Value, at: i64, presented: &Presented<'_>, lookup: bool) -> bool {
    let claims: Claims = serde_json::from_value(claims).expect("claims");
    let token = Recognized { is_legacy: !claims.legacy_secret.is_empty(), claims, audiences: Vec::new() };
    let now = Timestamp::from_second(at).expect("a time");
    still_stands(held, now, &token, presented, lookup).await.is_ok()
}

fn bound(warn_after: Option<f64>) -> Value {
    let of = json!({
        "namespace": "n", "serviceaccount": {"name": "robot", "uid": "u"}, "warnafter": warn_after,
    });
    json!({"aud": "api", "sub": "system:serviceaccount:n:robot", "kubernetes.io": of})
}

fn kept(secret: &str) -> Value {
    json!({
        "sub": "system:serviceaccount:n:robot",
        "kubernetes.io/serviceaccount/namespace": "n",
        "kubernetes.io/serviceaccount/service-account.name": "robot",
        "kubernetes.io/serviceaccount/service-account.uid": "u",
        "kubernetes.io/serviceaccount/secret.name": secret,
    })
}

#[tokio::test]
async fn a_token_past_the_time_at_which_it_was_to_be_replaced_is_told_of() {
    let subject = "system:serviceaccount:n:robot".to_owned();
    for (warn_after, uses) in [
        (None, vec![]),
        (Some(0.0), vec![]),
        (Some(1_000.0), vec![TokenUse::Fresh]),
        (Some(990.0), vec![TokenUse::Stale { subject: subject.clone(), seconds: 10 }]),
    ] {
        assert_eq!(heard(bound(warn_after), json!({})).await, (true, uses), "{warn_after:?}");
    }
}

#[tokio::test]
async fn a_token_in_a_secret_is_told_of_by_who_made_that() {
    let legacy = TokenUse::Legacy { subject: "system:serviceaccount:n:robot".to_owned() };
    let (made, own) =
        (TokenUse::Automatic { secret: "made".into() }, TokenUse::Manual { secret: "own".into() });
    assert_eq!(heard(kept("made"), json!({})).await, (true, vec![legacy.clone(), made]));
    assert_eq!(heard(kept("own"), json!({})).await, (true, vec![legacy.clone(), own]));
    let marked = json!({"kubernetes.io/legacy-token-invalid-since": "2026-01-01"});
    let no_more = TokenUse::Invalidated { secret: "own".into(), namespace: "n".into() };
    assert_eq!(heard(kept("own"), marked).await, (false, vec![legacy, no_more]));
}

#[tokio::test]
async fn a_secret_is_to_say_once_a_day_that_its_token_was_used() {
    const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
    const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
    let noon = Timestamp::from_second(1_767_441_600).expect("a time");
    assert_eq!(noon.to_string(), "2026-01-03T12:00:00Z");
    for (labels, day) in [
        (json!({}), Some("2026-01-03")),
        (json!({ LAST_USED: "2026-01-02" }), Some("2026-01-03")),
        (json!({ LAST_USED: "soon" }), Some("2026-01-03")),
        (json!({ LAST_USED: "2026-01-03" }), None),
        // Another server's clock is ahead.
        (json!({ LAST_USED: "2026-01-04" }), None),
        (json!({ LAST_USED: "2026-01-05" }), Some("2026-01-03")),
        (json!({ INVALID_SINCE: "2026-01-01" }), Some("2026-01-03")),
        (json!({ INVALID_SINCE: "2026-01-01", LAST_USED: "2026-01-03" }), None),
    ] {
        let held = Held::with(labels.clone());
        // Whether anybody hears of the use in other ways makes no difference.
        let presented = Presented { token: Some(b"text"), ..Presented::default() };
        stands(&held, kept("own"), noon.as_second(), &presented, true).await;
        let day = day.map(|day: &str| UsedSecret {
            namespace: "n".into(),
            name: "own".into(),
            uid: "s".into(),
            day: day.into(),
        });
        assert_eq!(held.used.into_inner().expect("no panic").into_iter().next(), day, "{labels}");
    }
}

#[tokio::test]
async fn no_secret_is_to_say_so_of_a_token_that_it_does_not_keep_or_that_is_not_looked_up() {
    let presented = |token: &'static [u8]| Presented { token: Some(token), ..Presented::default() };
    for (claims, token, lookup) in [
        (kept("own"), &b"another"[..], true),
        (kept("own"), &b"text"[..], false),
        (bound(None), &b"text"[..], true),
    ] {
        let held = Held::with(json!({}));
        stands(&held, claims, 1_000, &presented(token), lookup).await;
        assert!(held.used.into_inner().expect("no panic").is_empty());
    }
}
