//! A client of any Kubernetes API server: requests, answers as they come in, and when to ask for what.
//!
//! In: a collection, a way to its server. Out: its objects as bytes, each change of them, and what became of
//! the connection. Parts that know nothing of each other: [`wire`] cuts a body into frames and items, and the
//! [`reflector`] decides what to ask for next. What carries a request is the crate `connector`. Never: keeps
//! an object; knows a server of this house from another.

mod ask;
mod collection;
pub mod limits;
pub mod reflector;
pub mod wire;

pub use ask::{Ask, Match};
pub use collection::Collection;
