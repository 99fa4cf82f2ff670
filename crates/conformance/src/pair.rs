//! Ours and the rival's server, and one request to either.
//!
//! In: a method, a path, a body. Out: code, warnings and body. Never: another order of requests on one than
//! on the other.

use std::path::Path;

use forebay_clients::ControlPlane;
use forebay_clients::etcd::{Cluster, Security};
use forebay_clients::server::Implementation;
use http::Method;
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::Value;

/// One server and a client of its administrator.
pub struct Peer {
    pub server: ControlPlane,
    client: Client,
    // Shows no certificate.
    stranger: Client,
}

pub struct Pair {
    pub ours: Peer,
    pub theirs: Peer,
}

/// What is asked of a server.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// With its query.
    pub path: String,
    pub content_type: &'static str,
    /// The User-Agent; none is sent if there is none.
    pub agent: Option<String>,
    /// As whom it is asked; the administrator, if nobody is said.
    pub user: Option<ActsAs>,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// Somebody as whom the administrator asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActsAs {
    pub name: String,
    pub groups: Vec<String>,
}

/// What a server answered, as it came.
#[derive(Debug, Clone, PartialEq)]
pub struct RawAnswer {
    pub code: u16,
    pub warnings: Vec<String>,
    pub body: Vec<u8>,
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
        Pair::start_with(Implementation::Forebay).await
    }

    /// As [`Pair::start`], where `ours` is of that implementation: another kube-apiserver shows what differs
    /// between two of them.
    ///
    /// # Errors
    /// Why one of them does not serve.
    pub async fn start_with(ours: Implementation) -> Result<Pair, String> {
        Ok(Pair { ours: Peer::start(ours).await?, theirs: Peer::start(Implementation::KubeApiserver).await? })
    }

    /// As [`Pair::start`], both with these flags. The second part is what theirs keeps its objects in.
    ///
    /// # Errors
    /// Why one of them does not serve.
    pub async fn start_told(flags: &[&str]) -> Result<(Pair, Cluster), String> {
        let cluster = Cluster::start(1, Security::Plain)?;
        let theirs = Peer::of(ControlPlane::start_rival_told(&cluster, flags)?).await?;
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let ours = Peer::of(ControlPlane::start_told(flags)?).await?;
        Ok((Pair { ours, theirs }, cluster))
    }

    /// Sends each request to both, and says what is answered otherwise.
    ///
    /// # Panics
    /// One of them does not answer.
    pub async fn differences(&self, requests: impl IntoIterator<Item = (Method, String)>) -> Vec<String> {
        let mut differences = Vec::new();
        for (method, path) in requests {
            let ours = self.ours.send(method.clone(), &path, None).await.expect("an answer");
            let theirs = self.theirs.send(method.clone(), &path, None).await.expect("an answer");
            if ours != theirs {
                differences.push(format!("{method} {path}\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
        differences
    }
}

/// A client's configuration by which each answer is seen: kube's own sends again what is answered with 429,
/// 503 or 504, and whoever compares would see what came in the end.
///
/// # Errors
/// A kubeconfig that cannot be used.
pub async fn config_of(kubeconfig: &Path) -> Result<Config, String> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|e| e.to_string())?;
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|e| e.to_string())?;
    config.default_retry = false;
    Ok(config)
}

impl Request {
    /// Without a body or a User-Agent; JSON comes back.
    pub fn new(method: Method, path: String) -> Request {
        let (user, headers, body) = (None, Vec::new(), Vec::new());
        Request { method, path, content_type: "application/json", agent: None, user, headers, body }
    }
}

impl Peer {
    async fn start(implementation: Implementation) -> Result<Peer, String> {
        Peer::of(ControlPlane::start_as(implementation)?).await
    }

    /// A client of a server that runs.
    ///
    /// # Errors
    /// Its kubeconfig cannot be used.
    pub async fn of(server: ControlPlane) -> Result<Peer, String> {
        let config = config_of(server.kubeconfig()).await?;
        let mut nobody = config.clone();
        nobody.auth_info = AuthInfo::default();
        let client = Client::try_from(config).map_err(|e| e.to_string())?;
        let stranger = Client::try_from(nobody).map_err(|e| e.to_string())?;
        Ok(Peer { server, client, stranger })
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
        let mut request = Request::new(method, path.to_owned());
        request.body = text;
        let RawAnswer { code, warnings, body } = self.ask(&request, accept).await?;
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&body).into_owned()));
        Ok(Answer { code, warnings, body })
    }

    /// Sends one request with an Accept header, and returns what came back as it came.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn ask(&self, request: &Request, accept: &str) -> Result<RawAnswer, String> {
        Peer::ask_by(&self.client, request, accept).await
    }

    /// The same by somebody who shows nothing but what the request's headers say.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn ask_as_stranger(&self, request: &Request, accept: &str) -> Result<RawAnswer, String> {
        Peer::ask_by(&self.stranger, request, accept).await
    }

    async fn ask_by(client: &Client, request: &Request, accept: &str) -> Result<RawAnswer, String> {
        let Request { path, .. } = request;
        let mut head = http::Request::builder()
            .method(request.method.clone())
            .uri(path)
            .header("Accept", accept)
            .header("Content-Type", request.content_type);
        if let Some(agent) = &request.agent {
            head = head.header("User-Agent", agent);
        }
        if let Some(ActsAs { name, groups }) = &request.user {
            head = head.header("Impersonate-User", name);
            head = groups.iter().fold(head, |head, group| head.header("Impersonate-Group", group));
        }
        for (name, value) in &request.headers {
            head = head.header(*name, value);
        }
        let request = head.body(Body::from(request.body.clone())).map_err(|e| format!("{path}: {e}"))?;
        let response = client.send(request).await.map_err(|e| format!("{path}: {e}"))?;
        let warnings = response.headers().get_all("Warning").iter();
        let warnings = warnings.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let code = response.status().as_u16();
        let body = response.into_body().collect_bytes().await.map_err(|e| format!("{path}: {e}"))?;
        Ok(RawAnswer { code, warnings, body: body.to_vec() })
    }
}
