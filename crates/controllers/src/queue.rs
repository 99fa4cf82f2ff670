//! Keys that there is work for: each once, however often it is added; none twice at a time; later when it
//! failed.
//!
//! In: keys, and the verdicts on them. Out: the key to work on next. Owned by one controller's task; asks
//! nobody for the time. Holds at most one entry a key, so that its bound is the number of objects.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::Hash;

use forebay_rt::{Duration, Instant, Random};

use crate::limits;

/// What became of a piece of work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Done,
    /// To be tried again, later each time: it failed.
    Retry(String),
    /// To be looked at again, later each time: others have something to do first.
    Wait,
    /// Done until then.
    Until(Instant),
}

/// Keys to work on.
pub struct Queue<K> {
    // key -> its entry; what was done without failure has none
    entries: HashMap<K, Entry>,
    // In the order of arrival; exactly the keys that are Ready.
    ready: VecDeque<K>,
    // When, and what; exactly the keys that are Due.
    due: BTreeSet<(Instant, K)>,
}

struct Entry {
    place: Place,
    // Rounds without success so far.
    rounds: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Ready,
    Due(Instant),
    Busy,
    /// Added while it was worked on.
    BusyAgain,
    /// The same, for later.
    BusyUntil(Instant),
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    pub fn new() -> Queue<K> {
        Queue { entries: HashMap::new(), ready: VecDeque::new(), due: BTreeSet::new() }
    }

    /// There is work for `key`, now.
    pub fn add(&mut self, key: K) {
        match self.entries.get_mut(&key).map(|entry| &mut entry.place) {
            None => {
                self.entries.insert(key.clone(), Entry { place: Place::Ready, rounds: 0 });
                self.ready.push_back(key);
            }
            Some(place @ Place::Due(_)) => {
                let Place::Due(at) = std::mem::replace(place, Place::Ready) else { return };
                self.due.remove(&(at, key.clone()));
                self.ready.push_back(key);
            }
            Some(place @ (Place::Busy | Place::BusyUntil(_))) => *place = Place::BusyAgain,
            Some(Place::Ready | Place::BusyAgain) => {}
        }
    }

    /// There is work for `key` at `at`, unless there is some before.
    pub fn add_at(&mut self, key: K, at: Instant) {
        match self.entries.get_mut(&key).map(|entry| &mut entry.place) {
            None => {
                self.entries.insert(key.clone(), Entry { place: Place::Due(at), rounds: 0 });
                self.due.insert((at, key));
            }
            Some(place @ Place::Busy) => *place = Place::BusyUntil(at),
            Some(_) => {}
        }
    }

    /// The next key to work on; it is out until [`Queue::finish`].
    pub fn next(&mut self, now: Instant) -> Option<K> {
        while let Some((_, key)) = self.due.first().filter(|(at, _)| *at <= now).cloned() {
            self.add(key);
        }
        let key = self.ready.pop_front()?;
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.place = Place::Busy;
        }
        Some(key)
    }

    /// When the next key is due that is not ready yet.
    pub fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes back a key that [`Queue::next`] gave out.
    pub fn finish(&mut self, key: K, verdict: &Verdict, now: Instant, random: &Random) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let again = entry.place != Place::Busy;
        let bounds = match (verdict, entry.place) {
            (Verdict::Done | Verdict::Until(_), Place::BusyAgain) => {
                (entry.place, entry.rounds) = (Place::Ready, 0);
                return self.ready.push_back(key);
            }
            (Verdict::Done, Place::BusyUntil(at)) => {
                *entry = Entry { place: Place::Due(at), rounds: 0 };
                self.due.insert((at, key));
                return;
            }
            (Verdict::Until(at), place) => {
                let at = if let Place::BusyUntil(other) = place { other.min(*at) } else { *at };
                *entry = Entry { place: Place::Due(at), rounds: 0 };
                self.due.insert((at, key));
                return;
            }
            (Verdict::Done, _) => {
                self.entries.remove(&key);
                if self.entries.is_empty() {
                    // A storm is over.
                    self.entries.shrink_to(limits::QUEUE_KEPT);
                    self.ready.shrink_to(limits::QUEUE_KEPT);
                }
                return;
            }
            (Verdict::Retry(_), _) => limits::BACKOFF,
            (Verdict::Wait, _) => limits::CONTENT_WAIT,
        };
        // What happened to it meanwhile does not make a failing key run in circles: it waits all the same.
        let rounds = if again { entry.rounds.min(1) } else { entry.rounds };
        let at = now + pause(bounds, rounds, random);
        *entry = Entry { place: Place::Due(at), rounds: rounds.saturating_add(1) };
        self.due.insert((at, key));
    }
}

