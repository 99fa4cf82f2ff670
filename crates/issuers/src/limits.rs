//! Every limit of this crate, and what happens there.

use forebay_rt::Duration;

/// Longest token that is looked into or shown to a webhook. A longer one counts as nobody's.
pub const TOKEN_BYTES_MAX: usize = forebay_oidc::limits::TOKEN_BYTES_MAX;

/// Longest document of a provider: with 128 keys and their certificates it takes a quarter of it. A longer
/// one is refused as soon as that is known.
pub const DOCUMENT_BYTES_MAX: usize = 1 << 20;

/// How long a provider or a webhook may take to answer, from the first packet to the last byte, as upstream.
pub const ANSWER_MAX: Duration = Duration::from_secs(30);

/// How long a source of distributed claims may take, a turn included: a third of what upstream gives it, so
/// that one that hangs is over while others wait.
pub const SOURCE_MAX: Duration = Duration::from_secs(10);

/// Claims that one source is asked for at once, and how many wait for that; one more is refused. Of a
/// provider's eight servers that is less than [`LOOKUPS_MAX`], half of which are left to others.
pub const SOURCE_CALLS_MAX: usize = 16;
pub const SOURCE_WAITING_MAX: usize = 48;
const _: () = assert!((SOURCE_CALLS_MAX + SOURCE_WAITING_MAX) * ORIGINS_MAX <= LOOKUPS_MAX / 2);

/// Longest answer of a source. 16 x 8 of them at once are 16 MiB of one provider.
pub const CLAIM_BYTES_MAX: usize = forebay_oidc::limits::CLAIM_BYTES_MAX;

/// How long is waited for what others say of a token, attempts and pauses included, as upstream.
pub const LOOKUP_MAX: Duration = Duration::from_secs(30);

/// How long after one attempt to find out where a provider's keys are there is another, as upstream.
pub const DISCOVERY_EVERY: Duration = Duration::from_secs(10);

/// How long is waited for all providers of a new configuration to be there before the old one stays, as
/// upstream.
pub const RELOAD_MAX: Duration = Duration::from_secs(60);

/// Keys are not asked for again sooner than this, however many tokens name keys that nobody knows: so often
/// may whoever has no credentials make a provider be asked. A key that is used within a second of the last
/// look is unknown until the next token.
pub const KEYS_EVERY_MIN: Duration = Duration::from_secs(1);

/// Servers that one provider's documents may be on. More of them, by way of redirects, are refused.
pub const ORIGINS_MAX: usize = 8;

/// Redirects that are followed, as Go's client does.
pub const REDIRECTS_MAX: usize = 10;

/// Tokens that others are asked about at once, about 40 KiB each with an answer of usual length: 40 MiB. One
/// more is refused, which is no word on the token.
pub const LOOKUPS_MAX: usize = 1024;

/// Audiences that a token may be asked for at once: they are copied for whoever is asked. More are refused.
pub const AUDIENCES_MAX: usize = 1024;

/// What is remembered of tokens, in bytes, in each of two generations: 10,000 users with ten groups. Beyond
/// it the older ones are asked about again.
pub const CACHE_BYTES_MAX: usize = 8 << 20;

/// What an answer counts for besides its texts.
pub const CACHE_ENTRY_BYTES: usize = 160;

/// How long a provider's token that was found good is believed without another look, as upstream; not
/// beyond its own end.
pub const JWT_TTL: Duration = Duration::from_secs(10);

/// Attempts to reach a webhook, and the pause after the first, as upstream: each pause is half as long again,
/// and up to a fifth more.
pub const REVIEW_ATTEMPTS_MAX: u32 = 5;
pub const REVIEW_PAUSE: Duration = Duration::from_millis(500);

/// Of what a server says in an error, so much is told.
pub const SAID_BYTES_MAX: usize = 256;
