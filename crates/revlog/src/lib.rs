//! A bounded, append-only log ordered by revision: one writer, any number of cursors.
//!
//! In: batches of items, each at a revision. Out: to every [`Cursor`], each item exactly once and in order,
//! or the word [`Step::Expired`]. Several items may share one revision; a revision is appended, evicted and
//! passed by a progress mark only as a whole.
//!
//! - The writer never waits for a reader. A reader holds no item of the log; it holds its place, two numbers.
//! - A slow reader loses nothing but its place: it is told `Expired` when the writer has evicted what it was
//!   to read.
//! - [`Step::Progress`] says "everything up to here was delivered", which is what a bookmark is.
//! - A [`Lane`] is a narrow part of a log: its cursors are woken by what is in it, and by nothing else.
//!
//! Never: knows Kubernetes, keeps time (the writer's caller says what time it is).

mod cursor;
mod lane;
mod log;
mod sync;

pub use cursor::{Cursor, Expired, Position, Step};
pub use lane::{Lane, LaneReader};
pub use log::{Limits, Log, Usage, Writer};

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod upkeep_tests;
#[cfg(test)]
mod waiting_tests;
