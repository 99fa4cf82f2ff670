//! What a watch cache may hold, and what happens there.

use std::time::Duration;

/// Events of one resource: 2^17 x about 200 B of headers and pointers = 26 MB, object bytes counted apart. At the
/// limit the oldest whole revisions are forgotten; a watcher that still needed them is told Expired.
pub const EVENTS_MAX: usize = 1 << 17;

/// Bytes of replaced objects that only the window still holds, per resource. At the limit as for [`EVENTS_MAX`].
pub const WINDOW_BYTES_MAX: usize = 64 << 20;

/// What a window that has to give way keeps, however short memory is.
pub const WINDOW_BYTES_MIN: usize = 256 << 10;

/// An event's own memory, besides the objects that only it holds.
pub const EVENT_BYTES: usize = 200;

/// How far back the window reaches while the other limits allow: as the store's own history does.
pub const WINDOW_MS: u64 = 5 * 60 * 1000;

/// A window that the other limits make shorter than that says so in the log once in so long.
pub const PRESSURE_PERIOD: Duration = Duration::from_secs(60);

/// An object that was replaced or deleted so long ago is sealed: most watchers have had its event by then, and its successor
/// is not in a block yet, from which it would have to be inflated to be compared with.
pub const SEAL_MS: u64 = 2_500;

/// Events looked at for one batch: at 3 KB an object, 8 ms of a thread's time.
pub const SEAL_BATCH: usize = 512;

/// Batches looked at in one go for one that is worth it: 8,192 events, less than a millisecond.
pub const SEAL_LOOKS: usize = 16;

/// What is less stays as it is: in a whole batch, or in a minute.
pub const SEAL_BYTES_MIN: usize = 4 << 10;
pub const SEAL_PATIENCE_MS: u64 = 60_000;

/// What all caches of a server may hold in plain form before it is sealed: 32 MiB, which two threads seal in a tenth of a second.
/// Who takes in more, at the start or while clients write faster than that is sealed, waits for room: consistent reads wait with it,
/// writes do not. From half of it on nothing waits to become quiet.
pub const LOOSE_BYTES_MAX: usize = 32 << 20;

/// A cache that has less of it has what is loose become quiet, unless somebody waits for room.
pub const HASTE_BYTES_MIN: usize = 1 << 20;

/// How long a cache waits for room. Then it goes on without it, and counts that: what is sealed is a matter of milliseconds.
pub const ROOM_WAIT: Duration = Duration::from_secs(2);

/// What is taken in at once of a page of changes; one revision always is.
pub const PART_BYTES: usize = 1 << 20;

/// What an object grows by when its revision is written into it, at most.
pub const REVISION_BYTES: usize = 48;

/// How soon a cache is ready, and what is quiet is sealed. A field of the caches' so that tests need not wait.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// An object that did not change for so long is, with its neighbours, unless one of them did.
    pub cool_ms: u64,
    /// One that changes all the time, or has a neighbour that does, is after so long. After a quiet minute everything is.
    pub late_ms: u64,
    /// How often a cache looks for what is to be sealed, while there may be something.
    pub period: Duration,
    /// Revisions, of all resources, that a cache takes in before it is ready; older history is read afterwards, and put in front.
    pub recent: u64,
}

pub const PACE: Pace =
    Pace { cool_ms: 4_000, late_ms: 45_000, period: Duration::from_secs(1), recent: 1_000 };

/// Caches of a server that read older history at once; the others wait for their turn.
pub const EARLY_READERS_MAX: usize = 16;

/// How long a watch waits for history that is still being read; then it is asked to come again.
pub const EARLY_WAIT: Duration = Duration::from_secs(30);

/// A third change within this time before is one of many: leases, and the status of nodes.
pub const OFTEN_MS: u64 = 60_000;

/// Events looked at in one go, less than a millisecond; and triggers that are kept for the next job before new ones are
/// looked for.
pub const SETTLED_MAX: usize = 2048;
pub const LEFT_MAX: usize = 2048;

/// What a run is cut at, on either side of its trigger.
pub const RUN_BYTES_MAX: usize = 1 << 20;
pub const RUN_OBJECTS_MAX: usize = 2048;

/// What a job begins no further run after: 4 MB are 12 to 80 ms of the background's time, and so many objects are put in place
/// in 2 ms.
pub const JOB_BYTES: usize = 4 << 20;
pub const JOB_OBJECTS: usize = 2048;

/// What a job in haste gives away half of when it has twice as much: 8 ms of a thread's time.
pub const HALF_BYTES_MIN: usize = 512 << 10;

/// Objects that a scan looks at in one go.
pub const SCAN_OBJECTS: usize = 16 << 10;

/// Bytes of blocks that are sealed anew because of single changes: 16 MB/s, a twentieth of a core, and what may be saved
/// up of that. Where it is not enough, changed objects get small blocks of their own, until there is time.
pub const RESEAL_BYTES_PER_MS: u64 = 16_000;
pub const RESEAL_BYTES_MAX: usize = 32 << 20;

/// Changes taken from the feed, and published as one snapshot, at a time.
pub const INGEST_BATCH_MAX: usize = 1024;

