//! Server-side apply, and who owns which fields after each write.

use serde_json::{Value, json};

use crate::common::{Ask, Client, Scratch, Server, causes, rv, said, text};
use crate::{CONFIG_MAPS, config_map};

const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// What `manager` applies; `query` begins with `&`.
fn apply(path: &str, manager: &str, query: &str, config: &Value) -> Ask {
    Ask::patch(format!("{path}?fieldManager={manager}{query}"), APPLY, config.to_string())
}

fn merge(path: &str, manager: &str, patch: &Value) -> Ask {
    Ask::patch(format!("{path}?fieldManager={manager}"), MERGE, patch.to_string())
}

/// A line for each entry, in order: who, how, to what, which fields.
fn owners(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let line = |entry: &Value| {
        let subresource = entry["subresource"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
        format!(
            "{} {}{subresource} {}",
            text(entry, "/manager"),
            text(entry, "/operation"),
            entry["fieldsV1"]
        )
    };
    entries.map(line).collect()
}

/// The fields that `manager` owns.
fn fields(object: &Value, manager: &str) -> String {
    let entries = object["metadata"]["managedFields"].as_array().into_iter().flatten();
    let own: Vec<String> = entries
        .filter(|entry| entry["manager"] == *manager)
        .map(|entry| entry["fieldsV1"].to_string())
        .collect();
    own.join(" ")
}

/// The causes of a refusal, one a line.
fn caused(status: &Value) -> String {
    causes(status).trim_end().to_owned()
}

fn data(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

#[tokio::test]
async fn who_writes_owns_what_changes() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let path = format!("{CONFIG_MAPS}/c");
    let body = data("c", &json!({"a": "1", "b": "1"}));
    let created = Ask::post(CONFIG_MAPS, &body).header("user-agent", "maker/v1.2 (linux)");
    let created = client.ask(created).await.expect(201);
    assert_eq!(owners(&created), [r#"maker Update {"f:data":{".":{},"f:a":{},"f:b":{}}}"#]);
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["apiVersion"], &entry["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
    assert_eq!(entry["time"], created["metadata"]["creationTimestamp"]);

    let put = Ask::put(format!("{path}?fieldManager=putter"), &data("c", &json!({"a": "2", "b": "1"})));
    let put = client.ask(put).await.expect(200);
    assert_eq!(fields(&put, "maker"), r#"{"f:data":{".":{},"f:b":{}}}"#);
    assert_eq!(fields(&put, "putter"), r#"{"f:data":{"f:a":{}}}"#);
    // Who says nothing new owns nothing new, and what is not changed is not written.
    let again = Ask::put(format!("{path}?fieldManager=other"), &data("c", &json!({"a": "2", "b": "1"})));
    assert_eq!(client.ask(again).await.expect(200), put);
    let patched =
        client.ask(merge(&path, "putter", &json!({"data": {"b": null, "z": "1"}}))).await.expect(200);
    assert_eq!(fields(&patched, "maker"), r#"{"f:data":{}}"#);
    assert_eq!(fields(&patched, "putter"), r#"{"f:data":{"f:a":{},"f:z":{}}}"#);
    // They are forgotten on request, and begin again with whoever applies.
    let strip = json!({"metadata": {"managedFields": [{}]}});
    let stripped = client.ask(merge(&path, "putter", &strip)).await.expect(200);
    assert_eq!(owners(&stripped), [""; 0]);
    assert_eq!(client.get(&path).await.expect(200), stripped);
    let applied = client.ask(apply(&path, "a", "", &data("c", &json!({"n": "1"})))).await.expect(200);
    assert_eq!(fields(&applied, "a"), r#"{"f:data":{"f:n":{}}}"#);
    assert_eq!(fields(&applied, "before-first-apply"), r#"{"f:data":{".":{},"f:a":{},"f:z":{}}}"#);
}

#[tokio::test]
async fn an_apply_creates_shares_takes_over_and_gives_up() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let path = format!("{CONFIG_MAPS}/c");
    let both = data("c", &json!({"a": "1", "b": "1"}));
    let dry = client.ask(apply(&path, "one", "&dryRun=All", &both)).await.expect(201);
    assert_eq!(fields(&dry, "one"), r#"{"f:data":{"f:a":{},"f:b":{}}}"#);
    client.get(&path).await.expect(404);

    let created = client.ask(apply(&path, "one", "", &both)).await.expect(201);
    assert_eq!(owners(&created), [r#"one Apply {"f:data":{"f:a":{},"f:b":{}}}"#]);
    assert_eq!(client.ask(apply(&path, "one", "", &both)).await.expect(200), created, "nothing is new");
    let shared = client.ask(apply(&path, "two", "", &data("c", &json!({"a": "1"})))).await.expect(200);
    assert_eq!(fields(&shared, "two"), r#"{"f:data":{"f:a":{}}}"#);

    let other = data("c", &json!({"a": "2", "b": "1"}));
    let refused = client.ask(apply(&path, "two", "", &other)).await.expect(409);
    assert_eq!(said(&refused), r#"409 Conflict: Apply failed with 1 conflict: conflict with "one": .data.a"#);
    assert_eq!(caused(&refused), r#"FieldManagerConflict .data.a: conflict with "one""#);
    assert_eq!(client.get(&path).await.expect(200), shared, "and nothing was done");
    let forced = client.ask(apply(&path, "two", "&force=true", &other)).await.expect(200);
    assert_eq!(fields(&forced, "one"), r#"{"f:data":{"f:b":{}}}"#);
    assert_eq!(fields(&forced, "two"), r#"{"f:data":{"f:a":{},"f:b":{}}}"#);
    // What nobody applies any more goes, and what somebody else still does stays.
    let less = client.ask(apply(&path, "two", "", &data("c", &json!({})))).await.expect(200);
    assert_eq!(less["data"], json!({"b": "1"}));
    assert_eq!(owners(&less), [r#"one Apply {"f:data":{"f:b":{}}}"#, r#"two Apply {"f:data":{}}"#]);

    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  p: \"1\"\n";
    let applied = client.ask(Ask::patch(format!("{path}?fieldManager=yaml"), APPLY, yaml)).await.expect(200);
    assert_eq!(applied["data"], json!({"b": "1", "p": "1"}));
}

#[tokio::test]
async fn what_is_no_configuration_of_the_object_is_not_applied() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let path = format!("{CONFIG_MAPS}/c");
    let config = |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let undetermined = "the name of the object (c based on URL) was undeterminable: name must be provided";
    let refused: &[(Value, u16, &str)] = &[
        (json!([]), 400, "error decoding YAML: "),
        (json!({}), 400, "invalid object type: /, Kind="),
        (json!({"apiVersion": "v1", "kind": "Secret"}), 400, "invalid object type: /v1, Kind=Secret"),
        (config(json!({"name": "c", "managedFields": []})), 400, "metadata.managedFields must be nil"),
        (
            config(json!({"name": "d"})),
            400,
            "the name of the object (d) does not match the name on the URL (c)",
        ),
        (config(json!({})), 400, undetermined),
        (config(json!({"generateName": "c-"})), 400, undetermined),
        (
            config(json!({"name": "c", "namespace": "other"})),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            config(json!({"name": "c", "uid": "u"})),
            409,
            "Operation cannot be fulfilled on configmaps \"c\": uid mismatch: the provided object specified uid u, and \
             no existing object was found",
        ),
    ];
    for (body, code, message) in refused {
        let status = client.ask(apply(&path, "m", "", body)).await.expect(*code);
        assert!(text(&status, "/message").starts_with(message), "{body}: {status}");
    }
    client.get(&path).await.expect(404);
    let body = config_map("c", "v");
    let nobody = client.ask(Ask::patch(&path, APPLY, body.to_string())).await.expect(422);
    assert_eq!(
        caused(&nobody),
        "FieldValueRequired fieldManager: Required value: is required for apply patch"
    );
    let cbor = Ask::patch(format!("{path}?fieldManager=m"), "application/apply-patch+cbor", "x");
    client.ask(cbor).await.expect(415);
    let unknown = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "spec": {}});
    let unknown = client.ask(apply(&path, "m", "", &unknown)).await.expect(500);
    assert!(text(&unknown, "/message").ends_with(".spec: field not declared in schema"), "{unknown}");
    // What is there is only changed as it was seen.
    let created = client.ask(apply(&path, "m", "", &body)).await.expect(201);
    let mut stale = body.clone();
    stale["data"]["k"] = json!("w");
    stale["metadata"]["resourceVersion"] = json!((rv(&created) - 1).to_string());
    client.ask(apply(&path, "m", "", &stale)).await.expect(409);
    client.ask(apply("/api/v1/namespaces/none/configmaps/c", "m", "", &body)).await.expect(404);
}

fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
}

#[tokio::test]
async fn a_subresource_is_owned_apart() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let path = format!("{DEPLOYMENTS}/web");
    let spec = json!({
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    });
    client.ask(apply(&path, "owner", "", &deployment(spec.clone()))).await.expect(201);
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "web"}, "spec": {"replicas": 3}});
    let scale_path = format!("{path}/scale");
    let refused = client.ask(apply(&scale_path, "scaler", "", &scale)).await.expect(409);
    assert_eq!(caused(&refused), r#"FieldManagerConflict .spec.replicas: conflict with "owner""#);
    let scaled = client.ask(apply(&scale_path, "scaler", "&force=true", &scale)).await.expect(200);
    assert_eq!(scaled["spec"], json!({"replicas": 3}));
    let status = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 9}, "status": {"replicas": 2}});
    let path_of_status = format!("{path}/status");
    let stated = client.ask(apply(&path_of_status, "controller", "", &status)).await.expect(200);
    assert_eq!((&stated["spec"]["replicas"], &stated["status"]["replicas"]), (&json!(3), &json!(2)));
    let owners = owners(&stated);
    let owns = |line: &str| owners.iter().any(|own| own == line);
    assert!(owns(r#"scaler Apply/scale {"f:spec":{"f:replicas":{}}}"#), "{owners:?}");
    assert!(owns(r#"controller Apply/status {"f:status":{"f:replicas":{}}}"#), "{owners:?}");
    assert!(!fields(&stated, "owner").contains("f:replicas"), "{owners:?}");
    let refused = client.ask(apply(&path, "owner", "", &deployment(spec))).await.expect(409);
    assert_eq!(
        caused(&refused),
        r#"FieldManagerConflict .spec.replicas: conflict with "scaler" with subresource "scale""#
    );
    let patched =
        client.ask(merge(&scale_path, "other", &json!({"spec": {"replicas": 4}}))).await.expect(200);
    assert_eq!(patched["spec"], json!({"replicas": 4}));
    let found = client.get(&path).await.expect(200);
    assert_eq!(fields(&found, "other"), r#"{"f:spec":{"f:replicas":{}}}"#);
    assert_eq!(fields(&found, "scaler"), "");
    // Only the object itself is created.
    for (path, body) in [("none/status", &status), ("none/scale", &scale)] {
        client.ask(apply(&format!("{DEPLOYMENTS}/{path}"), "m", "", body)).await.expect(404);
    }
    // That is said before what could not be read is.
    for (path, code) in [("none/status", 404), ("web/status", 400), ("none", 400)] {
        let broken = Ask::patch(format!("{DEPLOYMENTS}/{path}?fieldManager=m"), APPLY, "a: [1");
        client.ask(broken).await.expect(code);
    }
}

fn definition(ports: &Value) -> Value {
    let port = json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}});
    let mut ports = ports.clone();
    ports["type"] = json!("array");
    ports["items"] = port;
    let spec = json!({"type": "object", "properties": {
        "ports": ports,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
    }});
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema},
                {"name": "v2", "served": true, "storage": false, "schema": schema},
            ],
        },
    })
}

async fn define(client: &Client, definition: &Value, code: u16) {
    let path = format!("{CRDS}/things.example.com");
    client.ask(apply(&path, "definer", "", definition)).await.expect(code);
}

#[tokio::test]
async fn custom_resources_are_merged_by_their_schema() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let keyed = json!({"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]});
    define(&client, &definition(&keyed), 201).await;
    let thing = |version: &str, spec: Value| json!({"apiVersion": format!("example.com/{version}"), "kind": "Thing", "metadata": {"name": "t"}, "spec": spec});
    let path = |version: &str| format!("/apis/example.com/{version}/namespaces/default/things/t");
    let one = json!({"ports": [{"port": 80}], "tags": ["a"], "whole": {"a": "1"}});
    client.ask(apply(&path("v1"), "one", "", &thing("v1", one))).await.expect(201);
    let two = json!({"ports": [{"port": 80, "protocol": "UDP"}], "tags": ["b"]});
    let merged = client.ask(apply(&path("v2"), "two", "", &thing("v2", two))).await.expect(200);
    assert_eq!(
        merged["spec"],
        json!({
            "ports": [{"port": 80, "protocol": "TCP"}, {"port": 80, "protocol": "UDP"}],
            "tags": ["a", "b"], "whole": {"a": "1"},
        })
    );
    let owned = |port: &str| format!(r#"{{"f:spec":{{"f:ports":{{{port}}}"#);
    let udp = r#""k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}"#;
    assert!(fields(&merged, "two").starts_with(&owned(udp)), "{}", fields(&merged, "two"));
    let whole = json!({"whole": {"b": "1"}, "tags": ["a"]});
    let refused = client.ask(apply(&path("v2"), "two", "", &thing("v2", whole))).await.expect(409);
    assert_eq!(caused(&refused), r#"FieldManagerConflict .spec.whole: conflict with "one""#);
    let less =
        client.ask(apply(&path("v2"), "two", "", &thing("v2", json!({"tags": ["a"]})))).await.expect(200);
    assert_eq!(less["spec"]["ports"], json!([{"port": 80, "protocol": "TCP"}]));
    assert_eq!(less["spec"]["tags"], json!(["a"]));
    // A list that is one field from now on is whose item it was.
    define(&client, &definition(&json!({})), 200).await;
    let taken = json!({"ports": [{"port": 1, "protocol": "TCP"}]});
    let refused = client.ask(apply(&path("v1"), "two", "", &thing("v1", taken))).await.expect(409);
    assert_eq!(caused(&refused), r#"FieldManagerConflict .spec.ports: conflict with "one""#);
}
