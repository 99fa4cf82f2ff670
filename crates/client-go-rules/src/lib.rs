//! Client-go's rules: when its reflectors list, watch or wait, and how long.
//!
//! In: what was heard of a request, and when. Out: the next request, or a wait ([`Reflector`], [`Backoff`]).
//! The bench's readers and the simulation of flow control ask by them; a test of the bench plays one script
//! to them and to client-go. Never: IO, a clock; part of a server.

mod backoff;
mod reflector;

pub use backoff::{Backoff, fraction};
pub use reflector::{Aftermath, Ask, Move, Reflector, WatchedEvent};
