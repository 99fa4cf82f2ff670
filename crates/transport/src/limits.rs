//! The limits of connections: how much they may hold, how long they wait, and what happens at each limit.

use std::time::Duration;

/// Strangers that were told to give way and have not ended yet: each needs a turn of its task for that. While
/// there are so many, a new connection is closed at once.
pub const LEAVING_MAX: usize = 64;

/// Bytes that a stranger may have the server hold, of what it says until something begins or ends; and
/// strangers who have it hold more, or do not take at once what they are answered, which may be a head of 64
/// KiB and two buffers of 160 KiB: 28 MiB. Beyond so many the one gives way on whose connection the longest
/// nothing began or ended.
pub const STRANGER_BYTES: usize = 16 << 10;
pub const STRANGERS_WITH_MUCH_MAX: usize = 128;

/// A connection of HTTP/2 on which there was no request for so long is asked to end, as Go's servers do,
/// and cut when it has not within [`PING_WAIT`]. One of HTTP/1.1 ends after [`HEADER_WAIT`].
pub const IDLE_WAIT: Duration = Duration::from_secs(90);

/// How often idle connections and clients that do not read are looked for.
pub const CONNECTIONS_PERIOD: Duration = Duration::from_secs(5);

/// Bytes that a client may say until its TLS handshake is over: a hello of 2 KiB, with keys that resist
/// quantum computers, and a chain of certificates, of which no more than 16 KiB is taken. More ends the
/// connection: rustls alone would keep 64 KiB of each message.
pub const HANDSHAKE_BYTES_MAX: usize = CONNECTION_BYTES as usize;

/// Bytes that a connection's task reads of tokio's budget for a turn by each of its 128 units: after 64 KiB
/// others have their turn, whatever small frames or records these are. The costliest are changes of TLS keys,
/// 27 bytes and 3 us each: 7 ms.
pub const READ_UNIT_BYTES: usize = 512;

/// Connections that wait in the kernel until they are accepted.
pub const BACKLOG: u32 = 1_024;

/// A client that has not finished its TLS handshake by then is cut off.
pub const HANDSHAKE_WAIT: Duration = Duration::from_secs(10);

/// A client that has not sent a whole request head by then, or HTTP/2's preface, or that says nothing on a
/// kept HTTP/1.1 connection, is cut off (reference §3.2).
pub const HEADER_WAIT: Duration = Duration::from_secs(32);

/// Pause after an error of accept (no file descriptors left, say), doubled from the first to the second.
pub const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Bytes of a request's head: what is asked for may stand in the URL at length. More is answered 431.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// Bytes that are kept of what an HTTP/1.1 client says behind its watch: a next request fits. What comes
/// after that stays with the kernel; and of one that said more before the watch began, nothing is kept, and
/// its connection ends with the watch.
pub const AHEAD_BYTES_MAX: usize = 4 << 10;

/// Bytes that an HTTP/1.1 connection buffers towards a slow reader before its body is no longer asked for
/// more.
pub const WRITE_BUFFER_BYTES: usize = 64 << 10;

/// Bytes that TLS keeps for a connection whose socket is full. What comes after that stays where it is.
pub const TLS_BUFFER_BYTES: usize = 96 << 10;

/// Bytes whose records go to the kernel in one call, where there are so many: a record is 16 KiB.
pub const TLS_GATHER_BYTES: usize = 80 << 10;

/// Rounds that the task of an HTTP/2 connection makes before other tasks get their turn. In each round a
/// stream makes at most one piece of its body.
pub const CONNECTION_TURNS: usize = 16;

/// Bytes that the kernel takes for a client before the client's machine has room for them. Above it a socket
/// counts as full, however much is on its way already, so that a fast network is not held up by a slow one's
/// limit.
pub const UNSENT_BYTES: u32 = 16 << 10;

/// Bytes that the kernel keeps for a client that watches over HTTP/1.1. Linux doubles what it is told and
/// counts its own bookkeeping too: this is a buffer of 32 KiB. One that begins with a long state gets it
/// after that.
pub const WATCH_SEND_BYTES: usize = 16 << 10;

/// Bytes that the kernel buffers for a client once its watch is over and the connection goes on: Linux's
/// default.
pub const SEND_BYTES: usize = 208 << 10;

/// An idle connection's client is asked for a sign of life after the first, then this often, so many times:
/// one that is gone without a word is found within 40 s. HTTP/2 asks by itself, too: see [`PING_PERIOD`].
pub const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
pub const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
pub const KEEPALIVE_RETRIES: u32 = 5;

/// How often HTTP/1.1 connections are asked whether their clients acknowledge what was sent; after how many
/// retransmissions a client has to answer within the time, or is taken for gone; and how many window probes
/// may stay unanswered.
pub const DEAD_PEER_PERIOD: Duration = Duration::from_secs(10);
pub const DEAD_PEER_RETRANSMITS: u8 = 3;
pub const DEAD_PEER_WAIT: Duration = Duration::from_secs(40);
pub const DEAD_PEER_PROBES: u8 = 3;

/// Longest pause before the kernel asks a full client again whether it has room, or sends again what was not
/// acknowledged: one that is gone is found within 3 x 10 + 10 s. Linux before 6.15 lets the pauses grow to
/// two minutes, and finds it within four.
pub const ASK_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Requests in flight on one HTTP/2 connection, unless the configuration says otherwise. With Go's usual 100
/// a client that watches much opens another connection.
pub const STREAMS_MAX: u32 = 250;

