//! How much is asked of other servers, how often, and how much of what they say is read.
//!
//! In: nothing. Out: constants. Never: a limit elsewhere.

use forebay_proxy::limits::OWN_REQUESTS_MAX;
use forebay_rt::Duration;

/// How often it is looked whether a server is there. As kube-aggregator.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often it is asked what it serves. As kube-aggregator.
pub const DOCUMENTS_EVERY: Duration = Duration::from_secs(60);

/// Before one that is not there is looked at again: doubled from the first to the second.
pub const RETRY: (Duration, Duration) = (Duration::from_millis(50), LOOK_EVERY);

/// Attempts to say of an APIService that nobody else serves it, with these pauses between: some 4 min.
pub const LOCAL_ATTEMPTS_MAX: u32 = 16;

/// How long one answer may take. As kube-aggregator.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Times that a server is asked at once before it counts as not there, as kube-aggregator; and how long the
/// answer to one is awaited alone before the next is asked. All of them take no longer than kube-aggregator
/// gives them, 6 s; and one that answers well, which is most of the time, costs one connection instead of
/// five.
pub const ATTEMPTS_MAX: usize = 5;
pub const ATTEMPT_EVERY: Duration = Duration::from_millis(250);

/// Looks that are under way at once. Of an answer they read the head: 16 x 5 x 112 KiB = 9 MiB.
pub const LOOKS_MAX: usize = 16;

/// Servers that are asked what they serve at once: each holds a document, and what becomes of it, which is
/// at most [`DISCOVERY_BYTES_MAX`] and [`DISCOVERY_WEIGHT_MAX`]. Looks do not wait for them.
pub const READS_MAX: usize = 2;

/// Before one that did not say what it serves is asked again.
pub const DOCUMENTS_RETRY: Duration = Duration::from_millis(7_500);

/// Bytes of a server's document of discovery, and what it may become while it is read. More counts as none,
/// and its version as stale: sample-apiserver's has 2 KB, that of kube-apiserver 200 KB, one of
/// prometheus-adapter with 9,000 metrics 1.2 MB, which become 15 MB.
pub const DISCOVERY_BYTES_MAX: usize = 4 << 20;
pub const DISCOVERY_WEIGHT_MAX: usize = 32 << 20;

/// The same of its documents of OpenAPI, which are less.
pub const OPENAPI_BYTES_MAX: usize = 1 << 20;

/// Bytes that what is kept of a version may have, as JSON, and of all of them together: they are answered in
/// one document. A version that is too much is stale, and told without what it serves: that is told where the
/// others are less.
pub const RESOURCES_BYTES_MAX: usize = 2 << 20;
pub const RESOURCES_ALL_BYTES_MAX: usize = 4 << 20;

/// Longest URL of a document of OpenAPI. A longer one counts as none.
pub const URL_BYTES_MAX: usize = 1 << 10;

/// Notices that are taken before others have their turn.
pub const NOTICES_MAX: usize = 1_024;

/// Before what could not be published is published again.
pub const PUBLISH_RETRY: Duration = Duration::from_secs(5);

/// Objects of a resource in one answer while their namespace ends, of whose metadata each has some 2 KB, and
/// the bytes of such an answer; 16 namespaces end at once. A longer one is a failure, and asked for again.
pub const CONTENT_LIST_MAX: usize = 100;
pub const CONTENT_LIST_BYTES_MAX: usize = 1 << 20;

/// Such answers in one look at a resource whose collections cannot be deleted. The next look takes the rest.
pub const CONTENT_PAGES_MAX: usize = 100;

/// How long one answer about the content of a namespace may take: a collection is deleted meanwhile.
pub const CONTENT_WAIT: Duration = Duration::from_secs(60);

const _: () = assert!(RESOURCES_BYTES_MAX <= DISCOVERY_BYTES_MAX);
const _: () = assert!(RESOURCES_BYTES_MAX <= RESOURCES_ALL_BYTES_MAX);
const _: () = assert!(ATTEMPTS_MAX + READS_MAX <= OWN_REQUESTS_MAX);

/// Resources of other servers that are followed for the garbage collector. Those beyond, by group and
/// resource, are not, and the log says so: nothing of theirs is deleted for want of an owner.
pub const FOLLOWED_MAX: usize = 256;

/// Objects of one of them. Where there are more, none of it counts, the log says so, and it is listed again
/// after a minute, then ever more seldom.
pub const FOLLOWED_OBJECTS_MAX: usize = 100_000;

/// What is held of all of them together, here and in the collector's graph, with what is on its way in:
/// 100,000 objects with an owner each take 83 MB. Beyond, the resource that would take more is let go of as
/// above.
pub const FOLLOWED_BYTES_MAX: usize = 128 << 20;

/// What an object takes beside its texts, and each owner that it names: places in tables that are half full.
pub const FOLLOWED_OBJECT_BYTES: usize = 256;
pub const FOLLOWED_OWNER_BYTES: usize = 192;

/// Longest object in a list or a watch. A longer one is an answer that cannot be read.
pub const FOLLOWED_ITEM_BYTES_MAX: usize = 4 << 20;

/// Finalizers, or owners, that one may name: 1,024 x 100 B, however short they are. One with more is left
/// alone.
pub const FOLLOWED_LISTED_MAX: usize = 1_024;

/// Longest uid, and longest name.
pub const FOLLOWED_NAME_BYTES_MAX: usize = 256;

/// Objects that are read before others have their turn.
pub const FOLLOWED_TURN: usize = 256;

/// Bytes of a refusal that are read.
pub const REFUSAL_BYTES_MAX: usize = 4 << 10;

/// Bytes of one object that is looked at before it is judged, and what its metadata may take as a tree; 64
/// are looked at at once. More is a failure.
pub const OBJECT_BYTES_MAX: usize = 4 << 20;
pub const OBJECT_TREE_BYTES_MAX: usize = 2 << 20;

/// How long one answer about a single object may take.
pub const OBJECT_WAIT: Duration = Duration::from_secs(10);
