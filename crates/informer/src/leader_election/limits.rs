//! How long leadership lasts, and how often it is asked for.
//!
//! In: nothing. Out: constants, each with its reason. Never: read from outside.

use forebay_rt::Duration;

/// How long a lease that nobody was seen to renew is left alone. As client-go's; what a leader writes into
/// the lease.
pub const LEASE_DURATION: Duration = Duration::from_secs(15);

/// How long a leader leads after it last asked for a renewal that was granted. As client-go's. What is left
/// to the lease duration is what clocks may differ in speed: 15 s / 10 s, half as fast again.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);

/// Between two attempts, of a leader as of a candidate. As client-go's: four renewals may fail before
/// leadership ends.
pub const RETRY_PERIOD: Duration = Duration::from_secs(2);

/// A candidate waits longer than the period by up to this share of it, so that candidates do not ask in step.
/// As client-go's.
pub const JITTER: f64 = 1.2;

/// So many requests may take the whole of the renew deadline: one that is not answered leaves time for
/// another one. As controller-runtime does for the client of its elector.
pub const REQUESTS_A_DEADLINE: u32 = 2;

/// Seconds that a lease lasts that was released, until it is taken. As client-go's: 0 is no valid duration.
pub const RELEASED_SECONDS: i32 = 1;

/// Writes of a release, each after another look at the lease. The second one is for a renewal that was under
/// way when the release was wanted; after the third the lease is left to run out.
pub const RELEASES_MAX: u32 = 3;

const _: () = assert!(LEASE_DURATION.as_millis() > RENEW_DEADLINE.as_millis());
const _: () = assert!(RENEW_DEADLINE.as_millis() > RETRY_PERIOD.as_millis() * 12 / 10);
const _: () = assert!(RELEASES_MAX > 0 && REQUESTS_A_DEADLINE > 0);
