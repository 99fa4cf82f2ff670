//! The controllers on the real binary: namespaces end, owners and owned go, each namespace has what it needs,
//! and killing the server in between loses nothing.

mod common;

use common::{Ask, Client, Scratch, Server, names, rv, said};
use serde_json::{Value, json};

const ALL: &[&str] = &["--controllers=*"];
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NAMESPACES: &str = "/api/v1/namespaces";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Waits until `holds` of the object `name` of a collection, or of `None` when there is none.
async fn until(client: &Client, collection: &str, name: &str, holds: impl Fn(Option<&Value>) -> bool) {
    let start = rv(&client.get(collection).await.expect(200));
    let watch =
        format!("{collection}?watch=true&resourceVersion={start}&fieldSelector=metadata.name%3D{name}");
    let mut watch = client.watch(&watch).await;
    loop {
        let reply = client.get(&format!("{collection}/{name}")).await;
        let found = (reply.code == 200).then(|| reply.json());
        if holds(found.as_ref()) {
            return;
        }
        watch.event().await;
    }
}

async fn until_gone(client: &Client, collection: &str, name: &str) {
    until(client, collection, name, |found| found.is_none()).await;
}

async fn until_there(client: &Client, collection: &str, name: &str) {
    until(client, collection, name, |found| found.is_some()).await;
}

fn map(name: &str, owner: Option<&Value>) -> Value {
    let references: Vec<Value> = owner
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
            })
        })
        .collect();
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name, "ownerReferences": references } })
}

fn namespace(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } })
}

fn held(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.io/hold"]);
    object
}

async fn release(client: &Client, path: &str) {
    let patch = json!({ "metadata": { "finalizers": null } }).to_string();
    client.ask(Ask::patch(path, "application/merge-patch+json", patch)).await.expect(200);
}

async fn delete(client: &Client, path: &str, policy: &str) {
    let options = json!({ "propagationPolicy": policy }).to_string();
    client.ask(Ask::delete(path).body("application/json", options)).await.expect(200);
}

async fn define_widgets(client: &Client) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.io" },
        "spec": {
            "group": "example.io", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
            }],
        },
    });
    client.post(CRDS, &crd).await.expect(201);
    until(client, CRDS, "widgets.example.io", |crd| {
        let conditions = crd.expect("there")["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
    })
    .await;
}

#[tokio::test]
async fn a_new_namespace_has_an_account_and_an_authority_and_ends_with_all_of_it() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, ALL).await;
    let client = server.admin().await;
    define_widgets(&client).await;
    client.post(NAMESPACES, &namespace("x")).await.expect(201);
    until_there(&client, "/api/v1/namespaces/x/serviceaccounts", "default").await;
    until_there(&client, "/api/v1/namespaces/x/configmaps", "kube-root-ca.crt").await;
    let published = client.get("/api/v1/namespaces/x/configmaps/kube-root-ca.crt").await.expect(200);
    assert_eq!(published["data"], json!({ "ca.crt": server.authority }));
    let widgets = "/apis/example.io/v1/namespaces/x/widgets";
    let widget = json!({ "apiVersion": "example.io/v1", "kind": "Widget", "metadata": { "name": "w" } });
    client.post(widgets, &held(widget)).await.expect(201);
    client.delete("/api/v1/namespaces/x").await.expect(200);
    until(&client, NAMESPACES, "x", |found| {
        let conditions = found.expect("held")["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|one| one["type"] == "NamespaceFinalizersRemaining" && one["status"] == "True")
    })
    .await;
    let late = client.post("/api/v1/namespaces/x/configmaps", &map("late", None)).await;
    assert!(said(&late.expect(403)).contains("because it is being terminated"));
    assert!(names(&client.get("/api/v1/namespaces/x/configmaps").await.expect(200)).is_empty());
    release(&client, &format!("{widgets}/w")).await;
    until_gone(&client, NAMESPACES, "x").await;
}

#[tokio::test]
async fn owners_and_owned_go_in_all_three_ways() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, ALL).await;
    let client = server.admin().await;
    for (policy, child_goes) in [("Background", true), ("Foreground", true), ("Orphan", false)] {
        let owner = client.post(MAPS, &map("owner", None)).await.expect(201);
        let child = client.post(MAPS, &map("child", Some(&owner))).await.expect(201);
        client.post(MAPS, &map("grandchild", Some(&child))).await.expect(201);
        delete(&client, &format!("{MAPS}/owner"), policy).await;
        until_gone(&client, MAPS, "owner").await;
        if child_goes {
            until_gone(&client, MAPS, "child").await;
            until_gone(&client, MAPS, "grandchild").await;
        } else {
            let child = client.get(&format!("{MAPS}/child")).await.expect(200);
            assert_eq!(child["metadata"].get("ownerReferences"), None);
            assert_eq!(client.get(&format!("{MAPS}/grandchild")).await.code, 200);
        }
    }
}

