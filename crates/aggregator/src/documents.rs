//! What another server says of itself: one document at a time, and of each no more than its limit.
//!
//! In: a route, a path. Out: a document; what is kept of it. Never: a document that is kept whole; a wait
//! without an end.
//!
//! Source: kube-aggregator v0.36.3 `apiserver/handler_discovery.go`, `controllers/openapiv3/aggregator`.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::MASTERS;
use forebay_documents::discovery::Extension;
use forebay_documents::discovery::extensions::or_none;
use forebay_documents::openapi::part::OpenApiPart;
use forebay_proxy::{Forwarded, ProxiedAnswer, ProxyError, ProxyRoute, RequestBody};
use forebay_rt::Clock;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::Empty;
use serde::Deserialize;

use crate::limits::{ANSWER_WAIT, DOCUMENT_BYTES_MAX, RESOURCES_BYTES_MAX, URL_BYTES_MAX};

const JSON: &str = "application/json";
/// Both versions of aggregated discovery, whose documents are the same as far as they are read.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,\
                          application/json";

/// A document, as it was answered.
pub struct Document {
    pub code: StatusCode,
    pub content_type: String,
    pub body: Bytes,
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

/// Asks for a document as the aggregator itself, who may read everything.
///
/// # Errors
/// Why there is none, in the words of Go's HTTP client.
pub async fn fetch(
    route: &ProxyRoute,
    path: &str,
    accept: &'static str,
    clock: &Clock,
) -> Result<Document, String> {
    let target: Uri = path.parse().map_err(|why: http::uri::InvalidUri| why.to_string())?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(USER_AGENT, HeaderValue::from_static("kube-aggregator"));
    let caller = Caller {
        name: "system:kube-aggregator".to_owned(),
        groups: vec![MASTERS.to_owned()],
        ..Caller::default()
    };
    let forwarded = Forwarded { method: Method::GET, target, headers, client: None, user: None };
    let asked = async {
        match route.send_anyway(forwarded, RequestBody::Right(Empty::new()), &caller).await? {
            ProxiedAnswer::Carried(head, carried) => {
                let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
                let content_type = content_type.unwrap_or_default().to_owned();
                let body = carried.whole(DOCUMENT_BYTES_MAX).await?;
                Ok(Document { code: head.status, content_type, body })
            }
            ProxiedAnswer::Upgraded(..) | ProxiedAnswer::Moved(_) | ProxiedAnswer::Nothing => {
                Err(ProxyError::Broken("it speaks another protocol".to_owned()))
            }
        }
    };
    let late = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    tokio::select! {
        biased;
        answered = asked => answered.map_err(|why: ProxyError| why.to_string()),
        () = clock.sleep(ANSWER_WAIT) => Err(late.to_owned()),
    }
}

/// The document of a version, as older clients ask for it.
///
/// # Errors
/// As [`fetch`].
pub async fn of_version(route: &ProxyRoute, path: &str, clock: &Clock) -> Result<Document, String> {
    fetch(route, path, JSON, clock).await
}

/// `extension`, with what its server says of it now.
///
/// - `of_version`: its own document of the version, for servers that have no aggregated one.
///
/// # Errors
/// What is said cannot be used.
pub async fn read(
    extension: Extension,
    route: &ProxyRoute,
    of_version: &Document,
    clock: &Clock,
) -> Result<Extension, String> {
    let all = fetch(route, "/apis", AGGREGATED, clock).await?;
    let is_aggregated = all.code == StatusCode::OK && all.content_type.contains("g=apidiscovery.k8s.io");
    let resources = match is_aggregated {
        true => extension.read_aggregated(&all.body)?,
        false => extension.read_legacy(&of_version.body)?,
    };
    let bytes = serde_json::to_vec(&resources).map_err(|why| why.to_string())?.len();
    if bytes > RESOURCES_BYTES_MAX {
        return Err(format!("its resources take {bytes} bytes to tell"));
    }
    let openapi_url = openapi(&extension, route, clock).await;
    let openapi_v2 = openapi_v2(&extension, route, clock).await.map(Arc::new);
    Ok(Extension { resources: resources.into(), is_stale: false, openapi_url, openapi_v2, ..extension })
}

/// What it says in OpenAPI v2; nothing where that is not to be had.
async fn openapi_v2(extension: &Extension, route: &ProxyRoute, clock: &Clock) -> Option<OpenApiPart> {
    let document = fetch(route, "/openapi/v2", JSON, clock).await.ok()?;
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
    let index = fetch(route, "/openapi/v3", JSON, clock).await.ok()?;
    let mut index: OpenApiIndex = serde_json::from_slice(&index.body).ok()?;
    let path = format!("apis/{}/{}", extension.group, extension.version);
    let url = index.paths.remove(&*path)?.server_relative_url;
    // It is asked for here, whatever else it says.
    let is_ours = url.strip_prefix("/openapi/v3/").is_some_and(|rest| {
        rest.strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('?'))
    });
    (is_ours && url.len() <= URL_BYTES_MAX).then_some(url)
}
