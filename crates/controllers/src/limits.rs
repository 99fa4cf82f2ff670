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

/// How long a namespace is left alone once it is being deleted. On a store of our own that is for who creates
/// in it all the time: to be refused, and not to see each object go. What was admitted before is waited for.
pub const NAMESPACE_GRACE: Duration = Duration::from_millis(100);

/// The same on a store that other servers write to, which may hear of it later, or serve a definition that
/// this one does not yet. As kube-controller-manager does.
pub const NAMESPACE_GRACE_SHARED: Duration = Duration::from_secs(5);

/// How long creates are waited for that are on their way to the store while a namespace is being deleted,
/// before that is tried again.
pub const CREATES_WAIT: Duration = Duration::from_secs(1);

/// How long the garbage collector waits until its graph shows what is current before it ends an owner.
pub const SETTLE_WAIT: Duration = Duration::from_secs(3);

/// Owners that the garbage collector remembers to be there: beyond them it begins anew, and asks once more.
/// Of what was deleted last it remembers as many to be gone: beyond them nothing is kept of what was asked
/// for before.
pub const FOUND_OWNERS_MAX: usize = 1_024;

/// Attempts at one change of an object that others change as well, before it goes back to the queue.
pub const CONFLICTS_MAX: usize = 5;

/// Keys that a queue keeps room for once it is empty: a storm of 20,000 leaves 2 MB behind otherwise.
pub const QUEUE_KEPT: usize = 1_024;

const _: () = assert!(NOTICES_MAX > 0 && WORK_MAX > 0 && WRITES_MAX > 0);

/// Kinds of one rule that the expressions of a policy are checked over, as upstream has it: those beyond are
/// not, nor those of the rules behind it.
pub const TYPES_MAX: usize = 10;

/// The same of a whole policy, about: no rule is looked at once there are as many. Upstream has no such
/// bound.
pub const POLICY_TYPES_MAX: usize = 64;

/// Before the status of a FlowSchema that could not be written is written again.
pub const FLOW_STATUS_RETRY: Duration = Duration::from_secs(5);

/// How often every quota is counted anew, as kube-controller-manager does.
pub const QUOTA_RESYNC_PERIOD: Duration = Duration::from_secs(300);

/// How long what a quota limits may change before it is counted: a storm of changes is counted once.
pub const QUOTA_RECOUNT_PAUSE: Duration = Duration::from_secs(1);

/// Objects that are counted before others have their turn.
pub const QUOTA_COUNTED_MAX: usize = 256;

/// Bytes of written objects that are looked at before others have their turn: some milliseconds.
pub const QUOTA_TURN_BYTES: usize = 256 << 10;

/// How long claims that are deleted, and pods that may use them, come together before it is looked who uses
/// which: a storm of both is a look every so often.
pub const CLAIM_USE_PAUSE: Duration = Duration::from_millis(50);

/// How long claims and volumes may change before it is looked whether they were the last to use a class.
pub const CLASS_USE_PAUSE: Duration = Duration::from_secs(1);

/// How long roles may change before those that take in others are looked at, once for a storm of them.
pub const ROLES_PAUSE: Duration = Duration::from_millis(50);

/// How long pods may change before it is looked where their services lead: a rollout is written in steps.
pub const ENDPOINTS_PAUSE: Duration = Duration::from_millis(100);

/// How long EndpointSlices may be changed by others before they are put right, as upstream does.
pub const SLICES_PAUSE: Duration = Duration::from_secs(1);

/// Objects of a namespace that are looked at before others have their turn.
pub const PODS_LOOKED_AT_MAX: usize = 256;

/// Nodes that are read before others have their turn: some 20 us each.
pub const NODES_READ_MAX: usize = 32;

/// Ports of all pods of a service, those that are the same counted once: 2^18 x 200 B = 52 MB. Beyond, its
/// endpoints stay as they are, and the log says so.
pub const ENDPOINT_PORTS_MAX: usize = 1 << 18;

/// Addresses in all subsets of Endpoints, before they are cut to what is written. Beyond, they stay as they
/// are, and the log says so.
pub const ENDPOINT_ADDRESSES_MAX: usize = 1 << 18;

/// The longest that a job or a token waits before it is looked at again whether its time has come.
pub const EXPIRY_WAIT_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Pods and volumes that are read for the rights of nodes before others have their turn: at some 10 us each
/// 3 ms.
pub const NODE_RIGHTS_BATCH: usize = 256;

/// How often it is asked whether what leads to nodes can be read, while a start waits for it.
pub const HINDERED_LOOK: Duration = Duration::from_millis(500);

/// Resources of other servers that the garbage collector follows, those included whose server cannot say now
/// what it has: twice what is known of at once. One more is not followed, and the log says so.
pub const ELSEWHERE_FOLLOWED_MAX: usize = 512;

/// Work of the garbage collector that asks other servers, at all of them and at one: what hangs at one leaves
/// room for sixteen. What waits holds its uid.
pub const ELSEWHERE_WORK_MAX: usize = 64;
pub const ELSEWHERE_LANE_WORK_MAX: usize = 4;

/// How long an owner that orphans its dependents, or waits for them, is held where it is not known which of
/// them other servers have: since it began to be not known. Then it goes, as with kube-controller-manager,
/// which waits as long once, when it begins.
pub const ELSEWHERE_SETTLE_WAIT: Duration = Duration::from_secs(30);
