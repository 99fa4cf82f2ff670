//! Every bound of this crate, and what happens there.

use std::time::Duration;

/// An answer of etcd, a page of a range or a part of a watch: 64 MiB, 40 of the largest values. A longer page
/// is asked for again in halves; a longer part of a watch ends its stream, which is opened again.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A page of a range aims at this: pages grow and shrink towards it.
pub const PAGE_BYTES: usize = 4 << 20;

/// Keys of one page at most: as kube-apiserver asks for.
pub const PAGE_KEYS_MAX: usize = 10_000;

/// What etcd takes in one request unless told otherwise, `--max-request-bytes`: for the message; etcd itself
/// judges.
pub const REQUEST_BYTES_MAX: usize = 1536 << 10;

/// Commits in flight to etcd. More wait [`SEAT_WAIT`], then they are refused as too many.
pub const WRITES_MAX: usize = 256;

/// Reads of single keys in flight to etcd; as for commits.
pub const READS_MAX: usize = 256;

/// Pages in flight to etcd; more wait. 8 pages of [`PAGE_BYTES`] are 32 MiB, usually.
pub const PAGES_MAX: usize = 8;

/// Streams of ranges that are open at once, each with [`UNARY_STREAM_WINDOW`] on its way: 32 MiB. Who finds
/// none free asks for pages.
pub const RANGE_STREAMS_MAX: usize = 4;
const _: () = assert!(RANGE_STREAMS_MAX * UNARY_STREAM_WINDOW as usize <= CONNECTION_WINDOW as usize / 2);

/// Walks that read pages before they are asked for, and how many each: no room was taken for those, which are
/// 16 MiB, usually; at most [`ANSWER_BYTES_MAX`] each, where large values follow small ones. Who finds no
/// seat asks when one is wanted.
pub const AHEAD_MAX: usize = 2;
pub const AHEAD_PAGES: usize = 2;

/// How often each page of a whole state that is wanted is asked for, with the pauses of [`REOPEN_PAUSE`];
/// then the read fails, and whoever reads begins anew.
pub const WALK_TRIES_MAX: usize = 5;

/// How long a request waits for its turn.
pub const SEAT_WAIT: Duration = Duration::from_secs(3);

/// How long a commit may take; then it is unanswered, and the client is told so.
pub const COMMIT_WAIT: Duration = Duration::from_secs(10);

/// How long a read of a key may take.
pub const READ_WAIT: Duration = Duration::from_secs(5);

/// How long a page may take.
pub const PAGE_WAIT: Duration = Duration::from_secs(30);

/// Reads that wait for the same quorum read; more are refused. As many as a server has requests in flight,
/// and then some.
pub const BARRIER_WAITING_MAX: usize = 16_384;

/// How long a quorum read may take: below the 3 s that a consistent read waits in all.
pub const BARRIER_WAIT: Duration = Duration::from_millis(2_500);

/// Between two quorum reads while several ask: 100 a second however many they are.
pub const BARRIER_PERIOD: Duration = Duration::from_millis(10);

/// For how long after two have asked at the same time whoever asks is taken for one of many: who comes alone
/// then waits up to [`BARRIER_PERIOD`].
pub const BARRIER_MANY: Duration = Duration::from_millis(100);

/// Between two requests for progress on one stream, while somebody waits for it: doubled from the first to
/// the second. A member that is behind, or has not brought a watch up to date, which it does every 100 ms,
/// says nothing, and is asked again.
pub const PROGRESS_PERIOD: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(100));

/// How long progress is asked for on behalf of one read: what it waits at most, and a little.
pub const HASTE: Duration = Duration::from_millis(3_500);

/// How long a stream that was asked for progress may say nothing before it is opened again, elsewhere if
/// there is an elsewhere; doubled each time in a row, up to the second.
pub const SILENCE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How often a stream on which nothing happens is asked for progress, so that a dead one is noticed.
pub const PULSE: Duration = Duration::from_secs(30);

/// Pauses between attempts to open a stream again: doubled from the first to the second.
pub const REOPEN_PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Between two warnings that etcd refuses the watch of one prefix. It is asked again all the same.
pub const REFUSALS_PERIOD: Duration = Duration::from_secs(60);

/// How long no other cluster takes the place of one that has just done so, and none goes back to a revision
/// of before, doubled from the first to the second while they go on doing that: every resource is read again
/// each time. Members of another one are not asked meanwhile. The first again once one has stood for longer
/// than the second.
pub const CLUSTER_HOLD: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(120));

/// Prefixes whose readers are told that another cluster answers even when they had no feed at that moment:
/// 2^16 x about 100 B = 7 MB. Beyond it a feed that is opened later begins as if its reader had nothing.
pub const PREFIXES_MAX: usize = 1 << 16;

/// Batches of changes that wait for the reader of a feed, and their bytes. At either limit the stream is not
/// read any further until there is room: HTTP/2 holds etcd back, and nobody else.
pub const FEED_BATCHES_MAX: usize = 64;
pub const FEED_BYTES_MAX: usize = 8 << 20;

/// Connections for watches. However many there are of those, they share these.
pub const WATCH_CONNECTIONS: usize = 4;

/// Bytes that etcd may send on one stream before they are read, and on one connection: so that 250 streams
/// that nobody reads do not hold up the others on theirs.
pub const WATCH_STREAM_WINDOW: u32 = 256 << 10;
pub const CONNECTION_WINDOW: u32 = 64 << 20;
pub const UNARY_STREAM_WINDOW: u32 = 8 << 20;

/// How long it may take to connect to one member, with TLS.
pub const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// After every member refused: for so long nobody tries again.
pub const CONNECT_HOLD: Duration = Duration::from_millis(200);

/// HTTP/2 pings while something is in flight. etcd takes one in 5 s (`--grpc-keepalive-min-time`).
pub const PING_PERIOD: Duration = Duration::from_secs(10);
pub const PING_WAIT: Duration = Duration::from_secs(5);

/// Ranges at most to find out where history begins: as many as revisions that 10,000 writes a second make in
/// three years take.
pub const BISECTION_MAX: usize = 40;

/// For how long where history begins is not looked for again, unless somebody is told that it begins later.
pub const OLDEST_HOLD: Duration = Duration::from_millis(100);

/// How often etcd is asked how it is.
pub const STATUS_PERIOD: Duration = Duration::from_secs(10);

/// Lifetimes for which a lease is kept to be used again; the oldest is forgotten.
pub const LEASES_MAX: usize = 16;
/// Keys on one lease, and for how long it is given to new ones: as kube-apiserver has it.
pub const LEASE_KEYS_MAX: u64 = 1_000;
pub const LEASE_REUSE_SECONDS_MAX: u64 = 60;
pub const LEASE_REUSE_PERCENT: u64 = 5;

/// How often a request of a transfer is tried, with pauses like those before a watch is opened again: half a
/// minute.
pub const TRANSFER_TRIES_MAX: usize = 16;
