//! Everything that makes a run differ from the last one: time, randomness, tasks and their end.
//!
//! In: nothing. Out: [`Clock`], [`Random`], [`Tasks`], [`blocking`], [`background`], [`promptly`], [`apart`]. Every other crate takes these as values, so that a test
//! decides what time it is and which numbers are drawn. Never: knows Kubernetes, does IO.

mod background;
mod blocking;
mod clock;
mod random;
mod tasks;

pub use background::{Background, NotYet, apart, background, promptly};
pub use blocking::{BlockingAsTasks, blocking};
pub use clock::{Alarm, Clock, ManualClock};
pub use random::Random;
pub use tasks::{CutOnDrop, Shutdown, Tasks, Told};
pub use tokio::time::{Duration, Instant};
