//! One resource of one server, as a recorded client uses it.
//!
//! In: calls on keys, watches. Out: answers and items as the judges take them. Never: asks again by itself.

use forebay_conformance::history::{Call, Completion, EventKind, Notification, Recorder, WatchEvent};
use forebay_conformance::pair::config_of;
use futures_util::io::{AsyncBufRead, AsyncBufReadExt as _};
use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// What is written and watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    ConfigMaps,
    /// Of a CustomResourceDefinition.
    Widgets,
    Events,
}

impl Resource {
    fn api(self) -> &'static str {
        match self {
            Resource::ConfigMaps | Resource::Events => "/api/v1",
            Resource::Widgets => "/apis/histories.example.com/v1",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Resource::ConfigMaps => "configmaps",
            Resource::Widgets => "widgets",
            Resource::Events => "events",
        }
    }

    pub fn path(self, namespace: &str) -> String {
        format!("{}/namespaces/{namespace}/{}", self.api(), self.plural())
    }

    /// Whether an update may name no revision, and creates nothing.
    pub fn updates_unconditionally(self) -> bool {
        self == Resource::ConfigMaps
    }

    fn object(self, namespace: &str, name: &str, value: &str, label: &str) -> Value {
        let metadata = json!({
            "name": name, "namespace": namespace, "labels": { "on": label }, "annotations": { "value": value },
        });
        match self {
            Resource::ConfigMaps => json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata }),
            Resource::Widgets => {
                json!({ "apiVersion": "histories.example.com/v1", "kind": "Widget", "metadata": metadata })
            }
            Resource::Events => json!({
                "apiVersion": "v1", "kind": "Event", "metadata": metadata, "reason": "Test", "type": "Normal",
                "involvedObject": { "kind": "Pod", "name": "p", "namespace": namespace },
            }),
        }
    }
}

/// The definition of [`Resource::Widgets`].
pub fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.histories.example.com" },
        "spec": {
            "group": "histories.example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    })
}

/// A client, and what it is a client of. Clones share connections.
#[derive(Clone)]
pub struct Api {
    pub client: Client,
    pub resource: Resource,
    pub namespace: String,
}

impl Api {
    /// With connections of its own.
    pub async fn new(kubeconfig: &std::path::Path, resource: Resource, namespace: &str) -> Api {
        let config = config_of(kubeconfig).await.expect("a configuration");
        let client = Client::try_from(config).expect("a client");
        Api { client, resource, namespace: namespace.to_owned() }
    }

    /// Code and body; `None` where no whole answer came.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let text = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("Content-Type", "application/json");
        let response = self.client.send(request.body(Body::from(text)).expect("a request")).await.ok()?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.ok()?;
        Some((code, serde_json::from_slice(&bytes).unwrap_or(Value::Null)))
    }

    /// Calls, and records what came of it. Whether an answer came.
    pub async fn call(&self, recorder: &Recorder, key: &str, call: Call, label: &str) -> Option<Completion> {
        let path = self.resource.path(&self.namespace);
        let of_key = format!("{path}/{key}");
        let object = |value: &str| self.resource.object(&self.namespace, key, value, label);
        let begun = recorder.begin();
        let answered = match &call {
            Call::Get => self.send(Method::GET, &of_key, None).await,
            Call::Create { value } => self.send(Method::POST, &path, Some(&object(value))).await,
            Call::Update { value, expect } | Call::Put { value, expect } => {
                let mut object = object(value);
                if let Some(revision) = expect {
                    object["metadata"]["resourceVersion"] = revision.to_string().into();
                }
                self.send(Method::PUT, &of_key, Some(&object)).await
            }
            Call::Delete { expect } => {
                let revision = expect.map(|revision| revision.to_string());
                let options = json!({ "preconditions": { "resourceVersion": revision } });
                self.send(Method::DELETE, &of_key, expect.is_some().then_some(&options)).await
            }
        };
        let answer = match answered {
            None => Completion::Unknown,
            Some((code, body)) => answer(&call, code, &body)?,
        };
        recorder.end(key, begun, call, answer.clone());
        (answer != Completion::Unknown).then_some(answer)
    }

    /// The resourceVersion of the collection.
    pub async fn revision(&self) -> u64 {
        let path = self.resource.path(&self.namespace);
        let (code, list) = self.send(Method::GET, &path, None).await.expect("an answer");
        assert_eq!(code, 200, "{list}");
        revision_of(&list)
    }

    /// Opens a watch; `None` where the server is not there or asks to come again.
    pub async fn watch(&self, query: &str) -> Option<Watch<impl AsyncBufRead + Unpin + Send + use<>>> {
        let path = format!("{}?watch=1&{query}", self.resource.path(&self.namespace));
        let request = Request::get(path).body(Vec::new()).expect("a request");
        match self.client.request_stream(request).await {
            Ok(lines) => Some(Watch { lines: Box::pin(lines), line: Vec::new() }),
            Err(kube::Error::Api(status)) if status.code != 429 && status.code < 500 => panic!("{status:?}"),
            Err(_) => None,
        }
    }
}

