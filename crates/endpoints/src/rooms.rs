//! Who waits for whom: a [`Room`] for each class of requests.
//!
//! In: what a request costs ([`crate::cost`]), and how much memory is left ([`crate::memory`]). Out: room, or
//! 429. Lists never wait for bodies, nor small writes for large ones, and GETs only for other answers that
//! nobody reads. Watches that have their state, and what is small, ask for nothing.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;

use forebay_apimachinery::accept::Media;
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_room::{AwayRoom, Held, Limit, Purse, Room, Totals};
use forebay_rt::Clock;

use crate::cost;
use crate::limits::{
    ANSWER_LARGE_BYTES, ANSWERS_ROOM_BYTES, AUDIT_ROOM_BYTES, AUDIT_ROOM_BYTES_MIN, AUTHORIZING_BYTES,
    AWAY_ROOM_BYTES, BODIES_ROOM_BYTES, BODY_COST_MAX, LISTS_ROOM_BYTES, ROOM_RETRY_SECONDS_MAX,
    WRITES_ROOM_BYTES, WRITES_ROOM_BYTES_MIN,
};
use crate::negotiate::Form;
use crate::status::Failure;

/// Who is waited for where it is not known whether somebody may.
const AUTHORIZER: &str = "an authorizer";

/// Every class of requests. Cheap to clone.
#[derive(Clone)]
pub struct Rooms {
    /// Lists, and watches in their initial state.
    pub lists: Room,
    /// Answers that are there whole.
    pub answers: Room,
    /// Large bodies, the trees they become, and the objects made of them.
    pub bodies: Room,
    /// The same of small ones.
    pub writes: Room,
    /// What bodies of both sorts became, while somebody else is asked about them.
    pub away: AwayRoom,
    /// What an audit log notes, until it is kept. Nobody waits for it.
    pub audit: Room,
    refused: Arc<AtomicU32>,
}

impl Rooms {
    pub fn new(clock: Clock) -> Rooms {
        let room = |bytes| Room::new(clock.clone(), Limit::Loose(bytes));
        Rooms {
            lists: room(LISTS_ROOM_BYTES),
            answers: room(ANSWERS_ROOM_BYTES),
            bodies: room(BODIES_ROOM_BYTES),
            writes: room(WRITES_ROOM_BYTES),
            away: AwayRoom::new(AWAY_ROOM_BYTES),
            audit: room(AUDIT_ROOM_BYTES),
            refused: Arc::default(),
        }
    }

    /// Shares out what memory is left under a limit; `None` when what is expensive is to be refused.
    pub fn set(&self, left: Option<usize>) {
        let share = |parts: usize, max: usize| (left.unwrap_or(0) / 16 * parts).min(max);
        let expensive = |bytes: usize| if left.is_some() { Limit::Strict(bytes) } else { Limit::Closed };
        self.lists.set_limit(expensive(share(4, LISTS_ROOM_BYTES)));
        self.bodies.set_limit(match share(6, usize::MAX) {
            // The largest may go alone.
            room if room >= BODY_COST_MAX => Limit::Loose(BODIES_ROOM_BYTES),
            room => expensive(room.min(BODIES_ROOM_BYTES)),
        });
        self.answers.set_limit(Limit::Strict(share(2, ANSWERS_ROOM_BYTES)));
        self.writes.set_limit(Limit::Strict(share(2, WRITES_ROOM_BYTES).max(WRITES_ROOM_BYTES_MIN)));
        self.away.set_limit(share(1, AWAY_ROOM_BYTES).max(WRITES_ROOM_BYTES_MIN));
        self.audit.set_limit(Limit::Strict(share(1, AUDIT_ROOM_BYTES).max(AUDIT_ROOM_BYTES_MIN)));
    }

    /// Room for `json` in the form that it is answered in, and for the tree that this takes, at once or not
    /// at all. Plain JSON is there already, and needs none.
    pub fn try_to_show(&self, json: &[u8], form: Form) -> Option<(Option<Held>, Option<Held>)> {
        if form.is_plain_json() {
            return Some((None, None));
        }
        let bytes = cost::answer(json, form);
        let answer = match form.media {
            Media::Json | Media::Yaml if bytes > ANSWER_LARGE_BYTES => self.answers.try_take(bytes)?,
            _ => self.answers.charge(bytes),
        };
        let tree = match form.media {
            Media::Yaml | Media::Protobuf if json.len() <= ANSWER_LARGE_BYTES => None,
            Media::Json => None,
            Media::Yaml => Some(self.bodies.try_take(cost::body(json, None))?),
            // JSON is no protobuf.
            Media::Protobuf => Some(self.bodies.charge(cost::body(json, None))),
        };
        Some((Some(answer), tree))
    }

    /// The lease of a read that somebody else may be asked about: it is counted among answers, and among
    /// those who wait for that one while it does.
    ///
    /// - `bytes`: what it takes at least.
    ///
    /// # Errors
    /// 429 when there is no room for that.
    pub async fn lease_of_read(&self, user: &str, bytes: usize) -> Result<Lease, Failure> {
        let held = match bytes {
            0 => self.answers.charge(0),
            bytes => self.answers.take(user, bytes).await.map_err(|_full| self.full())?,
        };
        Ok(Lease::new(Purse::new(self.answers.clone(), held, None, self.away.clone()), bytes))
    }

