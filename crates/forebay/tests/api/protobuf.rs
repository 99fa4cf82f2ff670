//! Answers in protobuf, which must say what the answers in JSON say.
//!
//! Messages are read with the schema's own decoder, which upstream's golden objects judge.

use std::io::Read as _;

use flate2::read::GzDecoder;
use forebay_apimachinery::Lease;
use forebay_schema::builtin::{TypeId, codec, protobuf, table};
use http::Method;
use serde_json::{Value, json};

use crate::common::{Ask, Client, Reply, Scratch, Server, Watch, names, rv, text};
use crate::minimal::{minimal, name};
use crate::{CONFIG_MAPS, config_map, create};

pub const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";
const PARTIAL: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIAL_LIST: &str =
    "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// A body as the JSON that Go would write of it, and its parts.
fn read(body: &[u8]) -> Value {
    let unknown = protobuf::decode_envelope(body).expect("an envelope");
    let (ty, mut value) = message(&unknown.api_version, &unknown.kind, unknown.raw);
    for (member, text) in [("apiVersion", &unknown.api_version), ("kind", &unknown.kind)] {
        if !text.is_empty() {
            value[member] = Value::from(&**text);
        }
    }
    // The members that Go writes though they are empty.
    let mut json = Vec::new();
    codec::write_json(ty, &value, &mut json).expect("JSON");
    let mut value: Value = serde_json::from_slice(&json).expect("JSON");
    // An empty list and none are one message, of which Go makes none.
    if value.get("items").is_some_and(Value::is_null) {
        value["items"] = json!([]);
    }
    value
}

fn message(api_version: &str, kind: &str, raw: &[u8]) -> (TypeId, Value) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let ty = match group {
        "meta.k8s.io" => table().type_named("meta/v1", kind),
        _ => table().kind(group, if version.is_empty() { "v1" } else { version }, kind).map(|kind| kind.ty),
    };
    let ty = ty.unwrap_or_else(|| panic!("no type {api_version} {kind}"));
    (ty, protobuf::decode(ty, raw, &Lease::of_server()).expect("a message"))
}

/// A reply in protobuf that has this code.
fn expect(reply: &Reply, code: u16) -> Value {
    assert_eq!((reply.code, reply.header("content-type")), (code, PROTOBUF), "{:?}", reply.body);
    read(&reply.body)
}

/// `TYPE` and the object of the next frame.
pub async fn event(watch: &mut Watch) -> (String, Value) {
    let frame = watch.frame().await;
    let event = protobuf::decode_watch_event(&frame).expect("an event");
    (event.kind.into_owned(), read(event.object))
}

async fn protobuf(client: &Client, path: &str) -> Value {
    expect(&client.ask(Ask::get(path).accept(PROTOBUF)).await, 200)
}

/// A resource as discovery lists it.
struct Resource {
    collection: String,
    api_version: String,
    kind: String,
}

/// Every built-in resource that can be made, read, listed and watched.
async fn resources(client: &Client) -> Vec<Resource> {
    let mut found = Vec::new();
    let groups = client.get("/apis").await.expect(200);
    let versions = groups["groups"].as_array().expect("groups").iter().flat_map(|group| {
        let versions = group["versions"].as_array().expect("versions").iter();
        versions.map(|version| text(version, "/groupVersion").to_owned())
    });
    for version in std::iter::once("v1".to_owned()).chain(versions) {
        let root = if version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{version}") };
        let list = client.get(&root).await.expect(200);
        for resource in list["resources"].as_array().expect("resources") {
            let verbs = resource["verbs"].as_array().expect("verbs");
            let has = |verb: &str| verbs.iter().any(|known| known == verb);
            let plural = text(resource, "/name");
            if plural.contains('/') || !["create", "get", "list", "watch"].into_iter().all(has) {
                continue;
            }
            let namespace = if resource["namespaced"] == true { "/namespaces/default" } else { "" };
            found.push(Resource {
                collection: format!("{root}{namespace}/{plural}"),
                api_version: version.clone(),
                kind: text(resource, "/kind").to_owned(),
            });
        }
    }
    found
}

