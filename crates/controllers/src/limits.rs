//! What the controllers may have in flight, and how long they wait.

use forebay_rt::Duration;

/// Work of one controller that is under way at once. Most of it waits for a commit, and the store syncs the
/// commits of several writers together: 16 writers get most of what there is to get.
pub const WORK_MAX: usize = 16;

/// Writes that one piece of work has under way at once: the content of a namespace, the dependents of an
/// orphaned owner.
pub const WRITES_MAX: usize = 16;

/// Notices taken from one informer before the others have their turn.
pub const NOTICES_MAX: usize = 1_024;

/// Before work that failed is tried again: doubled from the first to the second, with jitter.
pub const BACKOFF: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// Before a namespace that still has content is looked at again: doubled from the first to the second, with
/// jitter. Each look costs a walk over what is left.
pub const CONTENT_WAIT: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// How long a namespace is left alone once it is being deleted, so that what was admitted before is there to
/// be found: on a store of our own a write that was admitted is in its queue already.
pub const NAMESPACE_GRACE: Duration = Duration::from_millis(100);

/// The same on a store that other servers write to, which may hear of it later, or serve a definition that
/// this one does not yet. As kube-controller-manager does.
pub const NAMESPACE_GRACE_SHARED: Duration = Duration::from_secs(5);

/// How long the garbage collector waits until its graph shows what is current before it ends an owner.
pub const SETTLE_WAIT: Duration = Duration::from_secs(3);

/// Attempts at one change of an object that others change as well, before it goes back to the queue.
pub const CONFLICTS_MAX: usize = 5;

/// Keys that a queue keeps room for once it is empty: a storm of 20,000 leaves 2 MB behind otherwise.
pub const QUEUE_KEPT: usize = 1_024;

const _: () = assert!(NOTICES_MAX > 0 && WORK_MAX > 0 && WRITES_MAX > 0);

/// Kinds that the expressions of a policy are checked over, as upstream has it: those beyond are not.
pub const TYPES_MAX: usize = 10;

/// Before the status of a FlowSchema that could not be written is written again.
pub const FLOW_STATUS_RETRY: Duration = Duration::from_secs(5);

/// How often every quota is counted anew, as kube-controller-manager does.
pub const QUOTA_RESYNC_PERIOD: Duration = Duration::from_secs(300);

/// How long what a quota limits may change before it is counted: a storm of changes is counted once.
pub const QUOTA_RECOUNT_PAUSE: Duration = Duration::from_secs(1);

/// Objects that are counted before others have their turn.
pub const QUOTA_COUNTED_MAX: usize = 256;

/// How long claims and volumes may change before it is looked whether they were the last to use a class.
pub const CLASS_USE_PAUSE: Duration = Duration::from_secs(1);
