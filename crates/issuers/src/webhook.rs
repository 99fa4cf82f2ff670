//! A webhook that is asked about tokens.
//!
//! In: a token. Out: what the webhook says. It is asked again where upstream does: the connection was reset,
//! or it says that it cannot now. Never: more calls at once than there is a limit of.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/authenticator/token/webhook/webhook.go`,
//! `pkg/util/webhook/webhook.go`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use forebay_api::Authenticated;
use forebay_apimachinery::json::go_quote;
use forebay_connector::{Error, Pool, PoolOptions, connect};
use forebay_rt::{Clock, Random};
use forebay_webhook_client::{Credential, words};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use kube::client::Body as RequestBody;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::fetch::{authorities, beginning, whole};
use crate::limits::{ANSWER_MAX, CALLS_MAX, REVIEW_ATTEMPTS_MAX, REVIEW_BYTES_MAX, REVIEW_PAUSE};
use crate::review::ReviewVersion;

/// Where the webhook is, and who this server is to it.
#[derive(Clone, Debug)]
pub struct WebhookConfig {
    url: Uri,
    authorities: Option<Vec<Vec<u8>>>,
    trusts_anybody: bool,
    server_name: Option<String>,
    proxy: Option<Uri>,
    credential: ShownCredential,
    pub version: ReviewVersion,
}

/// Secrets are not shown.
#[derive(Clone)]
struct ShownCredential(Credential);

impl std::fmt::Debug for ShownCredential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShownCredential").finish_non_exhaustive()
    }
}

/// See the module's doc.
pub struct Webhook {
    config: WebhookConfig,
    pool: Pool,
    calls: Semaphore,
    clock: Clock,
    random: Random,
}

/// Why there is no answer.
struct Failed {
    why: String,
    /// Whether it may be asked again.
    again: bool,
}

