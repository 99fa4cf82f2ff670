//! Carries requests to a Kubernetes API server.
//!
//! In: a `kube::Config`. Out: a `kube::Client` on connections of ours, and what befell a request as a
//! [`Fault`](forebay_client::reflector::Fault). A thousand watches and what else is asked for share as few
//! HTTP/2 connections as the server's limit of streams allows, and a watch never takes the last seat of one.
//! Dead connections are found by ping; where the server sends its clients away, what comes next goes over a
//! new connection while the old answers go on. A server that speaks only HTTP/1.1 gets a connection for each
//! request, kept for the next. [`Throttle`] is how fast to ask. Never: judges an answer, retries what may
//! have been done, knows our server from another.

mod body;
mod book;
mod connect;
mod dial;
mod error;
mod fault;
mod http1;
mod http2;
pub mod limits;
mod link;
mod options;
mod pool;
mod proxy;
mod throttle;
mod unserved;
mod upload;

pub use body::Body;
pub use book::PoolStats;
pub use connect::{Connected, connect};
pub use error::Error;
pub use fault::fault_of;
pub use options::PoolOptions;
pub use pool::Pool;
pub use throttle::{Rank, Rate, Throttle, WaitedFor};
