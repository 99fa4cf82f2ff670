//! A script of requests: of several users, of all verbs, good and bad.
//!
//! In: a seed and a number. Out: the same requests each time. Never: one that waits for a controller, or
//! whose answer depends on when it comes.

use forebay_rt::Random;
use http::Method;
use serde_json::{Value, json};

/// One request.
#[derive(Clone, Debug)]
pub struct AuditStep {
    /// As whom: a token's user, or nobody who is known.
    pub token: &'static str,
    pub method: Method,
    /// With its query.
    pub path: String,
    /// Beside what every request has.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// Who asks, each by a token of its name; the last is none.
pub const USERS: [&str; 4] = ["alice", "bob", "carol", "wrong"];

const JSON: &str = "application/json";
const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 4] = ["one", "two", "three", "four"];

/// What has to be there: namespaces, as an administrator makes them.
pub fn prepared() -> Vec<(&'static str, Value)> {
    let namespace = |name: &str, labels: Value| {
        ("/api/v1/namespaces", json!({ "metadata": { "name": name, "labels": labels } }))
    };
    let definition = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "type": "object", "properties": {
                        "size": { "type": "integer", "default": 3, "maximum": 9 }, "color": { "type": "string" },
                    } },
                } } },
            }],
        },
    });
    vec![
        namespace("a", json!({})),
        namespace("b", json!({ "pod-security.kubernetes.io/audit": "restricted" })),
        namespace("c", json!({ "pod-security.kubernetes.io/enforce": "baseline" })),
        ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition),
    ]
}

/// See the module's doc.
pub fn draw(seed: u64, count: usize) -> Vec<AuditStep> {
    let draw = Draw(Random::seeded(seed));
    (0..count).map(|_| draw.step()).collect()
}

struct Draw(Random);

impl AuditStep {
    /// The same, asked for in JSON.
    fn with_json(mut self) -> AuditStep {
        JSON.clone_into(&mut self.headers[0].1);
        self
    }
}

impl Draw {
    fn below(&self, bound: usize) -> usize {
        self.0.below(bound as u64) as usize
    }

    fn of<T: Copy>(&self, all: &[T]) -> T {
        all[self.below(all.len())]
    }

    fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn step(&self) -> AuditStep {
        let mut step = match self.below(20) {
            0..3 => self.create(),
            3..6 => self.read(),
            6..8 => self.list(),
            8..10 => self.patch(),
            10..12 => self.replace(),
            12..14 => self.delete(),
            // A Scale is shown as it is here, whatever is asked for.
            14 => self.subresource().with_json(),
            15 => self.review(),
            16..18 => self.path(),
            18 => self.custom(),
            _ => self.odd(),
        };
        step.token = if self.chance(3) { "wrong" } else { self.of(&USERS[..3]) };
        if self.chance(5) {
            let other = self.of(&["dave", "system:serviceaccount:a:robot"]);
            step.headers.push(("Impersonate-User", other.to_owned()));
            if self.chance(50) {
                step.headers.push(("Impersonate-Group", "dev".to_owned()));
                step.headers.push(("Impersonate-Extra-Scope", "x".to_owned()));
            }
        }
        if self.chance(10) {
            step.headers.push(("X-Forwarded-For", "203.0.113.7, 10.1.1.1, nonsense".to_owned()));
        }
        if self.chance(5) {
            step.headers.push(("X-Real-Ip", "198.51.100.3".to_owned()));
        }
        let agent = self.of(&["kubectl/v1.36.0 (linux/amd64)", "Mozilla/5.0 <script>", "curl/8"]);
        step.headers.push(("User-Agent", agent.to_owned()));
        step
    }

    /// - `accept`: drawn, where it may be anything.
    fn request(&self, method: Method, path: String, content_type: &str, body: &Value) -> AuditStep {
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let accept = match self.below(12) {
            0 => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            1 => "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json",
            2 => "application/yaml",
            _ => JSON,
        };
        let mut headers = vec![("Accept", accept.to_owned())];
        if !body.is_empty() {
            headers.push(("Content-Type", content_type.to_owned()));
        }
        AuditStep { token: "", method, path, headers, body }
    }

    /// Path below the API's root, plural, and an object of a kind that the script writes.
    fn object(&self) -> (&'static str, &'static str, Value) {
        let name = self.of(&NAMES);
        let metadata = json!({ "name": name, "labels": { "app": self.of(&["x", "y"]) } });
        let size = self.below(4);
        match self.below(4) {
            0 => {
                let spec = json!({
                    "terminationGracePeriodSeconds": 0,
                    "containers": [{ "name": "c", "image": "i", "securityContext": { "privileged": self.chance(30) } }],
                });
                ("/api/v1", "pods", json!({ "metadata": metadata, "spec": spec }))
            }
            1 => (
                "/api/v1",
                "secrets",
                json!({ "metadata": metadata, "stringData": { "k": format!("<{size}>") } }),
            ),
            2 => {
                let labels = json!({ "app": "x" });
                let template = json!({
                    "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
                });
                let spec =
                    json!({ "replicas": size, "selector": { "matchLabels": labels }, "template": template });
                ("/apis/apps/v1", "deployments", json!({ "metadata": metadata, "spec": spec }))
            }
            _ => {
                ("/api/v1", "configmaps", json!({ "metadata": metadata, "data": { "k": size.to_string() } }))
            }
        }
    }