#[tokio::test]
async fn every_kind_says_in_protobuf_what_it_says_in_json() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let resources = resources(&client).await;
    assert!(resources.len() > 55, "{}", resources.len());
    for resource in &resources {
        check_kind(&client, resource).await;
    }
}

/// The object once no controller writes to it any more: some are told whether what they name is there.
async fn at_rest(client: &Client, resource: &Resource, path: &str) -> Value {
    if !["FlowSchema", "APIService"].contains(&resource.kind.as_str()) {
        return client.get(path).await.expect(200);
    }
    let named = format!("fieldSelector=metadata.name%3D{}", name(&resource.kind));
    let mut watch = client.watch(&format!("{}?{named}&watch=true", resource.collection)).await;
    loop {
        let event = watch.event().await;
        if event.object.pointer("/status/conditions/0").is_some() {
            return event.object;
        }
    }
}

async fn check_kind(client: &Client, resource: &Resource) {
    let Resource { collection, api_version, kind } = resource;
    let mut object = minimal(kind);
    if api_version == "events.k8s.io/v1" {
        object = json!({"eventTime": "2026-01-02T03:04:05.678901Z", "reportingController": "c", "reportingInstance": "i",
            "action": "A", "reason": "R", "type": "Normal", "note": "n", "regarding": {"kind": "Pod", "namespace": "default"}});
    }
    object["apiVersion"] = Value::from(api_version.as_str());
    object["kind"] = Value::from(kind.as_str());
    object["metadata"] = json!({"name": name(kind), "labels": {"made": "here"}});
    if kind == "Event" {
        object["metadata"]["namespace"] = "default".into();
    }
    let made = client.ask(Ask::post(collection, &object).accept(PROTOBUF)).await;
    let made = expect(&made, 201);
    let path = format!("{collection}/{}", name(kind));
    let json = at_rest(client, resource, &path).await;
    if json["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"] {
        assert_eq!(made, json, "{path}");
    }
    assert_eq!(protobuf(client, &path).await, json, "{path}");

    let partial = expect(&client.ask(Ask::get(&path).accept(PARTIAL)).await, 200);
    assert_eq!((text(&partial, "/kind"), &partial["metadata"]), ("PartialObjectMetadata", &json["metadata"]));

    let selected = format!("{collection}?labelSelector=made%3Dhere");
    let list = client.get(&selected).await.expect(200);
    assert_eq!(names(&list), [name(kind)], "{path}");
    let exactly = format!("{selected}&resourceVersion={}&resourceVersionMatch=Exact", rv(&list));
    assert_eq!(protobuf(client, &exactly).await, list, "{path}");

    let since = format!("{selected}&watch=true&resourceVersion=0");
    let mut lines = client.watch(&since).await;
    let mut frames = client.watch_as(Ask::get(&since).accept(STREAM)).await;
    let mut partials = client.watch_as(Ask::get(&since).accept(PARTIAL)).await;
    let mut same = async || {
        let line = lines.event().await;
        assert_eq!(event(&mut frames).await, (line.kind.clone(), line.object.clone()), "{path}");
        let (kind, partial) = event(&mut partials).await;
        assert_eq!((kind, &partial["metadata"]), (line.kind.clone(), &line.object["metadata"]), "{path}");
        (line.kind, line.object)
    };
    assert_eq!(same().await, ("ADDED".to_owned(), json.clone()));
    let deleted = client.ask(Ask::delete(&path).accept(PROTOBUF)).await;
    expect(&deleted, 200);
    let (_, last) = same().await;
    assert!(rv(&last) > rv(&json), "{path}: a DELETED event has the revision of the delete");
}

