//! The forms that answers and bodies come in: Table, metadata alone, YAML, gzip.

use std::io::Read as _;

use flate2::read::GzDecoder;
use http::Method;
use serde_json::{Value, json};

use crate::common::{Ask, Scratch, Server, names, rv, text};
use crate::{CONFIG_MAPS, config_map, create};

#[tokio::test]
async fn a_table_has_the_cells_of_the_kind() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let object = create(&client, "c").await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let metadata = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
    for (path, row) in [
        (CONFIG_MAPS.to_owned(), metadata.clone()),
        (format!("{CONFIG_MAPS}/c"), metadata),
        (format!("{CONFIG_MAPS}?includeObject=Object"), object.clone()),
        (format!("{CONFIG_MAPS}?includeObject=None"), Value::Null),
    ] {
        let table = client.ask(Ask::get(&path).accept(accept)).await.expect(200);
        assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
        assert!(rv(&table) >= rv(&object), "{path}");
        let columns = table["columnDefinitions"].as_array().expect("columns");
        let columns: Vec<&str> = columns.iter().map(|column| text(column, "/name")).collect();
        assert_eq!(columns, ["Name", "Data", "Age"], "{path}");
        let rows = table["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 1, "{path}");
        assert_eq!((&rows[0]["cells"][0], &rows[0]["cells"][1]), (&json!("c"), &json!(1)), "{path}");
        assert_eq!(rows[0].get("object").unwrap_or(&Value::Null), &row, "{path}");
    }
    let mut watch =
        client.watch_as(Ask::get(format!("{CONFIG_MAPS}?watch=true&resourceVersion=0")).accept(accept)).await;
    let first = watch.event().await;
    assert_eq!((first.kind.as_str(), text(&first.object, "/kind")), ("ADDED", "Table"));
    assert_eq!(first.object["rows"][0]["cells"][0], "c");
}

#[tokio::test]
async fn metadata_can_be_had_alone() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let object = create(&client, "c").await;
    let item = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]});
    let one = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let got = client.ask(Ask::get(format!("{CONFIG_MAPS}/c")).accept(one)).await.expect(200);
    assert_eq!(got, item);
    let many = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let list = client.ask(Ask::get(CONFIG_MAPS).accept(many)).await.expect(200);
    assert_eq!(text(&list, "/kind"), "PartialObjectMetadataList");
    assert_eq!(list["items"], json!([item]));
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=0");
    let mut watch = client.watch_as(Ask::get(path).accept(one)).await;
    assert_eq!(watch.event().await.object, item);
}

#[tokio::test]
async fn yaml_is_taken_and_given() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let body = "# a comment\napiVersion: v1\nkind: ConfigMap # another\nmetadata:\n  name: c\n  labels: {tier: \"off\"}\ndata:\n  k: |\n    two\n    lines\n";
    let ask = Ask::new(Method::POST, CONFIG_MAPS).body("application/yaml", body).accept("application/yaml");
    let created = client.ask(ask).await;
    assert_eq!((created.code, created.header("content-type")), (201, "application/yaml"));
    let json = client.get(&format!("{CONFIG_MAPS}/c")).await.expect(200);
    assert_eq!(text(&json, "/data/k"), "two\nlines\n");
    assert_eq!(text(&json, "/metadata/labels/tier"), "off");
    assert_eq!(read_yaml(created.text()), json);
    for (path, code) in [(CONFIG_MAPS.to_owned(), 200), (format!("{CONFIG_MAPS}/none"), 404)] {
        let yaml = client.ask(Ask::get(&path).accept("application/yaml")).await;
        assert_eq!((yaml.code, yaml.header("content-type")), (code, "application/yaml"), "{path}");
        assert_eq!(read_yaml(yaml.text()), client.get(&path).await.expect(code), "{path}");
    }
}

/// Text that looks like a number is quoted, so that it is read as text again.
fn read_yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[tokio::test]
async fn a_long_list_is_compressed_if_the_client_likes() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let data = |number: u64| {
        (0..8_000_u64).map(|at| char::from(b'a' + (at * number % 23) as u8)).collect::<String>()
    };
    let before = client.ask(Ask::get(CONFIG_MAPS).header("accept-encoding", "gzip")).await;
    assert_eq!(before.header("content-encoding"), "", "short answers are not worth it");
    for number in 1..=20 {
        client.post(CONFIG_MAPS, &config_map(&format!("c{number}"), &data(number))).await.expect(201);
    }
    let plain = client.get(CONFIG_MAPS).await;
    assert!(plain.body.len() > 128 << 10);
    assert_eq!((plain.code, plain.header("content-encoding")), (200, ""));
    let gzip = client.ask(Ask::get(CONFIG_MAPS).header("accept-encoding", "gzip")).await;
    assert_eq!((gzip.code, gzip.header("content-encoding")), (200, "gzip"));
    assert_eq!((gzip.header("vary"), plain.header("vary")), ("Accept-Encoding", ""));
    assert!(gzip.body.len() < plain.body.len() / 2);
    let mut decoded = String::new();
    GzDecoder::new(gzip.body.as_ref()).read_to_string(&mut decoded).expect("gzip");
    assert_eq!(decoded, plain.text());
    assert_eq!(names(&plain.json()).len(), 20);
}

#[tokio::test]
async fn the_store_is_the_one_component() {
    let scratch = Scratch::new();
    let server = Server::start(&scratch, &[]).await;
    let client = server.admin().await;
    let all = client.get("/api/v1/componentstatuses").await.expect(200);
    let healthy = json!([{"type": "Healthy", "status": "True", "message": "ok"}]);
    assert_eq!((&all["kind"], &all["items"][0]["conditions"]), (&"ComponentStatusList".into(), &healthy));
    let one = client.get("/api/v1/componentstatuses/etcd-0").await;
    assert_eq!(one.warnings(), [r#"299 - "v1 ComponentStatus is deprecated in v1.19+""#]);
    assert_eq!(one.expect(200)["conditions"], healthy);
    client.get("/api/v1/componentstatuses/scheduler").await.expect(404);
    let table = Ask::get("/api/v1/componentstatuses").accept("application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = client.ask(table).await.expect(200);
    assert_eq!(table["rows"][0]["cells"], json!(["etcd-0", "Healthy", "ok", ""]));
}
