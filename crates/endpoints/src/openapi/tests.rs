//! Documents as clients read them: every built-in resource, in every form.

use std::collections::BTreeSet;
use std::sync::Arc;

use forebay_apimachinery::options::Query;
use forebay_catalog::Catalog;
use forebay_rt::Clock;
use forebay_transport::limits::PIECE_BYTES;
use forebay_transport::{ResponseChannel, StalledReaders};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};

use super::{Name, OpenApi, PLAIN_BYTES, Subject, answer};
use crate::answer::HttpResponse;
use crate::rooms::Rooms;

/// The built-in resources.
fn catalog() -> Catalog {
    forebay_catalog::table::without_stores(forebay_strategy::convert::of)
}

struct Server {
    openapi: OpenApi,
    catalog: Arc<Catalog>,
    stalled_readers: StalledReaders,
    rooms: Rooms,
}

impl Server {
    fn new() -> Server {
        let (stalled_readers, rooms) = (StalledReaders::new(Clock::system()), Rooms::new(Clock::system()));
        Server { openapi: OpenApi::default(), catalog: Arc::new(catalog()), stalled_readers, rooms }
    }

    async fn ask(&self, target: &str, headers: &[(HeaderName, &str)]) -> Result<HttpResponse, u16> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let value = |text: &str| HeaderValue::from_str(text).expect("a header");
        let headers: HeaderMap = headers.iter().map(|(name, text)| (name.clone(), value(text))).collect();
        let (query, readers) =
            (Query::parse(query), ((&self.stalled_readers, &ResponseChannel::default()), &self.rooms));
        let answer = answer((&self.openapi, &self.catalog, &[]), path, &headers, &query, readers).await;
        answer.map_err(|failure| failure.code().as_u16())
    }

    async fn json(&self, target: &str) -> Value {
        let response = self.ask(target, &[]).await.expect(target);
        assert_eq!(
            (response.status(), told(&response, header::CONTENT_TYPE)),
            (StatusCode::OK, "application/json")
        );
        serde_json::from_slice(&body(response).await).expect("JSON")
    }
}

fn told(response: &HttpResponse, name: HeaderName) -> &str {
    response.headers().get(name).map_or("", |value| value.to_str().expect("text"))
}

async fn body(response: HttpResponse) -> Vec<u8> {
    response.into_body().collect().await.expect("a whole body").to_bytes().to_vec()
}

/// The targets of all `$ref`s.
fn references<'v>(value: &'v Value, out: &mut BTreeSet<&'v str>) {
    match value {
        Value::Object(map) => {
            out.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, out));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, out)),
        _ => {}
    }
}