/// What an answer means; `None` is that nothing was done.
fn answer(call: &Call, code: u16, body: &Value) -> Option<Completion> {
    let reason = body["reason"].as_str().unwrap_or("");
    Some(match (call, code) {
        (Call::Get, 200) => Completion::Found {
            value: text(body, "/metadata/annotations/value"),
            revision: revision_of(body),
        },
        (Call::Create { .. } | Call::Update { .. } | Call::Put { .. }, 200 | 201) => {
            Completion::Written { revision: revision_of(body) }
        }
        (Call::Delete { .. }, 200) => Completion::Deleted,
        (_, 404) => Completion::NotFound,
        (Call::Create { .. }, 409) if reason == "AlreadyExists" => Completion::AlreadyExists,
        (Call::Update { .. } | Call::Put { .. } | Call::Delete { .. }, 409) if reason == "Conflict" => {
            Completion::Conflict
        }
        // Refused before it was begun.
        (_, 429) => return None,
        (_, 500..) => Completion::Unknown,
        _ => panic!("{call:?}: {code} {body}"),
    })
}

/// An open watch.
pub struct Watch<R> {
    lines: std::pin::Pin<Box<R>>,
    line: Vec<u8>,
}

impl<R: AsyncBufRead> Watch<R> {
    /// The next item; `None` when the stream has ended or broke off.
    pub async fn next(&mut self) -> Option<Notification> {
        // What came of a line stays where it is if nobody waits any longer.
        let read = self.lines.as_mut().read_until(b'\n', &mut self.line).await;
        if read.is_err() || !self.line.ends_with(b"\n") {
            return None;
        }
        let frame: Value = serde_json::from_slice(&self.line).expect("a frame is JSON");
        self.line.clear();
        let object = &frame["object"];
        assert_ne!(frame["type"], "ERROR", "{frame}");
        let revision = revision_of(object);
        let kind = match frame["type"].as_str() {
            Some("ADDED") => EventKind::Added,
            Some("MODIFIED") => EventKind::Modified,
            Some("DELETED") => EventKind::Deleted,
            Some("BOOKMARK") if !object["metadata"]["annotations"]["k8s.io/initial-events-end"].is_null() => {
                return Some(Notification::InitialEnd(revision));
            }
            Some("BOOKMARK") => return Some(Notification::Bookmark(revision)),
            _ => panic!("told {frame}"),
        };
        let (key, value) = (text(object, "/metadata/name"), text(object, "/metadata/annotations/value"));
        Some(Notification::Event(WatchEvent {
            kind,
            revision,
            key,
            value,
            label: text(object, "/metadata/labels/on"),
        }))
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("").to_owned()
}

fn revision_of(object: &Value) -> u64 {
    let revision = text(object, "/metadata/resourceVersion");
    revision.parse().unwrap_or_else(|why| panic!("resourceVersion {revision:?}: {why}"))
}
