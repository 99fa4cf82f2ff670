//! The server that is asked.
//!
//! In: where its kubeconfig is. Out: what it says of who uses it, or why it does not. Never: reads more of an
//! answer than its limit, or waits longer.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use forebay_connector::{PoolOptions, connect};
use forebay_rt::Clock;
use forebay_usage::{Flows, printable};
use http::header::{ACCEPT, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use http_body::Body as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

use crate::error::TopError;
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_MAX, PAUSE_MAX};

const PATH: &str = "/debug/forebay/flows";
const AGENT: &str = concat!("forebay-top/", env!("CARGO_PKG_VERSION"));

/// Which server: by a kubeconfig, as kubectl finds it.
#[derive(Clone, Debug, Default)]
pub struct ServerPlace {
    /// `None` is what `KUBECONFIG` says, or `~/.kube/config`.
    pub kubeconfig: Option<PathBuf>,
    /// `None` is the one that is current there.
    pub context: Option<String>,
}

/// See the module's doc.
pub struct AskedServer {
    client: Client,
    address: String,
    clock: Clock,
}

impl AskedServer {
    /// The server of that place. Nothing is asked of it yet. Must be called within a runtime.
    ///
    /// # Errors
    /// What is wrong with the kubeconfig.
    pub async fn of(place: &ServerPlace) -> Result<AskedServer, TopError> {
        let options = KubeConfigOptions { context: place.context.clone(), ..KubeConfigOptions::default() };
        let config = match &place.kubeconfig {
            Some(path) => {
                let read = Kubeconfig::read_from(path).map_err(TopError::Kubeconfig)?;
                Config::from_custom_kubeconfig(read, &options).await
            }
            None => Config::from_kubeconfig(&options).await,
        };
        let config = config.map_err(TopError::Kubeconfig)?;
        let address = config.cluster_url.to_string().trim_end_matches('/').to_owned();
        let connected = connect(config, PoolOptions::default()).map_err(TopError::Connect)?;
        Ok(AskedServer::new(connected.client, address, Clock::system()))
    }

    pub(crate) fn new(client: Client, address: String, clock: Clock) -> AskedServer {
        AskedServer { client, address, clock }
    }

    /// Where the server is.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Asks who uses the server.
    ///
    /// # Errors
    /// See [`TopError`].
    pub async fn flows(&self) -> Result<Flows, TopError> {
        let asked = async {
            let request = Request::get(PATH).header(ACCEPT, "application/json").header(USER_AGENT, AGENT);
            // The parts are constants.
            let request = request.body(Body::empty()).map_err(|error| self.unreachable(error))?;
            let answer = self.client.send(request).await.map_err(|error| self.unreachable(error))?;
            self.read(answer).await
        };
        tokio::select! {
            biased;
            flows = asked => flows,
            () = self.clock.sleep(ANSWER_MAX) => {
                Err(TopError::Slow { address: self.address.clone(), limit: ANSWER_MAX })
            }
        }
    }

    async fn read(&self, answer: Response<Body>) -> Result<Flows, TopError> {
        let (head, body) = answer.into_parts();
        let (mut text, mut body) = (Vec::new(), pin!(body));
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|error| self.unreachable(error))?;
            let Ok(piece) = frame.into_data() else { continue };
            if text.len() + piece.len() > ANSWER_BYTES_MAX {
                return Err(self.not_forebay());
            }
            text.extend_from_slice(&piece);
        }
        let address = self.address.clone();
        let retry = head.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        match head.status {
            StatusCode::OK => flows(&text).ok_or_else(|| self.not_forebay()),
            StatusCode::UNAUTHORIZED => Err(TopError::Unauthorized { address, message: message(&text) }),
            StatusCode::FORBIDDEN => Err(TopError::Forbidden { path: PATH, message: message(&text) }),
            StatusCode::NOT_FOUND => Err(self.not_forebay()),
            StatusCode::TOO_MANY_REQUESTS => {
                let pause = retry.map(|seconds| Duration::from_secs(seconds).min(PAUSE_MAX));
                Err(TopError::Refused { address, pause })
            }
            code => Err(TopError::Answered { address, code: code.as_u16(), message: message(&text) }),
        }
    }

    fn not_forebay(&self) -> TopError {
        TopError::NotForebay { address: self.address.clone(), path: PATH }
    }

    fn unreachable(&self, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TopError {
        TopError::Unreachable { address: self.address.clone(), cause: cause.into() }
    }
}

/// What Forebay says. Another server may have some JSON at that path, too.
fn flows(text: &[u8]) -> Option<Flows> {
    let value: Value = serde_json::from_slice(text).ok()?;
    if !value.get("clients").is_some_and(Value::is_array) {
        return None;
    }
    serde_json::from_value(value).ok()
}

/// What a `Status` says, or the first of what is none.
fn message(text: &[u8]) -> String {
    const CHARACTERS_MAX: usize = 200;
    let status: Option<Value> = serde_json::from_slice(text).ok();
    let said = status.as_ref().and_then(|status| status.get("message")?.as_str());
    let text = String::from_utf8_lossy(text);
    printable(said.unwrap_or(text.trim())).chars().take(CHARACTERS_MAX).collect()
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