#[tokio::test]
async fn every_verb_answers_in_protobuf() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let mut message = Vec::new();
    let kind = table().kind("", "v1", "ConfigMap").expect("a kind");
    let mut body = Vec::new();
    protobuf::encode(kind.ty, &config_map("c", "v"), &mut message).expect("canonical");
    protobuf::Envelope::new("v1", "ConfigMap").write(&message, &mut body);
    let path = format!("{CONFIG_MAPS}/c");
    let ask = |method, path: &str| {
        Ask::new(method, path).accept("application/vnd.kubernetes.protobuf,application/json")
    };
    let made = expect(&client.ask(ask(Method::POST, CONFIG_MAPS).body(PROTOBUF, body)).await, 201);
    assert_eq!(made, client.get(&path).await.expect(200));
    let put = config_map("c", "w").to_string();
    let put = expect(&client.ask(ask(Method::PUT, &path).body("application/json", put)).await, 200);
    assert_eq!(put["data"]["k"], "w");
    let patch = ask(Method::PATCH, &path).body("application/merge-patch+json", r#"{"data":{"k":"x"}}"#);
    let patched = expect(&client.ask(patch).await, 200);
    assert_eq!(patched, client.get(&path).await.expect(200));
    let partial = Ask::patch(&path, "application/merge-patch+json", "{}").accept(PARTIAL);
    let partial = expect(&client.ask(partial).await, 200);
    assert_eq!(
        (text(&partial, "/kind"), &partial["metadata"]),
        ("PartialObjectMetadata", &patched["metadata"])
    );
    let deleted = expect(&client.ask(ask(Method::DELETE, &path)).await, 200);
    assert_eq!((text(&deleted, "/kind"), text(&deleted, "/status")), ("Status", "Success"));
    assert_eq!(text(&deleted, "/details/uid"), text(&made, "/metadata/uid"));
    create(&client, "d").await;
    let all = expect(&client.ask(ask(Method::DELETE, CONFIG_MAPS)).await, 200);
    assert_eq!((text(&all, "/kind"), names(&all)), ("ConfigMapList", vec!["d".to_owned()]));

    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let mut deployment = minimal("Deployment");
    deployment["metadata"] = json!({"name": "d"});
    client.post(deployments, &deployment).await.expect(201);
    let scale = format!("{deployments}/d/scale");
    assert_eq!(protobuf(&client, &scale).await, client.get(&scale).await.expect(200));
    let patch =
        Ask::patch(&scale, "application/merge-patch+json", r#"{"spec":{"replicas":3}}"#).accept(PROTOBUF);
    assert_eq!(expect(&client.ask(patch).await, 200)["spec"]["replicas"], 3);
}

#[tokio::test]
async fn errors_come_in_protobuf_to_whoever_takes_it() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let invalid = config_map("C", "v").to_string();
    let conflict = json!({"metadata": {"name": "c", "resourceVersion": "1"}}).to_string();
    create(&client, "c").await;
    for (ask, code) in [
        (Ask::get(format!("{CONFIG_MAPS}/none")), 404),
        (Ask::post(CONFIG_MAPS, &config_map("c", "v")), 409),
        (Ask::new(Method::POST, CONFIG_MAPS).body("application/json", invalid), 422),
        (Ask::new(Method::PUT, format!("{CONFIG_MAPS}/c")).body("application/json", conflict), 409),
        (Ask::new(Method::POST, CONFIG_MAPS).body("application/json", "{"), 400),
        (Ask::new(Method::POST, CONFIG_MAPS).body("text/plain", "x"), 415),
        (Ask::new(Method::PUT, CONFIG_MAPS), 405),
        (Ask::get("/apis/none.example.com/v1/x"), 404),
    ] {
        let json = client.ask(ask.clone()).await.expect(code);
        let got = expect(&client.ask(ask.accept(PROTOBUF)).await, code);
        assert_eq!(got, json);
    }
}

#[tokio::test]
async fn bookmarks_are_frames() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    create(&client, "c").await;
    let path = format!(
        "{CONFIG_MAPS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    let mut lines = client.watch(&path).await;
    for (accept, kind) in [(PROTOBUF, "ConfigMap"), (PARTIAL, "PartialObjectMetadata")] {
        let mut frames = client.watch_as(Ask::get(&path).accept(accept)).await;
        let (first, object) = event(&mut frames).await;
        assert_eq!((first.as_str(), text(&object, "/metadata/name")), ("ADDED", "c"));
        let (second, bookmark) = event(&mut frames).await;
        assert_eq!((second.as_str(), text(&bookmark, "/kind")), ("BOOKMARK", kind));
        assert_eq!(text(&bookmark, "/metadata/annotations/k8s.io~1initial-events-end"), "true");
        assert!(rv(&bookmark) >= rv(&object));
    }
    let line = lines.events(2).await.pop().expect("a bookmark");
    assert_eq!(line.kind, "BOOKMARK");
}

