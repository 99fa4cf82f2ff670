//! How often servers tell of themselves, how fast connections go, and what happens at each limit.

use std::time::Duration;

/// How often a server looks whether it has news to tell, and lets some of its connections go.
pub const STEP: Duration = Duration::from_secs(1);

/// A word is written again after so long, though it says the same.
pub const TELL_PERIOD: Duration = Duration::from_secs(5);

/// How often the words of the others are read: a range over a few short keys.
pub const HEAR_PERIOD: Duration = Duration::from_secs(3);

/// How long a word lasts when its server says nothing more; and how long what was heard is believed when
/// nothing more can be read. Then there are no neighbours, and nobody is let go.
pub const WORD_LEASE: Duration = Duration::from_secs(15);

/// Bytes of a word. A longer one is not read: its server is full.
pub const WORD_BYTES_MAX: usize = 256;

/// Neighbours that are listened to, in the order of their names. Where there are more, the rest is passed
/// over, as servers of one store are a handful.
pub const NEIGHBOURS_MAX: usize = 64;

/// A connection that was let go has come to another server within this time, and that server's word tells of
/// it: one [`TELL_PERIOD`], one [`HEAR_PERIOD`], and the rest for the client. Until then it counts against
/// the room that was told of.
pub const TRANSIT: Duration = Duration::from_secs(15);

/// What a server has above its share is let go over about this time: so much of it each second.
pub const SPREAD_OVER_SECONDS: u64 = 30;

/// Connections that are let go in a second at most, to even the shares: each costs its client a TLS
/// handshake, and a request for each watch that it has.
pub const SHARE_PER_SECOND_MAX: u64 = 20;

/// Connections that are let go in a second at most as they were refused: one beyond stays, and obeys its
/// Retry-After here.
pub const REFUSED_PER_SECOND_MAX: u64 = 20;

/// After so long it is looked at whether those who were let go have stayed away.
pub const ROUND: Duration = Duration::from_secs(60);

/// How long nobody is let go after a round in which they all came back, as behind a balancer that always
/// leads a client to the same server: twice as long each time, up to the second.
pub const REST: (Duration, Duration) = (Duration::from_secs(5 * 60), Duration::from_secs(80 * 60));

const _: () = assert!(TRANSIT.as_secs() > TELL_PERIOD.as_secs() + HEAR_PERIOD.as_secs());
const _: () = assert!(WORD_LEASE.as_secs() >= 3 * TELL_PERIOD.as_secs());
