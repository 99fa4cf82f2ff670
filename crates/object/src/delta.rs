//! An object that was replaced, kept as its difference from its successor.
//!
//! Two versions of an object are nearly the same text. The older is compressed by LZ4 with the newer as its
//! dictionary, and takes a few hundred bytes. In a block the same object would take a thousand, because of
//! the random text in it.
//!
//! In: an object and its successor. Out: the object's bytes. When the successor itself moves, into a block or
//! behind its own successor, the delta is told and follows it. Never: keeps a successor in memory for longer
//! than the object itself is kept.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use lz4_flex::block;

use crate::object::{Body, Object};
use crate::spill::Damaged;

/// The most bytes of both texts together: LZ4 refers back 64 KB at most.
const DICTIONARY_BYTES: usize = 32 << 10;

/// The least bytes of an object: a smaller one takes no more in a block.
const BYTES_MIN: usize = 2 << 10;

/// The longest chain of objects each of which is read through its successor; the last successor is in a
/// block, or plain. Each step costs some tens of microseconds.
pub const CHAIN_MAX: u8 = 8;

/// A delta that is not smaller than this part of the plain bytes is not worth it: the object is better put
/// into a block.
const WORTH: usize = 16;

#[derive(Debug)]
pub(crate) struct Delta {
    next: Mutex<Arc<Object>>,
    packed: Box<[u8]>,
    len: u32,
    // The longest chain of replaced objects that are read through this one.
    chain: u8,
}

impl Delta {
    /// Whether texts of these lengths can be kept as a delta.
    pub(crate) fn may_be(lens: [usize; 2], chain: u8) -> bool {
        lens.iter().all(|len| (BYTES_MIN..=DICTIONARY_BYTES).contains(len)) && chain < CHAIN_MAX
    }