fn assert_complete(document: &Value) {
    let mut found = BTreeSet::new();
    references(document, &mut found);
    assert!(!found.is_empty());
    for reference in found {
        let pointer = reference.strip_prefix('#').expect("a local reference");
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

#[tokio::test]
async fn the_index_leads_to_documents_that_are_complete_and_of_the_hash() {
    let server = Server::new();
    let index = server.json("/openapi/v3").await;
    let paths = index["paths"].as_object().expect("paths");
    assert!(
        ["api", "api/v1", "apis", "apis/apps", "apis/apps/v1", "version"]
            .iter()
            .all(|path| paths.contains_key(*path))
    );
    for (path, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().expect("a URL");
        assert!(url.starts_with(&format!("/openapi/v3/{path}?hash=")), "{url}");
        let response = server.ask(url, &[]).await.expect(url);
        assert_eq!(told(&response, header::CACHE_CONTROL), "public, immutable, max-age=31536000", "{url}");
        assert_eq!(format!("\"{}\"", url.split_once('=').expect("a hash").1), told(&response, header::ETAG));
        let document: Value = serde_json::from_slice(&body(response).await).expect("JSON");
        assert_complete(&document);
    }
}

#[tokio::test]
async fn clients_learn_of_server_side_validation_and_of_kinds() {
    let document = Server::new().json("/openapi/v3/apis/apps/v1").await;
    let item = &document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"];
    let gvk = json!({ "group": "apps", "version": "v1", "kind": "Deployment" });
    for (method, action, validates) in
        [("get", "get", false), ("put", "put", true), ("patch", "patch", true), ("delete", "delete", false)]
    {
        let operation = &item[method];
        assert_eq!(operation["x-kubernetes-action"], action);
        assert_eq!(operation["x-kubernetes-group-version-kind"], gvk);
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let has = |name: &str| parameters.iter().any(|parameter| parameter["name"] == name);
        assert_eq!((has("fieldValidation"), has("dryRun")), (validates, method != "get"), "{method}");
    }
    let schema = &document["components"]["schemas"]["io.k8s.api.apps.v1.Deployment"];
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([gvk]));
    let spec = json!([{ "$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentSpec" }]);
    assert_eq!(schema["properties"]["spec"]["allOf"], spec);
}

#[tokio::test]
async fn a_document_is_had_by_its_hash() {
    let server = Server::new();
    let response = server.ask("/openapi/v3/api/v1", &[]).await.expect("a document");
    let (etag, plain) = (told(&response, header::ETAG).to_owned(), body(response).await);
    let response =
        server.ask("/openapi/v3/api/v1", &[(header::IF_NONE_MATCH, &etag)]).await.expect("a document");
    assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
    assert!(body(response).await.is_empty());
    let response = server.ask("/openapi/v3/api/v1?hash=OLD", &[]).await.expect("a document");
    assert_eq!(response.status(), StatusCode::MOVED_PERMANENTLY);
    assert_eq!(
        told(&response, header::LOCATION),
        format!("/openapi/v3/api/v1?hash={}", etag.trim_matches('"'))
    );
    let response =
        server.ask("/openapi/v3/api/v1", &[(header::ACCEPT_ENCODING, "gzip")]).await.expect("a document");
    assert_eq!(told(&response, header::CONTENT_ENCODING), "gzip");
    let gzip = body(response).await;
    assert!(gzip.len() * 8 < plain.len(), "{} of {}", gzip.len(), plain.len());
}

#[tokio::test]
async fn who_takes_no_gzip_has_a_document_inflated_piece_by_piece() {
    let server = Server::new();
    let mut body = server.ask("/openapi/v2", &[]).await.expect("a document").into_body();
    let (len, mut read) = (body.exact_len().expect("a length"), 0);
    assert_eq!(server.rooms.answers.totals().held, PLAIN_BYTES);
    while let Some(frame) = body.frame().await {
        let piece = frame.expect("more").into_data().expect("data");
        assert!(piece.len() <= PIECE_BYTES, "{}", piece.len());
        read += piece.len();
    }
    assert!(read == len && len > 20 * PIECE_BYTES, "{read} of {len}");
    assert_eq!(server.rooms.answers.totals().held, 0);
}

#[tokio::test]
async fn what_is_not_there_or_not_taken_is_refused() {
    let server = Server::new();
    for path in [
        "/openapi",
        "/openapi/v1",
        "/openapi/v2/",
        "/openapi/v3/",
        "/openapi/v3/api/v1/",
        "/openapi/v3/x",
        "/openapi/v3/apis/a/b/c",
        "/openapi/v3/apis/apps/v9",
        "/openapi/v3/apis/x",
    ] {
        assert_eq!(server.ask(path, &[]).await.err(), Some(404), "{path}");
    }
    for (path, accept, want) in [
        ("/openapi/v2", "application/yaml", Some(406)),
        ("/openapi/v3/api/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf", Some(406)),
        ("/openapi/v3/api/v1", "application/com.github.proto-openapi.spec.v3@v1.0+protobuf, */*", None),
        ("/openapi/v2", "application/json", None),
    ] {
        assert_eq!(server.ask(path, &[(header::ACCEPT, accept)]).await.err(), want, "{path} {accept}");
    }
}

#[tokio::test]
async fn documents_outlive_a_catalog_that_changes_nothing_in_them() {
    let mut server = Server::new();
    let pods = Name::V3(Subject::Version { group: String::new(), version: "v1".into() });
    let before =
        server.openapi.document(&server.catalog, pods.clone(), Vec::new()).await.expect("a document");
    let index = server.openapi.index(&server.catalog).await.expect("an index");
    // Another catalog, without batch.
    server.catalog = Arc::new(Catalog::from_shared(
        server.catalog.iter().filter(|served| served.group() != "batch").cloned(),
        None,
    ));
    let after = server.openapi.document(&server.catalog, pods, Vec::new()).await.expect("a document");
    assert_eq!(before.gzip.as_ptr(), after.gzip.as_ptr(), "the same bytes");
    let shorter = server.openapi.index(&server.catalog).await.expect("an index");
    assert_ne!(shorter.hash, index.hash);
    assert_eq!(server.ask("/openapi/v3/apis/batch/v1", &[]).await.err(), Some(404));
}

#[tokio::test]
async fn v2_is_complete_and_there_is_one_in_protobuf() {
    let server = Server::new();
    let document = server.json("/openapi/v2").await;
    assert_complete(&document);
    let asked = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let response = server.ask("/openapi/v2", &[(header::ACCEPT, asked)]).await.expect("a document");
    assert_eq!(
        told(&response, header::CONTENT_TYPE),
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    );
}
