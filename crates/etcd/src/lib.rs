//! The storage engine on a real etcd cluster.
//!
//! In: [`Txn`](forebay_backend::Txn)s, ranges and prefixes to feed from, as [`forebay_backend::Backend`] has
//! it. Out: calls of etcd's API over gRPC, on few connections; one watch for each fed prefix. Never: knows
//! what a value means ([`Codec`] does), opens a stream because a client asks for something, reads previous
//! values (PrevKV) from etcd.

mod ahead;
mod barrier;
mod cluster;
mod codec;
mod compaction;
mod engine;
mod error;
mod feed;
mod follow;
mod group;
mod grpc;
mod lease;
pub mod limits;
mod messages;
mod oldest;
mod pool;
mod range;
mod shared;
mod stretch;
mod tls;
mod transfer;
mod url;
mod values;
mod version;
mod walk;

pub use codec::{Codec, Unread, Verbatim};
pub use engine::{Etcd, StorageConfig};
pub use error::RequestError;
pub use shared::Counters;
pub use tls::{Reread, TlsError, TlsFiles};
pub use transfer::{Kept, KeptPages};
pub use url::{Endpoint, NotAnEndpoint};
