//! The limits of a watch cache, and what happens at each.

use std::time::Duration;

/// Events of one resource: 2^17 x about 200 B of headers and pointers = 26 MB, object bytes counted apart. At
/// the limit the oldest whole revisions are forgotten; a watcher that still needed them is told Expired.
pub const EVENTS_MAX: usize = 1 << 17;

/// Bytes of replaced objects that only the window still holds, per resource. At the limit as for
/// [`EVENTS_MAX`].
pub const WINDOW_BYTES_MAX: usize = 64 << 20;

/// Bytes that a window may always hold, however short memory is.
pub const WINDOW_BYTES_MIN: usize = 256 << 10;

/// An event's own memory, besides the objects that only it holds.
pub const EVENT_BYTES: usize = 200;

/// How far back the window reaches while the other limits allow: as the store's own history does.
pub const WINDOW_MS: u64 = 5 * 60 * 1000;

/// How often a window that the other limits make shorter than [`WINDOW_MS`] says so in the log, at most.
pub const PRESSURE_PERIOD: Duration = Duration::from_secs(60);

/// When an object that was replaced or deleted is sealed: most watchers have had its event by then. Its
/// successor is not in a block yet, from which it would have to be inflated for the comparison.
pub const SEAL_MS: u64 = 2_500;

/// How many replaced objects are sealed in one batch: at 3 KB an object, 8 ms of a thread's time.
pub const SEAL_BATCH: usize = 512;

/// How many batches are looked at in one go until one is worth it: 8,192 events, less than a millisecond.
pub const SEAL_LOOKS: usize = 16;

/// The least that sealing has to save to be done: in a whole batch, or within a minute.
pub const SEAL_BYTES_MIN: usize = 4 << 10;
pub const SEAL_PATIENCE_MS: u64 = 60_000;

/// What all caches of a server may hold in plain form before it is sealed: 32 MiB, which two threads seal in
/// a tenth of a second. A cache that takes in more, at the start or while clients write faster than objects
/// are sealed, waits for room. Consistent reads wait with it, writes do not. Once half of it is used, objects
/// are sealed before they have become quiet.
pub const LOOSE_BYTES_MAX: usize = 32 << 20;

/// A cache that has taken less than this lets its objects become quiet before it seals them, unless somebody
/// waits for room.
pub const HASTE_BYTES_MIN: usize = 1 << 20;

/// How long a cache waits for room; then it goes on without, and counts that. Sealing takes milliseconds, so
/// this is rare.
pub const ROOM_WAIT: Duration = Duration::from_secs(2);

/// Bytes of a page of changes that are taken in at once; at least one revision.
pub const PART_BYTES: usize = 1 << 20;

/// The most bytes by which an object grows when its revision is written into it.
pub const REVISION_BYTES: usize = 48;

/// How soon a cache is ready, and what is quiet is sealed. A field of the caches' so that tests need not
/// wait.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// An object that did not change for so long is sealed, together with its neighbours, unless one of them
    /// did change.
    pub cool_ms: u64,
    /// An object that changes all the time, or has a neighbour that does, is sealed after so long all the
    /// same.
    pub late_ms: u64,
    /// How often a cache looks for objects to seal, while there may be some.
    pub period: Duration,
    /// The number of newest revisions, of all resources, whose history a cache reads before it is ready.
    /// Older history is read afterwards, and put in front.
    pub recent: u64,
}

pub const PACE: Pace =
    Pace { cool_ms: 4_000, late_ms: 45_000, period: Duration::from_secs(1), recent: 1_000 };

/// How many caches of a server read older history at the same time; the others wait for their turn.
pub const EARLY_READERS_MAX: usize = 16;

/// How long a watch waits for history that is still being read; then its client is asked to come again.
pub const EARLY_WAIT: Duration = Duration::from_secs(30);

/// An object with a third change within this time is one that changes all the time, such as a lease, or a
/// node with its status.
pub const OFTEN_MS: u64 = 60_000;

