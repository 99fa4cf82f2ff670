//! Every limit of this crate, and what happens there.
//!
//! In: nothing. Out: constants. Never: a limit elsewhere.

use forebay_rt::Duration;

/// Requests of clients that one server, behind an APIService or a node's kubelet, is sent at once, watches
/// and upgraded connections among them. No user has more than are free beside theirs: one alone has half.
/// One more is told to come again. What they hold is priced by flow control; this bounds connections.
pub const REQUESTS_MAX: usize = 4_096;

/// What this server asks such a server at once by itself, whether it is there and what it serves: a check's
/// attempts, and a document. One more counts as not answered.
pub const OWN_REQUESTS_MAX: usize = 16;

/// Routes that are followed, in the order of their groups and versions. Those beyond are not there.
pub const ROUTES_MAX: usize = 512;

/// What is read from a server before somebody takes it, and so the longest head of an answer. More is an
/// error of the answer.
pub const BUFFER_BYTES_MAX: usize = 64 << 10;

/// Headers of an answer. More is an error of the answer.
pub const HEADERS_MAX: usize = 128;

/// What a request takes here: what is read ahead, what is being written, TLS and a task.
pub const REQUEST_BYTES: usize = BUFFER_BYTES_MAX + (48 << 10);

/// The same of one that waits most of the time: its buffers are small then.
pub const WATCH_BYTES: usize = 48 << 10;

/// Longest tag of HTML in which links are made to lead back. A longer one passes as it is.
pub const TAG_BYTES_MAX: usize = 16 << 10;

/// HTML that is looked at in one go: with nothing but links in it, it becomes some forty times as long.
pub const HTML_BYTES: usize = 4 << 10;

/// Bytes of an answer that are one message over WebSocket. More are several.
pub const MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Requests to what runs behind pods and services that are under way at once, wherever they lead: each has a
/// connection of its own. Users share them as they do [`REQUESTS_MAX`]. One more is told to come again.
pub const VISITS_MAX: usize = 4_096;

/// Connections without a request that are kept for the next one, of one route. One more is closed.
pub const IDLE_MAX: usize = 16;

/// How long one is kept so: less than the servers that are known keep theirs.
pub const IDLE_WAIT: Duration = Duration::from_secs(30);

/// How long a connection may take, its TLS handshake included. Then the next address is tried, or there is
/// no answer.
pub const CONNECT_WAIT: Duration = Duration::from_secs(30);

/// The same where there are other addresses.
pub const CONNECT_WAIT_WITH_OTHERS: Duration = Duration::from_secs(1);

/// How long an address that did not connect is passed over where there are others.
pub const PASSED_OVER: Duration = Duration::from_secs(30);

/// Addresses that are remembered not to have connected. With one more all are forgotten.
pub const PASSED_OVER_MAX: usize = 64;

/// Addresses of one service that are tried for one request.
pub const ADDRESSES_TRIED_MAX: usize = 8;
