//! Carries requests to other API servers, in the name of who asks.
//!
//! In: a request whose sender is known and may send it, and where it goes. Out: the answer as it comes, a
//! piece at a time, or a connection that speaks another protocol from then on. What a client says of who it
//! is never leaves here. Never: decides whether somebody may, keeps a body, sends again what may have been
//! done.
//!
//! What runs behind clients' objects is visited: it knows nothing of this server, and its links are mended.

mod backend;
mod body;
mod carried;
mod connects;
mod dial;
mod error;
mod front;
mod global;
mod headers;
mod html;
mod identity;
pub mod limits;
mod links;
mod messages;
mod route;
mod tls;
mod turns;

pub use backend::{OtherAddresses, RequestBody, Upstream, Visits};
pub use body::{Lasts, ProxiedBody};
pub use carried::{Carried, ProxiedAnswer, Upgraded};
pub use connects::{ConnectRequest, Connects};
pub use error::ProxyError;
pub use front::RemoteHeaders;
pub use global::{is_global, only_global};
pub use headers::{asks_for_upgrade, without_hops};
pub use identity::Spoken;
pub use links::{Links, cleaned};
pub use messages::{MESSAGE_PROTOCOLS, ProxiedMessages};
pub use route::{Forwarded, Locator, ProxyRoute, Routes, ServiceReference, forward, visit};
pub use tls::{ClientIdentity, Trust};