#[tokio::test]
async fn a_long_list_is_the_same_in_pieces_pages_and_compressed() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for number in 0..40 {
        let data = char::from(b'a' + number % 26).to_string().repeat(5_000);
        client.post(CONFIG_MAPS, &config_map(&format!("c{number}"), &data)).await.expect(201);
    }
    let json = client.get(CONFIG_MAPS).await.expect(200);
    let plain = client.ask(Ask::get(CONFIG_MAPS).accept(PROTOBUF)).await;
    assert!(plain.body.len() > 128 << 10);
    assert_eq!(expect(&plain, 200), json);
    let gzip = client.ask(Ask::get(CONFIG_MAPS).accept(PROTOBUF).header("accept-encoding", "gzip")).await;
    assert_eq!((gzip.header("content-encoding"), gzip.header("content-type")), ("gzip", PROTOBUF));
    let mut decoded = Vec::new();
    GzDecoder::new(gzip.body.as_ref()).read_to_end(&mut decoded).expect("gzip");
    assert!(decoded == plain.body);
    for query in
        ["limit=7", "fieldSelector=metadata.name%3Dc7", "fieldSelector=metadata.name%3Dnone", "limit=500"]
    {
        let path = format!("{CONFIG_MAPS}?{query}");
        assert_eq!(protobuf(&client, &path).await, client.get(&path).await.expect(200), "{query}");
    }
    for (version, items_first) in [("v1", false), ("v1beta1", true)] {
        let accept = PARTIAL_LIST.replace("v=v1", &format!("v={version}"));
        let reply = client.ask(Ask::get(CONFIG_MAPS).accept(&accept)).await;
        let unknown = protobuf::decode_envelope(&reply.body).expect("an envelope");
        assert_eq!(
            (&*unknown.api_version, &*unknown.kind),
            (&*format!("meta.k8s.io/{version}"), "PartialObjectMetadataList")
        );
        if !items_first {
            let (_, list) = message(&unknown.api_version, &unknown.kind, unknown.raw);
            assert_eq!(names(&list), names(&json));
            assert_eq!(list["items"][3]["metadata"], json["items"][3]["metadata"]);
            assert_eq!(rv(&list), rv(&json));
        } else {
            // Its items are in field 1, its metadata in field 2, at the end.
            let partial = table().type_named("meta/v1", "PartialObjectMetadata").expect("a type");
            let mut item = Vec::new();
            protobuf::encode(partial, &json["items"][0], &mut item).expect("canonical");
            let mut head = Vec::new();
            protobuf::ListForm::ItemsFirst.open_item(item.len(), &mut head);
            assert!(unknown.raw.starts_with(&[head, item].concat()));
            let version = json["metadata"]["resourceVersion"].as_str().expect("a text").as_bytes();
            let metadata =
                [&[0x12, 6 + version.len() as u8, 0x0a, 0, 0x12, version.len() as u8], version, &[0x1a, 0]]
                    .concat();
            assert!(unknown.raw.ends_with(&metadata));
        }
    }
}

const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Bytes of the messages of Secrets.
async fn message_bytes(client: &Client) -> u64 {
    let metrics = client.get("/metrics").await;
    let name = r#"forebay_watch_cache_message_bytes{group="",resource="secrets"} "#;
    let value = metrics.text().lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
    value.parse().expect("a number")
}

