//! What a deletion does to an object: preconditions apart, which are checked before.
//!
//! In: an object and what the client wants. Out: what it becomes, and what follows. Never: stores.
//!
//! Source: apiserver v1.36.3 `registry/rest/delete.go`.

use std::time::Duration;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::DeleteOptions;
use forebay_catalog::Served;
use forebay_catalog::store::Decision;
use forebay_strategy::{self as strategy, Deletion};
use serde_json::Value;

use crate::ruled::Ruled as _;

/// The metadata that a deletion changes.
const LIFE: [&str; 4] = ["deletionTimestamp", "deletionGracePeriodSeconds", "generation", "finalizers"];

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// It is on its way out already.
    Nothing,
    /// It is stored as it is now, and waits for its finalizers or its grace.
    Wait,
    /// It is stored as it is now, for those who watch, and then removed.
    RemoveAfter,
    Remove,
}

/// Begins to delete `value`.
pub(crate) fn begin(served: &Served, value: &mut Value, options: &DeleteOptions, now: &str) -> Then {
    let wanted = wanted(options);
    let begun = if served.is("", "namespaces") {
        strategy::start_namespace_deletion(value, &wanted, now)
    } else if served.is_crd() {
        strategy::start_definition_deletion(value, now)
    } else {
        None
    };
    let is_ordinary = begun.is_none();
    let before = LIFE.map(|member| value["metadata"][member].clone());
    match begun.unwrap_or_else(|| strategy::start_deletion(&served.rules(), value, &wanted, now)) {
        Deletion::AlreadyDeleting => Then::Nothing,
        Deletion::Store
            if is_ordinary && LIFE.map(|member| &value["metadata"][member]) == before.each_ref() =>
        {
            Then::Nothing
        }
        Deletion::Store => Then::Wait,
        Deletion::StoreAndRemove => Then::RemoveAfter,
        Deletion::Remove => Then::Remove,
    }
}

impl Then {
    /// What to do with the object that is there; `value` is what it becomes.
    ///
    /// # Errors
    /// A value that does not fit its kind.
    pub(crate) fn decision(
        self,
        served: &Served,
        value: Value,
        ttl: Option<Duration>,
    ) -> Result<Decision, Status> {
        Ok(match self {
            Then::Nothing => Decision::Keep,
            Then::Wait | Then::RemoveAfter => Decision::Put { value: served.encode(value)?, ttl },
            Then::Remove => Decision::Delete,
        })
    }
}

fn wanted(options: &DeleteOptions) -> strategy::DeleteOptions {
    strategy::DeleteOptions {
        grace_period_seconds: options.grace_period_seconds,
        orphan_dependents: options.orphan_dependents,
        propagation: options
            .propagation_policy
            .and_then(|policy| strategy::Propagation::parse(policy.as_str())),
    }
}
