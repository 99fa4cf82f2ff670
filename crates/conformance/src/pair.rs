//! Ours and the rival's server, and one request to either.
//!
//! In: a method, a path, a body. Out: code, warnings and body. Never: another order of requests on one than on the other.

use forebay_clients::Server;
use forebay_clients::server::Kind as ServerKind;
use http::{Method, Request};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// One server and a client of its administrator.
pub struct Peer {
    pub server: Server,
    client: Client,
}

pub struct Pair {
    pub ours: Peer,
    pub theirs: Peer,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub code: u16,
    pub warnings: Vec<String>,
    /// The body; a text where it is no JSON.
    pub body: Value,
}

impl Pair {
    /// Starts both. Needs a runtime that outlives the clients.
    ///
    /// # Errors
    /// Why one of them does not serve.
    pub async fn start() -> Result<Pair, String> {
        let (ours, theirs) =
            (Peer::start(ServerKind::Forebay).await?, Peer::start(ServerKind::KubeApiserver).await?);
        Ok(Pair { ours, theirs })
    }
}

impl Peer {
    async fn start(kind: ServerKind) -> Result<Peer, String> {
        let server = Server::start_as(kind)?;
        let kubeconfig = Kubeconfig::read_from(server.kubeconfig()).map_err(|e| e.to_string())?;
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| e.to_string())?;
        let client = Client::try_from(config).map_err(|e| e.to_string())?;
        Ok(Peer { server, client })
    }

    /// Sends one request.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Answer, String> {
        self.send_accepting(method, path, "application/json", body).await
    }

    /// Sends one request with an Accept header.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn send_accepting(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<&Value>,
    ) -> Result<Answer, String> {
        let text = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("Accept", accept)
            .header("Content-Type", "application/json")
            .body(Body::from(text))
            .map_err(|e| format!("{path}: {e}"))?;
        let response = self.client.send(request).await.map_err(|e| format!("{path}: {e}"))?;
        let warnings = response.headers().get_all("Warning").iter();
        let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.map_err(|e| format!("{path}: {e}"))?;
        let body = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        Ok(Answer { code, warnings, body })
    }
}
