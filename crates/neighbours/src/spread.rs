//! Which connections a server lets go, as a machine: those above its share, slowly; and those that it refused
//! while others have room.
//!
//! In: what it holds, what it has heard, and the time. Out: how many go now. Never: chooses which.
//!
//! Share: the mean over all servers that say what they hold. A server begins to let go when it holds far
//! more, a quarter or what chance alone would not give it, or when another holds far less; and ends when it
//! holds little more. Between the two it goes on with what it does, so that two servers do not pass clients
//! to and fro. It lets go a part of what is above its share each second, so that it comes to its end slowly.
//!
//! Room: those who are let go come to whom a balancer leads them. In the worst case all of them, and those of
//! all other servers, come to the neighbour with the least room. So each lets go at most its part of that,
//! within the time that it takes until the neighbours' words tell of those who came.
//!
//! Futile: where those who were let go are led back here each time, the machine rests, longer each time.

use std::collections::VecDeque;

use crate::Moment;
use crate::heard::Heard;
use crate::limits::{
    REFUSED_PER_SECOND_MAX, REST, ROUND, SHARE_PER_SECOND_MAX, SPREAD_OVER_SECONDS, STEP, TRANSIT,
};

/// What this server holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Open connections on which a client was authenticated.
    pub connections: u64,
    /// Those of them that were told to go and are open yet.
    pub going: u64,
}

/// See the module's doc.
#[derive(Debug)]
pub struct Spread {
    phase: Phase,
    // How long the next rest is.
    rest: Moment,
    next_step: Moment,
    sent: Sent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It holds its share, or little more.
    Even,
    /// It lets go. `staying` is what it held when the round began.
    Above { since: Moment, staying: u64, moved: u64 },
    /// Those who were let go came back.
    Rests { until: Moment },
}

/// What each server would hold.
#[derive(Clone, Copy, Debug)]
struct Share {
    mean: u64,
    // What the neighbour with the fewest holds.
    least: u64,
    others: u64,
}

/// How many were let go not long ago.
#[derive(Debug, Default)]
struct Sent {
    // second -> connections, oldest first; a second apart, within TRANSIT
    by_second: VecDeque<(u64, u64)>,
}

impl Default for Spread {
    fn default() -> Spread {
        Spread { phase: Phase::Even, rest: REST.0, next_step: Moment::ZERO, sent: Sent::default() }
    }
}

impl Spread {
    /// How many connections go now so that this server comes to its share. To be called each [`STEP`] or more
    /// often.
    pub fn step(&mut self, now: Moment, own: Own, heard: &Heard) -> u64 {
        if now < self.next_step {
            return 0;
        }
        self.next_step = now + STEP;
        let staying = own.connections.saturating_sub(own.going);
        let Some(share) = Share::of(staying, heard) else {
            self.phase = Phase::Even;
            return 0;
        };
        self.phase = self.turned(now, staying, &share);
        let Phase::Above { moved, .. } = &mut self.phase else { return 0 };
        let above = staying.saturating_sub(share.mean) / SPREAD_OVER_SECONDS;
        let going = above.clamp(1, SHARE_PER_SECOND_MAX).min(self.sent.left(now, heard));
        *moved += going;
        self.sent.note(now, going);
        going
    }

    /// Whether a connection on which a request was refused goes: where others have room, and at a limited
    /// rate.
    pub fn refused(&mut self, now: Moment, heard: &Heard) -> bool {
        let goes = self.sent.in_second(now) < REFUSED_PER_SECOND_MAX && self.sent.left(now, heard) > 0;
        if goes {
            self.sent.note(now, 1);
        }
        goes
    }

    /// What it does from now on.
    fn turned(&mut self, now: Moment, staying: u64, share: &Share) -> Phase {
        match self.phase {
            Phase::Rests { until } if now < until => self.phase,
            Phase::Even | Phase::Rests { .. } => match share.is_far_from(staying) {
                true => Phase::Above { since: now, staying, moved: 0 },
                false => Phase::Even,
            },
            Phase::Above { .. } if share.is_near(staying) => {
                self.rest = REST.0;
                Phase::Even
            }
            Phase::Above { since, staying: before, moved } if now >= since + ROUND => {
                // Others may have come meanwhile, but not in the place of nearly all who went.
                let is_futile = moved > 0 && before.saturating_sub(staying) < moved / 4;
                if !is_futile {
                    return Phase::Above { since: now, staying, moved: 0 };
                }
                let until = now + self.rest;
                self.rest = (2 * self.rest).min(REST.1);
                Phase::Rests { until }
            }
            Phase::Above { .. } => self.phase,
        }
    }
}

impl Share {
    /// None where there is no other server that says what it holds.
    fn of(staying: u64, heard: &Heard) -> Option<Share> {
        let held = || heard.words().map(|word| word.connections);
        let (least, others) = (held().min()?, held().count() as u64);
        Some(Share { mean: (staying + held().sum::<u64>()) / (others + 1), least, others })
    }

    /// Whether a server that holds so much begins to let go.
    fn is_far_from(&self, staying: u64) -> bool {
        // Three times what clients that choose at random are apart.
        let far = (self.mean / 4).max(3 * self.mean.isqrt() + 5);
        staying > self.mean + far || (self.least + far < self.mean && !self.is_near(staying))
    }

    /// Whether one that lets go has come to its end. When all others have, the last one is no more than a
    /// fifth below.
    fn is_near(&self, staying: u64) -> bool {
        staying <= self.mean + (self.mean / (5 * self.others).max(10)).max(self.mean.isqrt())
    }
}

impl Sent {
    /// How many more may go: this server's part of the least room, without those who are on their way. All
    /// servers but the one that has the room may send to it.
    fn left(&mut self, now: Moment, heard: &Heard) -> u64 {
        let senders = heard.words().count().max(1) as u64;
        (heard.least_room() / senders).saturating_sub(self.on_their_way(now))
    }

    fn note(&mut self, now: Moment, connections: u64) {
        let second = now.as_secs();
        match self.by_second.back_mut() {
            Some((last, sum)) if *last == second => *sum += connections,
            _ => self.by_second.push_back((second, connections)),
        }
    }

    fn in_second(&self, now: Moment) -> u64 {
        self.by_second.back().map_or(0, |(second, sum)| if *second == now.as_secs() { *sum } else { 0 })
    }

    fn on_their_way(&mut self, now: Moment) -> u64 {
        // A second longer, as seconds are begun.
        while self.by_second.front().is_some_and(|(second, _)| second + TRANSIT.as_secs() < now.as_secs()) {
            self.by_second.pop_front();
        }
        self.by_second.iter().map(|(_, sum)| sum).sum()
    }
}
