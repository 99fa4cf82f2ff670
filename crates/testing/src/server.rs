//! One server and its client.
//!
//! The server is a task of the shared runtime; its owner holds the flag that ends it, and dropping that
//! raises it.

use std::ffi::OsString;
use std::io;

use forebay::config::{Host, ServeConfig};
use forebay::error::Error;
use forebay::flags::argv;
use forebay::flags::layers::Raw;
use forebay::prepare::Prepared;
use forebay::server::{Server, Stop};
use forebay_embedded::{Engine, Options};
use forebay_rt::{Clock, Tasks};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::runtime;

const AUTHORIZATION_MODE: &str = "authorization-mode";

/// A running API server. Dropping it ends it.
pub struct TestServer {
    client: Client,
    config: Config,
    kubeconfig: String,
    url: String,
    held: Held,
    ended: JoinHandle<Result<(), Error>>,
}

/// What a server is started with.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    flags: Vec<OsString>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// It has no threads to run on.
    #[error("no threads for test servers")]
    Threads(#[source] io::Error),
    /// It was told something that cannot be done, or it cannot listen.
    #[error("the server does not start")]
    Server(#[source] Error),
    /// Its task panicked.
    #[error("the server ended while it was starting")]
    Ended,
    #[error("the kubeconfig cannot be used")]
    Kubeconfig(#[source] KubeconfigError),
    #[error("no client can be made")]
    Client(#[source] Box<kube::Error>),
}

/// Ends the server when dropped.
struct Held(Stop);

/// How to reach a server that is ready.
struct Reach {
    url: String,
    kubeconfig: String,
}

impl TestServer {
    /// Starts a server with an empty store. It is ready.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start() -> Result<TestServer, StartError> {
        TestServer::builder().start().await
    }

    /// A server that differs from the usual one.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A client of the administrator, who may do everything. All clones share their connections.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// What [`TestServer::client`] was made of.
    pub fn config(&self) -> Config {
        self.config.clone()
    }

    /// The administrator's kubeconfig, as YAML.
    pub fn kubeconfig(&self) -> &str {
        &self.kubeconfig
    }

    /// `https://127.0.0.1:PORT`
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends the server and waits until nothing of it is left. Cancel-safe: dropped, it still ends.
    pub async fn stop(self) {
        let TestServer { held, ended, .. } = self;
        drop(held);
        // A panic of its task was reported when it happened, and an error has no taker any more.
        let _ = ended.await;
    }
}

impl std::fmt::Debug for TestServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TestServer").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Builder {
    /// Adds a flag of `forebay serve`, such as `--service-cluster-ip-range=10.9.0.0/24`. The port stays a
    /// free one unless `--secure-port` says otherwise.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<OsString>) -> Builder {
        self.flags.push(flag.into());
        self
    }

    /// Starts the server. It is ready.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(self) -> Result<TestServer, StartError> {
        let runtime = runtime::handle().map_err(StartError::Threads)?;
        let (tell, ready) = oneshot::channel();
        let stop = Stop::default();
        // From here on, whoever drops this future ends the server.
        let held = Held(stop.clone());
        let ended = runtime.spawn(run(self.flags, stop, tell));
        let Ok(Reach { url, kubeconfig }) = ready.await else {
            return Err(match ended.await {
                Ok(Err(error)) => StartError::Server(error),
                Ok(Ok(())) | Err(_) => StartError::Ended,
            });
        };
        let parsed = Kubeconfig::from_yaml(&kubeconfig).map_err(StartError::Kubeconfig)?;
        let config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
            .await
            .map_err(StartError::Kubeconfig)?;
        let client = Client::try_from(config.clone()).map_err(|cause| StartError::Client(Box::new(cause)))?;
        Ok(TestServer { client, config, kubeconfig, url, held, ended })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.at_once.raise();
    }
}

/// A server's whole life.
async fn run(flags: Vec<OsString>, stop: Stop, tell: oneshot::Sender<Reach>) -> Result<(), Error> {
    let (mut prepared, clock, tasks) = (prepare(flags)?, Clock::system(), Tasks::new());
    prepared.wait_for_signer(&clock, &tasks).await?;
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open_in_memory(options).map_err(|cause| Error::Serve(cause.to_string()))?;
    let server = Server::listen(&prepared, engine, clock, tasks)?;
    let port = server.address().port();
    let reach =
        Reach { url: prepared.config.local_url(port), kubeconfig: prepared.admin_kubeconfig(port).to_yaml() };
    server
        .run(&stop, || {
            // Whoever asked may have left; then the flag is up.
            let _ = tell.send(reach);
            Ok(())
        })
        .await
}

fn prepare(flags: Vec<OsString>) -> Result<Prepared, Error> {
    // Without controllers, and so without anybody who makes service accounts, as envtest is;
    // `--controllers=*` brings both.
    let said = argv::parse(flags.iter().cloned())?.flags;
    let says = |name: &str| name == "controllers" || name.ends_with("admission-plugins");
    let mut ours = vec!["--secure-port=0", "--controllers="];
    if !said.iter().any(|(name, _)| says(name)) {
        ours.push("--disable-admission-plugins=ServiceAccount");
    }
    // Whoever is known may do everything, so that a test needs no roles, unless it asks for them.
    if !said.iter().any(|(name, _)| name == AUTHORIZATION_MODE) {
        ours.push("--authorization-mode=AlwaysAllow");
    }
    let typed = argv::parse(ours.into_iter().map(OsString::from).chain(flags))?;
    if let Some(argument) = typed.rest.first() {
        return Err(Error::Usage(format!("unexpected argument: {argument}")));
    }
    let raw = Raw::collect(typed.flags, std::iter::empty())?;
    let config = ServeConfig::decide(&raw, &Host::default())?;
    // Warnings are about flags; whoever writes a test reads the documentation of the few that it has.
    Prepared::in_memory(config, jiff::Timestamp::now(), &mut Vec::new())
}
