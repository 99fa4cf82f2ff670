//! How much is said of one pod.
//!
//! In: nothing. Out: limits. Never: what is beyond them.

use forebay_apimachinery::FAULT_BYTES_MAX;

/// Resources that each container has to say something of once a quota counts them.
pub const COMPUTE_NAMES: usize = 6;

/// Bytes of the names of containers that do not, which a refusal lists for each of them: so many that one
/// text has no more than the faults of an object have. Those beyond are not listed, but for the first that
/// leaves out what none before it did.
pub const UNSAID_BYTES_MAX: usize = FAULT_BYTES_MAX / COMPUTE_NAMES;
