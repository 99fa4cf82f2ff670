//! What lists took, beside what was foreseen: of those that are alike.
//!
//! In: what a list took that was made for one reader, all of it. Out: what one like it takes here. Never:
//! less than a fourth or more than four times of the price, whatever was measured; less than the price, where
//! none like it was measured.
//!
//! Prices are of one machine and of objects that are alike. Another machine is slower, and other objects have
//! more in their metadata: what was foreseen of 20,000 pods of 8 KB by their metadata was two fifths of what
//! they took.
//!
//! Lists are alike that are of one resource, are answered and found in one way, and have prices within four
//! times of each other. So whatever selectors a client comes with, nothing is learned from them of lists
//! without, nor from cheap ones that a costly one would be cheap; and of those that are alike each one that
//! is measured moves the factor towards itself.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use forebay_apimachinery::GroupVersionResource;
use forebay_reads::{FoundBy, Rendering, Weight, sent_bytes};
use forebay_transport::picos_to_send_byte;

use super::price::{self, Cost};
use crate::limits::{LEARNED_BYTES_MAX, LEARNED_FACTOR_MAX, LEARNED_MAX};

/// What was learned. Cheap to clone.
#[derive(Clone, Default)]
pub struct Learned(Arc<Mutex<BTreeMap<ListSubject, Factors>>>);

/// What takes alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListSubject {
    resource: GroupVersionResource,
    rendering: Rendering,
    found: FoundBy,
    size: u32,
}

/// By the index and the sizes of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListPrice {
    /// To find it, to make it and to send it.
    pub cpu: Duration,
    /// What is sent of it.
    pub bytes: usize,
}

/// What is expected of a list, by its price and by what those like it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListForeseen {
    pub made: Duration,
    /// Where it is there already, or is made for another.
    pub sent: Duration,
}

/// How many times of what is foreseen lists took.
#[derive(Clone, Copy, Debug)]
struct Factors {
    cpu: f64,
    bytes: f64,
}

impl ListPrice {
    /// - `cost`: what such a list costs.
    pub fn of(cost: Cost, weight: Weight, rendering: Rendering) -> ListPrice {
        ListPrice { cpu: cost.price.cpu, bytes: sent_bytes(weight, rendering) }
    }

    /// What lists of that price are like it.
    pub fn subject(
        self,
        resource: GroupVersionResource,
        rendering: Rendering,
        found: FoundBy,
    ) -> ListSubject {
        ListSubject { resource, rendering, found, size: self.cpu.as_micros().max(1).ilog2() / 2 }
    }
}

impl ListSubject {
    /// The same of all sizes.
    fn of_all_sizes(&self) -> RangeInclusive<ListSubject> {
        let of = |size| ListSubject { size, ..self.clone() };
        of(0)..=of(u32::MAX)
    }
}

impl Learned {
    /// What such a list takes here.
    pub fn foreseen(&self, subject: &ListSubject, price: ListPrice) -> ListForeseen {
        let factors = self.factors(subject);
        let bytes = (price.bytes as f64 * factors.bytes) as usize;
        let made = price.cpu.mul_f64(factors.cpu);
        ListForeseen { made, sent: made.min(price::list_that_is_made(bytes, picos_to_send_byte())) }
    }

    /// A list took so much, and had so many bytes. The first of its like is taken for what all are; each that
    /// follows moves that by a fourth of the way.
    pub fn note(&self, subject: &ListSubject, price: ListPrice, took: Duration, bytes: usize) {
        let within = |factor: f64, most: f64| factor.clamp(1.0 / most, most);
        let cpu = took.as_secs_f64() / price.cpu.as_secs_f64().max(1e-6);
        let bytes = bytes as f64 / price.bytes.max(1) as f64;
        let new = Factors { cpu: within(cpu, LEARNED_FACTOR_MAX), bytes: within(bytes, LEARNED_BYTES_MAX) };
        let mut all = self.all();
        if let Some(known) = all.get_mut(subject) {
            known.cpu += (new.cpu - known.cpu) / 4.0;
            known.bytes += (new.bytes - known.bytes) / 4.0;
        } else if all.len() < LEARNED_MAX {
            all.insert(subject.clone(), new);
        }
    }

