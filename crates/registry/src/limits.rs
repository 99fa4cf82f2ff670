//! What the verbs may hold, how long they wait, and what happens there.

use std::time::Duration;

// A watch and what it sends.

/// A bookmark at least this often (reference §3.1), and one shortly before the end.
pub(crate) const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);
pub(crate) const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

/// How long a bookmark waits for the store to say what is current.
pub(crate) const BOOKMARK_PROOF_WAIT: Duration = Duration::from_millis(500);

/// How soon a bookmark that events held up is tried again.
pub(crate) const BOOKMARK_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Frames kept, and bytes of their objects, in the whole process: as many as watchers are apart that send the same events at
/// about the same time. The oldest go first; the newest stays however long it is, until there is a newer one.
pub(crate) const SHARED_FRAMES_MAX: usize = 64;
pub(crate) const SHARED_FRAMES_BYTES_MAX: usize = 1 << 20;

/// A frame of a shorter object is made by each: that costs less than to look for it.
pub(crate) const SHARED_BYTES_MIN: usize = 1 << 10;

/// What a frame takes besides its object.
pub(crate) const FRAME_HEAD_BYTES: usize = 128;

/// Frames that a thread keeps of those that it sent last, as many as there are ways to show an event that are asked for at
/// once; longer ones are not kept.
pub(crate) const THREAD_FRAMES_MAX: usize = 4;
pub(crate) const THREAD_FRAME_BYTES_MAX: usize = 64 << 10;

/// Who asks for a watch this long, as informers do for 5 to 10 minutes, means to keep it.
pub(crate) const LONG_WATCH_SECONDS_MIN: i64 = 60;

/// 100 years.
pub(crate) const WATCH_SECONDS_MAX: u64 = 100 * 365 * 24 * 60 * 60;

// A list.

/// Objects measured in one go, fewer where each takes many looks: while their messages are made, a millisecond or two.
pub(crate) const MEASURE_BATCH: usize = 64;

/// Values that a list names as left out; of more it says how many.
pub(crate) const LEFT_OUT_SHOWN_MAX: usize = 5;

// A write.

/// Names tried for one `generateName` before the client is told to try again (reference §3.2).
pub(crate) const GENERATED_NAMES_MAX: usize = 8;

/// Operations of one JSON patch (`maxJSONPatchOperations`).
pub(crate) const PATCH_OPERATIONS_MAX: usize = 10_000;

/// Items of arrays that the operations of one patch may move, all together: some tenths of a second. Each that puts one into an array,
/// or takes one out of it, moves those behind it.
pub(crate) const PATCH_MOVED_MAX: usize = 50_000_000;

/// Bytes that the copies of one JSON patch may come to, as in kube-apiserver: one that copies an object into itself doubles
/// it. More is refused.
pub(crate) const PATCH_COPIED_BYTES_MAX: usize = 3 << 20;

/// Objects that one DELETE of a collection reads at a time, fewer where each takes many looks.
pub(crate) const COLLECTION_PAGE: usize = 1_000;

/// Bytes of the list that the DELETE of a collection answers; as YAML or protobuf it is a tree as well, of several times that.
/// Where it would be longer it is let go of: the rest is deleted all the same, and the answer is a `Status`, as of the
/// DELETE of one object. Clients read neither.
pub(crate) const DELETED_LIST_BYTES_MAX: usize = 4 << 20;

/// Rounds against writers of the pod, as upstream has them; beyond that the client is told of the conflict.
pub(crate) const EVICTION_ROUNDS_MAX: usize = 20;

/// What a client waits whose budget has not been looked at yet.
pub(crate) const UNPROCESSED_RETRY_SECONDS: u32 = 10;

/// How long the writer of a CRD waits for it to be served.
pub(crate) const TAKEN_IN_WAIT: Duration = Duration::from_secs(5);

// What the server writes by itself.

/// How often a member is looked at while other servers write it, too.
pub(crate) const PUBLISH_ATTEMPTS_MAX: usize = 16;

/// How often somebody looks whether all of them are there.
pub(crate) const BUILT_INS_PERIOD: Duration = Duration::from_secs(60);

/// Writes under way at once: the store commits them together.
pub(crate) const BUILT_IN_WRITES_MAX: usize = 64;

/// How long a server that says nothing is led to; it says so every 10 s.
pub(crate) const ADVERTISED_LEASE: Duration = Duration::from_secs(15);

/// Servers of one store that are led to at most.
pub(crate) const ADVERTISED_SERVERS_MAX: usize = 1_000;

/// Services read without giving way to others.
pub(crate) const REPAIR_BATCH: usize = 256;

/// How often it looks, as upstream does.
pub(crate) const SERVICE_LOOK_PERIOD: Duration = Duration::from_secs(10);

/// How often claims are repaired, as upstream does.
pub(crate) const REPAIR_PERIOD: Duration = Duration::from_secs(180);

/// When it looks again after a repair that failed: until one succeeds, no Service is given anything.
pub(crate) const REPAIR_RETRY_PAUSE: Duration = Duration::from_secs(1);
