//! How much a room holds of those who wait for it.
//!
//! In: nothing. Out: numbers. Never: a number without what happens there.

use std::time::Duration;

/// A request that takes no more goes on when nothing else of its class does, however little room there is:
/// near the limit things go one at a time.
pub const ROOM_ONE_BYTES: usize = 4 << 20;

/// How long a request waits for room; then it is answered 429. As kube-apiserver's queues: a fraction of its
/// timeout.
pub const ROOM_WAIT: Duration = Duration::from_secs(30);

/// How long a body that is half read waits for room: others that are half read wait as well.
pub const BODY_ROOM_WAIT: Duration = Duration::from_secs(5);

/// Requests that wait for room of one class, in all and of one user, and as many of all who hold something
/// already: about 300 B for the place of each, and under 8 KiB for the request that waits. Beyond it they are
/// answered 429.
pub const ROOM_WAITING_MAX: usize = 4_096;
pub const ROOM_WAITING_PER_USER_MAX: usize = 2_048;

/// What is admitted may grow while it is worked on, beyond the room by one part in so many of it, where
/// memory is not short.
pub const ROOM_GROWTH_SHARE: usize = 8;

/// One request that waits for somebody else counts as no more than this part of the room of those who wait:
/// the rest of what it holds stays counted where it was. It gets in when nobody else is there.
pub const AWAY_WIDEST_PART: usize = 2;

/// Answers of those that are waited for may take one part in so many of that room beyond what one more
/// request would find.
pub const AWAY_GROWTH_SHARE: usize = 8;

/// What a request that waits for somebody else takes besides what it is charged for: its task, its head, its
/// place in tables and on a connection.
pub const AWAY_REQUEST_BYTES: usize = 8 << 10;

const _: () = assert!(ROOM_WAITING_MAX >= ROOM_WAITING_PER_USER_MAX);