/// Events looked at in one go, less than a millisecond; and triggers that are kept for the next job before
/// new ones are looked for.
pub const SETTLED_MAX: usize = 2048;
pub const LEFT_MAX: usize = 2048;

/// Bytes of a run on either side of the change that triggers it: there it is cut.
pub const RUN_BYTES_MAX: usize = 1 << 20;
pub const RUN_OBJECTS_MAX: usize = 2048;

/// Bytes after which a job begins no further run: 4 MB are 12 to 80 ms of a background thread's time, and so
/// many objects are put into the tree in 2 ms.
pub const JOB_BYTES: usize = 4 << 20;
pub const JOB_OBJECTS: usize = 2048;

/// In haste, a job of twice these bytes gives half of them to another thread: 8 ms of a thread's time.
pub const HALF_BYTES_MIN: usize = 512 << 10;

/// Objects that a scan looks at in one go.
pub const SCAN_OBJECTS: usize = 16 << 10;

/// Bytes of blocks that may be sealed anew because of single changes: 16 MB/s, a twentieth of a core; and how
/// much of this allowance may be saved up. Where it is not enough, changed objects get small blocks of their
/// own until there is time.
pub const RESEAL_BYTES_PER_MS: u64 = 16_000;
pub const RESEAL_BYTES_MAX: usize = 32 << 20;

/// How many changes are taken from the feed at a time, and published as one snapshot.
pub const INGEST_BATCH_MAX: usize = 1024;

/// How many times a cache is filled from the oldest history. If that was compacted meanwhile each time, the
/// next filling begins with the current state, without history.
pub const FILLS_FROM_HISTORY_MAX: u32 = 3;

/// Keys read in one page of a self-check, without values: about 600 KB.
pub const CHECK_PAGE: usize = 10_000;

/// How many keys that differ are logged; the others are only counted, and their values are not read.
pub const MISMATCHES_LOGGED_MAX: usize = 10;

/// How many keys of values that cannot be read each cache remembers, and as many of those that cannot be
/// decrypted: about 100 KB, and with why as much again, which most have in common. With more of them any key
/// may be one, and a GET of a key that is not in the cache has to look into the store. With more that cannot
/// be decrypted no LIST is complete, so none is answered.
pub const UNREADABLE_MAX: usize = 1_000;

/// Of why a value cannot be decrypted so much is kept: 1,000 x 256 B.
pub const WHY_BYTES_MAX: usize = 256;

/// How long it takes until values that could not be decrypted are read again: doubled from the first to the
/// second, and the first again once there are other keys. Each round is [`UNREADABLE_MAX`] GETs at most, one
/// after the other, and ends after so many that failed.
pub const LOOK_PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
pub const LOOK_FAILURES_MAX: usize = 8;

/// Bytes of values that were read again and are handed to the ingest task at a time; one more value than that
/// at most, which waits for nobody.
pub const LOOK_BYTES: usize = 1 << 20;

/// How many of the keys whose values a cache cannot read, or may not be able to, a self-check reads again in
/// a round. The next round goes on behind them.
pub const CHECK_HIDDEN_MAX: usize = 1_000;

/// How many holes in the history a window remembers; with more the two oldest are merged.
pub const HOLES_MAX: usize = 8;

/// Objects read in one page while a cache is filled: at first, and when they are so small that [`FILL_BYTES`]
/// would be more.
pub const FILL_FIRST: usize = 16;
pub const FILL_PAGE: usize = 4_096;

/// Bytes of such a page, estimated by the objects of the page before. A page holds room for them from before
/// it is read until it is sealed. Where its objects are larger than estimated, the store bounds the page, and
/// what it reads ahead.
pub const FILL_BYTES: usize = 4 << 20;

/// Pages that are being sealed at once, each on a thread that blocks.
pub const FILL_SEALING_MAX: usize = 3;

/// Pages of history that the caches of one process are reading, or have read and not taken in yet; each is
/// read on a thread that blocks, and further ones wait. Twice what two cores can use, because some of the
/// time is spent waiting for the disk.
pub const HISTORY_READERS_MAX: usize = 4;

