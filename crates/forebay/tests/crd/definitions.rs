//! Definitions themselves: when they are served, what is wrong with them, what this server leaves out.

use serde_json::{Value, json};

use crate::common::{Ask, Protocol, Scratch, Server, causes, names, rv, said, text};
use crate::{CRD, CRDS, WIDGETS, condition, create, define, definition, schema, widget};

#[tokio::test]
async fn a_definition_is_served_when_its_writer_is_answered() {
    for protocol in Protocol::BOTH {
        let scratch = Scratch::new();
        let server = Server::start(&scratch, &[]).await;
        let client = server.admin_over(protocol).await;
        assert_eq!(client.get(WIDGETS).await.code, 404);
        define(&client).await;
        create(&client, "a", "red").await;
        assert_eq!(names(&client.get(WIDGETS).await.expect(200)), ["a"]);
        let known = client.get(CRD).await.expect(200);
        assert_eq!((condition(&known, "Established"), condition(&known, "NamesAccepted")), ("True", "True"));
        assert_eq!(known["status"]["storedVersions"], json!(["v1"]));
        assert_eq!(text(&known, "/status/acceptedNames/listKind"), "WidgetList");
        let listed = client.get("/apis/example.com/v1").await.expect(200);
        let resources = listed["resources"].as_array().expect("resources");
        let resources: Vec<&str> = resources.iter().map(|resource| text(resource, "/name")).collect();
        assert_eq!(resources, ["widgets", "widgets/status", "widgets/scale"]);
    }
}

#[tokio::test]
async fn definitions_and_their_objects_outlive_the_process() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let object = create(&client, "a", "red").await;
    server.kill().await;
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.expect(200), object);
    create(&client, "b", "blue").await;
}

#[tokio::test]
async fn every_violation_of_a_definition_is_named() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let bad = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "bad"},
        "spec": {
            "group": "Ex", "scope": "X", "names": {"plural": "W", "kind": "w"},
            "versions": [{"name": "1", "served": true, "storage": false}],
        },
    });
    let status = client.post(CRDS, &bad).await.expect(422);
    assert!(said(&status).starts_with(
        r#"422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "bad" is invalid: [metadata.name: Invalid value: "bad": must be spec.names.plural+"."+spec.group, "#
    ));
    let fields: Vec<String> =
        causes(&status).lines().map(|line| line.split(": ").next().unwrap_or("").to_owned()).collect();
    let want = [
        "FieldValueInvalid metadata.name",
        "FieldValueInvalid spec.group",
        "FieldValueNotSupported spec.scope",
        "FieldValueRequired spec.versions[0].schema.openAPIV3Schema",
        "FieldValueInvalid spec.versions[0].name",
        "FieldValueInvalid spec.versions",
        "FieldValueInvalid spec.version",
        "FieldValueInvalid spec.names.plural",
        "FieldValueInvalid status.storedVersions",
    ];
    assert_eq!(fields, want);

    let mut loose = definition();
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"a": {"type": "foo"}, "b": {"type": "array"}, "c": {}});
    let status = client.post(CRDS, &loose).await.expect(422);
    // Of a single version, this is the place that kube-apiserver names.
    let at = "spec.validation.openAPIV3Schema.properties";
    for cause in [
        format!(
            r#"FieldValueNotSupported {at}[a].type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number", "object", "string""#
        ),
        format!("FieldValueRequired {at}[b].items: Required value: must be specified"),
        format!(
            "FieldValueRequired {at}[c].type: Required value: must not be empty for specified object fields"
        ),
    ] {
        assert!(causes(&status).lines().any(|line| line == cause), "{cause} is not in\n{}", causes(&status));
    }
    assert_eq!(names(&client.get(CRDS).await.expect(200)).len(), 0);
}

#[tokio::test]
async fn a_second_definition_of_taken_names_is_not_established() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let mut other = definition();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "shortNames": ["wd"]});
    client.post(CRDS, &other).await.expect(201);
    let known = client.get(&format!("{CRDS}/gadgets.example.com")).await.expect(200);
    assert_eq!((condition(&known, "NamesAccepted"), condition(&known, "Established")), ("False", "False"));
    assert_eq!(client.get("/apis/example.com/v1/gadgets").await.code, 404);
}

fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema()}})
}

