//! How tokens are used, as an audit log and metrics have it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_api::{Presented, TokenUse, TokenUses};
use forebay_apimachinery::Status;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

/// A service account with a Secret that a controller made, and that Secret.
struct Held(Value);

impl Grounds for Held {
    async fn find(&self, resource: &str, _: &str, name: &str) -> Result<Found, Status> {
        let object = match resource {
            "serviceaccounts" => json!({"metadata": {"uid": "u"}, "secrets": [{"name": "made"}]}),
            _ => {
                json!({"metadata": {"name": name, "labels": self.0}, "data": {"token": STANDARD.encode("text")}})
            }
        };
        Ok(serde_json::from_value(object).expect("an object"))
    }
}

/// What is heard of a token that says `claims` at second 1000, and whether it stands.
async fn heard(claims: Value, labels: Value) -> (bool, Vec<TokenUse>) {
    let uses = TokenUses::default();
    let presented = Presented { token: Some(b"text"), uses: Some(&uses), ..Presented::default() };
    let claims: Claims = serde_json::from_value(claims).expect("claims");
    let token = Recognized { is_legacy: !claims.legacy_secret.is_empty(), claims, audiences: Vec::new() };
    let now = Timestamp::from_second(1_000).expect("a time");
    let stands = still_stands(&Held(labels), now, &token, &presented, true).await.is_ok();
    (stands, uses.heard())
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
