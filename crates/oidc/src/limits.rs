//! Every limit of this crate, and what happens there.

/// Longest token that is looked into: RSA with 4096 bits takes 700 B of it, 200 groups of 36 B 8 KiB. A
/// longer one counts as nobody's.
pub const TOKEN_BYTES_MAX: usize = 32 << 10;

/// Longest token that a source of distributed claims answers with: 2,500 groups of 36 B. A longer one is
/// refused.
pub const CLAIM_BYTES_MAX: usize = 128 << 10;

/// Issuers of one configuration, as upstream has it. More of them are refused.
pub const ISSUERS_MAX: usize = 64;

/// Keys of one provider: a token that names none is tried with each, at 30 us or so for RSA: 4 ms; with those
/// that are slow by [`SLOW_TRIES_MAX`]. A set with more is refused.
pub const KEYS_MAX: usize = 128;

/// Keys on P-384, or on P-521, that a token is tried with which names none: one takes 2 ms, or 4, where one
/// of RSA takes 34 us, in a build for tests. With others of its provider's it is not tried; one that names
/// its key is.
pub const SLOW_TRIES_MAX: usize = 4;

/// Bits of an RSA key: what `ring` verifies with. A key of other sizes is passed over.
pub const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

/// What one expression may cost, as upstream has it for a call.
pub const EXPRESSION_COST_MAX: u64 = forebay_cel::limits::PER_CALL_COST_MAX;

/// Levels of claims, or of a user, whose members are there by names that can be selected as well: what is
/// seen is four times as large at most.
pub const ESCAPED_DEPTH: u32 = 2;
