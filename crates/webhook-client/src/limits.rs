//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// Calls to one webhook at once. One more waits, for as long as its webhook gives it.
pub const CALLS_MAX: usize = 256;

/// What is read of the answer to a post, which says nothing: beyond it the connection is not used again.
pub const POST_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Webhooks whose connections are kept, by where they are and who vouches for them. One more, and the one
/// that was called longest ago is forgotten: its calls go on, and the next opens a connection.
pub const ROUTES_MAX: usize = 256;

/// How long one of several addresses may take to connect before the next is tried.
pub const CONNECT_MAX: Duration = Duration::from_secs(1);

/// How long an address that did not connect is passed over where there are others.
pub const PASSED_OVER: Duration = Duration::from_secs(30);
