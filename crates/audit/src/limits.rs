//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// Lines that wait for the file, in bytes: as many as some hundred large bodies. What is beyond is not kept,
/// and counted: `apiserver_audit_error_total{plugin="log"}`.
pub const LOG_QUEUE_BYTES_MAX: usize = 64 << 20;

/// So much is given to the file at once.
pub const LOG_WRITE_BYTES: usize = 256 << 10;

/// How long an event of a batch waits for others before the file is written to.
pub const LOG_GATHERS_FOR: Duration = Duration::from_millis(2);

/// A batch for a webhook, in bytes, unless a flag says less: a larger one is sent in parts. One event may be
/// larger, and goes alone.
pub const BATCH_BYTES_MAX: usize = 10 << 20;

/// The longest wait for the turn of a batch, however low its rate is: a month, by when somebody has looked.
pub const THROTTLE_PAUSE_MAX: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Events that wait for a webhook in the modes that requests wait for it, as many as a buffer has, where
/// there is memory for them. What is beyond is not kept, and counted.
pub const BLOCKING_MAX: usize = 10_000;

/// Batches, or events that requests wait for, that are on their way to a webhook at once. The next waits.
pub const SENDS_MAX: usize = 32;

/// How often a webhook is asked to take something, as kube-apiserver does.
pub const SEND_ATTEMPTS: u32 = 5;

/// The first pause between attempts once the server ends; the next are longer, as at other times. With five
/// attempts that is two seconds, beside what these take: within [`forebay_rt::Tasks::stop`]'s limit of
/// whoever ends it. What is not taken by then is lost, counted and told of.
pub const PAUSE_AT_THE_END: Duration = Duration::from_millis(250);

/// How long one attempt may take.
pub const SEND_WAIT: Duration = Duration::from_secs(30);

/// Bytes of a User-Agent that are noted, as kube-apiserver does.
pub const USER_AGENT_BYTES_MAX: usize = 1024;

/// The answer to a LIST that is noted whole. A longer one is left out, which the event says as if it had been
/// truncated: kube-apiserver has all of it in memory.
pub const RESPONSE_BYTES_MAX: usize = 32 << 20;

/// Of a request that takes longer it is told where its time went, as kube-apiserver does.
pub const QUICK: Duration = Duration::from_millis(500);

/// Bytes of what a panic says that are noted. The rest is in the server's own log.
pub const PANIC_BYTES_MAX: usize = 1024;

/// The server says at most so often in its own log that events are lost; the metric counts each.
pub const COMPLAINT_EVERY: Duration = Duration::from_secs(10);

/// A policy file.
pub const POLICY_BYTES_MAX: u64 = 8 << 20;

const _: () = assert!(BATCH_BYTES_MAX < LOG_QUEUE_BYTES_MAX && LOG_WRITE_BYTES < LOG_QUEUE_BYTES_MAX);
