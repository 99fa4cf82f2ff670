//! A webhook of a configuration, compiled.
//!
//! In: a MutatingWebhookConfiguration or ValidatingWebhookConfiguration as it is stored. Out: its webhooks in
//! their order. Never: a call.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_apimachinery::json::to_go_text;
use forebay_policy::{Predicates, Reinvocation};
use serde_json::{Map, Value, json};

use crate::limits::TIMEOUT_SECONDS;

/// See the module's doc.
pub struct Webhook {
    pub configuration: Arc<str>,
    pub name: Arc<str>,
    /// One of a configuration, though two have one name.
    pub id: Arc<str>,
    pub predicates: Predicates,
    pub side_effects: SideEffects,
    pub timeout_seconds: u32,
    /// The first of those it reads that is known.
    pub review: Option<ReviewVersion>,
    pub reinvocation: Reinvocation,
    pub client: ClientConfig,
}

/// What a webhook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WebhookSort {
    Mutating,
    Validating,
}

/// Whether a call changes more than what it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffects {
    None,
    Some,
}

/// Which AdmissionReview, or ConversionReview, a webhook reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    V1,
    V1beta1,
}

/// Where a webhook is, and who vouches for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientConfig {
    pub destination: Destination,
    /// PEM; empty for the authorities that the system knows.
    pub ca_bundle: Arc<[u8]>,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Destination {
    Url {
        /// `https://host:port`, without the port if the URL has none.
        base: Arc<str>,
        path: Arc<str>,
    },
    Service {
        namespace: Arc<str>,
        name: Arc<str>,
        port: u16,
        path: Arc<str>,
    },
    /// It says neither.
    Nowhere,
}

impl Webhook {
    /// What an audit log says of it where it was asked to change an object.
    pub fn noted_mutation(&self, mutated: bool) -> String {
        let (configuration, name) = (json!(&*self.configuration), json!(&*self.name));
        format!(r#"{{"configuration":{configuration},"webhook":{name},"mutated":{mutated}}}"#)
    }

    /// What it says of its patch.
    pub fn noted_patch(&self, operations: &[Value]) -> String {
        let (configuration, name) = (json!(&*self.configuration), json!(&*self.name));
        let patch = to_go_text(&Value::Array(operations.to_vec()));
        format!(
            r#"{{"configuration":{configuration},"webhook":{name},"patch":{patch},"patchType":"JSONPatch"}}"#
        )
    }

    /// The webhooks of `configuration`, in their order.
    pub fn read_all(configuration: &Value) -> Vec<Arc<Webhook>> {
        let of = configuration["metadata"]["name"].as_str().unwrap_or_default();
        let of: Arc<str> = of.into();
        // By name: how many there were before.
        let mut before: HashMap<&str, usize> = HashMap::new();
        let all = configuration["webhooks"].as_array().into_iter().flatten().filter_map(Value::as_object);
        let read = all.map(|webhook| {
            let count = before.entry(text(webhook, "name")).or_default();
            let id = format!("{of}/{}/{count}", text(webhook, "name"));
            *count += 1;
            Arc::new(Webhook::read(&of, id.into(), webhook))
        });
        read.collect()
    }

    fn read(configuration: &Arc<str>, id: Arc<str>, webhook: &Map<String, Value>) -> Webhook {
        let versions = webhook.get("admissionReviewVersions").and_then(Value::as_array);
        let known = |version: &Value| match version.as_str()? {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        };
        let timeout = webhook.get("timeoutSeconds").and_then(Value::as_u64);
        Webhook {
            configuration: configuration.clone(),
            name: text(webhook, "name").into(),
            id,
            predicates: Predicates::of_webhook(webhook),
            side_effects: match text(webhook, "sideEffects") {
                "None" | "NoneOnDryRun" => SideEffects::None,
                _ => SideEffects::Some,
            },
            timeout_seconds: timeout
                .and_then(|seconds| u32::try_from(seconds).ok())
                .unwrap_or(TIMEOUT_SECONDS),
            review: versions.into_iter().flatten().find_map(known),
            reinvocation: Reinvocation::read(webhook),
            client: ClientConfig::read(webhook.get("clientConfig").unwrap_or(&Value::Null)),
        }
    }
}

impl ClientConfig {
    /// - `client`: the `clientConfig` of a webhook.
    pub fn read(client: &Value) -> ClientConfig {
        let ca_bundle = client["caBundle"].as_str().and_then(|text| STANDARD.decode(text).ok());
        ClientConfig {
            destination: Destination::read(client),
            ca_bundle: ca_bundle.unwrap_or_default().into(),
        }
    }

