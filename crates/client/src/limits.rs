//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// Longest object that is taken in, as a frame of a watch or an item of a list: more is an error of the
/// stream. etcd takes 1.5 MiB, and a server may be told to take more.
pub const OBJECT_BYTES_MAX: usize = 16 << 20;

/// First wait of a request that failed, which doubles each time; with jitter it is up to twice as long. As
/// client-go.
pub const BACKOFF_MIN: Duration = Duration::from_millis(800);

/// The longest wait: it doubles up to here, as client-go's does.
pub const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// Once a server that could not be reached answers one collection, the others ask, and not again for that
/// reason before so long: it may be reached by others and not by them.
pub const WOKEN_PERIOD_MIN: Duration = BACKOFF_MAX;

/// First and longest wait of a collection that is larger than may be held here, until it is tried again: it
/// doubles each time, with half as much jitter. A try costs the server a list, or the beginning of one.
pub const LET_GO_WAIT_MIN: Duration = Duration::from_secs(60);
pub const LET_GO_WAIT_MAX: Duration = Duration::from_secs(15 * 60);

/// How far behind its slot a refused request comes back at most: slots are told in whole seconds, and those
/// who share one are spread over it.
pub const SLOT_SPREAD: Duration = Duration::from_secs(1);

/// Longest `Retry-After` that is obeyed; a longer one counts as this, so that a server's typing error does
/// not end a reflector.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(600);

/// Objects asked for in a page, as client-go and kubectl do. A page that was cut is asked for with half of
/// it, down to one.
pub const PAGE_ITEMS: u32 = 500;

/// How long a watch asks to be served: a random time between these, so that not all are renewed at once. As
/// client-go.
pub const WATCH_SECONDS: std::ops::Range<u32> = 300..600;

/// How long a watch may outlive the time that it asked for without a frame before it counts as dead.
pub const WATCH_OVERTIME: Duration = Duration::from_secs(60);

/// How long an answer may keep its head, and a page its next item, back: more than the minute in which a
/// kube-apiserver ends a request that waits in its queues.
pub const ANSWER_WAIT_MAX: Duration = Duration::from_secs(70);

/// How long a frame, or an item of a list, that has begun may be without its next byte. A server writes a
/// frame in one go, so what keeps its other half back is lost: the request is given up, and the same goes on
/// from the last revision, over a new connection. A long object on a slow way is not: each byte begins the
/// time anew.
pub const HALF_FRAME_WAIT: Duration = Duration::from_secs(10);

/// How long a watch-list may be without a frame before its end bookmark: three times the 3 s that a server
/// waits for its cache. After it the state is asked for in pages.
pub const END_BOOKMARK_WAIT: Duration = Duration::from_secs(10);

/// A watch that was open for so long stands: the next failure begins with the first wait again. Longer than
/// the longest wait.
pub const STANDS_AFTER: Duration = Duration::from_secs(60);
const _: () = assert!(STANDS_AFTER.as_millis() >= 2 * BACKOFF_MAX.as_millis());

/// A watch that ends sooner without a frame is a fault of its server.
pub const WATCH_ENDS_EARLY: Duration = Duration::from_secs(1);

/// The time between bookmarks that is reckoned with, at least and at most: kube-apiserver's is a minute. Over
/// a watch nothing may come for twice of it.
pub const BOOKMARK_INTERVAL_MIN: Duration = Duration::from_secs(60);
pub const BOOKMARK_INTERVAL_MAX: Duration = Duration::from_secs(300);

/// Times that a revision may be too large for a server before the newest one is asked for.
pub const TOO_LARGE_TRIES: u32 = 3;

/// Watches in a row that stood and brought nothing before the newest revision is asked for.
pub const SILENT_WATCHES: u32 = 2;

/// Times that the token of a list may expire before the list is asked for in one piece.
pub const TOKENS_EXPIRED_MAX: u32 = 2;

/// Watch-lists that a server may answer with an error of its own before the state is asked for in pages.
pub const WATCH_LIST_TRIES: u32 = 3;

/// How much of an error's message is searched for what it means; the rest counts for nothing.
pub const MESSAGE_BYTES_READ: usize = 4 << 10;

/// Room that a cutter keeps for the next piece once a long object is through; what is more goes back to the
/// allocator.
pub const ROOM_BYTES_KEPT: usize = 1 << 20;
const _: () = assert!(ROOM_BYTES_KEPT <= OBJECT_BYTES_MAX);

/// Inflated bytes that are made at a time. A bomb costs as many of them as somebody takes.
pub const INFLATED_BYTES_MAX: usize = 64 << 10;

/// Bytes that are looked through for the end of a run of deflate, and what such a run may say: two blocks of
/// a server of ours, and one object that is as long as etcd takes. What is more is inflated as it comes, and
/// so is everything behind it.
pub const RUN_DEFLATED_BYTES_MAX: usize = 256 << 10;
pub const RUN_BYTES: usize = 160 << 10;
pub const RUN_BYTES_MAX: usize = 2 << 20;

/// Causes of a Status that are kept, x 72 B = 9 KB; later ones are forgotten. A server names at most 100
/// broken objects in one.
pub const CAUSES_MAX: usize = 128;

/// Paths of a projection. Each may have 64 steps with a node of some 100 B: 1.6 MB for each collection that
/// is projected so, at most.
pub const PROJECTION_PATHS_MAX: usize = 256;
