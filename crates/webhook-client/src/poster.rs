//! A server that JSON is posted to, as a kubeconfig names it: where an audit log is sent.
//!
//! In: a kubeconfig that was read; bodies. Out: whether the server has taken one, or why not, in the words of
//! Go's HTTP client. Never: posts twice; keeps an answer.

use bytes::Bytes;
use forebay_connector::Pool;
use forebay_rt::Clock;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body as RequestBody;

use crate::kubeconfig::Kubeconfig;
use crate::limits::POST_ANSWER_BYTES_MAX;
use crate::words;

/// The way to it. Cheap to clone.
#[derive(Clone)]
pub struct Poster {
    pool: Pool,
    url: Uri,
    authorization: Option<HeaderValue>,
}

impl Poster {
    /// Must be called within a runtime, in which its connections live. None is opened yet.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn new(target: &Kubeconfig, clock: Clock) -> Result<Poster, String> {
        let (pool, authorization) = (target.pool(clock)?, target.authorization()?);
        Ok(Poster { pool, url: target.url.clone(), authorization })
    }

    /// Posts a body, in parts that follow each other, and waits for the answer for as long as whoever calls.
    ///
    /// # Errors
    /// Why it is not known to be taken.
    pub async fn post(&self, parts: Vec<Bytes>) -> Result<(), String> {
        let mut request = Request::new(RequestBody::from(parts.concat()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver-audit"));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let url = &self.url;
        let answer = self.pool.send(request).await;
        let answer = answer.map_err(|why| format!("Post \"{url}\": {}", words::of(&why)))?;
        let code = answer.status();
        // So that the connection can be used again.
        let (mut body, mut left) = (answer.into_body(), POST_ANSWER_BYTES_MAX);
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            if len > left {
                break;
            }
            left -= len;
        }
        if code.is_success() { Ok(()) } else { Err(format!("Post \"{url}\": the server answered {code}")) }
    }
}
