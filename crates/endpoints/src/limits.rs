//! What the edge may hold and how long it waits, and what happens there.

use std::time::Duration;

use forebay_apimachinery::lease::LEASE_BYTES_MAX;

/// Connections at once; fewer where the system has no files for them. Beyond it strangers give way (`seats.rs`), and where there
/// are none who comes is closed at once, and counted. A connection that does nothing costs about 20 KiB, most of it TLS: 16,384
/// of them are 320 MiB.
pub const CONNECTIONS_MAX: usize = 16_384;

/// Strangers that were told to give way and are not gone yet: each takes a turn of its task. While there are so many who comes is
/// closed at once.
pub const LEAVING_MAX: usize = 64;

/// Bytes that a stranger may have the server hold, of what it says until something begins or ends; and strangers who have it
/// hold more, or do not take at once what they are answered, which may be a head of 64 KiB and two buffers of 160 KiB: 28 MiB.
/// Beyond so many the one gives way on whose connection the longest nothing began or ended.
pub const STRANGER_BYTES: usize = 16 << 10;
pub const STRANGERS_WITH_MUCH_MAX: usize = 128;

/// A connection of HTTP/2 on which there was no request for so long is asked to end, as kube-apiserver does (v1.36, IdleTimeout),
/// and cut when it has not within [`PING_WAIT`]. One of HTTP/1.1 ends after [`HEADER_WAIT`].
pub const IDLE_WAIT: Duration = Duration::from_secs(90);

/// How often it is looked at which connections do nothing, or are not read.
pub const SEATS_PERIOD: Duration = Duration::from_secs(5);

/// Bytes that a client may say until its TLS handshake is over: a hello of 2 KiB, with keys that resist quantum computers, and a
/// chain of certificates, of which no more than 16 KiB is taken. More ends the connection: rustls alone would keep 64 KiB of each
/// message.
pub const HANDSHAKE_BYTES_MAX: usize = CONNECTION_BYTES as usize;

/// Bytes that a connection's task reads of tokio's budget for a turn by each of its 128 units: after 64 KiB others have their
/// turn, whatever small frames or records these are. The costliest are changes of TLS keys, 27 bytes and 3 us each: 7 ms.
pub const READ_UNIT_BYTES: usize = 512;

/// Connections that the kernel keeps for us until they are accepted.
pub const BACKLOG: u32 = 1_024;

/// A client that has not finished its TLS handshake by then is cut off.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// A client that has not sent a whole request head by then, or HTTP/2's preface, or that says nothing on a kept HTTP/1.1
/// connection, is cut off (reference §3.2).
pub const HEADER_WAIT: Duration = Duration::from_secs(32);

/// Pause after an error of accept (no file descriptors left, say), doubled from the first to the second.
pub const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Bytes of a request's head: long label selectors stand in the URL. More is answered 431.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// Bytes that are kept of what an HTTP/1.1 client says behind its watch: a next request fits. What comes after that stays
/// with the kernel; and of one that said more before the watch began, nothing is kept, and its connection ends with the watch.
pub const AHEAD_BYTES_MAX: usize = 4 << 10;

/// Bytes that an HTTP/1.1 connection buffers towards a slow reader before its body is no longer asked for more.
pub const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Bytes that TLS keeps for a connection whose socket is full. What comes after that stays where it is.
pub const TLS_BUFFER_BYTES: usize = 96 << 10;

/// Bytes whose records go to the kernel in one call, where there are so many: a record is 16 KiB.
pub const TLS_GATHER_BYTES: usize = 80 << 10;

/// Times that the task of an HTTP/2 connection begins anew before others get their turn: each makes at most a piece of
/// a body for each stream that it carries.
pub const CONNECTION_TURNS: usize = 16;

/// Bytes that the kernel takes for a client before the client's machine has room for them. Above it a socket counts as
/// full, however much is on its way already, so that a fast network is not held up by a slow one's limit.
pub const UNSENT_BYTES: u32 = 16 << 10;

/// Bytes that the kernel keeps for a client that watches over HTTP/1.1. Linux doubles what it is told and counts its
/// own bookkeeping too: this is a buffer of 32 KiB. A watch-list gets it after its initial state, which is long.
pub const WATCH_SEND_BYTES: usize = 16 << 10;

/// The same when the watch is over and the connection goes on: as much as the kernel lets anybody have by default.
pub const SEND_BYTES: usize = 208 << 10;

/// An idle connection's client is asked for a sign of life after the first, then this often, so many times: one that
/// is gone without a word is found within 40 s. HTTP/2 asks by itself, too: see [`PING_PERIOD`].
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub const KEEPALIVE_RETRIES: u32 = 5;