    /// Where none like it was measured, those of the nearest size say whether it takes more than its price.
    fn factors(&self, subject: &ListSubject) -> Factors {
        let all = self.all();
        if let Some(known) = all.get(subject) {
            return *known;
        }
        let nearest = all.range(subject.of_all_sizes()).min_by_key(|(of, _)| of.size.abs_diff(subject.size));
        let none = Factors { cpu: 1.0, bytes: 1.0 };
        nearest.map_or(none, |(_, near)| Factors { cpu: near.cpu.max(1.0), ..*near })
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<ListSubject, Factors>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use forebay_reads::Making;

    use super::*;

    const FOUND: [FoundBy; 4] = [FoundBy::Whole, FoundBy::Page, FoundBy::ByIndex, FoundBy::ByLooking];

    fn pods() -> GroupVersionResource {
        GroupVersionResource::new("", "v1", "pods")
    }

    fn rendering(making: Making) -> Rendering {
        Rendering { making, gzip_bytes_min: None }
    }

    /// A list of so many milliseconds, and as many times 10 kB.
    fn of(millis: u64) -> ListPrice {
        ListPrice { cpu: Duration::from_millis(millis), bytes: millis as usize * 10_000 }
    }

    fn subject(making: Making, found: FoundBy, price: ListPrice) -> ListSubject {
        price.subject(pods(), rendering(making), found)
    }

    /// What is foreseen of a list of pods as they are stored, of its price.
    fn factor(learned: &Learned, found: FoundBy, price: ListPrice) -> f64 {
        let made = learned.foreseen(&subject(Making::Stored, found, price), price).made;
        made.as_nanos() as f64 / price.cpu.as_nanos() as f64
    }

    #[test]
    fn what_such_lists_took_is_foreseen_of_the_next_one_and_of_no_other() {
        let (learned, ten) = (Learned::default(), of(10));
        let [rows, stored] = [Making::Row, Making::Stored].map(|it| subject(it, FoundBy::Whole, ten));
        let made = |subject: &ListSubject| learned.foreseen(subject, ten).made.as_micros();
        assert_eq!((made(&rows), made(&stored)), (10_000, 10_000));
        learned.note(&rows, ten, 2 * ten.cpu, ten.bytes);
        assert_eq!((made(&rows), made(&stored)), (20_000, 10_000));
        for _ in 0..20 {
            learned.note(&rows, ten, 3 * ten.cpu, ten.bytes);
        }
        assert!((29_900..30_100).contains(&made(&rows)), "{}", made(&rows));
        learned.note(&stored, ten, 1_000 * ten.cpu, ten.bytes);
        assert_eq!(factor(&learned, FoundBy::Whole, ten), LEARNED_FACTOR_MAX);
    }

    #[test]
    fn no_selectors_make_what_is_costly_cheap() {
        let learned = Learned::default();
        // Each takes next to nothing of what was foreseen of it, whatever that was, and however it was found.
        for found in [FoundBy::Page, FoundBy::ByIndex, FoundBy::ByLooking] {
            for millis in [1, 2, 5, 20, 100] {
                let cheap = subject(Making::Stored, found, of(millis));
                (0..1_000).for_each(|_| learned.note(&cheap, of(millis), Duration::ZERO, 0));
            }
        }
        // A list of everything is foreseen by its price, and a costly one of those by theirs.
        assert!([1, 100, 1_000].iter().all(|millis| factor(&learned, FoundBy::Whole, of(*millis)) >= 1.0));
        for found in FOUND {
            assert!(factor(&learned, found, of(1_000)) >= 1.0, "{found:?}");
            // Those that are alike are still a fourth of what they cost,
            assert!(factor(&learned, found, of(100)) >= 1.0 / LEARNED_FACTOR_MAX);
        }
        // and soon all of it, by whoever sends them.
        let costly = subject(Making::Stored, FoundBy::ByLooking, of(100));
        (0..8).for_each(|_| learned.note(&costly, of(100), of(100).cpu, of(100).bytes));
        assert!(factor(&learned, FoundBy::ByLooking, of(100)) > 0.9);
    }

    #[test]
    fn of_a_size_that_none_had_it_is_foreseen_what_the_nearest_took_if_that_is_more() {
        let learned = Learned::default();
        for (millis, times) in [(2, 3), (200, 2)] {
            let known = subject(Making::Stored, FoundBy::Whole, of(millis));
            learned.note(&known, of(millis), times * of(millis).cpu, of(millis).bytes);
        }
        assert_eq!([1, 3, 1_000].map(|millis| factor(&learned, FoundBy::Whole, of(millis))), [3.0, 3.0, 2.0]);
        assert_eq!(factor(&learned, FoundBy::Page, of(2)), 1.0, "found in another way");
    }

    #[test]
    fn what_is_there_takes_what_it_takes_to_send_as_much_as_such_lists_had() {
        let (learned, many) = (Learned::default(), of(1_000));
        let rows = subject(Making::Row, FoundBy::Whole, many);
        let before = learned.foreseen(&rows, many);
        assert!(before.sent < before.made / 10 && before.sent > price::REQUEST, "{before:?}");
        learned.note(&rows, many, many.cpu, 8 * many.bytes);
        let after = learned.foreseen(&rows, many);
        assert_eq!(after.made, before.made);
        // Other tests send meanwhile, which takes a byte longer here.
        let each = |bytes: usize| price::list_that_is_made(bytes, 1_000);
        assert!(after.sent > 2 * before.sent.min(each(many.bytes)), "{after:?} after {before:?}");
        // Nobody takes longer for what is there than for making it.
        learned.note(&rows, many, Duration::ZERO, usize::MAX);
        let foreseen = learned.foreseen(&rows, many);
        assert!(foreseen.sent <= foreseen.made);
    }

    #[test]
    fn so_many_are_kept_and_no_more() {
        let learned = Learned::default();
        for number in 0..LEARNED_MAX + 10 {
            let resource = GroupVersionResource::new("", "v1", &format!("r{number}"));
            let one = of(1).subject(resource, rendering(Making::Row), FoundBy::Whole);
            learned.note(&one, of(1), of(2).cpu, 1);
        }
        assert_eq!(learned.all().len(), LEARNED_MAX);
    }
}
