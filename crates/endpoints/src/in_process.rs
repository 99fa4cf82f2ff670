//! The server without a socket: HTTP/1.1 over any stream of bytes, for who has a server in the own process
//! and for simulations, in which the network is memory.
//!
//! In: streams. Out: what a connection without TLS would be answered. A watch is a body like others here, and
//! is not upgraded to WebSocket. Never: listens, accepts, ends of itself: whoever drops a stream's future has
//! cut it.

use std::sync::Arc;

use forebay_rt::Tasks;
use forebay_transport::{Drain, StalledReaders, serve_stream};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::config::ApiServerConfig;
use crate::handler::{Handler, OnConnection};
use crate::identity::Known;
use crate::metrics::Metrics;
use crate::server::{Backing, external_address, handler};

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub struct InProcess(Arc<Handler>);

impl InProcess {
    /// Serves what is behind it. Of `config` nothing that is about sockets or TLS counts.
    pub fn new(config: &ApiServerConfig, backing: Backing, tasks: &Tasks) -> InProcess {
        let clock = backing.clock.clone();
        let drain = Drain::new(clock.clone(), config.watch_termination_grace);
        let stalled_readers = StalledReaders::new(clock.clone());
        tasks.spawn("stalled readers", stalled_readers.clone().end_them());
        let address = external_address(config, config.listen);
        let known = Known::new(config, address.clone(), None);
        let counted = backing.counted(config);
        let metrics = Arc::new(Metrics::new(clock, known.counts.clone(), counted));
        let parts = (Vec::new(), drain, stalled_readers, metrics);
        let configuration = backing.flow_control.clone();
        let handler = handler(config, address, &known, backing, parts);
        handler.start(configuration, tasks);
        InProcess(Arc::new(handler))
    }

    /// Answers what comes over `stream`, until the client is done.
    pub async fn speak(&self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        serve_stream(self.0.clone(), Arc::new(OnConnection::default()), stream).await;
    }
}