impl WebhookConfig {
    /// - `kubeconfig`: as a tree.
    /// - `read`: reads a file that it names.
    ///
    /// # Errors
    /// What of it cannot be used.
    pub fn of_kubeconfig(
        kubeconfig: &Value,
        version: ReviewVersion,
        read: &dyn Fn(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<WebhookConfig, String> {
        let named = |of: &str, member: &str, name: &str| {
            let all = kubeconfig[of].as_array().map(Vec::as_slice).unwrap_or_default();
            // Once: when the server starts.
            all.iter().find(|one| one["name"] == name).map(|one| one[member].clone())
        };
        let current = kubeconfig["current-context"].as_str().unwrap_or_default();
        let context = named("contexts", "context", current)
            .ok_or_else(|| format!("context {} does not exist", go_quote(current)))?;
        let text =
            |of: &Value, name: &str| of[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let name = text(&context, "cluster").unwrap_or_default();
        let cluster = named("clusters", "cluster", &name)
            .ok_or_else(|| format!("cluster {} does not exist", go_quote(&name)))?;
        let server = text(&cluster, "server")
            .ok_or_else(|| format!("no server found for cluster {}", go_quote(&name)))?;
        let url = server.parse::<Uri>().map_err(|why| format!("server {}: {why}", go_quote(&server)))?;
        if !matches!(url.scheme_str(), Some("https" | "http")) || url.authority().is_none() {
            return Err(format!("server {} is no URL of HTTP", go_quote(&server)));
        }
        let pem =
            match (text(&cluster, "certificate-authority-data"), text(&cluster, "certificate-authority")) {
                (Some(data), _) => Some(decoded(&data)?),
                (None, Some(file)) => Some(read(Path::new(&file))?),
                (None, None) => None,
            };
        let authorities = pem.map(|pem| authorities(&String::from_utf8_lossy(&pem))).transpose()?;
        let user = match text(&context, "user") {
            None => Value::Null,
            Some(name) => named("users", "user", &name)
                .ok_or_else(|| format!("auth info {} does not exist", go_quote(&name)))?,
        };
        let proxy = text(&cluster, "proxy-url");
        Ok(WebhookConfig {
            url,
            trusts_anybody: cluster["insecure-skip-tls-verify"] == true,
            authorities,
            server_name: text(&cluster, "tls-server-name"),
            proxy: proxy
                .map(|url| url.parse::<Uri>().map_err(|why| format!("proxy-url: {why}")))
                .transpose()?,
            credential: ShownCredential(Credential::of_user(&user, read)?),
            version,
        })
    }
}

fn decoded(text: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|why| format!("certificate-authority-data: {why}"))
}

impl Webhook {
    /// Must be called within a runtime.
    ///
    /// # Errors
    /// What of the configuration cannot be used.
    pub fn new(config: WebhookConfig, clock: Clock, random: Random) -> Result<Webhook, String> {
        let mut to = kube::Config::new(config.url.clone());
        to.root_cert.clone_from(&config.authorities);
        to.accept_invalid_certs = config.trusts_anybody;
        to.tls_server_name.clone_from(&config.server_name);
        to.proxy_url.clone_from(&config.proxy);
        if let Some((chain, key)) = config.credential.0.identity.clone() {
            to.auth_info.client_certificate_data = Some(chain);
            to.auth_info.client_key_data = Some(key.into());
        }
        let options = PoolOptions { clock: clock.clone(), ..PoolOptions::default() };
        let pool = connect(to, options).map_err(|why| words::of(&why))?.pool;
        Ok(Webhook { config, pool, calls: Semaphore::new(CALLS_MAX), clock, random })
    }

    /// What it says of `token`.
    ///
    /// - `wanted`: for whom it has to be good.
    /// - `own`: whom it is good for where that is not said.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn ask(
        &self,
        token: &str,
        wanted: &[String],
        own: &[String],
    ) -> Result<Option<Authenticated>, String> {
        let question = self.config.version.question(token, wanted);
        // It is never closed.
        let _turn = self.calls.acquire().await;
        let mut pause = REVIEW_PAUSE;
        for attempt in 1.. {
            match self.call(&question).await {
                Ok(answer) => return self.config.version.answer(&answer, wanted, own),
                Err(Failed { why, again }) if !again || attempt == REVIEW_ATTEMPTS_MAX => {
                    tracing::warn!(why, "the token webhook did not answer");
                    return Err(why);
                }
                Err(_) => {}
            }
            // A fifth at most on top: those who wait do not come back at once.
            let part = self.random.below(1_000) as f64 / 5_000.0;
            self.clock.sleep(pause.mul_f64(1.0 + part)).await;
            pause = pause.mul_f64(1.5);
        }
        Err("webhook call failed: timed out waiting for the condition".to_owned())
    }

    async fn call(&self, question: &[u8]) -> Result<Vec<u8>, Failed> {
        let failed =
            |why: String| format!("Post {}: {why}", go_quote(&format!("{}?timeout=30s", self.config.url)));
        let answered = async {
            let answer = self
                .pool
                .send(self.request(question))
                .await
                .map_err(|error| Failed { again: is_reset(&error), why: failed(words::of(&error)) })?;
            let (code, retry) = (answer.status().as_u16(), answer.headers().contains_key(RETRY_AFTER));
            let body = whole(answer.into_body(), REVIEW_BYTES_MAX).await;
            if (200..300).contains(&code) {
                return body.map_err(|why| Failed { why: failed(why), again: false });
            }
            let again = matches!(code, 429 | 500 | 504) || retry;
            Err(Failed { why: said(code, &body.unwrap_or_default()), again })
        };
        tokio::select! {
            answered = answered => answered,
            () = self.clock.sleep(ANSWER_MAX) => {
                let why = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
                Err(Failed { why: failed(why.to_owned()), again: false })
            }
        }
    }

    fn request(&self, question: &[u8]) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::from(question.to_vec()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.config.url.clone();
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        headers.insert(USER_AGENT, HeaderValue::from_static("forebay"));
        let shown = self.config.credential.0.authorization.as_deref();
        // Of a secret that no header can have nothing is shown.
        if let Some(mut value) = shown.and_then(|text| HeaderValue::from_str(text).ok()) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        request
    }
}

/// What a webhook says that gives no review.
fn said(code: u16, body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    match status["message"].as_str().filter(|_| status["kind"] == "Status") {
        Some(message) => message.to_owned(),
        None => format!(
            "an error on the server ({}) has prevented the request from succeeding: {code}",
            go_quote(&beginning(body))
        ),
    }
}

/// Whether a connection was lost that may come back at once.
fn is_reset(error: &Error) -> bool {
    if matches!(error, Error::Gone | Error::PingLost | Error::NoSettings) {
        return true;
    }
    let mut error: &dyn std::error::Error = error;
    loop {
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|io| io.kind() == std::io::ErrorKind::ConnectionReset) {
            return true;
        }
        match error.source() {
            Some(source) => error = source,
            None => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(change: &Value) -> Result<WebhookConfig, String> {
        let mut tree = json!({
            "clusters": [{ "name": "c", "cluster": { "server": "https://hook/authenticate" } }],
            "users": [{ "name": "u", "user": { "token": "t" } }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "current-context": "x",
        });
        for (pointer, value) in change.as_object().expect("changes") {
            let (parent, name) = pointer.rsplit_once('/').expect("a slash");
            tree.pointer_mut(parent).expect("there")[name] = value.clone();
        }
        WebhookConfig::of_kubeconfig(&tree, ReviewVersion::V1, &|_| Ok(b"from a file".to_vec()))
    }

    #[test]
    fn a_kubeconfig_says_where_it_is_and_who_asks() {
        let config = of(&json!({})).expect("read");
        assert_eq!(config.url, "https://hook/authenticate");
        assert_eq!(config.credential.0.authorization.as_deref(), Some("Bearer t"));
        assert!(!format!("{config:?}").contains("Bearer"));
        assert!(config.authorities.is_none() && !config.trusts_anybody);
        let nobody = of(&json!({ "/contexts/0/context": { "cluster": "c" } })).expect("read");
        assert_eq!(nobody.credential.0.authorization, None);
    }

    #[test]
    fn what_cannot_be_used_of_it_is_named() {
        for (change, want) in [
            (json!({ "/current-context": "y" }), "context \"y\" does not exist"),
            (json!({ "/clusters": [] }), "cluster \"c\" does not exist"),
            (json!({ "/users": [] }), "auth info \"u\" does not exist"),
            (json!({ "/clusters/0/cluster": {} }), "no server found for cluster \"c\""),
            (json!({ "/clusters/0/cluster/server": "ftp://h" }), "server \"ftp://h\" is no URL of HTTP"),
            (
                json!({ "/clusters/0/cluster/certificate-authority": "/ca" }),
                "data does not contain any valid RSA or ECDSA certificates",
            ),
            (json!({ "/users/0/user": { "exec": {} } }), "\"exec\" is not served"),
        ] {
            assert_eq!(of(&change).expect_err("refused"), want, "{change}");
        }
    }
}
