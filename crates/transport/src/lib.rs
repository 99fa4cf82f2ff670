//! Connections: TLS, HTTP/1.1, HTTP/2, slow and dead peers, shutdown. Usable by any server.
//!
//! In: sockets. Out: what is read and written over them, bounded, and who is gone or reads too slowly. Never: knows what is
//! served.

mod abort;
mod connections;
mod counts;
mod dead_peers;
mod drain;
pub mod limits;
mod reply;
mod response_channel;
mod socket;
#[cfg(target_os = "linux")]
mod socket_options;

pub use abort::{Abort, UntilAborted};
pub use connections::{Connection, ConnectionSlot, Connections, OpenRequest};
pub use counts::{ConnectionCounts, Counter};
pub use dead_peers::DeadPeers;
pub use drain::{Drain, WatchSlot};
pub use reply::{Exchange, Reply, SentBy};
pub use response_channel::{ResponseChannel, SendBuffer};
pub use socket::{SendState, Socket, SocketStream};
