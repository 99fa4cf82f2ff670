//! What the rows are run on, and how it is brought to where they begin.
//!
//! In: a row or a write. Out: answers. Never: differs between targets in what is written, or in what order.

use std::path::Path;

use forebay_clients::ControlPlane;
use forebay_clients::server::Implementation;
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Duration};
use http::Method;
use serde_json::{Value, json};

use super::ask::Asked;
use super::history::{ApiResource, CRDS, KINDS, Mutation, NAMESPACE_PREFIX, NAMESPACES, Write};
use super::http::{self as over_http, Http};
use super::local::{self, Local, Storage};
use super::shape::Observation;
use super::table::{RequestPath, Row, Verb};

/// How long a new namespace may be without its service account, or an old one there.
const ADMITTED_MAX: Duration = Duration::from_secs(30);

/// Whose answers are asserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Ours,
    Theirs,
}

pub struct Target {
    /// As the report calls it.
    pub name: String,
    pub whose: Whose,
    reached: Reached,
}

enum Reached {
    /// A server of our own making.
    Server {
        server: Box<ControlPlane>,
        http: Http,
    },
    /// Somebody's server, whose history is not ours to compact.
    Url(Http),
    Local(Box<Local>),
}

/// A watch that has begun.
pub enum Stream {
    Http(over_http::HttpWatch),
    Local(local::LocalWatch),
}

impl Target {
    /// A fresh server: ours, or the real one.
    ///
    /// # Errors
    /// Why it does not serve.
    pub async fn server(implementation: Implementation) -> Result<Target, String> {
        let server = tokio::task::spawn_blocking(move || ControlPlane::start_as(implementation));
        let server = Box::new(server.await.map_err(|e| e.to_string())??);
        let http = Http::new(server.kubeconfig(), None).await?;
        let (name, whose) = match implementation {
            Implementation::Forebay => ("forebay, HTTP", Whose::Ours),
            Implementation::KubeApiserver => ("kube-apiserver", Whose::Theirs),
        };
        Ok(Target { name: name.to_owned(), whose, reached: Reached::Server { server, http } })
    }

    /// The server that `kubeconfig` names, or, with its credentials, the one at `url`.
    ///
    /// # Errors
    /// Why it does not answer.
    pub async fn url(kubeconfig: &Path, url: Option<&str>) -> Result<Target, String> {
        let http = Http::new(kubeconfig, url).await?;
        let version = http.send(Method::GET, "/version", "application/json", None).await?;
        let version = version.body["gitVersion"].as_str().unwrap_or("a server").to_owned();
        let whose = if version.contains("forebay") { Whose::Ours } else { Whose::Theirs };
        Ok(Target { name: version, whose, reached: Reached::Url(http) })
    }

