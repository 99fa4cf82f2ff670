//! What a read of a state comes to, before anything is read: from the index, the sizes in the tree, and a
//! sample.
//!
//! In: a state, and what a reader wants of it. Out: how many objects and bytes. Never: looks at an object's
//! body, or at more than [`SAMPLE_OBJECTS_MAX`] objects.

use forebay_apimachinery::Key;
use forebay_object::Object;
use forebay_object::seal::{BLOCK_BYTES, BLOCK_OBJECTS};

use crate::interest::{Interest, Reach};
use crate::limits::{SAMPLE_MATCHES, SAMPLE_OBJECTS_MAX};
use crate::snapshot::Snapshot;

/// What of objects at rest is expected to be left of them in a block, where none is at rest yet: a third.
const DEFLATED_PART: usize = 3;

/// A read, as far as is known before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// That are looked at, and their bytes in plain form.
    pub objects: usize,
    pub bytes: usize,
    /// That are shown.
    pub selected: usize,
    pub selected_bytes: usize,
    /// As many bytes as these are in deflate.
    pub deflated_bytes: usize,
    /// Bytes of the blocks that are inflated for them.
    pub inflated_bytes: usize,
}

/// Objects, their bytes, and those of the blocks that they are in, if each is in another.
#[derive(Clone, Copy, Debug, Default)]
struct Objects {
    count: usize,
    bytes: usize,
    block_bytes: usize,
}

impl Snapshot {
    /// What a read of that interest comes to, of the objects behind `after` and of no more than `limit` of
    /// them. O(log n) where everything in reach is shown, and for each object of the sample otherwise.
    pub fn estimate(&self, interest: &Interest, after: Option<&Key>, limit: Option<usize>) -> Estimate {
        if interest.is_unfiltered() {
            let all = self.upto(&interest.reach, after, limit);
            return self.of_parts(all, all, all.bytes);
        }
        let (looked_at, selected) = self.sampled(interest);
        let (looked_at, selected) = match limit.filter(|limit| *limit < selected.count) {
            None => (looked_at, selected),
            Some(limit) => (looked_at.part(limit, selected.count), selected.part(limit, selected.count)),
        };
        // What an index finds lies apart, between others of its blocks that are not looked at.
        let among = match self.indexed_term(interest) {
            Some(_) => self.plain_bytes(&interest.reach, None),
            None => looked_at.bytes,
        };
        self.of_parts(looked_at, selected, among)
    }

    /// Of `count` objects that a read of that interest shows, how many are not so, by a sample of
    /// [`SAMPLE_MATCHES`]; none where the sample has none that it shows. O(log n) for each object that is
    /// looked at.
    pub fn part_of(&self, interest: &Interest, count: usize, is_not: impl Fn(&Object) -> bool) -> usize {
        let looks_max = if interest.is_unfiltered() { SAMPLE_MATCHES } else { SAMPLE_OBJECTS_MAX };
        let (_, sample) = self.sample(interest, looks_max);
        let shown = sample.filter(|object| interest.matches(object)).take(SAMPLE_MATCHES);
        let counted =
            shown.fold((0, 0), |(all, found), object| (all + 1, found + usize::from(is_not(object))));
        let (all, found) = counted;
        part(count, found, all)
    }

    /// The first `limit` objects in reach behind `after`: how many, and their bytes.
    fn upto(&self, reach: &Reach, after: Option<&Key>, limit: Option<usize>) -> Objects {
        let (objects, bytes) = (self.range(reach, after).len(), self.plain_bytes(reach, after));
        let last = limit.and_then(|limit| self.range(reach, after).nth(limit.checked_sub(1)?));
        let (objects, bytes) = match (limit, last) {
            (Some(limit), Some(last)) => {
                (limit.min(objects), bytes.saturating_sub(self.plain_bytes(reach, Some(last.key()))))
            }
            (Some(0), None) => (0, 0),
            _ => (objects, bytes),
        };
        Objects { count: objects, bytes, block_bytes: bytes }
    }

    /// - `among`: bytes of all that may be in the same blocks.
    fn of_parts(&self, looked_at: Objects, selected: Objects, among: usize) -> Estimate {
        let at_rest = self.at_rest();
        let deflated = |bytes| match at_rest.plain {
            0 => bytes / DEFLATED_PART,
            plain => part(bytes, at_rest.deflated, plain),
        };
        let is_at_rest = |bytes| part(deflated(bytes), at_rest.plain, at_rest.of_plain);
        // Who reads one of a block inflates it.
        let least = if selected.count > 0 { at_rest.of_plain.min(BLOCK_BYTES / 3 * 2) } else { 0 };
        Estimate {
            objects: looked_at.count,
            bytes: looked_at.bytes,
            selected: selected.count,
            selected_bytes: selected.bytes,
            deflated_bytes: deflated(selected.bytes),
            inflated_bytes: is_at_rest(selected.block_bytes.min(among).max(least)),
        }
    }

    /// What is looked at and what matches, as a part of the objects does that is spread evenly.
    fn sampled(&self, interest: &Interest) -> (Objects, Objects) {
        let (len, sample) = self.sample(interest, SAMPLE_OBJECTS_MAX);
        let (mut looked_at, mut selected) = (Objects::default(), Objects::default());
        for object in sample {
            looked_at.add(object.body_len());
            if interest.matches(object) {
                selected.add(object.body_len());
            }
        }
        (looked_at.part(len, looked_at.count), selected.part(len, looked_at.count))
    }
}

impl Objects {
    fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
        self.block_bytes += BLOCK_BYTES.min(BLOCK_OBJECTS * bytes);
    }

    /// Of `all`, `of` like them.
    fn part(self, of: usize, all: usize) -> Objects {
        let part = |whole| part(whole, of, all);
        Objects { count: part(self.count), bytes: part(self.bytes), block_bytes: part(self.block_bytes) }
    }
}

/// `count * of / all`; nothing of nothing.
fn part(count: usize, of: usize, all: usize) -> usize {
    let scaled = count as u128 * of as u128 / all.max(1) as u128;
    usize::try_from(scaled).unwrap_or(usize::MAX)
}
