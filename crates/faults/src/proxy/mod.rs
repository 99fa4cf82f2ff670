//! A reverse proxy that ends TLS, counts what is asked, and makes a fault when it is told to.
//!
//! In: an API server, orders. Out: a URL to use in its stead, and counts. It speaks HTTP/1.1 and HTTP/2,
//! whichever a client asks for, and lets everybody in: it asks the server as whom the server's kubeconfig
//! says. Owner of its threads; dropping it resets all connections. Never: a change of what it passes on, but
//! for what a fault is; that a watch is not compressed is all that a client could tell.

mod asked;
mod certificates;
mod connections;
mod counts;
mod effects;
mod frames;
mod service;
mod state;
#[cfg(test)]
mod tests;
mod upstream;
mod watches;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use forebay_clients::ports;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

pub use self::counts::{Counts, RequestCounts};
pub use self::upstream::Upstream;
use crate::Error;
use crate::fault::Fault;
use connections::Shared;
use state::State;

/// The name that the proxy's certificate is good for, beside 127.0.0.1. It resolves where a client is told
/// so.
pub const NAME: &str = "server.faults.test";

#[derive(Debug)]
pub struct Proxy {
    state: Arc<State>,
    port: u16,
    authority: String,
    // Until it is dropped; what runs in it ends with it.
    runtime: Option<Runtime>,
}

impl Proxy {
    /// Listens on a port of its own.
    ///
    /// # Errors
    /// No port, no threads.
    pub fn start(upstream: Upstream) -> Result<Proxy, Error> {
        let [port] = ports::free().map_err(Error::Harness)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("proxy")
            .enable_all()
            .build()
            .map_err(Error::Start)?;
        let certificates = certificates::make(NAME)?;
        let shared =
            Shared { state: Arc::new(State::new()), upstream: Arc::new(upstream), tls: certificates.server };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let listener = runtime.block_on(TcpListener::bind(address)).map_err(Error::Start)?;
        let state = shared.state.clone();
        runtime.spawn(connections::accept(shared, port, listener));
        Ok(Proxy { state, port, authority: certificates.authority, runtime: Some(runtime) })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where clients find it, by its name.
    pub fn url(&self) -> String {
        format!("https://{NAME}:{}", self.port)
    }

    /// Whom its clients trust, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// A fault begins; one that lasts takes the place of the one before.
    pub fn begin(&self, fault: Fault) {
        self.state.begin(fault);
    }

    /// The fault is over, but for what it has done for ever.
    pub fn end(&self) {
        self.state.end();
    }

    /// What was asked so far.
    pub fn counts(&self) -> Counts {
        self.state.counts()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.close();
        // Without waiting for it, which a task may not.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