/// How often it is looked at how HTTP/1.1 clients acknowledge what was sent; after how many transmissions one is taken
/// for gone unless it answers within the time; and how many unanswered questions after its room a full one has.
pub const SILENCE_PERIOD: Duration = Duration::from_secs(10);
pub const SILENCE_RETRANSMITS: u8 = 3;
pub const SILENCE_WAIT: Duration = Duration::from_secs(40);
pub const SILENCE_PROBES: u8 = 3;

/// Longest pause before the kernel asks a full client again whether it has room, or sends again what was not acknowledged:
/// one that is gone is found within 3 x 10 + 10 s. Linux before 6.15 lets the pauses grow to two minutes, and finds it
/// within four.
pub const ASK_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Requests in flight on one HTTP/2 connection, unless the configuration says otherwise. kube-apiserver has 100, above
/// which client-go opens another connection for more watches.
pub const STREAMS_MAX: u32 = 250;

/// Streams of an HTTP/2 connection that its client resets before they are looked at, and those that are reset as it does not keep to
/// the protocol, in all; with more the connection ends (CVE-2023-44487, CVE-2019-9514). A good client resets as it likes what has
/// begun: a watch that it wants no more.
pub const RESETS_PENDING_MAX: usize = 20;
pub const RESETS_MAX: usize = 1_024;

/// Fields of a head over HTTP/1.1; more are answered 431.
pub const HEAD_FIELDS_MAX: usize = 100;

/// Requests whose bodies are on their way. They hold no seat; with its task each takes 16 KiB, its head included: 32 MiB. With more
/// the one gives way that was sent nothing for the longest, of the user who has the most.
pub const ARRIVALS_MAX: usize = 2_048;

/// Bytes that an HTTP/2 client begins with (RFC 9113, 3.4). From there on it is [asked](PING_PERIOD) whether it is there.
pub const PREFACE_BYTES: usize = 24;

/// What a stream takes whose small answer waits for its reader: the answer, its head, and a task.
pub const STREAM_BYTES: usize = 8 << 10;

/// Bytes of a response that wait in one HTTP/2 stream for a slow reader, before it is asked for no further piece: of a watch,
/// whose pieces have 16 KiB, less than 32 KiB wait.
pub const STREAM_SEND_BYTES: usize = 16 << 10;

/// Bytes of a request body that a client may send ahead on one stream, and on one connection: what nobody has read yet, so
/// that it is in no [`crate::rooms::Rooms`]. The least that HTTP/2 knows for a connection. It costs a client one round trip
/// for each 64 KiB, and that only while it sends a large body.
pub const STREAM_WINDOW_BYTES: u32 = (64 << 10) - 1;
pub const CONNECTION_WINDOW_BYTES: u32 = (64 << 10) - 1;

/// An HTTP/2 client that says nothing is asked whether it is there, and cut off if it does not answer: found out in 40 s.
pub const PING_PERIOD: Duration = Duration::from_secs(25);
pub const PING_WAIT: Duration = Duration::from_secs(15);

/// Bytes of a request body (reference §3.2). More is answered 413.
pub const BODY_BYTES_MAX: usize = 3 << 20;

/// Bytes of a body that is too large that are read and dropped, so that its client gets to read the answer.
pub const DRAINED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// Bytes that requests of one class may hold at once while memory is not short; what comes on top waits, then is answered
/// 429. Lists: 64 MiB / about 200 KiB = 300 of pods at once, or 20 of Secrets of 1 MiB. Answers that are there whole: 32
/// MiB. Bodies, the trees that they become and the objects made of them: 128 MiB for large ones, and 32 MiB for those that
/// take less than [`BODY_SMALL_BYTES`], which wait for no large one. The largest body, in the worst of shapes, becomes the whole of
/// [`LEASE_BYTES_MAX`]: it goes alone. Under a memory limit each class has a share of what is left of it, and what would take more than
/// that is refused.
pub const LISTS_ROOM_BYTES: usize = 64 << 20;
pub const ANSWERS_ROOM_BYTES: usize = 32 << 20;
pub const BODIES_ROOM_BYTES: usize = 128 << 20;
pub const WRITES_ROOM_BYTES: usize = 32 << 20;

/// What one request may hold, and its body: see [`forebay_apimachinery::lease`].
pub const BODY_COST_MAX: usize = LEASE_BYTES_MAX + (8 << 20);

/// The least that a class has while the process is near its memory limit: small writes go on.
pub const WRITES_ROOM_BYTES_MIN: usize = 4 << 20;