    /// What `decision` gives, which somebody else may have to be asked for. A request that waits for them has
    /// no seat and no turn yet: what it holds is counted among what waits for others.
    ///
    /// # Errors
    /// 429 when too many wait for it.
    pub async fn decided<T>(&self, mut decision: Pin<&mut impl Future<Output = T>>) -> Result<T, Failure> {
        // Most decisions are there at once.
        if let Poll::Ready(decided) = poll_fn(|cx| Poll::Ready(decision.as_mut().poll(cx))).await {
            return Ok(decided);
        }
        let gone = self.away.go(&AUTHORIZER.into(), AUTHORIZING_BYTES);
        let _gone = gone.ok_or_else(|| self.full_behind(AUTHORIZER))?;
        Ok(decision.await)
    }

    /// Whether somebody waits for what readers hold, or they hold more than they may.
    pub fn is_waited_for(&self) -> bool {
        let is_short = |totals: Totals| totals.waiting > 0 || totals.held > totals.limit;
        [&self.lists, &self.answers].iter().any(|room| is_short(room.totals()))
    }

    /// What is answered when there is no room. When to come back is told in turn, so that those who were
    /// refused together do not come back together.
    pub fn full(&self) -> Failure {
        Failure::for_want_of_memory(self.refused("Too many requests, please try again later."))
    }

    /// The same where it is `whom` that too many wait for.
    pub fn full_behind(&self, whom: &str) -> Failure {
        self.refused(&format!("too many requests wait for {whom} to answer")).into()
    }

    fn refused(&self, why: &str) -> Status {
        let turn = self.refused.fetch_add(1, Ordering::Relaxed);
        Status::new(Reason::TooManyRequests, why).retry_after(1 + turn % ROOM_RETRY_SECONDS_MAX)
    }

    /// Each class by its name in the metrics.
    pub fn totals(&self) -> [(&'static str, Totals); 6] {
        [
            ("answers", self.answers.totals()),
            ("audit", self.audit.totals()),
            ("away", self.away.totals()),
            ("bodies", self.bodies.totals()),
            ("lists", self.lists.totals()),
            ("writes", self.writes.totals()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;
    use forebay_room::limits::ROOM_ONE_BYTES;

    #[tokio::test(start_paused = true)]
    async fn a_share_of_what_is_left_goes_to_each_and_small_writes_keep_some() {
        let rooms = Rooms::new(Clock::system());
        let limits = |rooms: &Rooms| rooms.totals().map(|(_, totals)| totals.limit >> 20);
        assert_eq!(limits(&rooms), [32, 64, 64, 128, 64, 32]);
        rooms.set(Some(1 << 40));
        assert_eq!(limits(&rooms), [32, 64, 64, 128, 64, 32]);
        assert!(rooms.bodies.take("a", BODY_COST_MAX).await.is_ok(), "the largest goes alone");
        rooms.set(Some(80 << 20));
        assert!(rooms.bodies.take("a", 31 << 20).await.is_err(), "it never fits, and nobody waits for it");
        assert_eq!(limits(&rooms), [10, 5, 5, 30, 20, 10]);
        rooms.set(Some(0));
        assert_eq!(limits(&rooms), [0, 4, 4, 0, 0, 4]);
        assert!(rooms.lists.take("a", ROOM_ONE_BYTES).await.is_ok(), "one at a time");
        rooms.set(None);
        assert!(rooms.lists.take("a", 1).await.is_err() && rooms.bodies.take("a", 1).await.is_err());
        assert!(rooms.answers.take("a", 1).await.is_ok() && rooms.writes.take("a", 1 << 20).await.is_ok());
    }

    #[tokio::test]
    async fn those_who_wait_for_an_authorizer_hold_a_share_and_one_more_is_refused_in_its_name() {
        let rooms = Rooms::new(Clock::system());
        assert_eq!(rooms.decided(pin!(async { 1 })).await, Ok(1));
        assert_eq!(rooms.away.totals().waited, 0, "what is there at once waits for nobody");
        let waiting = || Box::pin(async { rooms.decided(pin!(std::future::pending::<()>())).await });
        let mut all = Vec::new();
        let refused = loop {
            let mut one = waiting();
            match poll_fn(|cx| Poll::Ready(one.as_mut().poll(cx))).await {
                Poll::Pending => all.push(one),
                Poll::Ready(told) => break told.expect_err("nobody decides"),
            }
        };
        assert!(all.len() >= 1_000 && all.len() * AUTHORIZING_BYTES <= AWAY_ROOM_BYTES / 2, "{}", all.len());
        assert_eq!(refused.status.reason, Reason::TooManyRequests);
        assert_eq!(refused.status.message, "too many requests wait for an authorizer to answer");
        // What needs nobody is decided all the same, and others find room to wait for somebody else.
        assert_eq!(rooms.decided(pin!(async { 1 })).await, Ok(1));
        assert!(rooms.away.go(&"another".into(), 1 << 20).is_some());
        drop(all);
        assert_eq!(rooms.away.totals().held, 0);
    }

    #[test]
    fn who_is_refused_is_told_when_to_come_back_in_turn() {
        let rooms = Rooms::new(Clock::system());
        let seconds: Vec<u32> =
            (0..ROOM_RETRY_SECONDS_MAX + 1).map(|_| rooms.full().status.retry_after_seconds).collect();
        assert_eq!((seconds[0], seconds[1], seconds.last()), (1, 2, Some(&1)));
        assert_eq!(rooms.full().status.reason, Reason::TooManyRequests);
    }
}
