//! A webhook that a kubeconfig says: where it is, who vouches for it, and who this server is to it.
//!
//! In: a kubeconfig as a tree, bodies. Out: what came back, unread and of bounded length, or why nothing did.
//! So many calls are made at once. Never: reads a file by itself, reads an answer, asks again.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use forebay_apimachinery::json::go_quote;
use forebay_connector::{Error, Pool};
use forebay_rt::Clock;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body as RequestBody;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::kubeconfig::Kubeconfig;
use crate::limits::{REMOTE_ANSWER_BYTES_MAX, REMOTE_CALLS_MAX};
use crate::words;

/// See the module's doc.
pub struct Remote {
    pool: Pool,
    url: Uri,
    authorization: Option<HeaderValue>,
    calls: Semaphore,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct RemoteAnswer {
    pub number: u16,
    /// Whether it says when to come back.
    pub has_retry_after: bool,
    pub body: Bytes,
}

/// Why nothing did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteFault {
    pub why: String,
    /// Whether a connection was lost, so that another may do.
    pub is_lost: bool,
}

impl Remote {
    /// To be called within a runtime, in which its connections live.
    ///
    /// - `kubeconfig`: as a tree.
    /// - `read`: reads a file that it names.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn of_kubeconfig(
        kubeconfig: &Value,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
        clock: &Clock,
    ) -> Result<Remote, String> {
        let known = Kubeconfig::read(kubeconfig, read)?;
        let (pool, authorization) = (known.pool(clock.clone())?, known.authorization()?);
        Ok(Remote { pool, url: known.url, authorization, calls: Semaphore::new(REMOTE_CALLS_MAX) })
    }

    /// Posts JSON to it. Cancel-safe.
    ///
    /// # Errors
    /// Why there is no answer, in the words of Go's HTTP client.
    pub async fn post(&self, body: Bytes) -> Result<RemoteAnswer, RemoteFault> {
        // It is never closed.
        let _turn = self.calls.acquire().await;
        let answer = self.pool.send(self.request(body)).await.map_err(|error| self.fault(&error))?;
        let (number, has_retry_after) =
            (answer.status().as_u16(), answer.headers().contains_key(RETRY_AFTER));
        let (mut body, mut whole) = (answer.into_body(), BytesMut::new());
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| self.fault(&error))?.into_data() else { continue };
            if whole.len() + data.len() > REMOTE_ANSWER_BYTES_MAX {
                let why = format!("the answer is longer than {REMOTE_ANSWER_BYTES_MAX} bytes");
                return Err(RemoteFault { why, is_lost: false });
            }
            whole.extend_from_slice(&data);
        }
        Ok(RemoteAnswer { number, has_retry_after, body: whole.freeze() })
    }

    fn request(&self, body: Bytes) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::from(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(USER_AGENT, HeaderValue::from_static("kube-apiserver"));
        if let Some(value) = &self.authorization {
            headers.insert(AUTHORIZATION, value.clone());
        }
        request
    }

    fn fault(&self, error: &Error) -> RemoteFault {
        let why = format!("Post {}: {}", go_quote(&self.url.to_string()), words::of(error));
        RemoteFault { why, is_lost: matches!(error, Error::Gone | Error::PingLost) }
    }
}

/// Without secrets.
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}