/// A request that takes no more goes on when nothing else of its class does, however little room there is: near the limit
/// things go one at a time.
pub const ROOM_ONE_BYTES: usize = 4 << 20;

/// How long a request waits for room; then it is answered 429. As kube-apiserver's queues: a fraction of its timeout.
pub const ROOM_WAIT: Duration = Duration::from_secs(30);

/// How long a body that is half read waits for room: others that are half read wait as well.
pub const BODY_ROOM_WAIT: Duration = Duration::from_secs(5);

/// Requests that wait for room of one class, in all and of one user, and as many of all who hold something already: about 300 B for
/// the place of each, and under 8 KiB for the request that waits. Beyond it they are answered 429.
pub const ROOM_WAITING_MAX: usize = 4_096;
pub const ROOM_WAITING_PER_USER_MAX: usize = 2_048;

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

/// A GET of more waits while there is no room for answers. Others do not, and make it so that those who have stalled lose
/// theirs.
pub const ANSWER_LARGE_BYTES: usize = 64 << 10;

/// A body that takes no more than that, with the tree that it becomes, does not wait for larger ones.
pub const BODY_SMALL_BYTES: usize = 256 << 10;

/// Room is asked for in steps while a body comes in: who announces much and sends little holds little.
pub const BODY_STEP_BYTES: usize = 64 << 10;

/// While others wait for room, or there is more than there may be, a reader that has taken nothing for so long loses its
/// answer.
pub const STALL_WAIT_WHEN_FULL: Duration = Duration::from_secs(2);

/// A request's head that takes no more is not counted. A longer one takes room as an answer does, as long as it is answered.
pub const HEAD_SMALL_BYTES: usize = 4 << 10;

/// How often memory is looked at, and things made to give way while it is short.
pub const MEMORY_PERIOD: Duration = Duration::from_millis(100);
pub const MEMORY_RELIEF_PERIOD: Duration = Duration::from_secs(1);

/// Percent of the memory limit at which each level begins, how far below that it ends, and up to where requests may fill
/// what is left.
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

/// What a connection may take, on average, and what the rest of the process is left: a memory limit of L bytes allows
/// (L - the rest) / 32 KiB connections. Those beyond are closed at once.
pub const CONNECTION_BYTES: u64 = 32 << 10;
pub const CONNECTIONS_REST_BYTES: u64 = 96 << 20;
pub const CONNECTIONS_MIN: usize = 256;

/// Nodes that one YAML body may expand to through its aliases, and how deep it may nest. More is answered 400.
pub const YAML_NODES_MAX: usize = 200_000;
pub const YAML_DEPTH_MAX: usize = 128;

/// JSON that a YAML body may become: written out in full it at most doubles, apart from control characters.
pub const YAML_JSON_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;

/// Times that an item of a YAML list may become longer than its JSON, beyond a piece: one that its depth makes longer stands
/// on one line.
pub const YAML_GROWTH_MAX: usize = 8;

/// A LIST is sent in pieces of this size: enough that TLS records and HTTP/2 frames are full, and that what a piece costs
/// apart from its bytes does not count.
pub const CHUNK_BYTES: usize = 64 << 10;

/// A batch of a watch's initial state ends with the event that goes beyond this: with events of 8 KB it is within the 64 KiB
/// that the kernel sends as one packet. Two for each batch take a quarter more CPU, all in all.
pub const STATE_BYTES: usize = CHUNK_BYTES - (8 << 10);

/// Batches of a watch that are made in one turn of its task while its client takes them at once: a quarter of a millisecond, and
/// 0.6 ms with blocks that are deflated. By tokio's own bound, 128 writes, two clients that read from this machine had both
/// threads to themselves until they had everything: the runtime looks at sockets every 61 turns.
pub const TURN_BATCHES_MAX: usize = 4;

/// A long event is handed on in pieces of this size, so that it shows how far its reader is.
pub const PIECE_BYTES: usize = 16 << 10;

/// What there is room for when a piece of a list is made: [`CHUNK_BYTES`], and what its last object is longer.
pub const MADE_BYTES: usize = CHUNK_BYTES + CHUNK_BYTES / 4;

/// A stream's reader is quick if it comes back for more so soon, which is 640 KB/s or more.
pub const QUICK: Duration = Duration::from_millis(25);

/// How much of a list, or of a watch's initial state, a stream's reader is given at once who came back after `pause`. A quick
/// one gets a piece as it is made, but for one that is long because an object is: to hand it on in four costs 10 us each.
pub fn stream_give_max(pause: Duration) -> usize {
    if pause < QUICK { MADE_BYTES } else { PIECE_BYTES }
}

