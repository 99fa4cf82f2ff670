//! A work queue with the rules of client-go's: keys that there is work for, and one worker a key.
//!
//! In: keys, from whoever hears of changes. Out: each key to one worker at a time, at once, later, or the
//! later the more often it failed. Never: keeps a key twice, knows what a key means, does IO. [`Queue`] has
//! the rules and is told the time; [`WorkQueue`] is the same for many tasks; [`run_workers`] takes the keys
//! out.

mod handle;
pub mod limits;
mod metrics;
mod queue;
mod rate;
mod workers;

pub use handle::{Item, WorkQueue};
pub use metrics::{Metrics, Spans};
pub use queue::{Next, Priority, Queue};
pub use rate::{Bucket, ItemExponential, ItemFastSlow, MaxOf, MaxWait, RateLimiter, default_limiter};
pub use workers::{Outcome, run_workers};
