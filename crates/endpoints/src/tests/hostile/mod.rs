//! What hostile clients do to a connection, over real sockets to a whole server in this process.
//!
//! In: bytes as no well-behaved client sends them. Out: what is answered, held against RFC 9110, 9112 and
//! 9113, and what it costs. Never: waits for a time that passes; where a limit is a time, tokio's clock is
//! paused.

mod floods;
pub(super) mod frames;
mod malformed_http1;
mod malformed_http2;
mod slow;
mod strangers;
