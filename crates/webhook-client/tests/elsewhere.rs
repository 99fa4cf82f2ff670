//! Webhooks that ask to be asked again, or somewhere else.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Lease;
use forebay_hook::Hook;
use forebay_rt::{Clock, Duration};
use forebay_webhook_client::limits::{AGAIN_MAX, SENT_ON_MAX};
use forebay_webhook_client::{CredentialsOfPlugins, WebhookClient};
use forebay_webhooks::{Answered, Calling, Calls as _, ClientConfig, NoAnswer};
use serde_json::{Value, json};

/// Anything that takes longer than this does not come.
const WAIT: Duration = Duration::from_secs(120);

const REVIEW: &str = r#"{"request":{"uid":"u"}}"#;

/// What is answered where the first answer is this one, and how often the webhook was asked.
async fn asked(first: Value) -> (Result<Answered, NoAnswer>, usize) {
    let hook = Hook::start().await;
    hook.answers("first", first);
    hook.answers("allow", json!({ "allowed": true }));
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    let read = json!({ "url": format!("{}/who/first", hook.url()), "caBundle": hook.authority });
    let read = ClientConfig::read(&read);
    let calling = Calling {
        url: read.url(Duration::from_secs(10)),
        client: read,
        sort: None,
        address: None,
        has_others: false,
        parts: vec![Bytes::from_static(REVIEW.as_bytes())],
        lease: Lease::of_server(),
        holds: 0,
        begun: Arc::default(),
    };
    let answered = tokio::time::timeout(WAIT, client.call(calling)).await.expect("in time");
    (answered, hook.asked().len())
}

fn is_allowed(answered: &Answered) -> bool {
    let review: Value = serde_json::from_slice(&answered.body).expect("JSON");
    answered.code == 200 && review["response"]["allowed"] == true
}

#[tokio::test]
async fn a_webhook_that_says_when_to_come_back_is_asked_again_and_others_are_not() {
    let later = |number: u64, after: &str| json!({ "code": number, "raw": "later", "head": [format!("Retry-After: {after}\r\n")], "then": "allow" });
    for number in [429, 500, 503] {
        let (answered, times) = asked(later(number, "0")).await;
        assert!(is_allowed(&answered.expect("an answer")) && times == 2, "{number}: {times}");
    }
    for (number, after) in [(400, "0"), (503, "Wed, 21 Oct 2015 07:28:00 GMT")] {
        let (answered, times) = asked(later(number, after)).await;
        assert_eq!((u64::from(answered.expect("an answer").code), times), (number, 1));
    }
    let always = json!({ "code": 503, "raw": "never", "head": ["Retry-After: 0\r\n"] });
    let (answered, times) = asked(always).await;
    let answered = answered.expect("an answer");
    assert_eq!((answered.code, &*answered.body, times), (503, &b"never"[..], AGAIN_MAX + 1));
}

#[tokio::test]
async fn a_webhook_that_is_elsewhere_on_its_host_is_asked_there_and_no_other_host_is() {
    let sent_on = |number: u64, to: &str| json!({ "code": number, "location": to, "raw": "elsewhere" });
    for number in [307, 308] {
        let (answered, times) = asked(sent_on(number, "/who/allow")).await;
        assert!(is_allowed(&answered.expect("an answer")) && times == 2, "{number}: {times}");
    }
    // Whoever is sent on so asks without a body, and gets an answer to nothing.
    let (answered, times) = asked(sent_on(302, "allow")).await;
    let review: Value = serde_json::from_slice(&answered.expect("an answer").body).expect("JSON");
    assert!(review["response"]["uid"].is_null() && times == 2);
    for to in ["http://127.0.0.1:1/", "https://127.0.0.1:1/", "https://localhost/", ""] {
        let (answered, times) = asked(sent_on(307, to)).await;
        assert_eq!((answered.expect("an answer").code, times), (307, 1), "{to}");
    }
    let (answered, times) = asked(sent_on(307, "/who/first")).await;
    let why = format!("Post \"/who/first\": stopped after {SENT_ON_MAX} redirects");
    assert_eq!((answered.expect_err("a loop"), times), (NoAnswer::Unread(why), SENT_ON_MAX));
}