/// Bytes of a ping's payload over WebSocket (RFC 6455, 5.5); of a longer one the rest is dropped.
pub const WEBSOCKET_CONTROL_BYTES_MAX: usize = 125;

/// How long a WebSocket's goodbye may take.
pub const WEBSOCKET_CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Plain bytes between two deflated blocks that are stored as they are: commas. More are compressed.
pub const STORED_BYTES_MAX: usize = 64;

/// What is kept of blocks as events, for all watch-lists in gzip together while there are any. 20,000 pods of 8 KB are 17 MiB
/// so; ten readers of them that begin together are up to 4 MiB apart, as much as the socket of one who reads no faster takes.
pub const EVENT_BLOCKS_BYTES_MAX: usize = 8 << 20;

/// With more than this what every reader has passed is not kept for who is yet to begin.
pub const EVENT_BLOCKS_PASSED_BYTES_MAX: usize = 2 << 20;

/// Plain bytes that are compressed in one go, without a window of what came before.
pub const DEFLATE_BYTES: usize = 128 << 10;

/// Work on so many bytes of what was received or is answered is done [apart](crate::apart) from the tasks: at some 75 MB/s,
/// as YAML has it, 64 KiB take a millisecond.
pub const APART_BYTES: usize = 64 << 10;

/// Answers below this are not worth compressing (KEP-2338).
pub const GZIP_BYTES_MIN: usize = 128 << 10;

/// A reader of an answer that takes nothing for so long loses it: its snapshot is let go and the stream is reset. So
/// does a watcher, if it has fallen out of the window, is still in its initial state, or its time is over; another one keeps its
/// place.
pub const STALL_WAIT: Duration = Duration::from_secs(60);

/// Bytes of events that a watcher may hold while memory is short: two pieces. One with a longer event, which may be a copy that
/// is its own (Table, gzip, WebSocket), comes back for it.
pub const HELD_BYTES_MAX: usize = 2 * PIECE_BYTES;

/// How often stalled readers are looked for.
pub const STALL_PERIOD: Duration = Duration::from_secs(5);

/// Runes of all warnings of an answer together, and of each one once the total is reached (kube-apiserver's limits).
pub const WARNING_RUNES_MAX: usize = 4 * 1024;
pub const WARNING_RUNES_CUT: usize = 256;

/// Label values of metrics that come from requests, per family: more are counted under `other`.
pub const METRIC_SERIES_MAX: usize = 4_096;

/// On shutdown: how long requests in flight may take to finish, at least; then they are cut.
pub const DRAIN_WAIT: Duration = Duration::from_secs(10);

/// On shutdown watches are ended over this time, unless the configuration says otherwise.
pub const WATCH_ENDS_WAIT: Duration = Duration::from_secs(5);

/// On shutdown watches end at this many a second, or faster if there are so many that they would not all be gone in
/// time (reference §3.2).
pub const WATCH_ENDS_PER_SECOND: u64 = 200;

/// Certificates that a client may send, and bytes of them together: a client's own and two or three of authorities are 2 to 6
/// KB, with RSA of 4096 bits. TLS keeps what was sent for as long as the connection lives, and nobody else does. More, of which
/// there could be 64 KiB or 13,000 empty ones, ends the handshake.
pub const CLIENT_CERTIFICATES_MAX: usize = 8;
pub const CLIENT_CHAIN_BYTES_MAX: usize = 16 << 10;

// What a connection may take holds the largest chain and as much again of everything else, on average.
const _: () = assert!(2 * CLIENT_CHAIN_BYTES_MAX as u64 <= CONNECTION_BYTES);
const _: () = assert!(BODIES_ROOM_BYTES >= 16 * BODY_BYTES_MAX);
const _: () =
    assert!(WRITES_ROOM_BYTES_MIN >= 4 * BODY_SMALL_BYTES && ROOM_WAITING_MAX >= ROOM_WAITING_PER_USER_MAX);
const _: () = assert!(EVENT_BLOCKS_PASSED_BYTES_MAX <= EVENT_BLOCKS_BYTES_MAX);
const _: () = assert!(GZIP_BYTES_MIN >= CHUNK_BYTES);
// What is compressed whole is compressed apart.
const _: () = assert!(GZIP_BYTES_MIN >= APART_BYTES);
const _: () = assert!(TLS_BUFFER_BYTES >= TLS_GATHER_BYTES && TLS_GATHER_BYTES > CHUNK_BYTES);
const _: () = assert!(STREAM_SEND_BYTES + PIECE_BYTES <= 32 << 10 && PIECE_BYTES <= CHUNK_BYTES);