/// How long a read waits for the cache to reach a revision (reference §3.1, blockTimeout).
pub const FRESH_WAIT: Duration = Duration::from_secs(3);

/// For how long consistent reads fail at once after one has timed out: they would all wait for the same
/// thing.
pub const STALE_HOLD: Duration = Duration::from_secs(1);

/// Consistent reads that fail are asked to come again after 1 to so many seconds.
pub const STALE_RETRY_SECONDS_MAX: u64 = 8;

/// A protobuf message that nobody asks for is dropped after this long, or twice as long at most. Each object
/// has at most one of each type that it is served as, so that messages are bounded by the data: about two
/// thirds of its JSON for what clients read in protobuf, nothing for the rest. Long enough for whoever lists
/// every minute.
pub const MESSAGE_PERIOD: Duration = Duration::from_secs(2 * 60);

/// Objects that are looked at in one go when messages are dropped: about a tenth of a millisecond.
pub const LET_GO_BATCH: usize = 1024;

/// How often a cache looks for events that have grown too old, and for lanes that nobody reads any more.
pub const EVICT_PERIOD: Duration = Duration::from_secs(15);

/// Past snapshots that were rebuilt or handed out as the first page of a paged LIST and are kept for its next
/// pages. Each shares its tree with the current one; beyond this the one that nobody has asked for the
/// longest is forgotten and rebuilt when asked for.
pub const RECENT_MAX: usize = 16;

/// Events that are undone in one go: about two milliseconds.
pub const UNDO_BATCH: usize = 1024;

/// A past snapshot that nobody asked for in so long is dropped: it keeps objects in memory that were sealed
/// or replaced since.
pub const RECENT_UNUSED: Duration = Duration::from_secs(60);

/// Lanes of one resource: 2^16 x about 700 B = 45 MB when that many values are watched. Beyond it a watcher
/// reads the whole log, which costs it time and nobody else anything.
pub const LANES_MAX: usize = 1 << 16;

/// LISTs of past states that read pages from the store at once, of all caches of this process: what each
/// holds meanwhile is [`PAST_PAGE`] values, and of its state what has changed since.
pub const PAST_READERS_MAX: usize = 4;

/// LISTs that wait to be one of these readers; further ones are told to come again.
pub const PAST_WAITING_MAX: usize = 64;

/// Objects of a past state read in one page; more than that, or more bytes of them, which the current state
/// does not have are put at rest, as their reader may be slow.
pub const PAST_PAGE: usize = 500;
pub const PAST_BYTES: usize = 4 << 20;

/// Events that a watcher pulls at a time, fewer where they are large: as many as there is room for. A watcher
/// whose client takes nothing keeps what it pulled from being sealed or forgotten.
pub const WATCH_BATCH_MAX: usize = 16;

/// The size that a watcher expects of an event before it has seen one.
pub const EVENT_BYTES_GUESS: usize = 8 << 10;

/// How often a follower that has nothing to tell looks whether the state that it told was put at rest. Until
/// it looks, it keeps the plain objects in memory.
pub const REBASE_PERIOD: Duration = Duration::from_secs(10);

/// Objects of the initial state that a watcher pulls at a time.
pub const INITIAL_BATCH_MAX: usize = 64;

/// Objects that are looked at to know how many a selector will find: of fewer all are, of more so many. 25
/// us; with 1,024 it is 50 us, which is more than a LIST of 2,000 takes that finds nothing.
pub const SAMPLE_OBJECTS_MAX: usize = 512;

/// Objects of those that a read shows that are asked whether something was made of them: 2 us.
pub const SAMPLE_MATCHES: usize = 16;

/// Pause before a cache that could not be filled, or lost its history, is filled again: doubled from the
/// first to the second, and the first again once it was followed for as long as the second.
pub const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// Pause before a feed is opened again that the store could not give: doubled from the first to the second.
/// Short, as consistent reads are refused meanwhile.
pub const REOPEN_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

const _: () = assert!(EVENTS_MAX >= INGEST_BATCH_MAX);
const _: () = assert!(LOOSE_BYTES_MAX >= 2 * FILL_BYTES);