    /// The cache over a store of ours.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub async fn local(name: &str, storage: &Storage) -> Result<Target, String> {
        let local = Local::start(storage).await?;
        let reached = Reached::Local(Box::new(local));
        Ok(Target { name: name.to_owned(), whose: Whose::Ours, reached })
    }

    /// Compacts the history so far, and makes the caches forget it. False if that is not to be had.
    ///
    /// # Errors
    /// Why it did not work.
    pub async fn age(&mut self, now: u64) -> Result<bool, String> {
        match &mut self.reached {
            Reached::Url(_) => return Ok(false),
            Reached::Local(local) => local.age().await,
            Reached::Server { server, http } => match server.implementation() {
                Implementation::Forebay => {
                    server.kill()?;
                    // What a clock does that is set forward: the engine gives its history up.
                    let (clock, hand) = Clock::manual(Clock::system().unix_ms());
                    let options = Options { clock, ..Options::default() };
                    let engine =
                        Engine::open(&server.dir().join("data/store"), options).map_err(|e| e.to_string())?;
                    local::age(&engine, &hand).await;
                    engine.close();
                    drop(engine);
                    *http = restart(server).await?;
                }
                Implementation::KubeApiserver => {
                    server.compact_store(now)?;
                    server.kill()?;
                    *http = restart(server).await?;
                }
            },
        }
        Ok(true)
    }

    /// Makes the namespaces and the kinds.
    ///
    /// # Errors
    /// What was not taken.
    pub async fn prepare(&self) -> Result<(), String> {
        for name in ["a", "a-b", "b"] {
            let name = format!("{NAMESPACE_PREFIX}{name}");
            let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            taken(&self.create_admitted(&NAMESPACES, None, &object).await?)?;
        }
        for kind in KINDS {
            if let Some(definition) = kind.definition() {
                taken(&self.create_admitted(&CRDS, None, &definition).await?)?;
            }
        }
        Ok(())
    }

    /// Does one write. Returns its revision; that of a deletion is not told.
    ///
    /// # Errors
    /// What was not taken.
    pub async fn write(&self, kind: &ApiResource, write: &Write) -> Result<u64, String> {
        let namespace = format!("{NAMESPACE_PREFIX}{}", write.namespace);
        let (namespace, name) = (kind.namespaced.then_some(namespace.as_str()), Some(write.name.as_str()));
        let answer = match write.mutation {
            Mutation::Create => self.create_admitted(kind, namespace, &kind.object(write)).await?,
            Mutation::Update => {
                let patch = json!({ "metadata": { "labels": { "app": write.app } } });
                match &self.reached {
                    Reached::Local(local) => {
                        local.patch(&local.target(kind, namespace, name)?, &patch).await?
                    }
                    Reached::Server { http, .. } | Reached::Url(http) => {
                        let path = path_of(kind, namespace, name);
                        let patch_type = "application/merge-patch+json";
                        http.send(Method::PATCH, &path, patch_type, Some(&patch)).await?
                    }
                }
            }
            Mutation::Delete => match &self.reached {
                Reached::Local(local) => local.delete(&local.target(kind, namespace, name)?).await?,
                Reached::Server { http, .. } | Reached::Url(http) => {
                    let path = format!("{}?gracePeriodSeconds=0", path_of(kind, namespace, name));
                    http.send(Method::DELETE, &path, "application/json", None).await?
                }
            },
        };
        taken(&answer).map_err(|why| format!("{}: {}: {why}", kind.plural, write.label))?;
        Ok(answer.body["metadata"]["resourceVersion"].as_str().and_then(|rv| rv.parse().ok()).unwrap_or(0))
    }

    /// Creates an object, once the namespace has the service account that a pod may need, and what an earlier
    /// run left is gone.
    async fn create_admitted(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Observation, String> {
        let clock = Clock::system();
        let deadline = clock.now() + ADMITTED_MAX;
        loop {
            let answer = self.create(kind, namespace, object).await?;
            let message = answer.body["message"].as_str().unwrap_or_default();
            let is_soon = ["serviceaccount", "already exists"].iter().any(|why| message.contains(why));
            if !is_soon || clock.now() > deadline {
                return Ok(answer);
            }
        }
    }

    async fn create(
        &self,
        kind: &ApiResource,
        namespace: Option<&str>,
        object: &Value,
    ) -> Result<Observation, String> {
        match &self.reached {
            Reached::Local(local) => local.create(&local.target(kind, namespace, None)?, object).await,
            Reached::Server { http, .. } | Reached::Url(http) => {
                let path = path_of(kind, namespace, None);
                http.send(Method::POST, &path, "application/json", Some(object)).await
            }
        }
    }

    /// What is current for `kind`, by a consistent LIST.
    ///
    /// # Errors
    /// An answer without a revision.
    pub async fn now(&self, kind: &ApiResource) -> Result<u64, String> {
        let path = RequestPath { watch_path: false, in_namespace: false, name: None };
        let answer = self.read(kind, Verb::List, &path, "").await?;
        let shown = answer.body["metadata"]["resourceVersion"].as_str().and_then(|rv| rv.parse().ok());
        shown.ok_or_else(|| format!("{}: no list: {}", kind.plural, answer.body))
    }

    /// Asks what a row asks, which is no watch.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn ask(&self, kind: &ApiResource, row: &Row, asked: &Asked) -> Result<Observation, String> {
        self.read(kind, row.verb, &row.path, &asked.query).await
    }

    async fn read(
        &self,
        kind: &ApiResource,
        verb: Verb,
        path: &RequestPath,
        query: &str,
    ) -> Result<Observation, String> {
        match &self.reached {
            Reached::Local(local) => local.read(&target(local, kind, path)?, verb, query).await,
            Reached::Server { http, .. } | Reached::Url(http) => {
                let method = if verb == Verb::DeleteCollection { Method::DELETE } else { Method::GET };
                let path = over_http::path(kind, verb, path, query);
                http.send(method, &path, "application/json", None).await
            }
        }
    }

    /// Begins the watch that a row asks for, or is refused.
    ///
    /// # Errors
    /// What kept it from being answered.
    pub async fn watch(
        &self,
        kind: &ApiResource,
        row: &Row,
        query: &str,
    ) -> Result<Result<Stream, Observation>, String> {
        Ok(match &self.reached {
            Reached::Local(local) => {
                let target = target(local, kind, &row.path)?;
                local.watch(&target, &row.path, query).await?.map(Stream::Local)
            }
            Reached::Server { http, .. } | Reached::Url(http) => {
                let path = over_http::path(kind, row.verb, &row.path, query);
                http.watch(&path).await?.map(Stream::Http)
            }
        })
    }

    /// Leaves nothing running; of somebody's server, nothing behind.
    ///
    /// # Errors
    /// What could not be removed.
    pub async fn stop(self) -> Result<(), String> {
        match self.reached {
            Reached::Local(local) => local.stop().await,
            Reached::Server { server, .. } => drop(server),
            Reached::Url(http) => {
                let crds = KINDS.iter().filter(|kind| kind.definition().is_some());
                let crds =
                    crds.map(|kind| path_of(&CRDS, None, Some(&format!("{}.{}", kind.plural, kind.group))));
                let namespaces = ["a", "a-b", "b"].map(|name| format!("{NAMESPACE_PREFIX}{name}"));
                // Their nodes, which are not there, would have to end them.
                let pods = |namespace| format!("/api/v1/namespaces/{namespace}/pods?gracePeriodSeconds=0");
                for path in namespaces.iter().map(pods) {
                    taken(&http.send(Method::DELETE, &path, "application/json", None).await?)?;
                }
                let namespaces = namespaces.iter().map(|name| path_of(&NAMESPACES, None, Some(name)));
                for path in crds.chain(namespaces) {
                    taken(&http.send(Method::DELETE, &path, "application/json", None).await?)?;
                }
            }
        }
        Ok(())
    }
}

