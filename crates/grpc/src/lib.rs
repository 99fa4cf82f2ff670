//! gRPC over one HTTP/2 connection of hyper's, without generated code (ADR 30): single calls, streams, and
//! protobuf's wire format.
//!
//! In: a connection, or a Unix socket; messages as bytes. Out: messages as bytes, or a [`CallError`]. Never:
//! connects elsewhere, waits for a time (the caller drops the call), knows a service.

mod channel;
mod error;
pub mod limits;
pub mod proto;
mod unix;

pub use channel::{Channel, Outgoing, Receiver, Sender, chain};
pub use error::{CallError, status_name};
pub use unix::UnixService;
