//! What the servers of one store tell each other of their connections, and what one makes of it: whom it lets
//! go, so that each holds its share and no storm moves from one to the next. Pure: a machine without IO.
//!
//! In: the words of the neighbours, what this server holds, the time. Out: this server's own [`Word`] as
//! bytes; how many connections to [let go](Spread::step), and whether one that is refused [may
//! go](Spread::refused). Never: IO, a clock, a connection.

mod departure;
mod heard;
pub mod limits;
mod spread;
#[cfg(test)]
mod spread_tests;
mod word;

pub use departure::Departure;
pub use heard::{Heard, Neighbour};
pub use spread::{Own, Spread};
pub use word::Word;

/// Time since some fixed point that the caller has chosen.
pub type Moment = std::time::Duration;
