//! What a watch sends in each form, as kube-apiserver v1.36.3 sends it, byte for byte where nothing differs
//! by design.

use serde_json::json;

use crate::common::{Ask, Client, Scratch, Server};
use crate::{CONFIG_MAPS, churn};

const END: &str = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                   &labelSelector=no=such";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1beta1;g=meta.k8s.io";

/// The first event, its resourceVersion and the columns' descriptions blanked.
async fn first(client: &Client, path: &str, accept: &str) -> String {
    let event = client.watch_as(Ask::get(path).accept(accept)).await.event().await;
    let mut line = event.line;
    let revision = event.object["metadata"]["resourceVersion"].as_str().expect("a resourceVersion");
    line = line.replace(&format!("\"{revision}\""), "\"RV\"");
    for column in event.object["columnDefinitions"].as_array().map(Vec::as_slice).unwrap_or_default() {
        line = line.replace(&column["description"].to_string(), "\"D\"");
    }
    line
}

#[tokio::test]
async fn a_bookmark_is_an_object_of_the_kind_that_has_nothing() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let meta = r#""metadata":{"resourceVersion":"RV","annotations":{"k8s.io/initial-events-end":"true"}}"#;
    for (path, want) in [
        ("/api/v1/configmaps", format!(r#"{{"kind":"ConfigMap","apiVersion":"v1",{meta}}}"#)),
        (
            "/api/v1/pods",
            format!(
                r#"{{"kind":"Pod","apiVersion":"v1",{meta},"spec":{{"containers":null}},"status":{{}}}}"#
            ),
        ),
        (
            "/apis/apps/v1/deployments",
            format!(
                r#"{{"kind":"Deployment","apiVersion":"apps/v1",{meta},"spec":{{"replicas":0,"selector":null,"template":{{"metadata":{{}},"spec":{{"containers":null}}}},"strategy":{{}}}},"status":{{}}}}"#
            ),
        ),
        (
            "/api/v1/events",
            format!(
                r#"{{"kind":"Event","apiVersion":"v1",{meta},"involvedObject":{{}},"source":{{}},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}}"#
            ),
        ),
    ] {
        let want = format!(r#"{{"type":"BOOKMARK","object":{want}}}"#);
        assert_eq!(first(&client, &format!("{path}?{END}"), "application/json").await, want);
        let want = format!(
            r#"{{"type":"BOOKMARK","object":{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1beta1",{meta}}}}}"#
        );
        assert_eq!(first(&client, &format!("{path}?{END}"), PARTIAL).await, want);
    }
}

#[tokio::test]
async fn a_bookmark_of_a_table_is_a_row_of_such_an_object() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let columns = r#"[{"name":"Name","type":"string","format":"name","description":"D","priority":0},{"name":"Data","type":"string","format":"","description":"D","priority":0},{"name":"Age","type":"string","format":"","description":"D","priority":0}]"#;
    let meta = r#""metadata":{"resourceVersion":"RV","annotations":{"k8s.io/initial-events-end":"true"}}"#;
    let partial = format!(r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",{meta}}}"#);
    let whole = format!(r#"{{"kind":"ConfigMap","apiVersion":"v1",{meta}}}"#);
    for (include, object) in [("", &partial), ("None", &partial), ("Metadata", &partial), ("Object", &whole)]
    {
        let want = format!(
            r#"{{"type":"BOOKMARK","object":{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"RV"}},"columnDefinitions":{columns},"rows":[{{"cells":["",0,"\u003cunknown\u003e"],"object":{object}}}]}}}}"#
        );
        let path = format!("/api/v1/configmaps?{END}&includeObject={include}");
        assert_eq!(first(&client, &path, TABLE).await, want);
    }
    let timed = r#"apiserver_watch_list_duration_seconds_count{group="",resource="configmaps",scope="cluster",version="v1"} 4"#;
    assert!(client.get("/metrics").await.text().contains(timed));
    // Columns go with the first event alone.
    churn(&client, CONFIG_MAPS, "c", 1, 1).await;
    let path =
        format!("{CONFIG_MAPS}?{END}").replace("&labelSelector=no=such", "&fieldSelector=metadata.name=c");
    let mut watch = client.watch_as(Ask::get(path).accept(TABLE)).await;
    let events = watch.events(2).await;
    assert!(events[0].object["columnDefinitions"].is_array());
    assert!(events[1].object["columnDefinitions"].is_null());
    assert_eq!(events[1].object["rows"][0]["cells"], json!(["", 0, "<unknown>"]));
}

#[tokio::test]
async fn the_paths_of_old_are_served_where_kube_apiserver_has_them() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    churn(&client, CONFIG_MAPS, "c", 1, 1).await;
    for (path, want) in [
        ("/api/v1/watch/configmaps?fieldSelector=metadata.name=c", "ADDED c"),
        ("/api/v1/watch/namespaces/default/configmaps?fieldSelector=metadata.name=c", "ADDED c"),
        ("/api/v1/watch/namespaces/default/configmaps/c", "ADDED c"),
        (
            "/api/v1/watch/namespaces/default/configmaps/c?fieldSelector=metadata.name=c&watch=false",
            "ADDED c",
        ),
        ("/api/v1/watch/namespaces/default", "ADDED default"),
    ] {
        assert_eq!(client.watch(path).await.event().await.short(), want, "{path}");
    }
    for (method, path, code) in [
        ("GET", "/api/v1/watch/namespaces/default/configmaps/c?fieldSelector=metadata.name=x", 400),
        ("GET", "/api/v1/watch/configmaps/c", 404),
        ("GET", "/api/v1/watch/nothings", 404),
        ("GET", "/api/v1/watch/namespaces/default/pods/p/status", 404),
        ("GET", "/api/v1/watch/componentstatuses", 404),
        ("GET", "/api/v1/watch", 500),
        ("POST", "/api/v1/watch/configmaps", 405),
        // Not a watch at all: a name in the path is a GET.
        ("GET", "/api/v1/namespaces/default/configmaps/c?watch=1", 200),
    ] {
        let method = method.parse().expect("a method");
        assert_eq!(client.ask(Ask::new(method, path)).await.code, code, "{path}");
    }
}

#[tokio::test]
async fn a_time_that_no_clock_has_is_a_long_one() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    churn(&client, CONFIG_MAPS, "c", 1, 1).await;
    let path = format!("{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name=c&timeoutSeconds=");
    for seconds in [i64::MAX, 9_223_372_037, 1 << 40] {
        let mut watch = client.watch(&format!("{path}{seconds}")).await;
        assert_eq!(watch.event().await.short(), "ADDED c");
    }
    client.watch(&format!("{path}-1")).await.end().await;
}
