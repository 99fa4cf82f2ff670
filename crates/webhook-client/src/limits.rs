//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// Calls to one webhook at once. One more waits, for as long as its webhook gives it. One whose write holds
/// more than [`CALL_HELD_BYTES`] counts as several.
pub const CALLS_MAX: usize = 256;

/// What objects that are converted hold that counts as one call, and as how many calls one counts at most:
/// 256 x 64 KiB = 16 MiB are held by those that a hanging webhook is asked for. What an admission webhook is
/// asked about is counted elsewhere, in the room of writes that wait.
pub const CALL_HELD_BYTES: usize = 64 << 10;
pub const CALL_COUNTS_MAX: usize = CALLS_MAX / 4;

/// Calls to one webhook that wait for those, and what they hold together. One more fails at once, which
/// counts by the webhook's failure policy; by what it holds only if others wait.
pub const CALLS_WAITING_MAX: usize = 1_024;
pub const CALLS_WAITING_BYTES: usize = 8 << 20;

/// How often one call is asked again by who answers 429 or 5xx with a Retry-After; client-go's. Then what it
/// answers counts. All of it is within the time of the call.
pub const AGAIN_MAX: usize = 10;

/// The longest pause between two of them: longer than any call may take.
pub const AGAIN_PAUSE_MAX: Duration = Duration::from_secs(3_600);

/// Requests of one call that is sent on from one place to the next; Go's. One more is an error.
pub const SENT_ON_MAX: usize = 10;

/// What is read of an answer that does not count; client-go's. Beyond it its connection is not used again.
pub const PASSED_BODY_BYTES: usize = 2 << 10;

/// What one side of a call to this server itself has said and the other has not read yet. More waits.
pub const OWN_STREAM_BYTES: usize = 16 << 10;

/// What is read of the answer to a post, which says nothing: beyond it the connection is not used again.
pub const POST_ANSWER_BYTES_MAX: usize = 64 << 10;

/// Webhooks whose connections are kept, by where they are and who vouches for them. One more, and the one
/// that was called longest ago is forgotten: its calls go on, and the next opens a connection.
pub const ROUTES_MAX: usize = 256;

/// How long one of several addresses may take to connect before the next is tried.
pub const CONNECT_MAX: Duration = Duration::from_secs(1);

/// How long an address that did not connect is passed over where there are others.
pub const PASSED_OVER: Duration = Duration::from_secs(30);

/// Calls at once of a webhook that a kubeconfig says. One more waits, for as long as whoever asks.
pub const REMOTE_CALLS_MAX: usize = 128;

/// Bytes of such a webhook's answer: it is for a question of some kilobytes, and has a sentence to say.
/// Together with the calls at once: 128 x 256 KiB = 32 MiB. A longer one is an error.
pub const REMOTE_ANSWER_BYTES_MAX: usize = 256 << 10;
