//! `forebay serve`, once everything it needs is prepared: store, registry and endpoints are put together, and taken
//! apart in the opposite order.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use forebay_embedded::{Engine, Options};
use forebay_endpoints::health::{Check, Endpoints};
use forebay_endpoints::{Bound, config as edge};
use forebay_registry::Registry;
use forebay_rt::{Clock, Random, Shutdown, Tasks};
use tokio::signal::unix::{SignalKind, signal};

use crate::config::{Anonymous, AuthorizationMode, Http2};
use crate::error::Error;
use crate::prepare::Prepared;
use crate::version::{self, KUBERNETES_VERSION, VERSION};

/// How long the tasks of the caches may take to end.
const TASKS_WAIT: Duration = Duration::from_secs(5);
/// Threads for what blocks: name look-ups of none, reads of a store that is behind.
const BLOCKING_THREADS_MAX: usize = 8;

/// Serves until told to stop. Says on `out` how to use it, once it can be used.
///
/// # Errors
/// What kept it from serving.
pub fn run(prepared: &Prepared, out: &mut dyn Write) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("forebay")
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|cause| Error::Serve(format!("no threads to serve with: {cause}")))?;
    runtime.block_on(serve(prepared, out))
}

async fn serve(prepared: &Prepared, out: &mut dyn Write) -> Result<(), Error> {
    let config = &prepared.config;
    let (stop, hurry) = (Shutdown::default(), Shutdown::default());
    let tasks = Tasks::new();
    stop_on_signals(&stop, &hurry, &tasks)?;
    let clock = Clock::system();
    let directory = config.data_dir.join("store");
    let options = Options { clock: clock.clone(), ..Options::default() };
    let engine = Engine::open(&directory, options).map_err(failed)?;
    let bound = Bound::listen(edge_config(prepared)).map_err(failed)?;
    prepared.write_admin_kubeconfig(bound.address().port())?;
    let registry_config = forebay_registry::Config {
        storage_prefix: config.etcd_prefix.clone(),
        event_ttl: config.event_ttl,
        min_request_timeout: config.limits.min_request_timeout,
    };
    let registry = Registry::new(registry_config, engine.clone(), clock, Random::system(), tasks.clone());
    let served = tokio::select! {
        started = registry.start() => match started {
            Ok(()) => {
                announce(prepared, bound.address().port(), out)?;
                tokio::select! {
                    () = bound.serve(registry, checks(&engine), Random::system(), tasks.clone(), stop) => {}
                    () = hurry.raised() => tracing::warn!("told to stop twice: cutting every connection"),
                }
                Ok(())
            }
            Err(status) => Err(Error::Serve(format!("the store cannot be served: {}", status.message))),
        },
        () = stop.raised() => Ok(()),
    };
    if !tasks.stop(TASKS_WAIT).await {
        tracing::warn!("some tasks did not end in time");
    }
    engine.close();
    served
}

/// What went wrong, and why, as one line.
fn failed(error: impl std::error::Error) -> Error {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        line.push_str(": ");
        line.push_str(&cause.to_string());
        source = cause.source();
    }
    Error::Serve(line)
}

/// SIGTERM and SIGINT ask for an orderly end; after a second one nobody is waited for.
fn stop_on_signals(stop: &Shutdown, hurry: &Shutdown, tasks: &Tasks) -> Result<(), Error> {
    let handler = |kind| signal(kind).map_err(|cause| Error::Serve(format!("no signals: {cause}")));
    let (mut terminate, mut interrupt) =
        (handler(SignalKind::terminate())?, handler(SignalKind::interrupt())?);
    let (stop, hurry) = (stop.clone(), hurry.clone());
    tasks.spawn("signals", async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.is_raised() {
                hurry.raise();
            }
            stop.raise();
        }
    });
    Ok(())
}

fn announce(prepared: &Prepared, port: u16, out: &mut dyn Write) -> Result<(), Error> {
    let (url, kubeconfig) = (prepared.config.local_url(port), prepared.config.admin_kubeconfig());
    writeln!(out, "forebay serves {url}; try: kubectl --kubeconfig {} get namespaces", kubeconfig.display())?;
    out.flush()?;
    tracing::info!(url, version = VERSION, kubernetes = KUBERNETES_VERSION, "serving");
    Ok(())
}

/// What the health endpoints ask of the store.
fn checks(engine: &Arc<Engine>) -> Vec<Check> {
    let engine = engine.clone();
    // Named as clients and dashboards know the check of the storage.
    vec![Check::new("etcd", Endpoints::All, move || engine.failure().map_or(Ok(()), Err))]
}

fn edge_config(prepared: &Prepared) -> edge::Config {
    let config = &prepared.config;
    let (serving, limits) = (&config.serving, &config.limits);
    edge::Config {
        listen: config.listen(),
        tls: edge::Tls {
            cert_chain: prepared.serving.cert.clone(),
            key: prepared.serving.key.clone(),
            client_ca: Some(prepared.client_ca.clone()),
            provider: config.tls.policy.provider(),
            versions: config.tls.policy.versions(),
            http2: match serving.http2 {
                Http2::Enabled => edge::Http2::Enabled,
                Http2::Disabled => edge::Http2::Disabled,
            },
        },
        tokens: prepared.token_users.clone(),
        anonymous: match config.authentication.anonymous {
            Anonymous::HealthAndVersion => edge::Anonymous::HealthAndVersion,
            Anonymous::Nothing => edge::Anonymous::Nothing,
        },
        authorization: match config.authorization_mode {
            AuthorizationMode::AlwaysAllow => edge::Authorization::AlwaysAllow,
            AuthorizationMode::AlwaysDeny => edge::Authorization::AlwaysDeny,
            AuthorizationMode::Rbac => edge::Authorization::SystemMastersOnly,
        },
        request_timeout: limits.request_timeout,
        max_requests_inflight: limits.max_requests_inflight.map(|max| max as usize),
        max_mutating_requests_inflight: limits.max_mutating_requests_inflight.map(|max| max as usize),
        http2_max_streams: serving.http2_max_streams_per_connection,
        shutdown_delay: serving.shutdown_delay,
        external_address: serving.external_hostname.clone(),
        version: edge::Version {
            kubernetes: KUBERNETES_VERSION.to_string(),
            forebay: VERSION.to_string(),
            git_commit: String::new(),
            build_date: "1970-01-01T00:00:00Z".to_string(),
            platform: version::platform(),
        },
    }
}
