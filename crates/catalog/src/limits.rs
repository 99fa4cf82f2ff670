//! How often a write is tried, and how much work it is.
//!
//! In: nothing. Out: limits. Never: what is beyond them.

use forebay_rt::Duration;

/// Retries of one guarded update against concurrent writers. Each lost round means that another write won, so
/// the system as a whole moves; beyond this the client is told to try again.
pub const ROUNDS_MAX: usize = 1_000;

/// Bytes of a body that take as long as one unit of what rules in CEL cost: some 50 ns, at 75 MB/s.
pub const RULE_COST_BYTES: u64 = 4;

/// Bytes of a body that take as long as one byte of a CRD: its rules are read and checked three times until
/// it is served, at some 6 MB/s each.
pub const DEFINITION_BYTE_BYTES: usize = 32;

/// Objects that a webhook is asked to convert at once. More are asked about one batch after the other.
pub const CONVERTED_AT_ONCE_MAX: usize = 500;

/// Bytes of them, after which a batch ends: an answer of 16 times as much is still read.
pub const CONVERTED_BYTES: usize = 1 << 20;

/// Bytes of single objects that are kept in a version that a webhook made, by version. The first that came
/// goes first: who asks for it again has it converted again.
pub const CONVERTED_KEPT_BYTES: usize = 1 << 20;

/// How long the objects of a version are kept that nobody reads.
pub const VIEW_IDLE: Duration = Duration::from_secs(300);

/// The same where memory is short. When that is not enough, what nobody reads goes at once, and at last what
/// is read: its watches are told so, and none is begun until there is memory again.
pub const VIEW_IDLE_WHEN_SHORT: Duration = Duration::from_secs(10);
const _: () = assert!(VIEW_IDLE_WHEN_SHORT.as_millis() < VIEW_IDLE.as_millis());

/// Who reads a version for which there is no memory is asked to come again after so long.
pub const VIEW_RETRY_SECONDS: u32 = 10;

/// How long a read waits until the objects of its version were converted for the first time, or until what
/// failed was tried again. Then it is told to come again.
pub const VIEW_WAIT: Duration = Duration::from_secs(30);

/// Pauses before what failed to convert is tried again, the first and the longest. Who reads the version has
/// it tried at once.
pub const CONVERT_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Batches that were converted and are not in their cache yet. With as many, no more are converted.
pub const TOLD_BATCHES_MAX: usize = 2;

/// Conversions that one write may need for who owns which fields: a few for each version of a definition.
/// One more is refused.
pub const CONVERSIONS_MAX: usize = 64;

/// Annotations that are noted of one request for an audit log: each of its webhooks and policies may say
/// some. Of those beyond it is noted that they are left out.
pub const AUDIT_ANNOTATIONS_MAX: usize = 1_024;

/// Bytes of them, keys and values: what an event of an audit log of kube-apiserver holds without its objects
/// is a few KiB. Of those beyond it is noted that they are left out.
pub const AUDIT_BYTES_MAX: usize = 64 << 10;
