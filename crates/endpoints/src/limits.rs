//! What the edge may hold and how long it waits, and what happens there.

use std::time::Duration;

use forebay_apimachinery::lease::LEASE_BYTES_MAX;
use forebay_transport::limits::{CHUNK_BYTES, CONNECTION_BYTES, PIECE_BYTES, STREAM_SEND_BYTES};

/// Connections at once; fewer where the system has no files for them. Beyond it strangers give way
/// (`seats.rs`), and where there are none who comes is closed at once, and counted. A connection that does
/// nothing costs about 20 KiB, most of it TLS: 16,384 of them are 320 MiB.
pub const CONNECTIONS_MAX: usize = 16_384;

/// Requests whose bodies are on their way. They hold no seat; with its task each takes 16 KiB, its head
/// included: 32 MiB. With more the one gives way that was sent nothing for the longest, of the user who has
/// the most.
pub const ARRIVALS_MAX: usize = 2_048;

/// What a stream takes whose small answer waits for its reader: the answer, its head, and a task.
pub const STREAM_BYTES: usize = 8 << 10;

/// Bytes of a request body (reference §3.2). More is answered 413.
pub const BODY_BYTES_MAX: usize = 3 << 20;

/// Bytes of a body that is too large that are read and dropped, so that its client gets to read the answer.
pub const DRAINED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// Bytes that requests of one class may hold at once while memory is not short; what comes on top waits, then
/// is answered
/// 429. Lists: 64 MiB / about 200 KiB = 300 of pods at once, or 20 of Secrets of 1 MiB. Answers that are
///      there whole: 32 MiB. Bodies, the trees that they become and the objects made of them: 128 MiB for
///      large ones, and 32 MiB for those that take less than [`BODY_SMALL_BYTES`], which wait for no large
///      one. The largest body, in the worst of shapes, becomes the whole of [`LEASE_BYTES_MAX`]: it goes
///      alone. Under a memory limit each class has a share of what is left of it, and what would take more
///      than that is refused.
pub const LISTS_ROOM_BYTES: usize = 64 << 20;
pub const ANSWERS_ROOM_BYTES: usize = 32 << 20;
pub const BODIES_ROOM_BYTES: usize = 128 << 20;
pub const WRITES_ROOM_BYTES: usize = 32 << 20;

/// Bytes that those hold together of which somebody else is asked, such as a webhook. They hold them here and
/// no more in the room that they came from, so that one that hangs takes nothing from others. Whoever is
/// waited for has no more than is free beside it, 32 MiB if it is the only one: 1,300 small writes at least.
/// One more is answered 429.
pub const AWAY_ROOM_BYTES: usize = 64 << 20;

/// Bytes of what an audit log notes, until it is kept there: events that wait for a webhook or a file, and
/// the copies of long answers, which have half of it at most. Apart from the room of answers, so that whoever
/// takes nothing of an audit log keeps nobody from reading. An event beyond it is lost, and counted; an
/// answer beyond it is left out, which its event says. The half holds the longest answer that is noted whole
/// ([`forebay_audit::limits::RESPONSE_BYTES_MAX`]).
pub const AUDIT_ROOM_BYTES: usize = 64 << 20;

/// The least that it has while the process is near its memory limit.
pub const AUDIT_ROOM_BYTES_MIN: usize = 4 << 20;
const _: () = assert!(AUDIT_ROOM_BYTES >= 2 * forebay_audit::limits::RESPONSE_BYTES_MAX);

/// What a request counts for there while somebody is asked whether it may: its head as far as that is not
/// counted elsewhere, the question, and its place in the task. 2,000 wait at once if nobody else is waited
/// for.
pub const AUTHORIZING_BYTES: usize = 16 << 10;
const _: () = assert!(AUTHORIZING_BYTES >= 2 * HEAD_SMALL_BYTES);

/// What one request may hold, and its body: see [`forebay_apimachinery::lease`].
pub const BODY_COST_MAX: usize = LEASE_BYTES_MAX + (8 << 20);

/// The least that a class has while the process is near its memory limit: small writes go on.
pub const WRITES_ROOM_BYTES_MIN: usize = 4 << 20;

/// Secrets whose tokens were used and that are still to be labelled with the day: 1,024 x about 300 B = 300
/// kB. One more is forgotten until its token is used again.
pub const LABELS_WAITING_MAX: usize = 1_024;

