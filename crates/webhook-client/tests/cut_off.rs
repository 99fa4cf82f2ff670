//! Webhooks over TLS that go without a word: what is said of them is what Go's client says.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Lease;
use forebay_hook::Hook;
use forebay_rt::{Clock, Duration};
use forebay_webhook_client::{CredentialsOfPlugins, Remote, WebhookClient};
use forebay_webhooks::{Calling, Calls as _, ClientConfig, NoAnswer};
use serde_json::{Value, json};

/// Anything that takes longer than this does not come.
const WAIT: Duration = Duration::from_secs(120);

/// Ways of going, none of which says `close_notify`, and what is said of each.
fn ways() -> [(Value, &'static str); 2] {
    [(json!({ "cut": true }), "EOF"), (json!({ "allowed": true, "length": 10_000 }), "unexpected EOF")]
}

#[tokio::test]
async fn a_webhook_that_goes_without_a_word_is_told_of_as_go_does() {
    let hook = Hook::start().await;
    let client = WebhookClient::new(Clock::system(), CredentialsOfPlugins::default());
    for (answer, why) in ways() {
        hook.answers("answer", answer);
        let read = json!({ "url": format!("{}/who/answer", hook.url()), "caBundle": hook.authority });
        let read = ClientConfig::read(&read);
        let calling = Calling {
            url: read.url(Duration::from_secs(10)),
            client: read,
            sort: None,
            address: None,
            has_others: false,
            parts: vec![Bytes::from_static(b"{}")],
            lease: Lease::of_server(),
            holds: 0,
            begun: Arc::default(),
        };
        let answered = tokio::time::timeout(WAIT, client.call(calling)).await.expect("in time");
        let told = answered.expect_err("no answer");
        let before = "unexpected error when reading response body. Please retry. Original error: ";
        // Of an answer that began it is told apart.
        assert_eq!(told.why().strip_prefix(before).unwrap_or(told.why()), why);
        assert_eq!(matches!(told, NoAnswer::Unread(_)), why == "unexpected EOF");
    }
}

#[tokio::test]
async fn a_webhook_of_a_kubeconfig_that_goes_without_a_word_is_told_of_as_go_does() {
    let hook = Hook::start().await;
    let url = format!("{}/who/answer", hook.url());
    let kubeconfig = json!({
        "current-context": "c", "contexts": [{ "name": "c", "context": { "cluster": "k" } }],
        "clusters": [{ "name": "k", "cluster": {
            "server": url, "certificate-authority-data": hook.authority } }],
    });
    let none = |_: &std::path::Path| Err("no file".to_owned());
    let remote = Remote::of_kubeconfig(&kubeconfig, &none, &Clock::system()).expect("a remote");
    for (answer, why) in ways() {
        hook.answers("answer", answer);
        let answered = tokio::time::timeout(WAIT, remote.post(Bytes::from_static(b"{}"))).await;
        let fault = answered.expect("in time").expect_err("no answer");
        assert_eq!(fault.why, format!("Post \"{url}\": {why}"));
    }
}
