//! What another server says of itself: one document at a time, and of each no more than its limit.
//!
//! In: a route, a path. Out: a code; what is kept of a document. Never: a document that is kept whole; a wait
//! without an end.
//!
//! Source: kube-aggregator v0.36.3 `apiserver/handler_discovery.go`, `controllers/openapiv3/aggregator`.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::MASTERS;
use forebay_apimachinery::json::weight;
use forebay_documents::discovery::Extension;
use forebay_documents::discovery::extensions::{ExtensionResource, or_none};
use forebay_documents::openapi::part::OpenApiPart;
use forebay_proxy::{Carried, Forwarded, ProxiedAnswer, ProxyError, ProxyRoute, RequestBody};
use forebay_rt::Clock;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;

use crate::limits::{
    ANSWER_WAIT, DISCOVERY_BYTES_MAX, DISCOVERY_WEIGHT_MAX, OPENAPI_BYTES_MAX, RESOURCES_BYTES_MAX,
    URL_BYTES_MAX,
};

const JSON: &str = "application/json";
/// Both versions of aggregated discovery, whose documents are the same as far as they are read.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

/// A document, as it was answered.
struct Document {
    code: StatusCode,
    content_type: String,
    body: Bytes,
}

/// Where documents of OpenAPI v3 are.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenApiIndex {
    #[serde(deserialize_with = "or_none")]
    paths: HashMap<Box<str>, OpenApiPath>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OpenApiPath {
    #[serde(rename = "serverRelativeURL", deserialize_with = "or_none")]
    server_relative_url: Box<str>,
}

/// Asks as the aggregator itself, who may read everything, and waits for the head of the answer.
async fn ask(
    route: &ProxyRoute,
    path: &str,
    accept: &'static str,
) -> Result<(http::response::Parts, Carried), ProxyError> {
    let target = path.parse().map_err(|why: http::uri::InvalidUri| ProxyError::Broken(why.to_string()))?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-aggregator"));
    let caller = Caller {
        name: "system:kube-aggregator".to_owned(),
        groups: vec![MASTERS.to_owned()],
        ..Caller::default()
    };
    let forwarded = Forwarded { method: Method::GET, target, headers, client: None, user: None };
    match route.send_anyway(forwarded, RequestBody::Right(Default::default()), &caller).await? {
        ProxiedAnswer::Carried(head, carried) => Ok((head, carried)),
        ProxiedAnswer::Upgraded(..) | ProxiedAnswer::Moved(_) | ProxiedAnswer::Nothing => {
            Err(ProxyError::Broken("it speaks another protocol".to_owned()))
        }
    }
}

/// What `asked` gives, in time.
///
/// # Errors
/// Why there is no answer, in the words of Go's HTTP client.
async fn in_time<T>(asked: impl Future<Output = Result<T, ProxyError>>, clock: &Clock) -> Result<T, String> {
    let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    tokio::select! {
        biased;
        answered = asked => answered.map_err(|why| why.to_string()),
        () = clock.sleep(ANSWER_WAIT) => Err(late.to_owned()),
    }
}

/// With which code a server answers at `path`. What else it says is not read, however long that is.
///
/// # Errors
/// Why there is no answer, in the words of Go's HTTP client.
pub async fn code(route: &ProxyRoute, path: &str, clock: &Clock) -> Result<StatusCode, String> {
    let asked = async { ask(route, path, JSON).await.map(|(head, _unread)| head.status) };
    in_time(asked, clock).await
}

async fn fetch(
    (route, clock): (&ProxyRoute, &Clock),
    path: &str,
    accept: &'static str,
    bytes_max: usize,
) -> Result<Document, String> {
    let asked = async {
        let (head, carried) = ask(route, path, accept).await?;
        let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_owned();
        let body = carried.whole(bytes_max).await?;
        Ok(Document { code: head.status, content_type, body })
    };
    in_time(asked, clock).await
}

/// `extension`, with what its server says of it now.
///
/// - `path`: of its version.
///
/// # Errors
/// What is said cannot be used.
pub async fn read(
    extension: Extension,
    path: &str,
    route: &ProxyRoute,
    clock: &Clock,
) -> Result<Extension, String> {
    let all = fetch((route, clock), "/apis", AGGREGATED, DISCOVERY_BYTES_MAX).await?;
    let resources = match resources_of_all(&extension, &all) {
        Some(resources) => resources?,
        None => {
            drop(all);
            let alone = fetch((route, clock), path, JSON, DISCOVERY_BYTES_MAX).await?;
            resources_of_version(&extension, path, &alone)?
        }
    };
    let told_bytes = told_bytes(&resources)?;
    let openapi_url = openapi(&extension, route, clock).await;
    let openapi_v2 = openapi_v2(&extension, route, clock).await.map(Arc::new);
    let resources = resources.into();
    Ok(Extension { resources, told_bytes, is_stale: false, openapi_url, openapi_v2, ..extension })
}

/// What aggregated discovery says of the version; `None` from servers that have none.
fn resources_of_all(
    extension: &Extension,
    document: &Document,
) -> Option<Result<Vec<ExtensionResource>, String>> {
    let is_it = document.code == StatusCode::OK && document.content_type.contains("g=apidiscovery.k8s.io");
    is_it.then(|| within_weight(&document.body).and_then(|body| extension.read_aggregated(body)))
}

