//! A server that JSON is posted to, as a kubeconfig names it: where an audit log is sent.
//!
//! In: the tree of a kubeconfig; bodies. Out: whether the server has taken one, or why not, in the words of
//! Go's HTTP client. Never: posts twice; keeps an answer.
//!
//! Source: apiserver v0.36.3 `pkg/util/webhook/webhook.go`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use forebay_connector::{Pool, PoolOptions, connect};
use forebay_rt::Clock;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::BodyExt as _;
use kube::client::Body as RequestBody;
use serde_json::Value;

use crate::credentials::Credential;
use crate::limits::POST_ANSWER_BYTES_MAX;
use crate::routes::authorities;
use crate::words;

/// Where it is, who vouches for it, and what is shown to it.
#[derive(Clone)]
pub struct PostTarget {
    url: Uri,
    /// PEM; empty: whom the system believes.
    authorities: Vec<u8>,
    tls_server_name: Option<String>,
    is_any_believed: bool,
    credential: Credential,
}

/// The way to it. Cheap to clone.
#[derive(Clone)]
pub struct Poster {
    pool: Pool,
    url: Uri,
    authorization: Option<HeaderValue>,
}

/// Secrets are not shown.
impl std::fmt::Debug for PostTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("PostTarget").field(&self.url).finish()
    }
}

impl PostTarget {
    /// The server and the user of the current context.
    ///
    /// - `read`: reads a file that it names.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn of_kubeconfig(
        kubeconfig: &Value,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<PostTarget, String> {
        let named = |list: &str, name: &str, of: &'static str| {
            // Once: when the server starts.
            let all = kubeconfig[list].as_array().into_iter().flatten();
            let one = all.into_iter().find(|one| one["name"].as_str() == Some(name));
            one.map(|one| one[of].clone()).ok_or_else(|| format!("{of} {name:?} does not exist"))
        };
        let current = kubeconfig["current-context"].as_str().unwrap_or_default();
        let context = named("contexts", current, "context")?;
        let cluster = named("clusters", context["cluster"].as_str().unwrap_or_default(), "cluster")?;
        let credential = match context["user"].as_str().unwrap_or_default() {
            "" => Credential::default(),
            user => Credential::of_user(&named("users", user, "user")?, read)?,
        };
        let text = |name: &str| cluster[name].as_str().filter(|text| !text.is_empty());
        let url = text("server").ok_or("the cluster has no server")?;
        let url: Uri = url.parse().map_err(|why: http::uri::InvalidUri| format!("server {url:?}: {why}"))?;
        if url.host().is_none() || url.scheme().is_none() {
            return Err(format!("server {:?} is no URL", url.to_string()));
        }
        let authorities = match (text("certificate-authority-data"), text("certificate-authority")) {
            (Some(data), _) => {
                STANDARD.decode(data).map_err(|why| format!("certificate-authority-data: {why}"))?
            }
            (None, Some(file)) => read(Path::new(file))?,
            (None, None) => Vec::new(),
        };
        let is_any_believed = cluster["insecure-skip-tls-verify"].as_bool().unwrap_or_default();
        let tls_server_name = text("tls-server-name").map(str::to_owned);
        Ok(PostTarget { url, authorities, tls_server_name, is_any_believed, credential })
    }
}

impl Poster {
    /// Must be called within a runtime, in which its connections live. None is opened yet.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn new(target: &PostTarget, clock: Clock) -> Result<Poster, String> {
        let mut config = kube::Config::new(target.url.clone());
        config.root_cert = authorities(&target.authorities)?;
        config.tls_server_name.clone_from(&target.tls_server_name);
        config.accept_invalid_certs = target.is_any_believed;
        if let Some((chain, secret)) = target.credential.identity.clone() {
            config.auth_info.client_certificate_data = Some(chain);
            config.auth_info.client_key_data = Some(secret.into());
        }
        let authorization = target.credential.authorization.as_deref().map(|text| {
            let mut value = HeaderValue::from_str(text).map_err(|_| "a secret that no header can have")?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        let options = PoolOptions { clock, ..PoolOptions::default() };
        let pool = connect(config, options).map_err(|why| words::of(&why))?.pool;
        Ok(Poster { pool, url: target.url.clone(), authorization: authorization.transpose()? })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn target(cluster: &Value, user: &Value) -> Result<PostTarget, String> {
        let kubeconfig = json!({
            "current-context": "c",
            "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
            "clusters": [{ "name": "k", "cluster": cluster }],
            "users": [{ "name": "u", "user": user }],
        });
        PostTarget::of_kubeconfig(&kubeconfig, &|_| Ok(b"from a file".to_vec()))
    }

    #[test]
    fn the_current_context_says_where_it_is_and_what_is_shown() {
        let cluster = json!({
            "server": "https://audit.example.org/events", "certificate-authority": "/ca",
            "tls-server-name": "other",
        });
        let found = target(&cluster, &json!({ "token": "t" })).expect("a target");
        assert_eq!(found.url.to_string(), "https://audit.example.org/events");
        assert_eq!((&found.authorities[..], found.is_any_believed), (&b"from a file"[..], false));
        assert_eq!(found.credential.authorization.as_deref(), Some("Bearer t"));
        assert_eq!(format!("{found:?}"), "PostTarget(https://audit.example.org/events)");
    }

    #[test]
    fn what_is_missing_is_told() {
        let told = |cluster: Value, user: Value| target(&cluster, &user).err().unwrap_or_default();
        assert_eq!(told(json!({}), json!({})), "the cluster has no server");
        assert_eq!(told(json!({ "server": "host:1" }), json!({})), "server \"host:1\" is no URL");
        let exec = json!({ "exec": {} });
        assert_eq!(told(json!({ "server": "https://h" }), exec), "\"exec\" is not served");
        let none = PostTarget::of_kubeconfig(&json!({}), &|_| Ok(Vec::new()));
        assert_eq!(none.err().as_deref(), Some("context \"\" does not exist"));
    }
}