    /// The difference between `plain` and `base`, which is the text of `next`; `None` where it is not worth
    /// it. The caller has asked [`Delta::may_be`].
    pub(crate) fn new(plain: &[u8], (base, next): (&[u8], &Arc<Object>), chain: u8) -> Option<Delta> {
        let room = (plain.len() / WORTH).saturating_sub(mem::size_of::<Delta>());
        let packed = block::compress_with_dict(plain, base);
        (packed.len() <= room).then(|| Delta {
            next: Mutex::new(next.clone()),
            // Copied: a vector that is cut to its length keeps what it had.
            packed: Box::from(&packed[..]),
            len: plain.len() as u32,
            chain,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    pub(crate) fn cost_bytes(&self) -> usize {
        self.packed.len() + mem::size_of::<Delta>()
    }

    /// The object's bytes, made from the successor's.
    ///
    /// # Errors
    /// [`Damaged`], where the successor was spilled.
    pub(crate) fn bytes(&self) -> Result<Bytes, Damaged> {
        let next = self.next().clone();
        // The successor first, because it may be a delta, too.
        let base = next.try_body()?;
        let plain = block::decompress_with_dict(&self.packed, self.len(), &base);
        let whole = plain.as_ref().is_ok_and(|plain| plain.len() == self.len());
        assert!(whole, "a delta of this process cannot be unpacked: {:?}", plain.err());
        Ok(Bytes::from(plain.unwrap_or_default()))
    }

    fn next(&self) -> MutexGuard<'_, Arc<Object>> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Object {
    /// How many objects would be read through this one if one more was put behind it: 0 where it is no delta.
    pub fn chain(&self) -> u8 {
        match &self.body {
            Body::Behind(delta) => delta.chain + 1,
            _ => 0,
        }
    }

    /// If the object is read through `old`, it is read through `new` from now on, which has the same bytes.
    pub fn follow(&self, old: &Arc<Object>, new: &Arc<Object>) {
        if let Body::Behind(delta) = &self.body {
            let mut next = delta.next();
            if Arc::ptr_eq(&next, old) {
                *next = new.clone();
            }
        }
    }

    /// If the object is read through a successor, that is `next` from now on, which has the same bytes as the
    /// old one.
    pub fn read_through(&self, next: &Arc<Object>) {
        if let Body::Behind(delta) = &self.body {
            *delta.next() = next.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::{RecentBlocks, Sealer};
    use crate::{Form, Interner, Layout, Scope};
    use forebay_apimachinery::{Key, Revision};

    /// A pod of `bytes`, with much that nobody else says.
    fn pod(number: u64, revision: u64, phase: &str, bytes: usize) -> Arc<Object> {
        let mut noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut spec = String::new();
        while spec.len() < bytes {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            spec.push_str(&format!("{noise:x}"));
        }
        let value = format!(
            r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"p{number}","namespace":"n","uid":"u{number}"}},"spec":{{"x":"{spec}"}},"status":{{"phase":"{phase}"}}}}"#
        );
        let layout =
            Layout { prefix_len: 10, scope: Scope::Namespaced, form: Form::Typed, fields: Vec::new() };
        let key = Key::from(format!("/registry/n/p{number}"));
        let revision = Revision::from_log(revision);
        let made = Object::decode(&layout, key, revision, value.as_bytes(), &mut Interner::default());
        Arc::new(made.expect("valid"))
    }

    fn sealer() -> Sealer {
        Sealer::new(Arc::default())
    }

    fn assert_same(one: &Object, other: &Object) {
        let spliced = |object: &Object| {
            let (mut body, mut metadata) = (Vec::new(), Vec::new());
            object.write_body(Some(Revision::from_log(1_234_567)), None, &mut body);
            object.write_metadata(None, &mut metadata);
            (body, metadata)
        };
        assert_eq!(spliced(one), spliced(other));
        assert_eq!((&*one.body(), &*one.metadata()), (&*other.body(), &*other.metadata()));
        assert_eq!((one.body_len(), one.key(), one.name()), (other.body_len(), other.key(), other.name()));
    }

    #[test]
    fn an_object_behind_its_successor_says_the_same_and_is_small() {
        let (old, new) = (pod(1, 1, "Pending", 8_000), pod(1, 2, "Running", 8_000));
        let delta = sealer().put_behind(&old, &new, 0).expect("worth it");
        assert_same(&old, &delta);
        let body = delta.cost_bytes() - delta.header_bytes();
        assert!(body < 300, "{body}");
        assert!(delta.part().is_none() && !delta.is_dense());
        assert!(std::ptr::eq(delta.key().as_str(), new.key().as_str()), "one key for both");
    }

    #[test]
    fn what_is_not_worth_it_is_for_a_block() {
        let cases: [(&str, Arc<Object>, Arc<Object>, u8); 5] = [
            ("small", pod(1, 1, "a", 500), pod(1, 2, "b", 500), 0),
            ("larger than LZ4 can point back", pod(1, 1, "a", 40_000), pod(1, 2, "b", 40_000), 0),
            ("a successor larger than that", pod(1, 1, "a", 8_000), pod(1, 2, "b", 40_000), 0),
            ("another object altogether", pod(1, 1, "a", 8_000), pod(2, 2, "b", 8_000), 0),
            ("one more than a chain has", pod(1, 1, "a", 8_000), pod(1, 2, "b", 8_000), CHAIN_MAX),
        ];
        for (why, old, new, chain) in cases {
            assert!(sealer().put_behind(&old, &new, chain).is_none(), "{why}");
        }
    }

    #[test]
    fn a_successor_that_moves_is_followed() {
        let versions: Vec<_> = (1..=4).map(|at| pod(1, at, &format!("phase {at}"), 8_000)).collect();
        let mut sealer = sealer();
        let first = sealer.put_behind(&versions[0], &versions[1], 0).expect("worth it");
        // The second is put behind the third, and that into a block.
        let second = sealer.put_behind(&versions[1], &versions[2], first.chain()).expect("worth it");
        first.follow(&versions[1], &second);
        assert_eq!((first.chain(), second.chain(), versions[2].chain()), (1, 2, 0));
        let held = Arc::strong_count(&versions[1]);
        let neighbours: Vec<_> = (2..8).map(|number| pod(number, number, "x", 8_000)).collect();
        let run: Vec<_> = [&versions[2..3], &neighbours[..]].concat();
        let third = sealer.seal(&run).remove(0);
        second.follow(&versions[2], &third);
        // Somebody else's successor is nothing to it.
        first.follow(&versions[2], &third);
        assert_eq!(held, 1, "nobody holds the plain form of the second any more");
        assert_eq!(Arc::strong_count(&versions[2]), 2, "the test and its run");
        for (old, now) in versions.iter().zip([&first, &second, &third]) {
            assert_same(old, now);
        }
        drop((second, third));
        assert_same(&versions[0], &first);
    }

    #[test]
    fn many_threads_read_one_while_its_successor_moves() {
        let (old, new) = (pod(1, 1, "Pending", 8_000), pod(1, 2, "Running", 8_000));
        let delta = sealer().put_behind(&old, &new, 0).expect("worth it");
        let forms: Vec<_> = (0..4)
            .map(|_| {
                let run = [new.clone(), pod(2, 3, "x", 8_000)];
                Sealer::new(Arc::new(RecentBlocks::default())).seal(&run).remove(0)
            })
            .collect();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..50).for_each(|_| assert_same(&old, &delta)));
            }
            let mut now = new.clone();
            for form in &forms {
                delta.follow(&now, form);
                now = form.clone();
            }
        });
        assert_same(&old, &delta);
    }
}