/// The bytes that the cache of Secrets holds by use add up to what it says of each.
async fn uses_add_up(client: &Client) {
    let metrics = client.get("/metrics").await;
    let read = |name: &str, more: &str| -> u64 {
        let name = format!(r#"forebay_watch_cache_{name}{{group="",resource="secrets"{more}}} "#);
        let value = metrics.text().lines().find_map(|line| line.strip_prefix(&name)).expect("the metric");
        value.parse().expect("a number")
    };
    let used = |used: &str| read("held_bytes", &format!(r#",use="{used}""#));
    let state = ["plain", "blocks", "headers"].map(used);
    assert_eq!(state.iter().sum::<u64>(), read("object_bytes", ""));
    assert!(used("plain") > 0 && used("headers") > 0 && used("places") > 0, "{state:?}");
    assert_eq!(used("window"), read("window_bytes", ""));
    assert_eq!(used("messages"), read("message_bytes", ""));
}

#[tokio::test]
async fn an_object_has_one_message_whoever_asks() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    for number in 0..10 {
        let secret = json!({"metadata": {"name": format!("c{number}")}, "data": {"k": "dg=="}});
        client.post(SECRETS, &secret).await.expect(201);
    }
    client.get(SECRETS).await.expect(200);
    assert_eq!(message_bytes(&client).await, 0, "nobody asked for one");
    let list = client.ask(Ask::get(SECRETS).accept(PROTOBUF)).await;
    let once = message_bytes(&client).await;
    assert!(once as usize > list.body.len() && once < 10 * list.body.len() as u64, "{once}");
    uses_add_up(&client).await;
    let since = format!("{SECRETS}?watch=true&resourceVersion=0");
    for accept in [PROTOBUF, PARTIAL, PROTOBUF] {
        let mut frames = client.watch_as(Ask::get(&since).accept(accept)).await;
        for number in 0..10 {
            event(&mut frames).await;
            client.ask(Ask::get(format!("{SECRETS}/c{number}")).accept(accept)).await;
        }
    }
    let again = client.ask(Ask::get(SECRETS).accept(PROTOBUF)).await;
    assert!(again.body == list.body);
    client.ask(Ask::get(SECRETS).accept(PARTIAL_LIST)).await;
    assert_eq!(message_bytes(&client).await, once);
}

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

async fn widget(client: &Client) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}, "scale":
                {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &crd).await.expect(201);
    let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"replicas": 1},
        "metadata": {"name": "w", "annotations": {"a": "b"}, "finalizers": ["example.com/f"]}});
    client.post(WIDGETS, &widget).await.expect(201);
}

#[tokio::test]
async fn custom_resources_have_their_metadata_in_protobuf() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    widget(&client).await;
    let json = client.get(&format!("{WIDGETS}/w")).await.expect(200);
    let one = expect(&client.ask(Ask::get(format!("{WIDGETS}/w")).accept(PARTIAL)).await, 200);
    assert_eq!((text(&one, "/kind"), &one["metadata"]), ("PartialObjectMetadata", &json["metadata"]));
    let list = expect(&client.ask(Ask::get(WIDGETS).accept(PARTIAL_LIST)).await, 200);
    assert_eq!(
        (text(&list, "/kind"), &list["items"][0]["metadata"]),
        ("PartialObjectMetadataList", &json["metadata"])
    );
    let mut frames =
        client.watch_as(Ask::get(format!("{WIDGETS}?watch=true&resourceVersion=0")).accept(PARTIAL)).await;
    let (kind, object) = event(&mut frames).await;
    assert_eq!((kind.as_str(), &object["metadata"]), ("ADDED", &json["metadata"]));
    let deleted = client.ask(Ask::delete(format!("{WIDGETS}/w")).accept(PARTIAL)).await;
    let (kind, object) = event(&mut frames).await;
    assert_eq!((kind.as_str(), &object["metadata"]), ("MODIFIED", &expect(&deleted, 200)["metadata"]));
    let body = Ask::new(Method::POST, WIDGETS).body(PROTOBUF, b"k8s\0\x0a\0".as_slice());
    client.ask(body).await.expect(415);
}

