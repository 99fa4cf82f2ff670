//! Sequences of writes by several managers, the same to two servers: who owns which field after each.
//!
//! In: a seed, the kinds of `sequences/` with the fields that a step may set. Out: the first step of a
//! sequence whose answers differ, shrunk. Never: a step that depends on what only one server answered; a
//! difference of what a server chooses itself.
//!
//! [`draw()`] makes a [`Sequence`] of a seed; [`run`] sends it to both, [`canonical`] makes the answers
//! comparable, [`shrunk`] takes away what a difference does not need.

mod canonical;
mod draw;
mod kinds;
mod path;
mod request;
mod run;
mod shrink;
mod step;
mod tree;

pub use draw::draw;
pub use kinds::{WrittenKind, kinds};
pub use run::{Compared, Mismatch, prepare, run};
pub use shrink::shrunk;
pub use step::Sequence;
