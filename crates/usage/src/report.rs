//! What a ledger says, in the shape in which it is sent: by client, in three windows.
//!
//! In: sums. Out: [`Flows`], which is JSON by serde both ways. What is 0 is not written.

use serde::{Deserialize, Serialize};
use std::time::Duration;

use crate::account::{Gauge, Gauges};
use crate::counts::{Count, Counts};
use crate::row::Sums;
use crate::who::Names;

/// All that is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Flows {
    /// How long each window is, in seconds: the first two are up to a step shorter than their names say.
    pub seconds: Seconds,
    /// The heaviest of the last ten minutes first.
    pub clients: Vec<Client>,
    /// Everybody else, as a sum.
    pub others: Figures,
    /// How often a client has become one of these, since the start.
    pub folded: u64,
    /// Both together.
    pub all: Figures,
}

/// How long windows are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Seconds {
    pub minute: f64,
    pub ten_minutes: f64,
    pub total: f64,
}

/// A row of the table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Client {
    pub user: String,
    pub user_agent: String,
    /// `deployments.apps/scale`, a path such as `/metrics`, or nothing.
    pub resource: String,
    pub flow: FlowName,
    #[serde(flatten)]
    pub figures: Figures,
}

/// The flow that it is in, as flow control sees it; empty without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlowName {
    pub schema: String,
    pub level: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub distinguisher: String,
}

/// What it has, and what it took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Figures {
    pub now: InUse,
    pub minute: Used,
    pub ten_minutes: Used,
    /// Since it is known by name.
    pub total: Used,
}

/// What it has open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InUse {
    #[serde(skip_serializing_if = "is_zero")]
    pub watches: u64,
    /// Watches whose client has not taken what there is to send, and for how long on average.
    #[serde(skip_serializing_if = "is_zero")]
    pub behind: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub lag_ms: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub held_bytes: u64,
}

/// What it took in a window.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Used {
    #[serde(skip_serializing_if = "is_zero")]
    pub requests: u64,
    /// 429s
    #[serde(skip_serializing_if = "is_zero")]
    pub refused: u64,
    /// 410s, also those within a watch.
    #[serde(skip_serializing_if = "is_zero")]
    pub expired: u64,
    #[serde(skip_serializing_if = "Lists::is_none")]
    pub lists: Lists,
    /// Why it read states, by lists or at the beginning of watches; further pages have no cause.
    #[serde(skip_serializing_if = "Causes::is_none")]
    pub causes: Causes,
    #[serde(skip_serializing_if = "is_zero")]
    pub watch_starts: u64,
    /// Those of them that were sent the state first.
    #[serde(skip_serializing_if = "is_zero")]
    pub watch_lists: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_sent: u64,
    /// As it was priced: of lists within a fifth of what they take, nearly always.
    #[serde(skip_serializing_if = "is_zero")]
    pub cpu_us: u64,
}

/// Lists, by the state that they ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lists {
    /// No resourceVersion.
    #[serde(skip_serializing_if = "is_zero")]
    pub unset: u64,
    /// `resourceVersion=0`
    #[serde(skip_serializing_if = "is_zero")]
    pub zero: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub at_least: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub exact: u64,
    /// Pages behind the first.
    #[serde(skip_serializing_if = "is_zero")]
    pub page: u64,
}

/// See [`crate::Cause`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Causes {
    #[serde(skip_serializing_if = "is_zero")]
    pub start: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub expired: u64,
    #[serde(skip_serializing_if = "is_zero")]
    pub again: u64,
}

/// Which part of the time is looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    #[default]
    Minute,
    TenMinutes,
    Total,
}

impl Window {
    /// The window that `name` names: `1m`, `10m` or `all`.
    pub fn named(name: &str) -> Option<Window> {
        match name {
            "1m" => Some(Window::Minute),
            "10m" => Some(Window::TenMinutes),
            "all" => Some(Window::Total),
            _ => None,
        }
    }
}

impl Figures {
    pub fn used(&self, window: Window) -> &Used {
        match window {
            Window::Minute => &self.minute,
            Window::TenMinutes => &self.ten_minutes,
            Window::Total => &self.total,
        }
    }
}

impl Seconds {
    pub fn of(&self, window: Window) -> f64 {
        match window {
            Window::Minute => self.minute,
            Window::TenMinutes => self.ten_minutes,
            Window::Total => self.total,
        }
    }
}

impl Lists {
    pub fn sum(&self) -> u64 {
        self.unset + self.zero + self.at_least + self.exact + self.page
    }

    fn is_none(&self) -> bool {
        self.sum() == 0
    }
}

impl Causes {
    fn is_none(&self) -> bool {
        *self == Causes::default()
    }
}

impl Flows {
    /// As it is sent.
    pub fn to_json(&self) -> String {
        // Its keys are texts, and its numbers finite.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// - `others`: what they have, and how many clients have become one of them.
pub(crate) fn report<'a>(
    seconds: Seconds,
    rows: impl Iterator<Item = (&'a Names, &'a Sums)>,
    (others, folded): (&Sums, u64),
    now: Duration,
) -> Flows {
    let mut all = others.clone();
    let clients = rows.map(|(names, sums)| {
        all.add(sums);
        Client {
            user: names.user.to_string(),
            user_agent: names.agent.to_string(),
            resource: names.resource.to_string(),
            flow: FlowName {
                schema: names.schema.to_string(),
                level: names.level.to_string(),
                distinguisher: names.distinguisher.to_string(),
            },
            figures: usage(sums, now),
        }
    });
    let clients = clients.collect();
    Flows { seconds, clients, others: usage(others, now), folded, all: usage(&all, now) }
}

fn usage(sums: &Sums, now: Duration) -> Figures {
    Figures {
        now: held(&sums.gauges, now),
        minute: used(&sums.minute),
        ten_minutes: used(&sums.ten_minutes),
        total: used(&sums.total),
    }
}

fn held(gauges: &Gauges, now: Duration) -> InUse {
    // One that has just gone from one account to another may be below 0 for a moment.
    let gauge = |of: Gauge| u64::try_from(gauges[of as usize]).unwrap_or(0);
    let behind = gauge(Gauge::Behind);
    let waited = (now.as_millis() as u64).saturating_mul(behind).saturating_sub(gauge(Gauge::BehindSinceMs));
    InUse {
        watches: gauge(Gauge::Watches),
        behind,
        lag_ms: waited.checked_div(behind).unwrap_or(0),
        held_bytes: gauge(Gauge::HeldBytes),
    }
}

fn used(counts: &Counts) -> Used {
    let count = |of: Count| counts[of as usize];
    Used {
        requests: count(Count::Requests),
        refused: count(Count::Refused),
        expired: count(Count::Expired),
        lists: Lists {
            unset: count(Count::ListUnset),
            zero: count(Count::ListZero),
            at_least: count(Count::ListAtLeast),
            exact: count(Count::ListExact),
            page: count(Count::ListPage),
        },
        causes: Causes {
            start: count(Count::CauseStart),
            expired: count(Count::CauseExpired),
            again: count(Count::CauseAgain),
        },
        watch_starts: count(Count::WatchStarts),
        watch_lists: count(Count::WatchLists),
        bytes_sent: count(Count::BytesSent),
        cpu_us: count(Count::CpuNanos) / 1_000,
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
