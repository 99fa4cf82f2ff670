//! How much is asked of other servers, how often, and how much of what they say is read.
//!
//! In: nothing. Out: constants. Never: a limit elsewhere.

use forebay_rt::Duration;

/// How often it is looked whether a server is there. As kube-aggregator.
pub const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How often it is asked what it serves. As kube-aggregator.
pub const DOCUMENTS_EVERY: Duration = Duration::from_secs(60);

/// Before one that is not there is looked at again: doubled from the first to the second.
pub const RETRY: (Duration, Duration) = (Duration::from_millis(50), LOOK_EVERY);

/// How long one answer may take. As kube-aggregator.
pub const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Times that a server is asked before it counts as not there, and how long all of them may take.
pub const ATTEMPTS_MAX: usize = 5;
pub const ATTEMPTS_WAIT: Duration = Duration::from_secs(6);

/// Looks that are under way at once: each holds a document at most, and its resources.
pub const LOOKS_MAX: usize = 4;

/// Bytes of a document that a server has of itself. More counts as none: those of sample-apiserver have 2 KB,
/// those of kube-apiserver 200 KB.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// Bytes that what is kept of a version may have, as JSON. More counts as none: all of them are answered in
/// one document.
pub const RESOURCES_BYTES_MAX: usize = 256 << 10;

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

const _: () = assert!(RESOURCES_BYTES_MAX <= DOCUMENT_BYTES_MAX);