/// How long nothing more is labelled after it could not be written: a store that takes no writes is asked
/// once a second at most, whoever uses tokens.
pub const LABEL_PAUSE: Duration = Duration::from_secs(1);

/// Who is told that there is no room is asked to come again after 1 to so many seconds, in turn.
pub const ROOM_RETRY_SECONDS_MAX: u32 = 8;

/// A resource whose objects take no more has its lists made without asking for room.
pub const LIST_CHEAP_BYTES: usize = 128 << 10;

/// What a list holds: what was inflated to read from, a piece, and what its stream has not taken yet.
pub const LIST_BYTES: usize = (128 << 10) + CHUNK_BYTES + STREAM_SEND_BYTES;

/// What making rows, indenting or YAML hold besides: a decoded object and two pieces.
pub const FORM_BYTES: usize = 128 << 10;

/// What deleting a collection holds: its keys, one object at a time, and a list of 4 MiB for its answer.
pub const DELETE_COLLECTION_BYTES: usize = 5 << 20;

/// An answer that is there whole and takes no more is not counted: it is within what a connection may take.
pub const ANSWER_SMALL_BYTES: usize = 4 << 10;

/// A GET of more waits while there is no room for answers. Others do not, and make it so that those who have
/// stalled lose theirs.
pub const ANSWER_LARGE_BYTES: usize = 64 << 10;

/// A body that takes no more than that, with the tree that it becomes, does not wait for larger ones.
pub const BODY_SMALL_BYTES: usize = 256 << 10;

/// Room is asked for in steps while a body comes in: who announces much and sends little holds little.
pub const BODY_STEP_BYTES: usize = 64 << 10;

/// While others wait for room, or there is more than there may be, a reader that has taken nothing for so
/// long loses its answer.
pub const STALL_WAIT_WHEN_FULL: Duration = Duration::from_secs(2);

/// A request's head that takes no more is not counted. A longer one takes room as an answer does, as long as
/// it is answered.
pub const HEAD_SMALL_BYTES: usize = 4 << 10;

/// An Audit-Id that a client gives is kept and sent back, as upstream does with any. A longer one would take
/// more than [`STREAM_BYTES`] has for the head of an answer that nobody reads: a new one is drawn instead.
pub const AUDIT_ID_BYTES_MAX: usize = 2 << 10;
const _: () = assert!(2 * AUDIT_ID_BYTES_MAX <= STREAM_BYTES);

/// How often memory is looked at, and things made to give way while it is short.
pub const MEMORY_PERIOD: Duration = Duration::from_millis(100);
pub const MEMORY_RELIEF_PERIOD: Duration = Duration::from_secs(1);

/// Percent of the memory limit at which each level begins, how far below that it ends, and up to where
/// requests may fill what is left.
pub const MEMORY_PERCENT: [u64; 3] = [80, 90, 95];
pub const MEMORY_FALL_PERCENT: u64 = 3;
pub const MEMORY_ROOM_PERCENT: u64 = 90;

/// Changes of the level that are written to the log: one in so long.
pub const MEMORY_LOG_PERIOD: Duration = Duration::from_secs(10);

/// All windows of events together may hold this part of the memory limit.
pub const WINDOWS_SHARE: u64 = 4;

/// While memory is short, readers that began so long ago lose their answers, the oldest first.
pub const READER_AGE_WHEN_SHORT: Duration = Duration::from_secs(10);

/// Who cannot create for want of memory is asked to come again after so long.
pub const NO_MEMORY_RETRY_SECONDS: u32 = 10;

/// A batch of a watch's initial state ends with the event that goes beyond this: with events of 8 KB it is
/// within the 64 KiB that the kernel sends as one packet. Two for each batch take a quarter more CPU, all in
/// all.
pub const STATE_BYTES: usize = CHUNK_BYTES - (8 << 10);

/// Work on so many bytes of what was received or is answered is [offloaded](crate::offload) from the tasks:
/// at some 75 MB/s, as YAML has it, 64 KiB take a millisecond.
pub const OFFLOAD_BYTES: usize = 64 << 10;

/// Answers below this are not worth compressing (KEP-2338).
pub const GZIP_BYTES_MIN: usize = 128 << 10;

