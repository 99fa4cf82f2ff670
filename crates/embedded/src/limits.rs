//! Every bound of the engine, with its arithmetic. Each doc says what happens at the limit.

/// Bytes of one value; kube-apiserver takes request bodies of 3 MiB, and encoding may add some. Above it:
/// refused.
pub const VALUE_BYTES_MAX: usize = 4 << 20;

/// Bytes of one key: namespace, name, group and resource are at most 253 each. Above it: refused.
pub const KEY_BYTES_MAX: usize = 4096;

/// KiB of waiting transactions, each counted as 1 + its value: at most 64 Ki of them, or 64 MiB of values. A
/// commit that finds the queue full waits for [`QUEUE_WAIT_MS`] and is then refused as busy.
pub const QUEUE_KIB_MAX: usize = 64 << 10;

/// How long a commit waits for room in the queue. A writer that syncs in 10 ms drains a full queue in less.
pub const QUEUE_WAIT_MS: u64 = 3_000;

/// Transactions in one batch, that is in one sync. What is left waits for the next batch.
pub const BATCH_TXNS_MAX: usize = 1024;

/// Bytes of values in one batch; one transaction always fits. Four times the largest value.
pub const BATCH_BYTES_MAX: usize = 16 << 20;

/// Keys that expire in one revision: one row of 4096 x ~100 B = 400 KB. What is left expires in the next
/// batch.
pub const EXPIRE_KEYS_MAX: usize = 4096;

/// Entries of the expiry heap that no longer count, before it is built anew: as many as count, and this many
/// more.
pub const EXPIRY_STALE_MAX: usize = 4096;

/// How long superseded values, tombstones and changes are kept at least. etcd behind kube-apiserver keeps as
/// long.
pub const HISTORY_MS: u64 = 5 * 60 * 1000;

/// How far apart the marks are that say when a revision was current: history is kept up to this much longer.
/// 5 minutes / 10 s = 30 marks of 16 B.
pub const MARK_EVERY_MS: u64 = 10_000;

/// Revisions that one slice of compaction looks at when no batch is waiting. Under load a slice looks at no
/// more than twice what its batch wrote, so that compaction keeps up and delays no batch by more than it
/// costs itself.
pub const SLICE_ROWS_MAX: usize = 1024;

/// Revisions that a slice looks at, at least.
pub const SLICE_ROWS_MIN: usize = 64;

/// Bytes of rows that one slice reads. A row of any size is read whole.
pub const SLICE_BYTES_MAX: usize = 4 << 20;

/// Changes that the log of one prefix holds for readers that fall behind. Past it the oldest are forgotten,
/// and a reader that still needed them reads the state again.
pub const LOG_ITEMS_MAX: usize = 1 << 16;

/// Bytes of keys and values in the log of one prefix. As for [`LOG_ITEMS_MAX`].
pub const LOG_BYTES_MAX: usize = 32 << 20;

/// Age of a change in a log that a reader has not taken. After this the memory is given back, and a reader
/// that still needed it may begin again where it was, from the history on disk.
pub const LOG_AGE_MS_MAX: u64 = 30_000;

/// How soon after a change it is looked whether all readers have taken it, so that it need not be held any
/// more; then after twice as long, and so on up to [`LOG_AGE_MS_MAX`].
pub const LOG_LOOK_MS: u64 = 100;

/// Prefixes with a log of their own: a few for each resource that is served. Past it a feed is refused.
pub const LOGS_MAX: usize = 1 << 14;

/// Reads that run at once, each on a thread that may wait for the disk; the others wait for one of these, in
/// order.
pub const READERS_MAX: usize = 16;

/// Bytes of values in one page of a range; one key always fits. Whoever asked for more keys is told that
/// there are more.
pub const RANGE_BYTES_MAX: usize = 4 << 20;

/// Rows in one page of a feed's backlog.
pub const BACKLOG_ROWS_MAX: usize = 512;

/// Bytes of values in one page of a feed's backlog; one row always fits.
pub const BACKLOG_BYTES_MAX: usize = 1 << 20;

/// Keys looked at under one hold of the index lock: 2048 x ~50 ns = 0.1 ms that the writer waits.
pub const INDEX_KEYS_A_HOLD: usize = 2048;

/// Bytes of pages that redb keeps; in memory they take a quarter more. The operating system's page cache
/// holds the rest. Rows are appended, so that little is read twice: 20,000 creates cost the server 5.7 to 6.0
/// times the client's CPU with 4 MiB, 5.9 with one.
pub const PAGE_CACHE_BYTES: usize = 1 << 20;

/// Bytes of the file system that puts leave free, so that deletes and compaction still have room: a few
/// hundred commits of a slice each. Below it puts are refused, and taken again when there is space.
pub const FREE_BYTES_MIN: u64 = 16 << 20;

/// What a file may use beyond twice its live data and kept history before these are copied into a new one: a
/// little churn of a small store costs nothing.
pub const DEFRAG_SLACK_BYTES: u64 = 4 << 20;

/// Bytes of a copy between two syncs: what one sync, for which a batch may wait, has to write.
pub const DEFRAG_SYNC_BYTES: u64 = 1 << 20;

/// How long after a copy that failed the next is begun. Meanwhile the file is as large as it was.
pub const DEFRAG_RETRY_MS: u64 = 5 * 60 * 1000;

/// How often the writer looks whether the last reader of a replaced file has left.
pub const RETIRED_LOOK_MS: u64 = 100;

/// The writer looks at the clock at least this often while something is due later, so that a clock that was
/// set forward is noticed.
pub const TICK_MS_MAX: u64 = 10_000;

/// Bytes of keys and values that one block of a snapshot aims at; one entry always fits.
pub const SNAPSHOT_BLOCK_BYTES: usize = 1 << 20;

/// Bytes of one block of a snapshot: what it aims at, the entry that passes that, and 21 B for each of the
/// shortest. A longer one is damage.
pub const SNAPSHOT_BLOCK_BYTES_MAX: usize = 32 << 20;

const _: () = assert!(SNAPSHOT_BLOCK_BYTES_MAX > 22 * SNAPSHOT_BLOCK_BYTES + VALUE_BYTES_MAX + KEY_BYTES_MAX);
const _: () = assert!(BATCH_BYTES_MAX >= VALUE_BYTES_MAX);
const _: () = assert!(QUEUE_KIB_MAX > VALUE_BYTES_MAX / 1024);
const _: () = assert!(LOG_BYTES_MAX >= VALUE_BYTES_MAX);
const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);
const _: () = assert!(SLICE_ROWS_MAX >= SLICE_ROWS_MIN);

/// A file from which on opening it may take long enough to say so first: redb reads it twice, and the index
/// once.
pub const LARGE_BYTES: u64 = 1 << 30;

/// How far revisions go on above those of a store that was put back: further than it can have been before.
pub const RESTORE_GAP: u64 = 1 << 30;
