//! The limits of this crate, each with its reason. Never: a number in another file.

use std::time::Duration;

/// Frames of a watch that wait for a client. A client that reads nothing holds its stream up, as it would
/// without a proxy.
pub const FRAMES_MAX: usize = 16;

/// Bytes of one frame of a watch: kube-apiserver's objects have 1.5 MiB at most, ours 3 MiB. A longer one
/// ends the stream.
pub const FRAME_BYTES_MAX: usize = 16 << 20;

/// Bytes that are read of a client before its handshake is failed: a ClientHello has at most about 2 KiB.
pub const HELLO_BYTES_MAX: usize = 4 << 10;

/// What is between GOAWAY and the end of the connection: long enough to be read before, shorter than any
/// backoff.
pub const GOAWAY_MS: u64 = 200;

/// Streams of one HTTP/2 connection: as kube-apiserver has it. More of them wait, or take another connection.
pub const STREAMS_MAX: u32 = 100;

/// Longest wait for informers to be synced before a fault: client-go and kube-rs need about 1 s for 50 of
/// them.
pub const SYNC_MAX: Duration = Duration::from_secs(120);

/// Longest wait for the server's own answer to a write or a list.
pub const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Objects in each namespace when the churn begins: a store has to be more than its last event.
pub const OBJECTS: u64 = 20;

/// Requests at once while namespaces are filled: more would wait for each other in the server.
pub const FILL_AT_ONCE: usize = 16;

/// Longest wait for stores to be equal, after the writes have ended: a client that sees has them within a
/// second.
pub const EQUAL_MAX: Duration = Duration::from_secs(10);

/// Every so many writes of a namespace one object is deleted and another one made: a deletion that is missed
/// stays for ever.
pub const DELETE_EVERY: u64 = 5;

/// A client's own timeout in the row that is about one: longer than any write is apart, far below the longest
/// wait.
pub const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