/// What the document of the version says.
fn resources_of_version(
    extension: &Extension,
    path: &str,
    document: &Document,
) -> Result<Vec<ExtensionResource>, String> {
    match document.code {
        StatusCode::OK => within_weight(&document.body).and_then(|body| extension.read_legacy(body)),
        code => Err(format!("failed to download legacy discovery for {path}: {}", code.as_u16())),
    }
}

/// A document that is not made of more values than there is room for while it is read.
fn within_weight(body: &[u8]) -> Result<&[u8], String> {
    match weight::of_text(body) {
        weight if weight > DISCOVERY_WEIGHT_MAX => {
            Err(format!("its document of {} bytes has too many values", body.len()))
        }
        _ => Ok(body),
    }
}

/// Bytes that they take to tell.
fn told_bytes(resources: &[ExtensionResource]) -> Result<usize, String> {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, resources).map_err(|why| why.to_string())?;
    match counted.0 {
        bytes if bytes > RESOURCES_BYTES_MAX => Err(format!("its resources take {bytes} bytes to tell")),
        bytes => Ok(bytes),
    }
}

/// Counts what is written.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What it says in OpenAPI v2; nothing where that is not to be had.
async fn openapi_v2(extension: &Extension, route: &ProxyRoute, clock: &Clock) -> Option<OpenApiPart> {
    let document = fetch((route, clock), "/openapi/v2", JSON, OPENAPI_BYTES_MAX).await.ok()?;
    if document.code != StatusCode::OK {
        return None;
    }
    let (group, version) = (&*extension.group, &*extension.version);
    let read = OpenApiPart::read(&document.body, group, version);
    read.unwrap_or_else(|why| {
        tracing::warn!(group, version, why, "what it says in OpenAPI v2 cannot be told");
        None
    })
}

/// Where its document of OpenAPI is; nothing where it has none, or does not say.
async fn openapi(extension: &Extension, route: &ProxyRoute, clock: &Clock) -> Option<Box<str>> {
    let index = fetch((route, clock), "/openapi/v3", JSON, OPENAPI_BYTES_MAX).await.ok()?;
    let mut index: OpenApiIndex = serde_json::from_slice(&index.body).ok()?;
    let path = format!("apis/{}/{}", extension.group, extension.version);
    let url = index.paths.remove(&*path)?.server_relative_url;
    // It is asked for here, whatever else it says.
    let is_ours = url.strip_prefix("/openapi/v3/").is_some_and(|rest| {
        rest.strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('?'))
    });
    (is_ours && url.len() <= URL_BYTES_MAX).then_some(url)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const PATH: &str = "/apis/custom.metrics.k8s.io/v1beta1";

    fn extension() -> Extension {
        let (group, version) = ("custom.metrics.k8s.io".into(), "v1beta1".into());
        Extension { group, version, ..Extension::default() }
    }

    fn answered(resources: &Value) -> Document {
        let list = json!({ "kind": "APIResourceList", "groupVersion": "custom.metrics.k8s.io/v1beta1",
                           "resources": resources });
        Document {
            code: StatusCode::OK,
            content_type: JSON.to_owned(),
            body: Bytes::from(list.to_string().into_bytes()),
        }
    }

    fn read(document: &Document) -> Result<usize, String> {
        assert!(document.body.len() <= DISCOVERY_BYTES_MAX, "{}", document.body.len());
        let resources = resources_of_version(&extension(), PATH, document)?;
        told_bytes(&resources)?;
        Ok(resources.iter().map(|resource| resource.subresources.len()).sum())
    }

    /// As prometheus-adapter tells them: a resource for each metric of each kind.
    #[test]
    fn nine_thousand_metrics_are_told() {
        let metrics: Vec<Value> = (0..9_000)
            .map(|index| {
                let name = format!("pods/application_requests_per_second_of_route_{index:05}");
                json!({ "name": name, "singularName": "", "namespaced": true, "kind": "MetricValueList",
                        "verbs": ["get"] })
            })
            .collect();
        assert_eq!(read(&answered(&metrics.into())), Ok(9_000));
    }

    #[test]
    fn what_is_too_much_to_read_or_to_tell_is_told_by_nobody() {
        let many = answered(&json!(vec![json!({}); 60_000]));
        let why = read(&many).expect_err("many");
        assert_eq!(why, format!("its document of {} bytes has too many values", many.body.len()));
        let long = answered(&json!([{ "name": "x".repeat(RESOURCES_BYTES_MAX) }]));
        assert!(read(&long).expect_err("long").ends_with(" bytes to tell"));
        let gone = Document { code: StatusCode::NOT_FOUND, ..answered(&json!([])) };
        let why = read(&gone).expect_err("no document");
        assert_eq!(why, format!("failed to download legacy discovery for {PATH}: 404"));
    }

    #[test]
    fn what_go_writes_for_nothing_is_nothing() {
        assert_eq!(read(&answered(&Value::Null)), Ok(0));
        let index: OpenApiIndex = serde_json::from_str(r#"{"paths":null}"#).expect("an index");
        assert!(index.paths.is_empty());
        let index: OpenApiIndex =
            serde_json::from_str(r#"{"paths":{"a":{"serverRelativeURL":null}}}"#).expect("an index");
        assert_eq!(index.paths.len(), 1);
    }
}
