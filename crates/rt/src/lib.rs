//! Everything that makes a run differ from the last one: time, randomness, tasks, what wakes them and their
//! end.
//!
//! In: nothing. Out: [`Clock`], [`Random`], [`Tasks`], [`long_turns`], [`blocking`], [`background`],
//! [`promptly`], [`apart`], [`apart_task`], [`Bell`], [`Stagger`], [`UnderWay`], [`prefetch`]. Every other
//! crate takes these as values, so that a test decides what time it is and which numbers are drawn. Never:
//! knows Kubernetes, does IO.

mod apart_tasks;
mod background;
mod bell;
#[cfg(test)]
mod bell_tests;
mod blocking;
mod clock;
mod prefetch;
mod random;
mod stagger;
mod sync;
mod tasks;
mod told;
mod turns;
mod under_way;

pub use apart_tasks::{ApartTask, apart_task};
pub use background::{Background, NotYet, apart, background, promptly};
pub use bell::{Bell, Ear};
pub use blocking::{BlockingAsTasks, blocking};
pub use clock::{Alarm, Clock, ManualClock};
pub use prefetch::prefetch;
pub use random::Random;
pub use stagger::Stagger;
pub use tasks::{CutOnDrop, Raised, Shutdown, Tasks};
pub use tokio::time::{Duration, Instant};
pub use told::Told;
pub use turns::{LongTurns, TURN_CPU_MAX, long_turns, used_cpu};
pub use under_way::{OneUnderWay, UnderWay};