/// Times that a cache is filled from the oldest history that there is; if that is compacted meanwhile each time, the next
/// filling begins with what is current.
pub const FILLS_FROM_HISTORY_MAX: u32 = 3;

/// Keys read in one page of a self-check, without values: about 600 KB.
pub const CHECK_PAGE: usize = 10_000;

/// Keys that differ and are logged; the others are counted, and their values are not read.
pub const MISMATCHES_LOGGED_MAX: usize = 10;

/// Keys of values that cannot be read, known by name in each cache: about 100 KB. Beyond it any key may be one, and a GET of what
/// is not in the cache looks into the store.
pub const UNREADABLE_MAX: usize = 1_000;

/// Holes in the history that a window remembers; beyond it the two oldest are one.
pub const HOLES_MAX: usize = 8;

/// Objects read in one page while a cache is filled: at first, and when they are so small that [`FILL_BYTES`] would be more.
pub const FILL_FIRST: usize = 16;
pub const FILL_PAGE: usize = 4_096;

/// Bytes of such a page, by the objects of the one before, which has its room from before it is read until it is sealed. The store
/// bounds pages whose objects are larger than those, and what it reads ahead.
pub const FILL_BYTES: usize = 4 << 20;

/// Pages that are being sealed at once, each on a thread that blocks.
pub const FILL_SEALING_MAX: usize = 3;

/// Pages of history that the caches of one process read, or have read and not taken in, each read on a thread that blocks; who
/// wants one more waits. Twice what two cores can use: some of it is waiting for the disk.
pub const HISTORY_READERS_MAX: usize = 4;

/// How long a read waits for the cache to reach a revision (reference §3.1, blockTimeout).
pub const FRESH_WAIT: Duration = Duration::from_secs(3);

/// After a consistent read has failed for want of time, others fail at once for so long: they would all wait for the
/// same thing.
pub const STALE_HOLD: Duration = Duration::from_secs(1);

/// Consistent reads that fail are asked to come again after 1 to so many seconds.
pub const STALE_RETRY_SECONDS_MAX: u64 = 8;

/// A protobuf message that nobody asks for is let go of after this long, or twice as long at most. Each object has at
/// most one of each type that it is served as, so that messages are bounded by the data: about two thirds of its JSON for
/// what clients read in protobuf, nothing for the rest. Long enough for whoever lists every minute.
pub const MESSAGE_PERIOD: Duration = Duration::from_secs(2 * 60);

/// Objects looked at in one go when messages are let go of: about a tenth of a millisecond.
pub const LET_GO_BATCH: usize = 1024;

/// How often a cache looks for events that have grown too old, and for lanes that nobody reads any more.
pub const EVICT_PERIOD: Duration = Duration::from_secs(15);

/// Past snapshots that were rebuilt or handed out as the first page of a paged LIST and are kept for its next pages.
/// Each shares its tree with the current one; beyond this the one that nobody has asked for the longest is forgotten and rebuilt
/// when asked for.
pub const RECENT_MAX: usize = 16;

/// Events that are undone in one go: about two milliseconds.
pub const UNDO_BATCH: usize = 1024;

/// One that nobody asked for in so long is forgotten: it pins what has been sealed or replaced since.
pub const RECENT_UNUSED: Duration = Duration::from_secs(60);

/// Lanes of one resource: 2^16 x about 700 B = 45 MB when that many values are watched. Beyond it a watcher reads the
/// whole log, which costs it time and nobody else anything.
pub const LANES_MAX: usize = 1 << 16;

/// LISTs of past states that read pages from the store at once, of all caches of this process: what each holds meanwhile
/// is [`PAST_PAGE`] values, and of its state what has changed since.
pub const PAST_READERS_MAX: usize = 4;

/// LISTs that wait for that; the others are told to come again.
pub const PAST_WAITING_MAX: usize = 64;

/// Objects of a past state read in one page; more than that, or more bytes of them, which the current state does not have are
/// put at rest, as their reader may be slow.
pub const PAST_PAGE: usize = 500;
pub const PAST_BYTES: usize = 4 << 20;

/// Events that a watcher pulls at a time, fewer where they are large: as many as there is room for. A watcher whose client
/// takes nothing keeps what it pulled from being sealed or forgotten.
pub const WATCH_BATCH_MAX: usize = 16;

/// What an event is taken to be before one was seen.
pub const EVENT_BYTES_GUESS: usize = 8 << 10;

/// How often a follower that has nothing to tell looks whether what it told is at rest by now: until then it holds what was replaced.
pub const REBASE_PERIOD: Duration = Duration::from_secs(10);

/// Objects of the initial state that a watcher pulls at a time.
pub const INITIAL_BATCH_MAX: usize = 64;

/// Pause before a cache that could not be filled, or lost its history, is filled again: doubled from the first to the
/// second, and the first again once it was followed for as long as the second.
pub const RETRY_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// Pause before a feed is opened again that the store could not give: doubled from the first to the second. Short, as
/// consistent reads are refused meanwhile.
pub const REOPEN_PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

const _: () = assert!(EVENTS_MAX >= INGEST_BATCH_MAX);
const _: () = assert!(LOOSE_BYTES_MAX >= 2 * FILL_BYTES);
