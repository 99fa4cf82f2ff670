//! What the machine may hold and how long it waits, and what happens there.

use std::time::Duration;

/// How long a reader that keeps up takes for its answer: what bytes are charged for before it is known how
/// long they are held. The difference is charged, or given back, as it becomes known.
pub const HOLD_EXPECTED: Duration = Duration::from_millis(10);

/// How often current limits follow demand (upstream's), and sooner where a level that lent wants its own
/// back.
pub const ADJUST_EVERY: Duration = Duration::from_secs(10);

/// Not sooner than that again.
pub const ADJUST_APART: Duration = Duration::from_millis(100);

/// What is kept of the smoothed demand in each period: half of it is gone after 5 minutes.
pub const SMOOTHING: f64 = 0.977;

/// How long a request waits for its turn unless it says otherwise: a quarter of a request's 60 s. Beyond it
/// is refused.
pub const WAIT_MAX: Duration = Duration::from_secs(15);

/// Who would wait longer than that, by what its queue holds and how fast its level goes, is refused at once,
/// with a slot: an answer that comes after a client has given up is work for nothing.
pub const WAIT_EXPECTED_MAX: Duration = Duration::from_secs(3);

/// How far ahead of the others a queue's clock may get by what its requests took beyond their price, in
/// nanoseconds of one seat: 30 s. Who shares a queue with the greedy waits no longer for that.
pub const AHEAD_MAX: u64 = 30_000_000_000;

/// What is kept of each text that says what a request asks, for the dump: user, verb, path and so on. The
/// rest is cut off. There are nine: 1,152 B a request at most.
pub const DETAIL_BYTES_MAX: usize = 128;

/// Requests that wait at once in all levels and at the door; each takes about 1 KiB, and twice that if all
/// its details are long: 128 to 256 MiB. A level's own bound is queues x queueLengthLimit (6,400 in the
/// largest built-in one). Beyond it who comes is refused.
pub const WAITING_MAX: usize = 1 << 17;

/// A flow may hold no more bytes than are free for others beside it; what asks for more than this part of its
/// level's bytes is counted as this part, and so gets its turn when half of them are free.
pub const WIDEST_PART: u64 = 4;

/// A reader that took nothing for so long stands still. Where another flow waits for its bytes, it gives way.
pub const STILL: Duration = Duration::from_secs(5);

/// How soon it is looked again where nobody who stands still had to give way.
pub const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Readers that are looked at to find one that gives way, the longest still first.
pub const STILL_LOOKED_AT: usize = 16;

/// Whole seconds that a refused request is told to wait, at most.
pub const RETRY_SECONDS_MAX: u64 = 30;

/// Queues that one level may have beyond which an object is not used: a queue takes about 200 B, so that they
/// are 13 MiB.
pub const QUEUES_MAX: u64 = 1 << 16;

/// Requests that are worked on at once for each core, until the limit has found itself.
pub const SEATS_A_CORE: u64 = 16;

/// Writes that may be at the store at once without a seat, divided among the levels by their shares: half of
/// what etcd is asked for at once. Beyond it a write keeps its seat while it is stored.
pub const AT_STORE_MAX: u64 = 128;

/// How long latencies are gathered before the limit moves.
pub const WINDOW: Duration = Duration::from_millis(500);

/// And how many there have to be.
pub const WINDOW_SAMPLES_MIN: u64 = 20;

/// In every so many windows under load the limit is halved for one, to see what latency is without.
pub const PROBE_EVERY: u64 = 60;

/// Bytes of answers that are always allowed, however short memory is: 8 MiB, some hundred GETs.
pub const BYTES_MIN: u64 = 8 << 20;

/// Work that may be under way in a server that has just begun; it doubles while latency allows.
pub const DOOR_WINDOW_MIN: u64 = 8;

/// Resumed watches that wait in one queue, instead of its queueLengthLimit: each is done in some 20 us, so
/// that these are a fifth of a second, and who is refused is told to come back no sooner than after a
/// second. Other requests find such a queue full.
pub const QUEUED_RESUMES_MAX: u64 = 1 << 13;

/// Requests that wait at the door. Beyond it who comes is refused, with a slot.
pub const DOOR_WAITING_MAX: usize = 1 << 15;

/// The door goes once nobody stood before it for so long.
pub const DOOR_QUIET: Duration = Duration::from_secs(5);

const _: () = assert!(DOOR_WAITING_MAX <= WAITING_MAX);
