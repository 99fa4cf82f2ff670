//! A server that is asked over HTTP: ours, the real one, or whichever a kubeconfig names.
//!
//! In: requests. Out: [`Observation`]s. Never: asks again when a server says that it is busy.

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::history::{ApiResource, NAMESPACE_PREFIX};
use super::shape::Observation;
use super::table::{RequestPath, Verb};
use crate::pair::config_of;

/// A client of a server's administrator.
#[derive(Clone)]
pub struct Http(Client);

/// A watch that has begun.
pub struct HttpWatch(Body);

impl Http {
    /// # Errors
    /// A kubeconfig that cannot be used.
    pub async fn new(kubeconfig: &std::path::Path, url: Option<&str>) -> Result<Http, String> {
        let mut config = config_of(kubeconfig).await?;
        config.read_timeout = None;
        if let Some(url) = url {
            config.cluster_url = url.parse().map_err(|e| format!("{url}: {e}"))?;
        }
        Client::try_from(config).map(Http).map_err(|e| e.to_string())
    }

    /// Sends one request and reads its answer.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Observation, String> {
        let response = self.response(method, path, content_type, body).await?;
        answer(response).await.map_err(|why| format!("{path}: {why}"))
    }

    /// Begins a watch, or is refused.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn watch(&self, path: &str) -> Result<Result<HttpWatch, Observation>, String> {
        let response = self.response(Method::GET, path, "application/json", None).await?;
        if response.status().is_success() {
            return Ok(Ok(HttpWatch(response.into_body())));
        }
        answer(response).await.map(Err).map_err(|why| format!("{path}: {why}"))
    }

    async fn response(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<http::Response<Body>, String> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Accept", "application/json")
            .header("Content-Type", content_type)
            .body(Body::from(body.map(|body| body.to_string().into_bytes()).unwrap_or_default()))
            .map_err(|e| format!("{path}: {e}"))?;
        self.0.send(request).await.map_err(|e| format!("{path}: {e}"))
    }
}

impl HttpWatch {
    /// Every event until the server ends the stream.
    ///
    /// # Errors
    /// A stream that breaks, or that is no sequence of JSON values.
    pub async fn events(self) -> Result<Observation, String> {
        let bytes = self.0.collect_bytes().await.map_err(|e| e.to_string())?;
        let events = serde_json::Deserializer::from_slice(&bytes).into_iter::<Value>();
        let events = events.collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
        Ok(Observation { code: Some(200), events: Some(events), ..Observation::default() })
    }
}

async fn answer(response: http::Response<Body>) -> Result<Observation, String> {
    let code = Some(response.status().as_u16());
    let retry_after = response.headers().get("Retry-After");
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    let bytes = response.into_body().collect_bytes().await.map_err(|e| e.to_string())?;
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Ok(Observation { code, retry_after, body, events: None })
}

/// The path of a kind's collection or of an object, with a query.
pub fn path(kind: &ApiResource, verb: Verb, path: &RequestPath, query: &str) -> String {
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    let mut uri = format!("{root}/{}", kind.api_version());
    if path.watch_path {
        uri += "/watch";
    }
    if kind.namespaced && path.in_namespace {
        uri += &format!("/namespaces/{NAMESPACE_PREFIX}a");
    }
    uri += &format!("/{}", kind.plural);
    if let Some(name) = &path.name {
        uri += &format!("/{name}");
    }
    let mut parts: Vec<&str> = query.split('&').filter(|part| !part.is_empty()).collect();
    if verb == Verb::Watch && !path.watch_path && !query.contains("watch=") {
        parts.push("watch=1");
    }
    if !parts.is_empty() {
        uri += &format!("?{}", parts.join("&"));
    }
    uri
}
