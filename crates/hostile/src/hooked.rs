//! A webhook that a row has its writes stand behind.
//!
//! In: what it answers. Out: a configuration in force for the ConfigMaps of one namespace, and for nobody
//! else's. Never: a webhook that is asked about the bystander.

use forebay_contenders::Error;
use forebay_hook::Hook;
use serde_json::{Value, json};

use super::prelude::{Duration, Prepared, Request, Stage, Who, namespace_of};
use super::request::JSON;
use super::said::Said;

/// What its answers are called.
pub const ANSWER: &str = "answer";
const READY: &str = "ready";

/// How a webhook is configured.
#[derive(Clone, Copy, Debug)]
pub struct Hooked {
    pub namespace: &'static str,
    /// `mutating` or `validating`.
    pub sort: &'static str,
    pub timeout_seconds: u32,
    pub failure_policy: &'static str,
}

impl Hooked {
    /// One that changes objects, and has to be asked.
    pub const fn new(namespace: &'static str) -> Hooked {
        Hooked { namespace, sort: "mutating", timeout_seconds: 5, failure_policy: "Fail" }
    }

    /// Starts the webhook, which answers so, and waits until the server asks it.
    pub async fn start(self, stage: &Stage, answer: Value) -> Result<Hook, Error> {
        let hook = Hook::start().await;
        hook.answers(ANSWER, answer);
        hook.answers(READY, json!({ "allowed": false, "status": { "message": READY } }));
        self.at(stage, &hook.url(), &hook.authority).await?;
        Ok(hook)
    }

    /// What a row is prepared by that needs no more of the webhook.
    pub fn prepare(self, stage: Stage, answer: Value) -> Prepared {
        Box::pin(async move { self.start(&stage, answer).await.map(drop) })
    }

    /// The same where nobody needs to listen.
    ///
    /// - `url`: where it is asked, `https://host:port`.
    async fn at(self, stage: &Stage, url: &str, authority: &str) -> Result<(), Error> {
        let Hooked { namespace, sort, timeout_seconds, failure_policy } = self;
        let path = namespace_of(stage, namespace).await?;
        let hook = |name: &str, labels: Value| {
            json!({
                "name": format!("{name}.hostile.dev"), "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "timeoutSeconds": timeout_seconds, "failurePolicy": failure_policy,
                "clientConfig": { "url": format!("{url}/row/{name}"), "caBundle": authority },
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": namespace } },
                "objectSelector": labels,
                "rules": [{ "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                    "resources": ["configmaps"] }],
            })
        };
        let is_ready =
            |operator: &str| json!({ "matchExpressions": [{ "key": READY, "operator": operator }] });
        let kind = if sort == "mutating" { "Mutating" } else { "Validating" };
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": format!("{kind}WebhookConfiguration"),
            "metadata": { "name": namespace },
            "webhooks": [hook(ANSWER, is_ready("DoesNotExist")), hook(READY, is_ready("Exists"))],
        });
        let all = format!("/apis/admissionregistration.k8s.io/v1/{sort}webhookconfigurations");
        stage.make(Request::post(all, JSON, configuration.to_string())).await?;
        let asking = json!({ "metadata": { "name": READY, "labels": { READY: "" } } }).to_string();
        let mut wire = stage.of(Who::Admin).connect().await?;
        for _ in 0..500 {
            let heard = wire.ask(&Request::post(format!("{path}?dryRun=All"), JSON, asking.clone())).await;
            match heard.said {
                // Whether it refuses or is not there: it was asked.
                Said::Status(400..) => return Ok(()),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
        Err(Error::Answer { what: format!("{namespace} after 10 s"), answer: "no webhook is asked".into() })
    }

    /// Nobody listens there.
    pub async fn dead(self, stage: &Stage) -> Result<(), Error> {
        // It is gone with the end of this function.
        let port = {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
            let address = listener.and_then(|listener| listener.local_addr());
            address.map_err(|why| Error::Connection(why.to_string()))?.port()
        };
        let authority = Hook::start().await.authority;
        self.at(stage, &format!("https://127.0.0.1:{port}"), &authority).await
    }
}