#[tokio::test]
async fn an_object_is_there_in_every_served_version() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let mut versions = definition();
    let mut old = version("v1beta1", false);
    old["deprecated"] = true.into();
    versions["spec"]["versions"] = json!([version("v1", true), old]);
    client.post(CRDS, &versions).await.expect(201);
    let beta = WIDGETS.replace("/v1/", "/v1beta1/");
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    let mut new = widget("a", json!({"color": "red"}));
    new["apiVersion"] = "example.com/v1beta1".into();
    let reply = client.post(&beta, &new).await;
    assert_eq!(text(&reply.expect(201), "/apiVersion"), "example.com/v1beta1");
    assert_eq!(
        reply.warnings(),
        [r#"299 - "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget""#],
        "deprecated versions say so"
    );
    let now = client.get(&format!("{WIDGETS}/a")).await;
    let mut want = reply.json();
    want["apiVersion"] = "example.com/v1".into();
    assert_eq!(now.expect(200), want);
    assert!(now.warnings().is_empty());
    assert_eq!(watch.event().await.object, want);
}

#[tokio::test]
async fn a_change_of_the_schema_counts_at_once_and_ends_no_watch() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    define(&client).await;
    let before = create(&client, "a", "red").await;
    let mut watch = client.watch(&format!("{WIDGETS}?watch=true")).await;
    assert_eq!(watch.event().await.object, before);

    let mut wider = client.get(CRD).await.expect(200);
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let properties = wider.pointer_mut(spec).expect("properties");
    properties["size"] = json!({"type": "integer", "default": 3});
    properties["color"]["enum"] = json!(["red", "green"]);
    let wider = client.put(CRD, &wider).await.expect(200);
    assert_eq!(wider["metadata"]["generation"], 2);

    let after = client.post(WIDGETS, &widget("b", json!({"color": "green", "size": 7}))).await.expect(201);
    assert_eq!(after["spec"]["size"], 7);
    assert_eq!(watch.event().await.object, after);
    // What was stored before is shown with the new defaults, and is what it was.
    let shown = client.get(&format!("{WIDGETS}/a")).await.expect(200);
    assert_eq!((&shown["spec"]["size"], &shown["metadata"]), (&json!(3), &before["metadata"]));
    let refused = client.post(WIDGETS, &widget("c", json!({"color": "blue"}))).await.expect(422);
    assert_eq!(
        causes(&refused),
        "FieldValueNotSupported spec.color: Unsupported value: \"blue\": supported values: \"red\", \"green\"\n"
    );
}

#[tokio::test]
async fn a_version_that_is_no_longer_served_ends_its_watches() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let mut both = definition();
    let (stored, mut beta) = (both["spec"]["versions"][0].clone(), both["spec"]["versions"][0].clone());
    (beta["name"], beta["storage"]) = (json!("v1beta1"), json!(false));
    both["spec"]["versions"] = json!([stored, beta]);
    let both = client.post(CRDS, &both).await.expect(201);
    let beta = WIDGETS.replace("/v1/", "/v1beta1/");
    let start = rv(&both);
    let mut going = client.watch(&format!("{beta}?watch=true&resourceVersion={start}")).await;
    let mut staying = client.watch(&format!("{WIDGETS}?watch=true&resourceVersion={start}")).await;
    let patch = r#"[{"op":"replace","path":"/spec/versions/1/served","value":false}]"#;
    client.ask(Ask::patch(CRD, "application/json-patch+json", patch)).await.expect(200);
    assert_eq!(client.get(&beta).await.code, 404);
    going.end().await;
    let object = create(&client, "a", "red").await;
    assert_eq!(staying.event().await.object, object);
}

#[tokio::test]
async fn another_version_shows_what_it_knows_and_the_defaults_of_the_stored_one() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let mut both = definition();
    let (stored, mut beta) = (both["spec"]["versions"][0].clone(), both["spec"]["versions"][0].clone());
    (beta["name"], beta["storage"]) = (json!("v1beta1"), json!(false));
    for own in ["subresources", "selectableFields", "additionalPrinterColumns"] {
        beta.as_object_mut().expect("an object").remove(own);
    }
    beta["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object", "properties": {
        "color": {"type": "string"}, "later": {"type": "string", "default": "no"},
    }});
    both["spec"]["versions"] = json!([stored, beta]);
    client.post(CRDS, &both).await.expect(201);
    let object = create(&client, "a", "red").await;
    assert_eq!(object["spec"], json!({"color": "red", "replicas": 1, "inner": {"mode": "auto"}}));
    let shown = client.get(&format!("{}/a", WIDGETS.replace("/v1/", "/v1beta1/"))).await.expect(200);
    assert_eq!(
        (&shown["apiVersion"], &shown["spec"]),
        (&json!("example.com/v1beta1"), &json!({"color": "red"}))
    );
    assert_eq!(shown["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
}
