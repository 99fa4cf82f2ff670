//! Connections: TLS, HTTP/1.1, HTTP/2, WebSocket, slow and dead peers, shutdown. Usable by any server:
//! `examples/hello.rs`.
//!
//! In: sockets, and a [`Service`] that answers requests. Out: its [replies](Reply) to clients, each sent in
//! the way that suits it, within limits. Clients that read too slowly, or are gone, are disconnected. Never:
//! knows what is served.

mod abort;
mod arrivals;
mod connections;
mod counts;
mod dead_peers;
mod drain;
mod http1;
mod http2;
pub mod limits;
mod piecewise_body;
mod reply;
mod request_heads;
mod response_channel;
mod sending;
mod server;
mod server_tls;
mod service;
mod shown;
mod socket;
#[cfg(target_os = "linux")]
mod socket_options;
mod stalled_readers;
mod tls_stream;
mod tunnel;
pub mod websocket;

pub use abort::{Abort, UntilAborted};
pub use arrivals::{Arrival, Arrivals};
pub use connections::{Connection, ConnectionSlot, Connections, OpenRequest};
pub use counts::{ConnectionCounts, Counter, GoesFor};
pub use drain::{Drain, WatchSlot, WatchTurn};
pub use piecewise_body::{BodySource, PiecewiseBody, RunOn, Stalled};
pub use reply::{Exchange, Reply, SentBy};
pub use response_channel::{ResponseChannel, SendBuffer};
pub use sending::picos_to_send_byte;
pub use server::{HttpServer, listen, serve_stream};
pub use server_tls::{Http2, ServerTls, TlsError, certificates};
pub use service::{ReaderWait, ReplyBody, Service, Tunnel};
pub use shown::{NamedCertificate, NamesBy};
pub use stalled_readers::{LetGoFor, ReaderTotals, StalledReaders, Stalls};