/// What kube-apiserver 1.36.3 answers to each: code, type, and kind or message.
#[tokio::test]
async fn accept_headers_are_met_as_kube_apiserver_meets_them() {
    const TYPES: &str = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    const STREAMS: &str = "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    const ONE: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    const MANY: &str = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
    const JSON: &str = "application/json";
    const AGGREGATED: &str = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    create(&client, "c").await;
    widget(&client).await;
    let (one, many) = (format!("{CONFIG_MAPS}/c"), CONFIG_MAPS.to_owned());
    let (widget, widgets) = (format!("{WIDGETS}/w"), WIDGETS.to_owned());
    let watch = format!("{CONFIG_MAPS}?watch=true");
    let (scale, status) = (format!("{widget}/scale"), format!("{widget}/status"));
    let watch_widgets = format!("{WIDGETS}?watch=true");
    let rows: &[(&str, &str, u16, &str, &str)] = &[
        (&one, "P", 200, PROTOBUF, "ConfigMap"),
        (&one, "P,J", 200, PROTOBUF, "ConfigMap"),
        (&one, "J,P", 200, JSON, "ConfigMap"),
        (&one, "P;q=0.1,J", 200, JSON, "ConfigMap"),
        (&one, "P,*/*", 200, PROTOBUF, "ConfigMap"),
        (&one, "*/*", 200, JSON, "ConfigMap"),
        (&one, "application/cbor,P", 200, PROTOBUF, "ConfigMap"),
        (&one, "P;stream=watch", 200, PROTOBUF, "ConfigMap"),
        (&one, "P;pretty=1", 200, PROTOBUF, "ConfigMap"),
        (&one, "P;type=x", 200, PROTOBUF, "ConfigMap"),
        (&one, "PT", 406, JSON, TYPES),
        (&one, "PT,J", 200, JSON, "ConfigMap"),
        (&one, "PT,JT,J", 200, JSON, "Table"),
        (&one, "PM", 200, PROTOBUF, "PartialObjectMetadata"),
        (&one, "PM,JM,J", 200, PROTOBUF, "PartialObjectMetadata"),
        (&one, "PMbeta1", 200, PROTOBUF, "PartialObjectMetadata"),
        (&one, "JMbeta1", 200, JSON, "PartialObjectMetadata"),
        (&one, "JTbeta1", 200, JSON, "Table"),
        (
            &one,
            "PL",
            406,
            JSON,
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)",
        ),
        (&one, "application/*", 406, JSON, ONE),
        (&one, "application/vnd.kubernetes.*", 406, JSON, ONE),
        (&one, "text/plain", 406, JSON, ONE),
        (&many, "P", 200, PROTOBUF, "ConfigMapList"),
        (&many, "PL", 200, PROTOBUF, "PartialObjectMetadataList"),
        (&many, "PL,JL,J", 200, PROTOBUF, "PartialObjectMetadataList"),
        (&many, "JLbeta1", 200, JSON, "PartialObjectMetadataList"),
        (
            &many,
            "PM",
            406,
            JSON,
            "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)",
        ),
        (&many, "PT", 406, JSON, TYPES),
        (&many, "text/plain", 406, JSON, MANY),
        (&watch, "text/plain", 406, JSON, MANY),
        (&watch, "PT", 406, JSON, TYPES),
        (&watch, "application/yaml;stream=watch", 406, JSON, TYPES),
        (&watch, "application/yaml", 406, "application/yaml", STREAMS),
        (&watch, "application/yaml,P", 406, "application/yaml", STREAMS),
        (&widget, "P", 406, PROTOBUF, TYPES),
        (&widget, "P,J", 200, JSON, "Widget"),
        (&widget, "P,*/*", 200, JSON, "Widget"),
        (&widget, "P;stream=watch", 406, PROTOBUF, TYPES),
        (&widget, "application/cbor,P", 406, PROTOBUF, TYPES),
        (&widget, "application/*", 200, JSON, "Widget"),
        (&widget, "PT", 406, JSON, TYPES),
        (&widget, "PT,JT,J", 200, JSON, "Table"),
        (&widget, "PM", 200, PROTOBUF, "PartialObjectMetadata"),
        (&widget, "text/plain", 406, JSON, TYPES),
        (&widgets, "P", 406, PROTOBUF, TYPES),
        (&widgets, "P,J", 200, JSON, "WidgetList"),
        (&widgets, "PL,JL,J", 200, PROTOBUF, "PartialObjectMetadataList"),
        (&scale, "P", 406, PROTOBUF, TYPES),
        (&scale, "P,J", 200, JSON, "Scale"),
        (&status, "P", 406, PROTOBUF, TYPES),
        (&watch_widgets, "P", 406, PROTOBUF, TYPES),
        ("/api", "P", 200, PROTOBUF, "APIVersions"),
        ("/api/v1", "P,J", 200, PROTOBUF, "APIResourceList"),
        ("/apis", "P", 200, PROTOBUF, "APIGroupList"),
        ("/apis/apps", "P;stream=watch", 200, PROTOBUF, "APIGroup"),
        ("/apis/apps/v1", "P", 200, PROTOBUF, "APIResourceList"),
        ("/apis/example.com/v1", "P", 200, PROTOBUF, "APIResourceList"),
        ("/api", "PM", 406, JSON, TYPES),
        ("/api", "text/plain", 406, JSON, ONE),
        ("/apis", "text/plain", 406, JSON, TYPES),
        ("/apis/apps", "text/plain", 406, JSON, TYPES),
        ("/apis/apps/v1", "text/plain", 406, JSON, ONE),
        ("/apis/example.com/v1", "text/plain", 406, JSON, TYPES),
        (
            "/version",
            "P",
            406,
            PROTOBUF,
            "406: Not Acceptable\n\nAvailable representations: application/json",
        ),
        ("/version", "P,J", 200, JSON, ""),
        (
            "/apis/none.example.com/v1/x",
            "P",
            404,
            PROTOBUF,
            "the server could not find the requested resource",
        ),
    ];
    for &(path, short, code, content_type, says) in rows {
        let reply = client.ask(Ask::get(path).accept(&spelled(short))).await;
        assert_eq!((reply.code, reply.header("content-type")), (code, content_type), "{path} {short}");
        let got = match content_type {
            PROTOBUF => read(&reply.body),
            JSON => reply.json(),
            _ => serde_saphyr::from_str(reply.text()).expect("YAML"),
        };
        let said = if code == 200 { text(&got, "/kind") } else { text(&got, "/message") };
        assert_eq!(said, says, "{path} {short}");
    }
    for path in ["/api", "/apis"] {
        for media in [JSON, PROTOBUF] {
            let accept = format!("{media}{AGGREGATED},application/json");
            let reply = client.ask(Ask::get(path).accept(&accept)).await;
            assert_eq!(reply.header("content-type"), format!("{media}{AGGREGATED}"));
            let got = if media == JSON { reply.json() } else { read(&reply.body) };
            let json = client.ask(Ask::get(path).accept(&format!("{JSON}{AGGREGATED}"))).await.json();
            assert_eq!(
                got["items"].as_array().map(Vec::len),
                json["items"].as_array().map(Vec::len),
                "{path} {media}"
            );
            assert_eq!(
                got["items"][0]["versions"][0]["resources"][2],
                json["items"][0]["versions"][0]["resources"][2]
            );
        }
    }
    for (short, content_type) in [
        ("P", STREAM),
        ("P;stream=watch", STREAM),
        ("P;stream=watch,J", STREAM),
        ("P,J", STREAM),
        ("PM", STREAM),
        ("J;stream=watch,P;stream=watch", JSON),
        ("PT,J", JSON),
        ("JMbeta1", JSON),
        ("*/*", JSON),
    ] {
        let ask = Ask::get(format!("{watch}&timeoutSeconds=1")).accept(&spelled(short));
        let reply = client.ask(ask).await;
        assert_eq!((reply.code, reply.header("content-type")), (200, content_type), "{short}");
    }
}

/// `PT,J`: protobuf as a Table, then JSON.
fn spelled(short: &str) -> String {
    let clause = |clause: &str| {
        let (media, rest) = match clause.as_bytes().first() {
            Some(b'P') => (PROTOBUF, &clause[1..]),
            Some(b'J') => ("application/json", &clause[1..]),
            _ => return clause.to_owned(),
        };
        let (kind, version) = match rest.as_bytes().first() {
            Some(b'T') => ("Table", &rest[1..]),
            Some(b'M') => ("PartialObjectMetadata", &rest[1..]),
            Some(b'L') => ("PartialObjectMetadataList", &rest[1..]),
            _ => return format!("{media}{rest}"),
        };
        format!("{media};as={kind};g=meta.k8s.io;v=v1{version}")
    };
    short.split(',').map(clause).collect::<Vec<_>>().join(",")
}
