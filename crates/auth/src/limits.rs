//! What is looked into of who asks, and what is remembered of it; how often others are asked.

use std::time::Duration;

/// Longest token of a service account that is looked into: an RSA signature takes 342 B, the claims some
/// hundred; a longer one counts as unknown.
pub const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Tokens whose good signature is remembered, in each of two generations: 2 x 4096 x about 50 B = 400 kB.
/// Beyond it the older ones are verified again.
pub const TOKENS_SEEN_MAX: usize = 4096;

/// Calls of a webhook that authorizes for one question; upstream's. Then its failure policy counts.
pub const WEBHOOK_CALLS_MAX: u32 = 5;

/// How long after the first of them the next one comes; half as long again after each; upstream's.
pub const WEBHOOK_PAUSE: Duration = Duration::from_millis(500);

/// Users of whom it is known in which way they acted as somebody else last, in each of two generations: 2 x
/// 5,000 x about 20 B = 200 kB. Of others all ways are tried from the narrowest on.
pub const IMPERSONATORS_KNOWN_MAX: usize = 5_000;

/// Groups, or values of attributes, from which on it is asked first whether somebody may have any of them, as
/// upstream does.
pub const IMPERSONATION_CHECKS_MANY: usize = 4;
