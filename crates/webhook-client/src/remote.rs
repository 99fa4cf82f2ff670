//! A webhook that a kubeconfig says: where it is, who vouches for it, and who this server is to it.
//!
//! In: a kubeconfig as a tree, bodies. Out: what came back, unread and of bounded length, or why nothing did.
//! So many calls are made at once. Never: reads a file by itself, reads an answer, asks again.
//!
//! Source: apiserver v0.36.3 `pkg/util/webhook/webhook.go`; client-go v0.36.3 `tools/clientcmd`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Bytes, BytesMut};
use forebay_apimachinery::json::go_quote;
use forebay_connector::{Error, Pool, PoolOptions, connect};
use forebay_rt::Clock;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body as RequestBody;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::credentials::Credential;
use crate::limits::{REMOTE_ANSWER_BYTES_MAX, REMOTE_CALLS_MAX};
use crate::{routes, words};

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
        let current = kubeconfig["current-context"].as_str().unwrap_or_default();
        let context = named(kubeconfig, "contexts", "context", current)
            .ok_or_else(|| format!("context {} does not exist", go_quote(current)))?;
        let text = |of: &Value, name: &str| of[name].as_str().unwrap_or_default().to_owned();
        let cluster = text(&context, "cluster");
        let cluster = named(kubeconfig, "clusters", "cluster", &cluster)
            .ok_or_else(|| format!("cluster {} does not exist", go_quote(&cluster)))?;
        let user = text(&context, "user");
        let credential = match named(kubeconfig, "users", "user", &user) {
            Some(of) => Credential::of_user(&of, read).map_err(|why| format!("user {user:?}: {why}"))?,
            None if user.is_empty() => Credential::default(),
            None => return Err(format!("user {} does not exist", go_quote(&user))),
        };
        let server = text(&cluster, "server");
        let url: Uri = server.parse().map_err(|why| format!("server {}: {why}", go_quote(&server)))?;
        if url.host().is_none() {
            return Err(format!("server {}: it has no host", go_quote(&server)));
        }
        let mut config = kube::Config::new(url.clone());
        config.root_cert = authorities(&cluster, read)?;
        config.accept_invalid_certs = cluster["insecure-skip-tls-verify"].as_bool().unwrap_or_default();
        config.tls_server_name = Some(text(&cluster, "tls-server-name")).filter(|name| !name.is_empty());
        let proxy = Some(text(&cluster, "proxy-url")).filter(|url| !url.is_empty());
        config.proxy_url =
            proxy.map(|url| url.parse::<Uri>()).transpose().map_err(|why| format!("proxy-url: {why}"))?;
        if let Some((chain, secret)) = credential.identity {
            config.auth_info.client_certificate_data = Some(chain);
            config.auth_info.client_key_data = Some(secret.into());
        }
        let options = PoolOptions { clock: clock.clone(), ..PoolOptions::default() };
        let pool = connect(config, options).map_err(|why| words::of(&why))?.pool;
        let authorization = credential.authorization.map(|text| {
            let value = HeaderValue::from_str(&text).map(|mut value| {
                value.set_sensitive(true);
                value
            });
            value.map_err(|_| "its token cannot be sent in a header".to_owned())
        });
        let authorization = authorization.transpose()?;
        Ok(Remote { pool, url, authorization, calls: Semaphore::new(REMOTE_CALLS_MAX) })
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

fn named(kubeconfig: &Value, of: &str, member: &str, name: &str) -> Option<Value> {
    // Once: when it is read.
    let found = kubeconfig[of].as_array()?.iter().find(|one| one["name"] == name)?;
    Some(found[member].clone()).filter(Value::is_object)
}

/// Who may vouch for it; `None` for whom the system believes.
fn authorities(
    cluster: &Value,
    read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
) -> Result<Option<Vec<Vec<u8>>>, String> {
    let text = |name: &str| cluster[name].as_str().filter(|text| !text.is_empty());
    let bundle = match (text("certificate-authority-data"), text("certificate-authority")) {
        (Some(data), _) => {
            STANDARD.decode(data).map_err(|why| format!("certificate-authority-data: {why}"))?
        }
        (None, Some(file)) => read(Path::new(file))?,
        (None, None) => return Ok(None),
    };
    routes::authorities(&bundle)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn remote(kubeconfig: &Value) -> Result<Remote, String> {
        Remote::of_kubeconfig(kubeconfig, &|_| Err("no file".to_owned()), &Clock::system())
    }

    fn kubeconfig(cluster: &Value, user: &Value) -> Value {
        json!({
            "current-context": "c", "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "clusters": [{ "name": "k", "cluster": cluster }], "users": [{ "name": "u", "user": user }],
        })
    }

    #[tokio::test]
    async fn a_kubeconfig_says_where_and_as_whom() {
        let at = json!({ "server": "https://h:1/authorize" });
        let read = remote(&kubeconfig(&at, &json!({ "token": "t" }))).expect("a remote");
        assert_eq!(read.url.path(), "/authorize");
        assert_eq!(
            read.authorization.and_then(|it| it.to_str().map(str::to_owned).ok()).as_deref(),
            Some("Bearer t")
        );
        for (kubeconfig, why) in [
            (json!({}), "context \"\" does not exist"),
            (kubeconfig(&json!({ "server": "/x" }), &json!({})), "server \"/x\": it has no host"),
            (
                kubeconfig(&json!({ "server": "https://h", "certificate-authority": "/f" }), &json!({})),
                "no file",
            ),
            (kubeconfig(&at, &json!({ "exec": {} })), "user \"u\": \"exec\" is not served"),
        ] {
            assert_eq!(remote(&kubeconfig).map(|_| ()), Err(why.to_owned()), "{kubeconfig}");
        }
    }
}
