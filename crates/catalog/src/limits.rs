//! How often a write is tried, and how much work it is.
//!
//! In: nothing. Out: limits. Never: what is beyond them.

/// Retries of one guarded update against concurrent writers. Each lost round means that another write won, so
/// the system as a whole moves; beyond this the client is told to try again.
pub const ROUNDS_MAX: usize = 1_000;

/// Bytes of a body that take as long as one unit of what rules in CEL cost: some 50 ns, at 75 MB/s.
pub const RULE_COST_BYTES: u64 = 4;

/// Bytes of a body that take as long as one byte of a CRD: its rules are read and checked three times until
/// it is served, at some 6 MB/s each.
pub const DEFINITION_BYTE_BYTES: usize = 32;

/// Annotations that are noted of one request for an audit log: each of its webhooks and policies may say
/// some. Those beyond are not noted.
pub const AUDIT_ANNOTATIONS_MAX: usize = 1_024;

/// Bytes of them, keys and values: what an event of an audit log of kube-apiserver holds without its objects
/// is a few KiB. Those beyond are not noted.
pub const AUDIT_BYTES_MAX: usize = 64 << 10;
