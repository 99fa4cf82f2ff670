//! Sequences of writes by several managers, the same to two servers: who owns which field after each.
//!
//! In: a seed, the kinds of `sequences/` with the fields that a step may set. Out: the first step of a
//! sequence whose answers differ, shrunk. Never: a step that depends on what only one server answered; a
//! difference of what a server chooses itself.
//!
//! [`draw()`] makes a [`Sequence`] of a seed; [`run`] sends it to both, [`canonical`] makes the answers
//! comparable, [`shrunk`] takes away what a difference does not need. [`SentSequences`] is how far a long run
//! has come.

mod canonical;
mod draw;
mod kinds;
mod path;
mod progress;
mod request;
mod run;
mod shrink;
mod step;
mod tree;

pub use draw::{draw, draw_of};
pub use kinds::{WrittenKind, kinds, redefined_kinds};
pub use progress::{Became, SentSequences, SequenceCounts};
pub use run::{Compared, Mismatch, Running, prepare, redefine, run};
pub use shrink::shrunk;
pub use step::Sequence;