    /// The URL that is asked, which for a service names it, and not where it is found.
    ///
    /// - `left`: how long is waited for an answer, which it is told in seconds, rounded up. It is not told
    ///   that there is no time.
    pub fn url(&self, left: Duration) -> String {
        let target = self.target();
        if target.is_empty() || left.is_zero() {
            return target;
        }
        // Go writes whole minutes so.
        let timeout = match left.as_secs() + u64::from(left.subsec_nanos() > 0) {
            seconds @ 60.. => format!("{}m{}s", seconds / 60, seconds % 60),
            seconds => format!("{seconds}s"),
        };
        format!("{target}?timeout={timeout}")
    }

    /// The same without a timeout, which only webhooks of admission are told.
    pub fn target(&self) -> String {
        match &self.destination {
            Destination::Url { base, path } => format!("{base}{path}"),
            Destination::Service { namespace, name, port, path } => {
                format!("https://{name}.{namespace}.svc:{port}{path}")
            }
            Destination::Nowhere => String::new(),
        }
    }
}

impl Destination {
    fn read(client: &Value) -> Destination {
        if let Some(service) = client["service"].as_object() {
            let port = service.get("port").and_then(Value::as_u64);
            return Destination::Service {
                namespace: text(service, "namespace").into(),
                name: text(service, "name").into(),
                port: port.and_then(|port| u16::try_from(port).ok()).unwrap_or(443),
                path: joined(text(service, "path")).into(),
            };
        }
        match client["url"].as_str().and_then(|url| Some((url, url.find("://")? + "://".len()))) {
            Some((url, host)) => {
                let (base, path) = match url[host..].find('/') {
                    Some(at) => url.split_at(host + at),
                    None => (url, ""),
                };
                Destination::Url { base: base.into(), path: joined(path).into() }
            }
            None => Destination::Nowhere,
        }
    }
}

/// A path as Go joins it: without empty segments and dots, and with no slash behind.
fn joined(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

fn text<'v>(of: &'v Map<String, Value>, name: &str) -> &'v str {
    of.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn url(client: Value) -> String {
        ClientConfig::read(&client).url(Duration::from_secs(10))
    }

    #[test]
    fn a_webhook_is_told_whole_seconds_rounded_up() {
        let url = |left| ClientConfig::read(&json!({ "url": "https://h/w" })).url(left);
        assert_eq!(url(Duration::from_millis(2_001)), "https://h/w?timeout=3s");
        assert_eq!(url(Duration::from_millis(3_000)), "https://h/w?timeout=3s");
        assert_eq!(url(Duration::from_millis(61_500)), "https://h/w?timeout=1m2s");
        assert_eq!(url(Duration::ZERO), "https://h/w");
    }

    #[test]
    fn a_webhook_is_asked_where_its_url_or_its_service_says() {
        assert_eq!(url(json!({ "url": "https://h:1/a//b/" })), "https://h:1/a/b?timeout=10s");
        assert_eq!(url(json!({ "url": "https://h" })), "https://h/?timeout=10s");
        let service = json!({ "service": { "namespace": "n", "name": "s", "path": "/p" } });
        assert_eq!(url(service), "https://s.n.svc:443/p?timeout=10s");
        assert_eq!(url(json!({})), "");
    }

    #[test]
    fn webhooks_of_one_name_are_told_apart() {
        let hooks = json!([{ "name": "a" }, { "name": "b" }, { "name": "a" }]);
        let all = Webhook::read_all(&json!({ "metadata": { "name": "c" }, "webhooks": hooks }));
        let ids: Vec<&str> = all.iter().map(|one| &*one.id).collect();
        assert_eq!(ids, ["c/a/0", "c/b/0", "c/a/1"]);
    }

    #[test]
    fn the_first_review_that_is_known_is_sent() {
        let hooks = json!([{ "name": "a", "admissionReviewVersions": ["v2", "v1beta1", "v1"] }, {}]);
        let all = Webhook::read_all(&json!({ "metadata": { "name": "c" }, "webhooks": hooks }));
        assert_eq!(all[0].review, Some(ReviewVersion::V1beta1));
        assert_eq!((all[1].review, all[1].timeout_seconds), (None, TIMEOUT_SECONDS));
    }
}