/// Bytes of events that a watcher may hold while memory is short: two pieces. One with a longer event, which
/// may be a copy that is its own (Table, gzip, WebSocket), comes back for it.
pub const HELD_BYTES_MAX: usize = 2 * PIECE_BYTES;

/// Runes of all warnings of an answer together, and of each one once the total is reached (kube-apiserver's
/// limits).
pub const WARNING_RUNES_MAX: usize = 4 * 1024;
pub const WARNING_RUNES_CUT: usize = 256;

/// What who uses the server takes as an answer, at the worst.
pub const FLOWS_BYTES: usize = forebay_usage::limits::ROWS_MAX * forebay_usage::limits::ROW_JSON_BYTES;

/// Label values of metrics that come from requests, per family: more are counted under `other`.
pub const METRIC_SERIES_MAX: usize = 4_096;

/// Certificates that a client may send, and bytes of them together: a client's own and two or three of
/// authorities are 2 to 6 KB, with RSA of 4096 bits. TLS keeps what was sent for as long as the connection
/// lives, and nobody else does. More, of which there could be 64 KiB or 13,000 empty ones, ends the
/// handshake.
pub const CLIENT_CERTIFICATES_MAX: usize = 8;
pub const CLIENT_CHAIN_BYTES_MAX: usize = 16 << 10;

/// What the rest of the process is left by connections: a memory limit of L bytes allows (L - the rest) /
/// [`CONNECTION_BYTES`] of them. Those beyond are closed at once.
pub const CONNECTIONS_REST_BYTES: u64 = 96 << 20;
pub const CONNECTIONS_MIN: usize = 256;

// What a connection may take holds the largest chain and as much again of everything else, on average.
const _: () = assert!(2 * CLIENT_CHAIN_BYTES_MAX as u64 <= CONNECTION_BYTES);
const _: () = assert!(BODIES_ROOM_BYTES >= 16 * BODY_BYTES_MAX);
const _: () = assert!(forebay_yaml::limits::JSON_BYTES_MAX >= 2 * BODY_BYTES_MAX);
const _: () = assert!(WRITES_ROOM_BYTES_MIN >= 4 * BODY_SMALL_BYTES);

/// Of how many kinds of lists it is learned what they take: resources, by how they are answered and found and
/// how much they cost, about 200 B each. Those beyond are foreseen by their price.
pub const LEARNED_MAX: usize = 4_096;

/// How many times what is foreseen of a list it may be learned to take, or the same part of it; and how many
/// times as many bytes it may have, as rows and metadata may be long.
pub const LEARNED_FACTOR_MAX: f64 = 4.0;
pub const LEARNED_BYTES_MAX: f64 = 1_024.0;

/// Of a list that is foreseen to take less nothing is learned: what it takes is mostly what any request does.
pub const LEARNED_TIME_MIN: Duration = Duration::from_micros(100);

const _: () = assert!(GZIP_BYTES_MIN >= CHUNK_BYTES);
// What is compressed whole is compressed apart.
const _: () = assert!(GZIP_BYTES_MIN >= OFFLOAD_BYTES);

/// Bounds of how many requests are worked on at once with flow control: the limit finds itself between them.
/// 16 keep two cores busy while some wait for the disk; without `--max-requests-inflight` or its sibling
/// 4,096 are under way at most, about 8 KiB each.
pub const SEATS_MIN: u64 = 16;
pub const SEATS_MAX: u64 = 4_096;

/// A server that refused a request tells the others for so long that it has no room, so that nobody is sent
/// to it meanwhile.
pub const REFUSING_WAIT: Duration = Duration::from_secs(10);

/// What watches may take together, and no more than a quarter of a memory limit. One flow alone has half of
/// it, 65,536 watches that are streams. What an idle one takes is measured in docs/performance.md: 6.6 KB as
/// a stream, 25 KB with a connection of its own. Beyond that a watch is answered 429.
pub const WATCHES_POOL_BYTES: u64 = 1 << 30;
pub const WATCH_STREAM_BYTES: u64 = 8 << 10;
pub const WATCH_CONNECTION_BYTES: u64 = 32 << 10;

/// How long those have that are asked on a request's behalf, such as webhooks, all of them together, however
/// long the request may take: as kube-apiserver has it, and longer than the longest timeout that a webhook
/// may have. Who has not answered by then has failed.
pub const ASKING_SPAN_MAX: Duration = Duration::from_secs(34);
