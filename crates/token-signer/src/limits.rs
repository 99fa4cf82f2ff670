//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// How long the signer may take to say its keys, a connection included, at a start as later: as upstream.
/// Then the server does not start, or goes on with the keys that it has.
pub const FETCH_MAX: Duration = Duration::from_secs(60);

/// How long it may take at a start to say what it can do: as upstream. Then the server does not start.
pub const METADATA_MAX: Duration = Duration::from_secs(10);

/// How long it may take to sign one token, a turn and a connection included; then that is told. Upstream
/// gives it 34 s, after which its client is told of a timeout and of nothing else.
pub const SIGN_MAX: Duration = Duration::from_secs(30);

/// Tokens that it is asked to sign at once; more wait their turn, within their time. Fewer than the streams
/// that any gRPC server takes on one connection, so that keys can be asked for behind all of them.
pub const SIGN_CALLS_MAX: usize = 64;

/// When keys are asked for again after that has failed, as upstream.
pub const FETCH_AGAIN: Duration = Duration::from_secs(10);

/// Keys are not asked for more often than that, however many tokens name keys that nobody knows: so often may
/// whoever has no credentials make the signer be asked. Who names one meanwhile waits.
pub const FETCH_EVERY_MIN: Duration = Duration::from_secs(1);

/// Tokens that wait for keys at once, some 40 KiB each with their requests: 40 MiB. One more is refused, as
/// one whose key is not known.
pub const LOOKUPS_MAX: usize = 1024;

/// How long one of them waits; then it is refused.
pub const LOOKUP_MAX: Duration = Duration::from_secs(10);

/// What a signer says of when its keys are to be read again counts as no more than that: a year, so that
/// times can be told.
pub const REFRESH_HINT_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Longest answer with keys; with 1,024 keys of RSA with 2048 bits it takes half of it. A longer one is an
/// error. Upstream takes 4 MiB.
pub const KEYS_BYTES_MAX: usize = 1 << 20;

/// Keys that are believed. A token's is looked for among all of them; one more makes an answer an error.
pub const KEYS_MAX: usize = 1024;

/// Longest name of a key, as upstream.
pub const KEY_ID_BYTES_MAX: usize = 1024;

/// Longest signed header, as it stands in a token: that of a key with the longest name, each of whose bytes
/// may take six of JSON, takes two thirds of it.
pub const HEADER_BYTES_MAX: usize = 12 << 10;

/// Longest signature, as it stands there: one of RSA with 8192 bits, which takes 1,366.
pub const SIGNATURE_BYTES_MAX: usize = 2 << 10;

/// Longest answer with those two, and one with what it can do.
pub const SIGN_BYTES_MAX: usize = 16 << 10;
const _: () = assert!(SIGN_BYTES_MAX >= HEADER_BYTES_MAX + SIGNATURE_BYTES_MAX);
pub const METADATA_BYTES_MAX: usize = 1 << 10;

/// Of a name that makes no sense, so much is told.
pub const SAID_CHARS_MAX: usize = 64;
