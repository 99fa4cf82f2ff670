//! Counts: of replicas in a status, and numbers that must not be negative.
//!
//! In: an object that holds them. Out: causes. Never: what is counted.

use super::field::{Causes, Path};
use super::value::{Members, int};

const STATUS: Path<'static> = Path::root("status");

/// The counts of a status: none is negative, and those that are ready are among those that there are.
///
/// - `of_all`: a count beside the ready and the available ones that is a part of all replicas.
pub fn replica_counts(status: &Members, counts: &[&str], of_all: &str, causes: &mut Causes) {
    counts.iter().for_each(|name| not_negative(status, name, &STATUS, causes));
    for name in [of_all, "readyReplicas", "availableReplicas"] {
        not_more_than(status, name, "replicas", "cannot be greater than status.replicas", causes);
    }
    let detail = "cannot be greater than readyReplicas";
    not_more_than(status, "availableReplicas", "readyReplicas", detail, causes);
}

/// A count in the status that another one bounds.
pub fn not_more_than(status: &Members, name: &str, bound: &str, detail: &str, causes: &mut Causes) {
    let count = int(status, name).unwrap_or(0);
    if count > int(status, bound).unwrap_or(0) {
        causes.invalid(&STATUS.child(name), count, detail);
    }
}

/// A number that must not be negative.
pub fn not_negative(object: &Members, name: &str, at: &Path<'_>, causes: &mut Causes) {
    if let Some(number) = int(object, name).filter(|number| *number < 0) {
        causes.invalid(&at.child(name), number, "must be greater than or equal to 0");
    }
}
