//! `forebay serve`, once everything it needs is prepared: the store is opened, and signals end what it
//! serves.

use std::io::Write;

use forebay_embedded::Syncs;
use forebay_rt::{Clock, Tasks};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::Error;
use crate::identity::Files;
use crate::open_files;
use crate::parent::Parent;
use crate::prepare::Prepared;
use crate::server::{Server, Stop};
use crate::store::Store;
use crate::version::{KUBERNETES_VERSION, VERSION};

/// Threads for what blocks: name look-ups of none, reads of a store that is behind.
const BLOCKING_THREADS_MAX: usize = 8;

/// What ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// SIGTERM or SIGINT.
    Signal,
    /// These, or the end of the parent, after which nobody is left to be served.
    Parent(Parent),
}

/// Serves until told to stop. Says on `out` how to use it, once it can be used.
///
/// # Errors
/// What kept it from serving.
pub fn run(prepared: Prepared, until: Until, syncs: Syncs, out: &mut dyn Write) -> Result<(), Error> {
    open_files::raise_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("forebay")
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .enable_all()
        .build()
        .map_err(|cause| Error::Serve(format!("no threads to serve with: {cause}")))?;
    runtime.block_on(serve(prepared, until, syncs, out))
}

async fn serve(mut prepared: Prepared, until: Until, syncs: Syncs, out: &mut dyn Write) -> Result<(), Error> {
    let (stop, tasks, clock) = (Stop::default(), Tasks::new(), Clock::system());
    stop_on_signals(&stop, &tasks)?;
    if let Until::Parent(parent) = until {
        stop_with(parent, &stop, &tasks, clock.clone());
    }
    tokio::select! {
        signs = prepared.wait_for_signer(&clock, &tasks) => signs?,
        // It may take a minute, and nothing is there yet that would have to be ended in order.
        () = stop.orderly.raised() => return Ok(()),
        () = stop.at_once.raised() => return Ok(()),
    }
    let prepared = &prepared;
    let store = Store::open(prepared, syncs, &clock, &tasks).await?;
    let server = Server::listen(prepared, store, clock.clone(), tasks.clone())?;
    let port = server.address().port();
    if let Some(path) = prepared.config.admin_kubeconfig() {
        prepared.admin_kubeconfig(port).write(&path)?;
    }
    let files = Files::of(prepared, port);
    tasks.spawn("files of identity", files.follow(server.replacing(), clock));
    server.run(&stop, || announce(prepared, port, out)).await
}

/// SIGTERM and SIGINT ask for an orderly end; after a second one nobody is waited for.
fn stop_on_signals(stop: &Stop, tasks: &Tasks) -> Result<(), Error> {
    let handler = |kind| signal(kind).map_err(|cause| Error::Serve(format!("no signals: {cause}")));
    let (mut terminate, mut interrupt) =
        (handler(SignalKind::terminate())?, handler(SignalKind::interrupt())?);
    let stop = stop.clone();
    tasks.spawn("signals", async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if stop.orderly.is_raised() {
                tracing::warn!("told to stop twice: cutting every connection");
                stop.at_once.raise();
            }
            stop.orderly.raise();
        }
    });
    Ok(())
}

fn stop_with(parent: Parent, stop: &Stop, tasks: &Tasks, clock: Clock) {
    let stop = stop.clone();
    tasks.spawn("parent", async move {
        parent.gone(&clock).await;
        tracing::warn!("the process that started this one is gone");
        stop.at_once.raise();
    });
}

fn announce(prepared: &Prepared, port: u16, out: &mut dyn Write) -> Result<(), Error> {
    let url = prepared.config.local_url(port);
    match prepared.config.admin_kubeconfig() {
        Some(path) => {
            writeln!(
                out,
                "forebay serves {url}; try: kubectl --kubeconfig {} get namespaces",
                path.display()
            )?;
        }
        None => writeln!(out, "forebay serves {url}")?,
    }
    out.flush()?;
    tracing::info!(url, version = VERSION, kubernetes = KUBERNETES_VERSION, "serving");
    Ok(())
}