    fn create(&self) -> AuditStep {
        let (root, plural, mut object) = self.object();
        match self.below(8) {
            // In another namespace than the path's.
            0 => object["metadata"]["namespace"] = self.of(&NAMESPACES).into(),
            1 => object["metadata"]["name"] = "Not_A_Name".into(),
            2 => object["unknown"] = json!({ "x": 1 }),
            3 => object["metadata"]["labels"] = json!("none"),
            _ => {}
        }
        let query = self.of(&["", "", "", "?dryRun=All", "?fieldValidation=Strict", "?fieldManager=me"]);
        let namespace = self.of(&NAMESPACES);
        let path = format!("{root}/namespaces/{namespace}/{plural}{query}");
        self.request(Method::POST, path, JSON, &object)
    }

    fn place(&self) -> (String, &'static str, Value) {
        let (root, plural, object) = self.object();
        let (namespace, name) =
            (self.of(&NAMESPACES), object["metadata"]["name"].as_str().unwrap_or_default());
        (format!("{root}/namespaces/{namespace}/{plural}/{name}"), plural, object)
    }

    fn read(&self) -> AuditStep {
        let (path, _, _) = self.place();
        let query = self.of(&["", "", "?resourceVersion=0", "?pretty=true"]);
        self.request(Method::GET, format!("{path}{query}"), JSON, &Value::Null)
    }

    fn list(&self) -> AuditStep {
        let (root, plural, _) = self.object();
        let namespace = self.of(&NAMESPACES);
        let query = self.of(&[
            "",
            "",
            "?labelSelector=app%3Dx",
            "?fieldSelector=metadata.name%3Done",
            "?limit=500",
            "?limit=1&resourceVersion=0",
            "?labelSelector=%3D%3D%3D",
            "?watch=1&timeoutSeconds=1&resourceVersion=0",
        ]);
        let query = if query.contains("watch") && self.chance(80) { "" } else { query };
        let mut step = self.request(
            Method::GET,
            format!("{root}/namespaces/{namespace}/{plural}{query}"),
            JSON,
            &Value::Null,
        );
        // What is wrong with a query and with a header is told of in another order.
        if query.contains("watch") || query.contains("%3D%3D%3D") {
            step.headers[0].1 = JSON.to_owned();
        }
        step
    }

    fn patch(&self) -> AuditStep {
        let (path, plural, object) = self.place();
        let size = self.below(4);
        let (content_type, body) = match self.below(5) {
            0 => (
                "application/json-patch+json",
                json!([{ "op": "add", "path": "/metadata/labels/n", "value": "<&>" }]),
            ),
            1 => (
                "application/merge-patch+json",
                json!({ "metadata": { "annotations": { "n": size.to_string() } } }),
            ),
            2 => {
                let strategic = "application/strategic-merge-patch+json";
                (strategic, json!({ "metadata": { "labels": { "s": size.to_string(), "app": null } } }))
            }
            3 => {
                let (version, kind) = match plural {
                    "deployments" => ("apps/v1", "Deployment"),
                    "pods" => ("v1", "Pod"),
                    "secrets" => ("v1", "Secret"),
                    _ => ("v1", "ConfigMap"),
                };
                let mut applied = object;
                (applied["apiVersion"], applied["kind"]) = (version.into(), kind.into());
                ("application/apply-patch+yaml", applied)
            }
            _ => ("application/merge-patch+json", json!({ "metadata": { "labels": 1 } })),
        };
        let query = if content_type.contains("apply") { "?fieldManager=me&force=true" } else { "" };
        self.request(Method::PATCH, format!("{path}{query}"), content_type, &body)
    }

    fn replace(&self) -> AuditStep {
        let (path, _, mut object) = self.place();
        match self.below(5) {
            0 => object["metadata"]["resourceVersion"] = "1".into(),
            1 => object["metadata"]["name"] = "other".into(),
            2 => object["metadata"]["uid"] = "00000000-0000-1000-8000-000000000000".into(),
            _ => {}
        }
        self.request(Method::PUT, path, JSON, &object)
    }

    fn delete(&self) -> AuditStep {
        let (path, plural, _) = self.place();
        if self.chance(10) {
            let collection = path.rsplit_once('/').map(|(collection, _)| collection.to_owned());
            let path = format!("{}?labelSelector=app%3Dy", collection.unwrap_or_default());
            let mut step = self.request(Method::DELETE, path, JSON, &Value::Null);
            // What a list cannot be shown as is refused by kube-apiserver once all is deleted.
            if let Some((_, accept)) = step.headers.iter_mut().find(|(name, _)| *name == "Accept") {
                *accept = accept.replace("PartialObjectMetadata;", "PartialObjectMetadataList;");
            }
            return step;
        }
        let body = match self.below(5) {
            0 => json!({ "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background" }),
            1 => json!({ "gracePeriodSeconds": 0 }),
            2 => json!({ "preconditions": { "uid": "00000000-0000-1000-8000-000000000000" } }),
            3 => json!({ "propagationPolicy": "Nonsense" }),
            _ => Value::Null,
        };
        let query = if plural == "pods" { "?gracePeriodSeconds=0" } else { "" };
        self.request(Method::DELETE, format!("{path}{query}"), JSON, &body)
    }

