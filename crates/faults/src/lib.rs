//! What informers do when something goes wrong between them and an API server: ours beside client-go's and
//! kube-rs's.
//!
//! In: a server, clients that hold informers through a [`Proxy`](proxy::Proxy) each, and the [24 kinds of
//! fault](fault::ROWS). Out: for each fault and each client how many lists it asked for, how long it was
//! blind, and whether its stores were equal to the server's at the end. Never: a client that is treated
//! otherwise than the others: each has a proxy of its own, in front of the same server, with the same fault
//! at the same time, while the same objects are written.
//!
//! ```text
//! cargo build -p forebay-faults && target/debug/forebay-faults --server forebay --informers 50
//! target/debug/forebay-faults --server kube-apiserver --subject client-go,kube-rs --fault ping-lost
//! ```
//!
//! # What is measured
//! - **Lists**: requests for the whole state that reached the proxy from when the fault began until the
//!   stores were found equal, or the wait was given up. A LIST counts once, however many pages it has; a
//!   watch that begins with the state counts as well, since it costs the server the same. Requests that were
//!   refused with a status count: the server had to read them. Those for which there was no connection are
//!   not seen by anybody.
//! - **Blind**: from when the fault began to when the last of the informers had seen something that was
//!   written to its namespace after the fault was over; what a store holds is looked at several times a
//!   second, and that is how exact it is. It contains the fault's own duration, which is beside it: a client
//!   cannot be better than that.
//! - **Equal**: each store has exactly the objects that the server lists, each at the server's
//!   resourceVersion, within a bounded wait after the writes have ended.
//!
//! Each fault meets clients that were started for it, so that no backoff of one fault is seen in the next.

#![allow(clippy::disallowed_methods, reason = "waits for processes that keep no clock of ours")]

pub mod fault;
pub mod limits;
pub mod proxy;
pub mod rivals;
pub mod run;
pub mod subject;
pub mod table;
pub mod writers;

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};

/// How the administrator of a server reaches it.
///
/// # Errors
/// It cannot be read or used.
pub fn configuration(kubeconfig: &Path) -> Result<kube::Config, Error> {
    let unfit = |why: &dyn std::error::Error| Error::Config(format!("{}: {why}", kubeconfig.display()));
    let read = Kubeconfig::read_from(kubeconfig).map_err(|why| unfit(&why))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().map_err(Error::Start)?;
    let options = KubeConfigOptions::default();
    runtime.block_on(kube::Config::from_custom_kubeconfig(read, &options)).map_err(|why| unfit(&why))
}

/// What a run can fail of; that a client fails is no error but a result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server's configuration, or a certificate, is of no use.
    #[error("{0}")]
    Config(String),
    /// What starts servers and waits for them says so.
    #[error("{0}")]
    Harness(String),
    #[error("no threads, or no port")]
    Start(#[source] std::io::Error),
    #[error("the server behind the proxy: {0}")]
    Upstream(String),
    /// The client cannot be run, or does not say what it was asked.
    #[error("{subject}: {why}")]
    Subject { subject: &'static str, why: String },
    /// A write or list past the proxy.
    #[error("a request past the proxy")]
    Direct(#[source] Box<kube::Error>),
}
