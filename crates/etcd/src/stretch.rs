//! How far a page's range reaches. etcd goes through all keys of a range to count them, however few it is
//! asked for: pages of 500 that each reach to the end cost it 250 µs a page and thousand keys, 0.1 s at
//! 20,000 keys and minutes at a million. So a page's range ends soon behind where its keys are thought to: at
//! the next text as long as what the keys of a page have in common.
//!
//! In: what the pages before had. Out: where to end the next range. A range that has too few keys costs a
//! question, one that has too many costs etcd time; each answer says which. Never: leaves out a key: who asks
//! goes on from where the range ended.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::messages::RangeResponse;
use crate::range::key_behind;

/// Keys in a range, times those that are asked for, from which on it is too long.
const LONG: u64 = 8;

/// See the module's doc.
#[derive(Debug, Default)]
pub(crate) struct Stretch {
    // Bytes of a range's begin that its end is made of; 0 while ranges reach to the end.
    kept: AtomicUsize,
}

impl Stretch {
    /// Where a range from `from` ends: before `end` or there.
    pub(crate) fn near(&self, from: &[u8], end: &[u8]) -> Vec<u8> {
        let kept = self.kept.load(Ordering::Relaxed).min(from.len());
        let mut near = from[..kept].to_vec();
        // The least text behind all that begin so.
        while near.pop_if(|last| *last == u8::MAX).is_some() {}
        match near.last_mut() {
            Some(last) => *last += 1,
            None => return end.to_vec(),
        }
        if near.as_slice() < end { near } else { end.to_vec() }
    }

    /// Learns from what was found between `from` and `near`, for a page of `limit` keys. Where the next range
    /// begins, unless that was the last.
    pub(crate) fn pass(
        &self,
        from: &[u8],
        near: Vec<u8>,
        end: &[u8],
        limit: u64,
        found: &RangeResponse,
    ) -> Option<Vec<u8>> {
        let is_all = near == end;
        let kept = self.kept.load(Ordering::Relaxed).min(from.len());
        let is_long = found.more && found.count > LONG.saturating_mul(limit);
        let kept = match (is_all, &found.kvs[..]) {
            (true, [first, .., last]) if is_long => common(&first.key, &last.key) + 1,
            (true, _) => 0,
            (false, _) if is_long => kept + 1,
            (false, _) if found.more => kept,
            (false, _) => kept.saturating_sub(1),
        };
        self.kept.store(kept, Ordering::Relaxed);
        match found.kvs.last().filter(|_| found.more) {
            Some(last) => Some(key_behind(&last.key)),
            None => (!is_all).then_some(near),
        }
    }
}

/// Bytes with which both begin.
fn common(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::messages::KeyValue;

    const LIMIT: usize = 100;

    type Name = Box<dyn Fn(u64) -> String>;

    /// What etcd has, and what it was asked.
    struct Asked {
        keys: BTreeSet<Vec<u8>>,
        ranges: usize,
        visited: usize,
    }

    impl Asked {
        fn range(&mut self, from: &[u8], end: &[u8], limit: usize) -> RangeResponse {
            let all: Vec<_> = self.keys.range(from.to_vec()..end.to_vec()).cloned().collect();
            (self.ranges, self.visited) = (self.ranges + 1, self.visited + all.len());
            let kv = |key: &Vec<u8>| KeyValue { key: key.clone().into(), ..KeyValue::default() };
            let kvs = all.iter().take(limit).map(kv).collect();
            RangeResponse {
                kvs,
                count: all.len() as u64,
                more: all.len() > limit,
                ..RangeResponse::default()
            }
        }
    }

    /// Reads all of `names`. Questions and visits a page.
    fn walked(names: impl Iterator<Item = String>) -> (f64, f64) {
        let keys: BTreeSet<_> = names.map(|name| format!("/registry/pods/{name}").into_bytes()).collect();
        let mut asked = Asked { keys, ranges: 0, visited: 0 };
        let (stretch, end) = (Stretch::default(), b"/registry/pods0".as_slice());
        let (mut from, mut told, mut pages) = (b"/registry/pods/".to_vec(), Vec::new(), 0.0);
        loop {
            let near = stretch.near(&from, end);
            assert!(near > from && *near <= *end, "{near:?} behind {from:?}");
            let found = asked.range(&from, &near, LIMIT);
            let next = stretch.pass(&from, near, end, LIMIT as u64, &found);
            pages += found.kvs.len() as f64 / LIMIT as f64;
            told.extend(found.kvs.iter().map(|kv| kv.key.to_vec()));
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(told.iter().eq(&asked.keys), "all, in order, once");
        (asked.ranges as f64 / pages, asked.visited as f64 / pages)
    }

    #[test]
    fn all_keys_are_told_once_and_few_are_counted_again_however_they_are_named() {
        const KEYS: u64 = 60_000;
        let hash = |number: u64| format!("{:012x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16);
        let names: [(&str, Name); 7] = [
            ("numbered", Box::new(|number| format!("default/pod-{number:06}"))),
            ("not padded", Box::new(|number| format!("default/pod-{number}"))),
            ("hashes", Box::new(move |number| format!("default/{}", hash(number)))),
            ("of few deployments", Box::new(move |number| format!("ns/app-{}-{}", number % 7, hash(number)))),
            ("of many namespaces", Box::new(move |number| format!("ns-{}/{}", number / 3, hash(number)))),
            (
                "one long, many short",
                Box::new(|number| {
                    format!(
                        "{}/p-{number}",
                        if number < 50_000 { "big".into() } else { format!("ns-{number}") }
                    )
                }),
            ),
            (
                "no letters of ours",
                Box::new(|number| format!("{}/{number}", "\u{10ffff}".repeat((number % 5) as usize + 1))),
            ),
        ];
        for (what, name) in names {
            let (questions, visits) = walked((0..KEYS).map(name));
            assert!(
                questions <= 1.5 && visits <= 20.0 * LIMIT as f64,
                "{what}: {questions} questions, {visits} visits a page"
            );
        }
        assert_eq!(walked(std::iter::once("a/b".to_string())), (100.0, 100.0), "of one key, one question");
    }
}
