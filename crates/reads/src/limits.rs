//! What a read may hold, how long it waits, and what happens there.

use std::time::Duration;

// A watch and what it sends.

/// A bookmark at least this often (reference §3.1), and one shortly before the end.
pub(crate) const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
pub(crate) const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long a bookmark waits for the store to say what is current.
pub(crate) const BOOKMARK_PROOF_WAIT: Duration = Duration::from_millis(500);

/// How soon a bookmark that events held up is tried again.
pub(crate) const BOOKMARK_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Frames kept, and bytes of their objects, in the whole process: as many as watchers are apart that send the
/// same events at about the same time. The oldest go first; the newest stays however long it is, until there
/// is a newer one.
pub(crate) const SHARED_FRAMES_MAX: usize = 64;
pub(crate) const SHARED_FRAMES_BYTES_MAX: usize = 1 << 20;

/// A frame of a shorter object is made by each: that costs less than to look for it.
pub(crate) const SHARED_BYTES_MIN: usize = 1 << 10;

/// What a frame takes besides its object.
pub(crate) const FRAME_HEAD_BYTES: usize = 128;

/// Frames that a thread keeps of those that it sent last, as many as there are ways to show an event that are
/// asked for at once; longer ones are not kept.
pub(crate) const THREAD_FRAMES_MAX: usize = 4;
pub(crate) const THREAD_FRAME_BYTES_MAX: usize = 64 << 10;

/// Who asks for a watch this long, as informers do for 5 to 10 minutes, means to keep it.
pub(crate) const LONG_WATCH_SECONDS_MIN: i64 = 60;

/// 100 years.
pub(crate) const WATCH_SECONDS_MAX: u64 = 100 * 365 * 24 * 60 * 60;

// A list.

/// Objects measured in one go, fewer where each takes many looks: while their messages are made, a
/// millisecond or two.
pub(crate) const MEASURE_BATCH: usize = 64;

/// Values that a list names as left out; of more it says how many.
pub(crate) const LEFT_OUT_SHOWN_MAX: usize = 5;

/// A list that looks at less is made by each who asks: that is soon done, and there are many of them that
/// differ, such as the pods of each node.
pub(crate) const SHARED_LIST_BYTES_MIN: usize = 256 << 10;

/// Lists that are read at the same time, and are found by who asks for the same. Of more, the oldest are
/// still read, and no longer found.
pub(crate) const SHARED_LISTS_MAX: usize = 128;

/// A list that takes less to be made is begun at once, whoever else asks for the same of another state: at a
/// hundred writes a second that is half of a core.
pub(crate) const GATHERED_MAKING_MIN: Duration = Duration::from_millis(5);

/// Who asks for what was begun a moment ago, of another state, waits twice as long as it takes to be made,
/// and no longer than this.
pub(crate) const GATHERING_WAIT_MAX: Duration = Duration::from_millis(500);

/// Lists of which it is known when they were begun. Of more the oldest are begun anew by who asks.
pub(crate) const GATHERINGS_MAX: usize = 128;