/// The first pause, doubled with each round up to the second; of that between half and all.
fn pause((first, last): (Duration, Duration), rounds: u32, random: &Random) -> Duration {
    let whole = first.saturating_mul(1 << rounds.min(20)).min(last);
    let half = whole / 2;
    half + Duration::from_nanos(random.below(half.as_nanos() as u64 + 1))
}

#[cfg(test)]
mod tests {
    use forebay_rt::Clock;

    use super::*;

    fn world() -> (Queue<&'static str>, Instant, Random) {
        (Queue::new(), Clock::system().now(), Random::seeded(1))
    }

    #[test]
    fn a_key_is_worked_on_once_however_often_it_is_added() {
        let (mut queue, now, random) = world();
        queue.add("a");
        queue.add("b");
        queue.add("a");
        assert_eq!((queue.next(now), queue.next(now), queue.next(now)), (Some("a"), Some("b"), None));
        queue.finish("a", &Verdict::Done, now, &random);
        queue.finish("b", &Verdict::Done, now, &random);
        assert!(queue.entries.is_empty() && queue.next(now).is_none());
    }

    #[test]
    fn a_storm_of_keys_leaves_no_room_behind() {
        let (mut queue, now, random) = (Queue::new(), Clock::system().now(), Random::seeded(1));
        (0..10_000).for_each(|key| queue.add(key));
        assert!(queue.entries.capacity() >= 10_000);
        while let Some(key) = queue.next(now) {
            queue.finish(key, &Verdict::Done, now, &random);
        }
        let room = queue.entries.capacity().max(queue.ready.capacity());
        assert!(room <= 2 * limits::QUEUE_KEPT, "{room}");
    }

    #[test]
    fn a_key_added_while_it_is_worked_on_comes_again_afterwards() {
        let (mut queue, now, random) = world();
        queue.add("a");
        assert_eq!(queue.next(now), Some("a"));
        queue.add("a");
        assert_eq!(queue.next(now), None);
        queue.finish("a", &Verdict::Done, now, &random);
        assert_eq!(queue.next(now), Some("a"));
    }

    #[test]
    fn what_fails_comes_later_each_time_up_to_the_limit() {
        let (mut queue, mut now, random) = world();
        queue.add("a");
        let mut last = Duration::ZERO;
        for round in 0..40 {
            assert_eq!(queue.next(now), Some("a"), "round {round}");
            queue.finish("a", &Verdict::Retry("no".into()), now, &random);
            assert_eq!(queue.next(now), None);
            let wait = queue.next_due().expect("due") - now;
            let whole = limits::BACKOFF.0.saturating_mul(1 << round.min(20)).min(limits::BACKOFF.1);
            assert!(wait >= whole / 2 && wait <= whole, "round {round}: {wait:?} of {whole:?}");
            last = wait;
            now += wait;
        }
        assert!(last >= limits::BACKOFF.1 / 2);
    }

    #[test]
    fn an_add_hastens_what_is_due_later() {
        let (mut queue, now, _) = world();
        queue.add_at("a", now + Duration::from_secs(5));
        assert_eq!(queue.next(now), None);
        queue.add("a");
        assert_eq!((queue.next(now), queue.next_due()), (Some("a"), None));
    }

    #[test]
    fn what_is_added_for_later_while_it_is_worked_on_comes_then() {
        let (mut queue, now, random) = world();
        let (soon, later) = (now + Duration::from_secs(5), now + Duration::from_secs(50));
        queue.add("a");
        assert_eq!(queue.next(now), Some("a"));
        queue.add_at("a", soon);
        queue.finish("a", &Verdict::Done, now, &random);
        assert_eq!((queue.next(now), queue.next_due(), queue.next(soon)), (None, Some(soon), Some("a")));
        queue.add_at("a", soon);
        queue.finish("a", &Verdict::Until(later), now, &random);
        assert_eq!((queue.next_due(), queue.next(soon)), (Some(soon), Some("a")));
        queue.finish("a", &Verdict::Until(later), now, &random);
        assert_eq!((queue.next(soon), queue.next_due(), queue.next(later)), (None, Some(later), Some("a")));
        queue.add_at("a", later);
        queue.add("a");
        queue.finish("a", &Verdict::Until(later), now, &random);
        assert_eq!((queue.next(now), queue.next_due()), (Some("a"), None));
    }
}