/// Streams of an HTTP/2 connection that its client resets before they are looked at, and those that are reset
/// as it does not keep to the protocol, in all; with more the connection ends (CVE-2023-44487,
/// CVE-2019-9514). A good client resets as it likes what has begun: a watch that it wants no more.
pub const RESETS_PENDING_MAX: usize = 20;
pub const RESETS_MAX: usize = 1_024;

/// Fields of a head over HTTP/1.1; more are answered 431.
pub const HEAD_FIELDS_MAX: usize = 100;

/// Bytes that an HTTP/2 client begins with (RFC 9113, 3.4). From there on it is [asked](PING_PERIOD) whether
/// it is there.
pub const PREFACE_BYTES: usize = 24;

/// Bytes of a response that wait in one HTTP/2 stream for a slow reader, before it is asked for no further
/// piece: of a watch, whose pieces have 16 KiB, less than 32 KiB wait.
pub const STREAM_SEND_BYTES: usize = 16 << 10;

/// Bytes of a request body that a client may send ahead on one stream, and on one connection: what nobody has
/// read yet, so that it is held by nobody who counts. The least that HTTP/2 knows for a connection. It costs
/// a client one round trip for each 64 KiB, and that only while it sends a large body.
pub const STREAM_WINDOW_BYTES: u32 = (64 << 10) - 1;
pub const CONNECTION_WINDOW_BYTES: u32 = (64 << 10) - 1;

/// An HTTP/2 client that says nothing is asked whether it is there, and cut off if it does not answer: found
/// out in 40 s.
pub const PING_PERIOD: Duration = Duration::from_secs(25);
pub const PING_WAIT: Duration = Duration::from_secs(15);

/// Memory that a connection may take, on average.
pub const CONNECTION_BYTES: u64 = 32 << 10;

/// A long body is made in pieces of this size: enough that TLS records and HTTP/2 frames are full, and that
/// what a piece costs apart from its bytes does not count.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Batches of a watch that are made in one turn of its task while its client takes them at once: a quarter of
/// a millisecond, and 0.6 ms with blocks that are deflated. By tokio's own bound, 128 writes, two clients
/// that read from this machine had both threads to themselves until they had everything: the runtime looks at
/// sockets every 61 turns.
pub const TURN_BATCHES_MAX: usize = 4;

/// A long event is handed on in pieces of this size, so that it shows how far its reader is.
pub const PIECE_BYTES: usize = 16 << 10;

/// The capacity with which a piece of a body is begun: [`CHUNK_BYTES`], and room for a last part that exceeds
/// it.
pub const MADE_BYTES: usize = CHUNK_BYTES + CHUNK_BYTES / 4;

/// A stream's reader is quick if it asks for more within this time, which is 640 KB/s or more.
pub const QUICK: Duration = Duration::from_millis(25);

/// How much of a long body, or of what a watch begins with, a stream's reader is given at once who came back
/// after `pause`. A quick one gets a piece as it is made, but for one that is long because a part of it is:
/// to hand it on in four costs 10 us each.
pub fn stream_give_max(pause: Duration) -> usize {
    if pause < QUICK { MADE_BYTES } else { PIECE_BYTES }
}

/// Bytes of a ping's payload over WebSocket (RFC 6455, 5.5); of a longer one the rest is dropped.
pub const WEBSOCKET_CONTROL_BYTES_MAX: usize = 125;

/// How long the closing handshake of WebSocket may take.
pub const WEBSOCKET_CLOSE_WAIT: Duration = Duration::from_secs(1);

/// Bytes of an upgraded connection that are on their way, in each direction. Then the side that sends waits.
pub const TUNNEL_BYTES: usize = 16 << 10;

/// A reader that takes nothing of its answer for so long loses it: the memory behind it is given back, and
/// the stream is reset. An answer may decide to wait on, as most watches do.
pub const STALL_WAIT: Duration = Duration::from_secs(60);

/// How often stalled readers are looked for.
pub const STALL_PERIOD: Duration = Duration::from_secs(5);

/// On shutdown: how long requests in flight may take to finish, at least; then they are cut.
pub const DRAIN_WAIT: Duration = Duration::from_secs(10);

/// On shutdown watches are ended over this time, unless the configuration says otherwise.
pub const WATCH_ENDS_WAIT: Duration = Duration::from_secs(5);

/// A watch ends so much later at least than its connection was told to go: else its client would come back on
/// the same one, where it would be refused.
pub const GOODBYE_PAUSE: Duration = Duration::from_millis(50);

const _: () = assert!(TLS_BUFFER_BYTES >= TLS_GATHER_BYTES && TLS_GATHER_BYTES > CHUNK_BYTES);
const _: () = assert!(STREAM_SEND_BYTES + PIECE_BYTES <= 32 << 10 && PIECE_BYTES <= CHUNK_BYTES);

/// What is sent to many begins so far into its memory. It is copied behind the head of a TLS record and of a
/// chunk, into memory of the same size, which begins at the same places of a page: without this the copy
/// would be some bytes, modulo 4 KiB, ahead of what is copied, and there `rep movsb`, by which libc copies
/// more than 8 KiB, takes 30 times as long on AMD Zen (ADR 42).
pub const SHARED_LEAD_BYTES: usize = 64;

/// What a connection sends is measured for so many bytes, then not for so many, and never where less is
/// written at once: the two readings of the clock would be most of it.
pub const SAMPLE_BYTES: usize = 256 << 10;
pub const SAMPLE_EVERY_BYTES: usize = 2 << 20;
pub const SAMPLE_WRITE_BYTES_MIN: usize = 8 << 10;
