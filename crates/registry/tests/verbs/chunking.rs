//! Upstream's conformance test of pages whose state is given up meanwhile, step by step, on a store to which
//! nobody writes but the server itself: `test/e2e/apimachinery/chunking.go` of kubernetes v1.36.3.

use forebay_registry::Identity;
use forebay_rt::Duration;
use serde_json::Value;

use super::*;
use crate::lasting::Lasting;

const TEMPLATES: &str = "@v1/podtemplates/default";
const TEMPLATES_MAX: usize = 400;
const PAGE: usize = TEMPLATES_MAX / 10;
const POLL: Duration = Duration::from_secs(20);
/// Twice the interval at which kube-apiserver compacts etcd.
const WAIT: Duration = Duration::from_secs(600);
/// For how long a token is good at least.
const HISTORY: Duration = Duration::from_secs(300);

fn remaining(list: &Value) -> Option<usize> {
    list["metadata"]["remainingItemCount"].as_u64().map(|count| count as usize)
}

fn continued(list: &Value) -> Option<&str> {
    list["metadata"]["continue"].as_str().filter(|token| !token.is_empty())
}

#[tokio::test]
async fn a_list_goes_on_from_the_last_key_once_its_first_state_is_given_up_on_a_quiet_store() {
    let lasting = Lasting::new(Some(Identity::new("node-1", None))).await;
    let world = &lasting.world;
    for number in 0..TEMPLATES_MAX {
        let template = json!({
            "apiVersion": "v1", "kind": "PodTemplate", "metadata": { "name": format!("template-{number:04}") },
            "template": { "spec": { "containers": [{ "name": "test", "image": "test2" }] } },
        });
        world.create(TEMPLATES, template).await.expect("creates");
    }
    let list = async |token: &str| world.list(TEMPLATES, &format!("limit={PAGE}&continue={token}")).await;

    let first = list("").await.expect("lists");
    assert_eq!(remaining(&first), Some(TEMPLATES_MAX - PAGE));
    let token = continued(&first).expect("there is more");

    let began = lasting.clock.unix_ms();
    let waited = || Duration::from_millis(lasting.clock.unix_ms() - began);
    let status = loop {
        assert!(waited() < WAIT, "the token is still good");
        lasting.pass(POLL).await;
        match list(token).await {
            Ok(page) => assert_eq!(rv(&page), rv(&first), "as long as it is, it shows the first state"),
            Err(status) => break status,
        }
    };
    assert_eq!(status.reason, Reason::Expired);
    assert!(waited() >= HISTORY, "{:?}", waited());
    assert!(!status.continue_token.is_empty(), "{}", status.message);

    let second = list(&status.continue_token).await.expect("goes on");
    assert_ne!(rv(&second), rv(&first));
    let mut found = PAGE;
    let mut page = second.clone();
    loop {
        assert_eq!(rv(&page), rv(&second), "from here on one state again");
        assert!(names(&page).len() <= PAGE);
        for name in names(&page) {
            assert_eq!(name, format!("template-{found:04}"));
            found += 1;
        }
        assert_eq!(remaining(&page), continued(&page).map(|_| TEMPLATES_MAX - found));
        let Some(next) = continued(&page).map(str::to_owned) else { break };
        page = list(&next).await.expect("goes on");
    }
    assert_eq!(found, TEMPLATES_MAX);
}
