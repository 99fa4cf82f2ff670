//! What the verbs may hold, how long they wait, and what happens there.

use std::time::Duration;

// A write.

/// Names tried for one `generateName` before the client is told to try again (reference §3.2).
pub(crate) const GENERATED_NAMES_MAX: usize = 8;

/// Operations of one JSON patch of a client (`maxJSONPatchOperations`). What webhooks and policies make has
/// as many as its answer has room for.
pub(crate) const PATCH_OPERATIONS_MAX: usize = 10_000;

/// Items of arrays that the operations of one patch may move, all together: some tenths of a second. Each
/// that puts one into an array, or takes one out of it, moves those behind it. More is refused; of a webhook
/// or a policy, as its failure policy has it.
pub(crate) const PATCH_MOVED_MAX: usize = 50_000_000;

/// Bytes that the copies of one JSON patch may come to, as in kube-apiserver: one that copies an object into
/// itself doubles it. More is refused. So much may be moved further down as well, each of which is walked to
/// see how deep that makes the object.
pub(crate) const PATCH_COPIED_BYTES_MAX: usize = 3 << 20;

/// Objects that one DELETE of a collection reads at a time, fewer where each takes many looks.
pub(crate) const COLLECTION_PAGE: usize = 1_000;

/// Bytes of the list that the DELETE of a collection answers; as YAML or protobuf it is a tree as well, of
/// several times that. Where it would be longer it is let go of: the rest is deleted all the same, and the
/// answer is a `Status`, as of the DELETE of one object. Clients read neither.
pub(crate) const DELETED_LIST_BYTES_MAX: usize = 4 << 20;

/// Rounds against writers of the pod, as upstream has them; beyond that the client is told of the conflict.
pub(crate) const EVICTION_ROUNDS_MAX: usize = 20;

/// What a client waits whose budget has not been looked at yet.
pub(crate) const UNPROCESSED_RETRY_SECONDS: u32 = 10;

/// How long the writer of a CRD waits for it to be served.
pub(crate) const TAKEN_IN_WAIT: Duration = Duration::from_secs(5);

/// Roles and bindings taken in without giving way to others: some tens of microseconds each.
pub(crate) const RIGHTS_BATCH: usize = 64;

// The end of a CRD.

/// How long its objects are waited for before it says that some are left, as upstream has it. Those that are
/// there still are deleted again then.
pub(crate) const INSTANCES_WAIT: Duration = Duration::from_secs(60);

/// How often it is looked whether any are left.
pub(crate) const INSTANCES_PERIOD: Duration = Duration::from_secs(1);

/// Namespaces of which it says why an object was not deleted: each has a line of its condition.
pub(crate) const UNDELETED_TOLD_MAX: usize = 16;

// What the server writes by itself.

/// How often a start looks again at a role that others write, too.
pub(crate) const RECONCILE_ROUNDS_MAX: usize = 8;

/// How often it is asked whether the store can be read, while a start waits for some of it.
pub(crate) const HINDERED_LOOK: Duration = Duration::from_millis(500);

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

/// How often it looks, as upstream does.
pub(crate) const SERVICE_LOOK_PERIOD: Duration = Duration::from_secs(10);

/// How often claims are repaired, as upstream does.
pub(crate) const REPAIR_PERIOD: Duration = Duration::from_secs(180);

/// When it looks again after a repair that failed: until one succeeds, no Service is given anything.
pub(crate) const REPAIR_RETRY_PAUSE: Duration = Duration::from_secs(1);

// Quotas.

/// Writes of one namespace that are counted by one write of its quotas; more wait for the next. What each of
/// them holds is charged to its request, and goes when its client goes.
pub(crate) const CHARGED_TOGETHER_MAX: usize = 1_024;

/// How often quotas are written again that somebody else wrote meanwhile, as upstream has it. Then the client
/// is told of the conflict.
pub(crate) const CHARGE_RETRIES: usize = 3;

/// How long a write waits until it is counted, as upstream has it. Then it is refused, and may be counted all
/// the same, which the controller puts right.
pub(crate) const CHARGE_WAIT: Duration = Duration::from_secs(10);

/// Values of one annotation of a policy that an audit log is told: each binding may say one with each of its
/// parameters. Those beyond are not kept.
pub(crate) const NOTED_MAX: usize = 64;

/// Checks of an expression's `authorizer` that one admission waits for: each of them costs so much that the
/// policies of one write can pay for some six hundred. Those beyond have no decision, and say that.
pub(crate) const ANSWERS_MAX: usize = 512;

// Webhooks.

/// Warnings of webhooks that one write keeps: their header has room for fewer.
pub(crate) const TOLD_MAX: usize = 256;

/// Who is refused as too many wait for a webhook is asked to come again after 1 to so many seconds.
pub(crate) const BUSY_RETRY_SECONDS_MAX: u64 = 8;

/// Endpoints of a webhook's service that are tried, one after the other, where its address is not in reach.
pub(crate) const ENDPOINTS_TRIED_MAX: usize = 8;

/// How long the answer to a conversion is waited for. Upstream waits for as long as its request does, 60 s.
pub(crate) const CONVERSION_WAIT: Duration = Duration::from_secs(30);
