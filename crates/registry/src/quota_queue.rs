//! Who waits to be counted in quotas, by namespace.
//!
//! In: writes. Out: those of one namespace that are counted next. Never: counts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use forebay_apimachinery::Status;
use forebay_quota::{Charge, Charged, QuotaRefusal};
use tokio::sync::oneshot;

use crate::limits::CHARGED_TOGETHER_MAX;

/// Who waits to be counted.
#[derive(Default)]
pub(crate) struct Quotas {
    // Namespaces that a task works on -> who comes next, in order; as many as there are requests under way.
    waiting: Mutex<HashMap<String, VecDeque<Waiting>>>,
}

pub(crate) struct Waiting {
    pub(crate) request: Charge,
    pub(crate) is_dry_run: bool,
    /// Told what was put down, in this round and before, and whether it may.
    pub(crate) answer: oneshot::Sender<(Charged, Result<(), Refused>)>,
}

/// Why a write is not counted.
#[derive(Clone, Debug)]
pub(crate) enum Refused {
    ByQuota(QuotaRefusal),
    With(Status),
}

impl Quotas {
    /// Has it counted next. Whether nobody works on the namespace yet: who asks begins to.
    pub(crate) fn join(&self, namespace: &str, one: Waiting) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting.get_mut(namespace) {
            Some(next) => {
                next.push_back(one);
                false
            }
            None => waiting.insert(namespace.to_string(), VecDeque::from([one])).is_none(),
        }
    }

    /// Those who come next; none, and nobody works on the namespace any more, when there are none.
    pub(crate) fn next(&self, namespace: &str) -> Vec<Waiting> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(next) = waiting.get_mut(namespace).filter(|next| !next.is_empty()) else {
            waiting.remove(namespace);
            return Vec::new();
        };
        let together = next.len().min(CHARGED_TOGETHER_MAX);
        next.drain(..together).collect()
    }

    /// Lets go of who waits.
    pub(crate) fn leave(&self, namespace: &str) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(namespace);
    }
}