    fn subresource(&self) -> AuditStep {
        let (namespace, name) = (self.of(&NAMESPACES), self.of(&NAMES));
        let (pods, deployments) = (
            format!("/api/v1/namespaces/{namespace}/pods/{name}"),
            format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        );
        match self.below(7) {
            0 => self.request(Method::GET, format!("{deployments}/scale"), JSON, &Value::Null),
            1 => {
                let scale = json!({
                    "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": { "name": name, "namespace": namespace },
                    "spec": { "replicas": self.below(5) },
                });
                self.request(Method::PUT, format!("{deployments}/scale"), JSON, &scale)
            }
            2 => {
                let patch = json!({ "spec": { "replicas": self.below(5) } });
                self.request(
                    Method::PATCH,
                    format!("{deployments}/scale"),
                    "application/merge-patch+json",
                    &patch,
                )
            }
            3 => {
                let patch = json!({ "status": { "observedGeneration": self.below(5) } });
                self.request(
                    Method::PATCH,
                    format!("{deployments}/status"),
                    "application/merge-patch+json",
                    &patch,
                )
            }
            4 => {
                let binding = json!({
                    "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
                    "target": { "kind": "Node", "name": "node" },
                });
                self.request(Method::POST, format!("{pods}/binding"), JSON, &binding)
            }
            5 => {
                let eviction = json!({
                    "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name },
                    "deleteOptions": { "gracePeriodSeconds": 0 },
                });
                self.request(Method::POST, format!("{pods}/eviction"), JSON, &eviction)
            }
            _ => self.request(Method::GET, format!("{pods}/status"), JSON, &Value::Null),
        }
    }

    fn review(&self) -> AuditStep {
        let attributes = json!({ "namespace": "a", "verb": "get", "resource": "pods" });
        let (path, body) = match self.below(4) {
            0 => (
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                json!({ "spec": { "resourceAttributes": attributes } }),
            ),
            1 => (
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                json!({ "spec": { "user": "eve", "groups": ["g"], "resourceAttributes": attributes } }),
            ),
            2 => ("/apis/authentication.k8s.io/v1/tokenreviews", json!({ "spec": { "token": "alice" } })),
            _ => ("/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})),
        };
        let mut step = self.request(Method::POST, path.to_owned(), JSON, &body);
        step.headers[0].1 = JSON.to_owned();
        step
    }

    fn path(&self) -> AuditStep {
        let path = self.of(&[
            "/version",
            "/healthz",
            "/livez/ping",
            "/api",
            "/apis/apps",
            "/apis/batch/v1",
            "/nothing/there",
        ]);
        let mut step = self.request(Method::GET, path.to_owned(), JSON, &Value::Null);
        step.headers[0].1 = JSON.to_owned();
        step
    }

    fn custom(&self) -> AuditStep {
        let (namespace, name) = (self.of(&NAMESPACES), self.of(&NAMES));
        let things = format!("/apis/example.com/v1/namespaces/{namespace}/things");
        let thing = json!({
            "apiVersion": "example.com/v1", "kind": "Thing", "metadata": { "name": name },
            "spec": { "color": "<red>", "other": 1, "size": self.below(12) },
        });
        match self.below(5) {
            0 | 1 => self.request(Method::POST, things, JSON, &thing),
            2 => self.request(Method::GET, format!("{things}/{name}"), JSON, &Value::Null),
            3 => self.request(Method::GET, things, JSON, &Value::Null),
            _ => self.request(Method::DELETE, format!("{things}/{name}"), JSON, &Value::Null),
        }
    }

    /// What no client means.
    fn odd(&self) -> AuditStep {
        let namespace = self.of(&NAMESPACES);
        let maps = format!("/api/v1/namespaces/{namespace}/configmaps");
        match self.below(5) {
            0 => self.request(Method::GET, format!("{maps}/one?timeout=soon"), JSON, &Value::Null),
            1 => {
                self.request(Method::GET, "/apis/none.example.com/v1/nothings".to_owned(), JSON, &Value::Null)
            }
            2 => self.request(Method::POST, maps, "text/plain", &json!({})),
            3 => AuditStep { body: b"{".to_vec(), ..self.request(Method::POST, maps, JSON, &json!({})) },
            _ => self.request(Method::PUT, maps, JSON, &json!({})),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_the_same_script_each_time() {
        let shown = |seed| format!("{:?}", draw(seed, 50));
        assert_eq!(shown(1), shown(1));
        assert_ne!(shown(1), shown(2));
    }
}