impl Stream {
    /// Every event until the server ends the stream.
    ///
    /// # Errors
    /// A stream that breaks.
    pub async fn events(self) -> Result<Observation, String> {
        match self {
            Stream::Http(stream) => stream.events().await,
            Stream::Local(stream) => stream.events().await,
        }
    }
}

async fn restart(server: &mut ControlPlane) -> Result<Http, String> {
    // It blocks this thread for seconds; the other targets have threads of their own.
    server.start_again()?;
    Http::new(server.kubeconfig(), None).await
}

fn target(local: &Local, kind: &ApiResource, path: &RequestPath) -> Result<forebay_catalog::Target, String> {
    let namespace = format!("{NAMESPACE_PREFIX}a");
    local.target(kind, path.in_namespace.then_some(namespace.as_str()), path.name.as_deref())
}

fn path_of(kind: &ApiResource, namespace: Option<&str>, name: Option<&str>) -> String {
    let root = if kind.group.is_empty() { "/api" } else { "/apis" };
    let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
    let name = name.map(|name| format!("/{name}")).unwrap_or_default();
    format!("{root}/{}{namespace}/{}{name}", kind.api_version(), kind.plural)
}

fn taken(answer: &Observation) -> Result<(), String> {
    let failed = answer.body["kind"] == "Status" && answer.body["status"] != "Success";
    if failed || answer.code.is_some_and(|code| code >= 300) { Err(answer.body.to_string()) } else { Ok(()) }
}
