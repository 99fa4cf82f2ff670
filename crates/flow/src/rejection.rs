//! Why a request is refused, as data and in words: a server makes a Status and headers of it.

use std::sync::Arc;

use crate::matching::Flow;
use crate::price::{Price, SeatTime};
use crate::watches::Open;

/// A refusal, and all that one who is refused may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub flow: Flow,
    pub level_uid: Arc<str>,
    /// What it would have cost, and what that is in time of one seat, in nanoseconds.
    pub price: Price,
    pub work: SeatTime,
    pub reason: RejectReason,
    /// Whole seconds after which it has a slot.
    pub retry_after: u64,
}

/// What was in its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// So many wait in the queue that was chosen for it.
    QueueFull { waiting: u64 },
    /// So many are worked on in its level, which takes none into queues.
    ConcurrencyLimit { working: u64, limit: u64 },
    /// Readers of its own flow have not taken so much of what its level may hold.
    BytesHeld { flow: u64, pool: u64 },
    /// Its turn did not come in time, with so many others waiting in its level.
    TimeOut { waiting: u64 },
    /// Its flow has so many watches open already.
    Watches { open: Open },
    /// So many are waiting to be let in again.
    DoorFull { waiting: u64 },
    /// So many are waiting in the whole server.
    ServerFull { waiting: u64 },
}

impl RejectReason {
    /// As upstream's metric has it; what upstream does not know has a name of its own.
    pub fn as_str(&self) -> &'static str {
        match self {
            RejectReason::QueueFull { .. } => "queue-full",
            RejectReason::ConcurrencyLimit { .. } => "concurrency-limit",
            RejectReason::BytesHeld { .. } => "bytes-held",
            RejectReason::TimeOut { .. } => "time-out",
            RejectReason::Watches { .. } => "watches",
            RejectReason::DoorFull { .. } => "door-full",
            RejectReason::ServerFull { .. } => "server-full",
        }
    }

    /// What was in its way, as a part of a sentence.
    pub fn obstacle(&self) -> String {
        match *self {
            RejectReason::QueueFull { waiting } => format!("{waiting} requests wait in its queue"),
            RejectReason::ConcurrencyLimit { working, limit } => {
                format!("{working} of {limit} requests of its level are worked on")
            }
            RejectReason::BytesHeld { flow, pool } => {
                format!("readers of its flow have not taken {flow} of the {pool} bytes of its level")
            }
            RejectReason::TimeOut { waiting } => {
                format!("its turn did not come in time, with {waiting} others waiting in its level")
            }
            RejectReason::Watches { open } => {
                format!("its flow has {} watches open, which take {} bytes", open.watches, open.bytes)
            }
            RejectReason::DoorFull { waiting } => {
                format!("{waiting} requests wait to be let in by a server that has just started")
            }
            RejectReason::ServerFull { waiting } => format!("{waiting} requests wait in the whole server"),
        }
    }
}

/// Which flow it is in, what it would have cost, and what was in its way.
pub fn explained(flow: &Flow, price: Option<Price>, obstacle: &str) -> String {
    let whose = match &*flow.distinguisher {
        "" => String::new(),
        name => format!(" of {name:?}"),
    };
    let cost = price.map(|Price { bytes, cpu }| {
        format!(", and would have held {bytes} bytes and used {} us of CPU time", cpu.as_micros())
    });
    format!(
        "It is in the flow{whose} of FlowSchema {:?} in PriorityLevelConfiguration {:?}{}; {obstacle}.",
        flow.schema,
        flow.level,
        cost.unwrap_or_default(),
    )
}

/// The same in short. The price is unknown of those whose body did not come in.
pub fn in_short(flow: &Flow, price: Option<Price>, reason: &str) -> String {
    let Flow { level, schema, hash, .. } = flow;
    let mut text = format!("reason={reason}; level={level}; schema={schema}; flow={hash:016x}");
    if let Some(Price { bytes, cpu }) = price {
        text += &format!("; bytes={bytes}; cpu_us={}", cpu.as_micros());
    }
    text
}
