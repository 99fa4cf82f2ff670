//! What a request costs and whose turn it is: flow control by Kubernetes' priority and fairness, with a price
//! of our own.
//!
//! In: who asks for what at which price, what became of it, what is configured, and what time it is. Out: who
//! runs, who is refused and when they may come back, who gives way; numbers and dumps of it. Never: IO, a
//! clock, a task; knows what is listed, or an HTTP code.

pub mod builtin;
mod collections;
mod condition;
pub mod config;
mod configuration;
mod dealer;
mod demand;
mod details;
mod dispatcher;
mod door;
mod dump;
mod fair;
mod fluid;
mod histogram;
mod holding;
mod level;
mod limit;
pub mod limits;
mod matching;
mod metrics;
mod pausing;
mod price;
mod reconfigure;
mod rejection;
mod request;
mod running;
mod shares;
mod slots;
mod tally;
mod watches;

pub use collections::{Collections, ObjectSet};
pub use condition::Condition;
pub use config::{FlowSchema, PriorityLevel};
pub use configuration::Configuration;
pub use dealer::{Dealer, DealerError, flow_hash};
pub use details::Details;
pub use dispatcher::{Dispatcher, FlowEffect, FlowInput, Opening, Setup};
pub use door::Comeback;
pub use dump::DetailsShown;
pub use histogram::Distribution;
pub use limit::{Access, LimitBounds, Limiter};
pub use matching::{Flow, Schemas};
pub use metrics::{Measure, MeasureKind, Point, PointValue};
pub use price::{Moment, Price, Seat};
pub use rejection::{RejectReason, Rejection, explained, in_short};
pub use request::{Arrival, Awaited};
pub use watches::Open;