#[tokio::test]
async fn killed_in_the_middle_it_finishes_what_was_begun() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, ALL).await;
    let client = server.admin().await;
    client.post(NAMESPACES, &namespace("x")).await.expect(201);
    client.post("/api/v1/namespaces/x/configmaps", &held(map("held", None))).await.expect(201);
    let owner = client.post(MAPS, &map("owner", None)).await.expect(201);
    client.post(MAPS, &held(map("child", Some(&owner)))).await.expect(201);
    delete(&client, &format!("{MAPS}/owner"), "Foreground").await;
    client.delete("/api/v1/namespaces/x").await.expect(200);
    until(&client, MAPS, "child", |child| child.expect("held")["metadata"]["deletionTimestamp"].is_string())
        .await;
    let gone = client.post(MAPS, &map("gone", None)).await.expect(201);
    for number in 0..100 {
        client.post(MAPS, &map(&format!("owned-{number}"), Some(&gone))).await.expect(201);
    }
    delete(&client, &format!("{MAPS}/gone"), "Background").await;
    server.kill().await;

    let server = Server::start(&scratch, ALL).await;
    let client = server.admin().await;
    for number in 0..100 {
        until_gone(&client, MAPS, &format!("owned-{number}")).await;
    }
    assert_eq!(client.get(&format!("{MAPS}/owner")).await.code, 200, "it waits for its dependent");
    assert_eq!(client.get("/api/v1/namespaces/x").await.code, 200, "it waits for its content");
    release(&client, &format!("{MAPS}/child")).await;
    release(&client, "/api/v1/namespaces/x/configmaps/held").await;
    until_gone(&client, MAPS, "owner").await;
    until_gone(&client, NAMESPACES, "x").await;
}

#[tokio::test]
async fn controllers_are_chosen_by_name() {
    let scratch = Scratch::new();
    let refused =
        Server::try_start(&scratch, &["--controllers=*,-job-controller"]).await.err().expect("unknown");
    assert_eq!(refused.code, Some(2));
    let known = "namespace-controller, garbage-collector-controller, serviceaccount-controller, root-ca-certificate-publisher-controller, validatingadmissionpolicy-status-controller, resourcequota-controller, persistentvolumeclaim-protection-controller, persistentvolume-protection-controller, volumeattributesclass-protection-controller";
    assert!(
        refused.stderr.contains("\"job-controller\" is not a controller of this server"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains(known), "{}", refused.stderr);

    let server = Server::start(&scratch, &["--controllers=serviceaccount-controller"]).await;
    let client = server.admin().await;
    until_there(&client, "/api/v1/namespaces/default/serviceaccounts", "default").await;
    assert!(names(&client.get(MAPS).await.expect(200)).is_empty());
    client.post(NAMESPACES, &namespace("x")).await.expect(201);
    until_there(&client, "/api/v1/namespaces/x/serviceaccounts", "default").await;
    client.delete("/api/v1/namespaces/x").await.expect(200);
    let terminating = client.get("/api/v1/namespaces/x").await.expect(200);
    assert_eq!(terminating["status"]["phase"], "Terminating");
}

#[tokio::test]
async fn the_status_of_a_policy_says_which_fields_there_are_not() {
    const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
    let scratch = Scratch::new();
    let server = Server::start(&scratch, ALL).await;
    let client = server.admin().await;
    define_widgets(&client).await;
    let rule = |group: &str, version: &str, resource: &str| json!({ "apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": [resource] });
    let policy = |name: &str, rules: Value, validations: Value| {
        json!({
            "metadata": { "name": name },
            "spec": { "matchConstraints": { "resourceRules": rules }, "validations": validations },
        })
    };
    let rules = json!([rule("apps", "v1", "deployments"), rule("apps", "v1", "deployments/scale")]);
    let validations = json!([
        { "expression": "object.spec.replicas > 1 && object.spec.strategy.rollingUpdate.maxSurge == 1" },
        { "expression": "object.spec.nope > 1", "messageExpression": "string(object.metadata.nope)" },
    ]);
    client.post(POLICIES, &policy("typed", rules, validations)).await.expect(201);
    let is_checked = |found: Option<&Value>| {
        found.is_some_and(|policy| policy["status"]["observedGeneration"] == policy["metadata"]["generation"])
    };
    until(&client, POLICIES, "typed", is_checked).await;
    let warnings =
        client.get(&format!("{POLICIES}/typed")).await.expect(200)["status"]["typeChecking"].clone();
    let caret = |line: &str, at: usize| format!(" | {line}\n | {}^\n", ".".repeat(at));
    let expected = json!({ "expressionWarnings": [
        { "fieldRef": "spec.validations[1].expression", "warning": format!(
            "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'nope'\n{}",
            caret("object.spec.nope > 1", 11)) },
        { "fieldRef": "spec.validations[1].messageExpression", "warning": format!(
            "apps/v1, Kind=Deployment: ERROR: <input>:1:23: undefined field 'nope'\n{}",
            caret("string(object.metadata.nope)", 22)) },
    ] });
    assert_eq!(warnings, expected);
    let everything =
        json!([{ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }]);
    let validations = json!([{ "expression": "object.spec.nope > 1" }]);
    client.post(POLICIES, &policy("untyped", everything, validations)).await.expect(201);
    until(&client, POLICIES, "untyped", is_checked).await;
    let status = client.get(&format!("{POLICIES}/untyped")).await.expect(200)["status"].clone();
    assert_eq!(status, json!({ "observedGeneration": 1, "typeChecking": {} }));
}
