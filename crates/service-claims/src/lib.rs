//! What Services are given, cluster IPs and node ports, so that no two ever have the same.
//!
//! In: proposed Services and those before them; what the store has. Out: Services with what they take filled
//! in, and claims.
//!
//! The truth about an address or a port is its *claim*: one key in the store, created only where none is,
//! that names its Service. Of an address it is the IPAddress object of that name, of a node port a key that
//! no resource has (`docs/formats/node-ports.md`). Whoever creates the claim has the item, whichever server
//! that is. Claims are made before the Service is stored, and given back after it has let go, so a crash
//! between, or a write that the store does not answer, leaves at worst a claim too many, which `repair` gives
//! back. What is cached of claims only says where to look for a free one.
//!
//! State: the claims that writes of this server are in the middle of, behind one short lock; whether claims
//! have been repaired since the start. Never: judges a Service, which `strategy` does; writes one; knows what
//! the server writes into a new object, which who asks for a claim says ([`MakesAddresses`]).
//!
//! ADR-0016. Source: kubernetes v1.36.3 `registry/core/service/storage`, `ipallocator`, `portallocator`.

mod after;
mod cidrs;
mod claim;
mod claims;
mod config;
pub mod limits;
mod range;
mod repair;
mod server;
pub mod unreadable;

pub use after::{after_address, after_service};
pub use cidrs::address_ranges;
pub use claim::{MakesAddresses, typed};
pub use claims::{WriteClaims, is_unanswered, take_part};
pub use config::GivenOut;
pub use range::{AddressRange, PortRange};
pub use repair::{Repaired, repair};
pub use server::ServerClaims;
