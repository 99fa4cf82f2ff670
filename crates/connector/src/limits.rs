//! Every limit of this crate, and what happens there.
//!
//! In: nothing. Out: constants. Never: a limit elsewhere.

use forebay_rt::Duration;

/// Streams that a connection is asked to carry where its server sets no limit, or a higher one.
/// kube-apiserver allows 100, Forebay 250; with more, one lost packet holds up too many watches at once.
pub const STREAMS_MAX: usize = 1_000;

/// Of a connection's streams one in so many, and at least one, is kept from watches: 4 of 100, 10 of 250. So
/// 1,000 watches are 5 connections at Forebay and 11 at kube-apiserver, and each of them has room for
/// ordinary requests.
pub const SEATS_KEPT_ONE_IN: usize = 25;

/// HTTP/2 connections that take requests, at most: 64 x 100 streams are 6,400 watches at a kube-apiserver.
/// Then requests wait for a seat.
pub const CONNECTIONS_MAX: usize = 64;

/// Connections that take no more requests and are waited for until their streams have ended. One more, and
/// the oldest is cut, which is a fault of its streams.
pub const LEAVING_MAX: usize = 64;

/// HTTP/1.1 connections at most, x about 20 KiB of buffers = 20 MiB. Then requests wait for one.
pub const HTTP1_CONNECTIONS_MAX: usize = 1_024;

/// HTTP/1.1 connections of these that watches leave to ordinary requests.
pub const HTTP1_CONNECTIONS_KEPT: usize = 64;
const _: () = assert!(HTTP1_CONNECTIONS_KEPT < HTTP1_CONNECTIONS_MAX);

/// HTTP/1.1 connections that are opened at a time. Of HTTP/2 it is one, because it may have room for all who
/// wait.
pub const HTTP1_OPENING_MAX: usize = 8;

/// Requests that wait for a seat, x about 200 B = 3 MiB. One more is refused.
pub const WAITING_MAX: usize = 16 << 10;

/// Connections that were upgraded, to WebSocket for instance: each has one of its own. Then requests for one
/// wait.
pub const UPGRADES_MAX: usize = 256;

/// How long a connection may take from the first packet to the server's SETTINGS, where the configuration
/// does not say.
pub const CONNECT_MAX: Duration = Duration::from_secs(30);

/// Addresses of a name that may swallow what is sent to them while there is still time for one that answers:
/// an address that is not the last has a quarter of the time.
pub const ADDRESSES_IN_TIME: u32 = 4;

/// How long an HTTP/2 connection may be silent before it is pinged. As client-go.
pub const PING_INTERVAL: Duration = Duration::from_secs(30);

/// How long nothing may come after a ping before the connection counts as dead. As client-go.
pub const PING_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a connection without requests is kept, unless it is the only one. As client-go.
pub const IDLE_MAX: Duration = Duration::from_secs(90);

/// A connection younger than this is not given up by `renew`: a thousand watches that time out one after the
/// other ask for a new connection a thousand times, and mean the same old one.
pub const RENEW_AGE_MIN: Duration = Duration::from_secs(10);

/// What a stream may send ahead of its reader: a LIST is as fast as 1 MiB for each round trip.
pub const STREAM_WINDOW_BYTES: u32 = 1 << 20;

/// What all streams of a connection may send ahead of their readers, and with that the memory of what was not
/// read yet: 64 connections x 4 MiB = 256 MiB at most. Who holds an answer reads it: four that do not read a
/// long one stop their connection.
pub const CONNECTION_WINDOW_BYTES: u32 = 4 << 20;
const _: () = assert!(CONNECTION_WINDOW_BYTES >= STREAM_WINDOW_BYTES);

/// Longest frame of HTTP/2 that is taken: a LIST of 150 MiB is 2,400 of them instead of 9,600.
pub const FRAME_BYTES_MAX: u32 = 64 << 10;

/// Longest head of an answer. More is an error of the stream.
pub const HEAD_BYTES_MAX: u32 = 256 << 10;

/// What frames of watches that are shorter than 256 B may cost beyond their bytes while they wait to be read,
/// as `h2` counts it: more than 16,384 of them. Then the connection is given up.
pub const SMALL_FRAMES_BYTES_MAX: usize = 4 << 20;

/// Bytes of a request's body that wait to be sent.
pub const SEND_BUFFER_BYTES_MAX: usize = 256 << 10;

/// Streams given up by us whose last frames are expected and ignored, for [`RESETS_KEPT_FOR`].
pub const RESETS_KEPT: usize = 1_024;

/// How long the last frames of a stream that we gave up are expected: longer than a round trip.
pub const RESETS_KEPT_FOR: Duration = Duration::from_secs(10);

/// Times that a request is sent again which its server says it has not served. After that it is a fault.
pub const RESENT_MAX: u32 = 2;

/// Longest head of a proxy's answer.
pub const PROXY_HEAD_BYTES_MAX: usize = 8 << 10;

/// Errors within errors that are looked at.
pub const CAUSES_READ_MAX: usize = 32;

/// A pause that a server asked for is spread over half of it, so that those who waited do not all come back
/// at once.
pub const PAUSE_SPREAD: f64 = 0.5;
