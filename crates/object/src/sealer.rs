//! Puts objects into blocks, and blocks elsewhere than in memory.
//!
//! In: neighbours in key order, plain or in blocks. Out: the same objects, in new blocks of about the same
//! size, or with their bytes elsewhere. Never: changes an object.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_deflate::Deflate;

use crate::block::{Block, Framing, Part, RecentBlocks};
use crate::delta::Delta;
use crate::object::{Body, Object};
use crate::scratch::Scratch;
use crate::spill::{Damaged, Spill};

/// The size of a block, in bytes and in objects, whichever is reached first: ADR 25 has the table. A run of
/// neighbours becomes blocks of two thirds to one and a half of it, so that a block whose objects grew or
/// shrank a little need not be cut anew.
pub const BLOCK_BYTES: usize = 64 << 10;
pub const BLOCK_OBJECTS: usize = 64;

/// A block that takes more than this part of the plain bytes, its own header counted in, is not worth its
/// inflation: 2/3.
const WORTH: (usize, usize) = (2, 3);
const BLOCK_OVERHEAD: usize = 96;

/// Makes blocks. Keeps its buffers from one to the next.
pub struct Sealer {
    deflate: Deflate,
    recent: Arc<RecentBlocks>,
    scratch: Scratch,
    plain: Vec<u8>,
}

impl Sealer {
    pub fn new(recent: Arc<RecentBlocks>) -> Sealer {
        Sealer { deflate: Deflate::new(), recent, scratch: Scratch::default(), plain: Vec::new() }
    }

    /// The objects of `run`, in order, with their bytes in blocks of even size and without their messages.
    /// Where a block would not be worth it, its objects are plain for good. Objects that are plain for good,
    /// or make up a block already, are left as they are.
    pub fn seal(&mut self, run: &[Arc<Object>]) -> Vec<Arc<Object>> {
        let mut sealed = Vec::with_capacity(run.len());
        for group in groups(run) {
            match is_block(&run[group.clone()]) {
                true => sealed.extend(run[group].iter().cloned()),
                false => self.seal_group(&run[group], &mut sealed),
            }
        }
        self.scratch.clear();
        sealed
    }

    /// The object without its messages, and with its bytes as their difference from `next`, which replaced
    /// it; `None` where a block is better.
    ///
    /// - `chain`: how many older objects are read through this one, each through the next.
    pub fn put_behind(&mut self, object: &Object, next: &Arc<Object>, chain: u8) -> Option<Arc<Object>> {
        if !Delta::may_be([object.body_len(), next.body_len()], chain) {
            return None;
        }
        let base = self.scratch.try_bytes(next).ok()?.to_vec();
        // The bytes of `object` may be in the same block as those of `next`.
        let plain = self.scratch.try_bytes(object).ok()?;
        let delta = Delta::new(&plain, (&base, next), chain)?;
        let mut behind = object.with_body(Body::Behind(Box::new(delta)));
        if behind.key == next.key {
            // Both objects have the same key: its text is kept once.
            behind.key = next.key.clone();
        }
        Some(Arc::new(behind))
    }

    fn seal_group(&mut self, group: &[Arc<Object>], sealed: &mut Vec<Arc<Object>>) {
        self.plain.clear();
        let places =
            group.iter().map(|object| self.add(object)).collect::<Result<Vec<Range<usize>>, Damaged>>();
        let Ok(places) = places else {
            // Bytes that cannot be read now cannot be read by anybody: the objects stay as they are.
            sealed.extend(group.iter().cloned());
            return;
        };
        let block = self.block(group.len()).map(Arc::new);
        for (index, (object, place)) in group.iter().zip(places).enumerate() {
            let body = match &block {
                Some(block) => {
                    let (from, len) = (place.start as u32, place.len() as u32);
                    Body::Sealed(Part { block: block.clone(), from, len, index: index as u16 })
                }
                None => match &object.body {
                    Body::Plain(bytes) => Body::Dense(bytes.clone()),
                    Body::Sealed(_) | Body::Behind(_) => {
                        Body::Dense(Bytes::copy_from_slice(&self.plain[place]))
                    }
                    Body::Dense(_) => {
                        sealed.push(object.clone());
                        continue;
                    }
                },
            };
            sealed.push(Arc::new(object.with_body(body)));
        }
    }

    /// Appends an object to the text as an item of a LIST, with the brace that a built-in kind's body leaves
    /// off. Returns where the body is in the text.
    fn add(&mut self, object: &Object) -> Result<Range<usize>, Damaged> {
        if !self.plain.is_empty() {
            self.plain.push(b',');
        }
        let bytes = self.scratch.try_bytes(object)?;
        if !bytes.starts_with(b"{") {
            self.plain.push(b'{');
        }
        let from = self.plain.len();
        self.plain.extend_from_slice(&bytes);
        Ok(from..self.plain.len())
    }

    /// A block of what is in `plain`, if it is worth it.
    fn block(&mut self, objects: usize) -> Option<Block> {
        // Deflated bytes that do not fit are not worth it.
        let deflated = self.deflate.deflate(&self.plain, room(self.plain.len()))?;
        Some(Block::new(&self.plain, objects, deflated, self.recent.clone(), Framing::List))
    }
}

/// Puts blocks elsewhere, for a walk along their objects in key order.
#[derive(Debug)]
pub struct Spiller {
    to: Arc<dyn Spill>,
    recent: Arc<RecentBlocks>,
    // The block that was put last, before and after: its other objects come next.
    last: Option<(Arc<Block>, Arc<Block>)>,
}

impl Spiller {
    /// - `recent`: the blocks of the resource that were inflated last.
    pub fn new(to: Arc<dyn Spill>, recent: Arc<RecentBlocks>) -> Spiller {
        Spiller { to, recent, last: None }
    }

    /// The object with its bytes elsewhere. `None` where it is not in a block, is elsewhere already, or there
    /// is no room. Blocks the thread.
    pub fn spill(&mut self, object: &Object) -> Option<Arc<Object>> {
        let part = match &object.body {
            Body::Sealed(part) => part,
            Body::Dense(bytes) => {
                let block = Block::stored(bytes, self.recent.clone()).spilled(&*self.to)?;
                let (block, len) = (Arc::new(block), bytes.len() as u32);
                return Some(Arc::new(object.with_body(Body::Sealed(Part {
                    block,
                    from: 0,
                    len,
                    index: 0,
                }))));
            }
            Body::Plain(_) | Body::Behind(_) => return None,
        };
        let known = self.last.as_ref().filter(|(old, _)| Arc::ptr_eq(old, &part.block));
        let block = match known {
            Some((_, new)) => new.clone(),
            None => {
                let new = Arc::new(part.block.spilled(&*self.to)?);
                self.last = Some((part.block.clone(), new.clone()));
                new
            }
        };
        Some(Arc::new(object.with_body(Body::Sealed(Part { block, ..part.clone() }))))
    }
}

/// The most that the deflated text of a block may be.
fn room(plain_len: usize) -> usize {
    (plain_len * WORTH.0 / WORTH.1).saturating_sub(BLOCK_OVERHEAD)
}

/// Whether a block of such texts is smaller than its objects in plain form, and by enough.
pub(crate) fn is_worth_it(plain_len: usize, deflated_len: usize) -> bool {
    deflated_len <= room(plain_len)
}

/// Whether this much makes a block.
pub fn is_enough(bytes: usize, objects: usize) -> bool {
    bytes >= BLOCK_BYTES || objects >= BLOCK_OBJECTS
}

/// Whether this is less than half of a block: then a neighbouring block takes it in.
pub fn is_small(bytes: usize, objects: usize) -> bool {
    bytes < BLOCK_BYTES / 2 && objects < BLOCK_OBJECTS / 2
}

/// Cuts a run into groups of a size as even as possible, one for each block.
fn groups(run: &[Arc<Object>]) -> Vec<Range<usize>> {
    let total: usize = run.iter().map(|object| object.body_len()).sum();
    let blocks = rounded(total, BLOCK_BYTES).max(rounded(run.len(), BLOCK_OBJECTS)).max(1);
    let share = total.div_ceil(blocks).max(1);
    let (mut groups, mut start, mut sum, mut goal) = (Vec::with_capacity(blocks), 0, 0, share);
    for (at, object) in run.iter().enumerate() {
        let with = sum + object.body_len();
        // Before this one, if that is nearer to the goal than behind it.
        if at > start && with > goal && with - goal > goal - sum {
            groups.push(start..at);
            start = at;
            goal = (rounded(sum, share) + 1) * share;
        }
        sum = with;
        if sum >= goal {
            groups.push(start..at + 1);
            start = at + 1;
            goal = (rounded(sum, share) + 1) * share;
        }
    }
    if start < run.len() {
        groups.push(start..run.len());
    }
    groups
}

fn rounded(amount: usize, unit: usize) -> usize {
    (amount + unit / 2) / unit
}

/// Whether these are all the objects of one block, in order.
fn is_block(group: &[Arc<Object>]) -> bool {
    let Some(first) = group[0].part() else { return false };
    let follows = |pair: &[Arc<Object>]| match (pair[0].part(), pair[1].part()) {
        (Some(one), Some(next)) => one.is_followed_by(next),
        _ => false,
    };
    // As many behind the first as the block has: none is missing before it.
    first.block.objects() == group.len() && group.windows(2).all(follows)
}

#[cfg(test)]
mod tests {
    use flate2::Crc;
    use forebay_apimachinery::{Key, Revision};

    use super::*;
    use crate::block::{INFLATED, RECENT_MAX};
    use crate::{Form, Interner, Layout, Scope, Segment, Segments};

    fn object(form: Form, number: u64, note: &str) -> Arc<Object> {
        let layout = Layout {
            prefix_len: 10,
            scope: Scope::Namespaced,
            form,
            fields: vec![vec!["spec".into(), "on".into()]],
        };
        let value = format!(
            r#"{{"kind":"Foo","apiVersion":"g.io/v1","metadata":{{"name":"foo-{number}","namespace":"default","uid":"u{number}","labels":{{"app":"web"}}}},"spec":{{"on":"n{number}","note":"{note}","more":"the same in each of them, and again the same in each of them"}}}}"#
        );
        let key = Key::from(format!("/registry/default/foo-{number}"));
        let revision = Revision::from_log(number + 1);
        let made = Object::decode(&layout, key, revision, value.as_bytes(), &mut Interner::default());
        Arc::new(made.expect("valid"))
    }

    fn same(plain: &Object, sealed: &Object) {
        assert!(matches!(sealed.body, Body::Sealed(_)) && matches!(plain.body, Body::Plain(_)));
        let later = Some(Revision::from_log(1_234_567));
        let spliced = |object: &Object| {
            let (mut body, mut metadata) = (Vec::new(), Vec::new());
            object.write_body(later, Some("v2beta1"), &mut body);
            object.write_metadata(later, &mut metadata);
            (body, metadata)
        };
        assert_eq!(spliced(plain), spliced(sealed));
        assert_eq!((&*plain.body(), &*plain.metadata()), (&*sealed.body(), &*sealed.metadata()));
        assert_eq!(
            (plain.name(), plain.namespace(), plain.label("app"), plain.field(0), plain.stored_version()),
            (
                sealed.name(),
                sealed.namespace(),
                sealed.label("app"),
                sealed.field(0),
                sealed.stored_version()
            )
        );
        assert_eq!(
            (plain.key(), plain.revision(), plain.body_len()),
            (sealed.key(), sealed.revision(), sealed.body_len())
        );
    }

    #[test]
    fn sealed_objects_say_what_plain_ones_do_and_take_less() {
        for form in [Form::Typed, Form::Whole] {
            let plain: Vec<_> =
                (0..100).map(|number| object(form, number, &"x".repeat(number as usize * 99))).collect();
            let counted = Arc::default();
            drop(plain[0].message(1, (&counted, crate::Keep::Always), || vec![0; 100]));
            let sealed = Sealer::new(Arc::default()).seal(&plain);
            // Backwards and forwards: more blocks than are kept inflated.
            for at in (0..100).rev().chain(0..100) {
                same(&plain[at], &sealed[at]);
            }
            let cost = |objects: &mut dyn Iterator<Item = &Arc<Object>>| {
                objects.map(|object| object.cost_bytes()).sum::<usize>()
            };
            let (before, after) = (cost(&mut plain.iter()), cost(&mut sealed.iter()));
            assert!(after * 2 < before, "{before} {after}");
            assert!(sealed[0].message_made(1).is_none());
            let again = Sealer::new(Arc::default()).seal(&sealed);
            assert!(again.iter().zip(&sealed).all(|(one, other)| Arc::ptr_eq(one, other)), "they are blocks");
        }
    }

    /// The whole of `block` as gzip's readers see it: deflated texts with stored blocks between them.
    fn inflate(deflated: &[u8]) -> Vec<u8> {
        let mut plain = Vec::new();
        std::io::Read::read_to_end(&mut flate2::read::DeflateDecoder::new(deflated), &mut plain)
            .expect("deflate");
        plain
    }

    #[test]
    fn blocks_are_put_together_to_a_list() {
        for form in [Form::Typed, Form::Whole] {
            let plain: Vec<_> = (0..150).map(|number| object(form, number, "note")).collect();
            let sealed = Sealer::new(Arc::default()).seal(&plain);
            let (mut stream, mut crc, mut total) = (vec![0, 1, 0, !1, !0, b'['], Crc::new(), 0);
            crc.update(b"[");
            let (mut at, mut inflated) = (0, Vec::new());
            while at < sealed.len() {
                let part = sealed[at].part().expect("sealed");
                assert_eq!(part.index, 0);
                if at > 0 {
                    stream.extend([0, 1, 0, !1, !0, b',']);
                    crc.update(b",");
                }
                inflated.clear();
                part.block.inflate_into(&mut inflated);
                assert_eq!(inflated.len(), part.block.plain_len());
                for (index, object) in sealed[at..at + part.block.objects()].iter().enumerate() {
                    let own = object.part().expect("sealed");
                    assert!(Arc::ptr_eq(&own.block, &part.block) && own.index() == index);
                    let head = if form == Form::Typed { "{" } else { "" };
                    let item = [head.as_bytes(), &plain[at + index].body()].concat();
                    let place = own.body();
                    assert_eq!(inflated[place.start - head.len()..place.end], item);
                }
                stream.extend(part.block.deflated());
                let mut own = Crc::new();
                own.update(&inflated);
                assert_eq!(own.sum(), part.block.crc32());
                crc.combine(&own);
                total += part.block.plain_len() + 1;
                at += part.block.objects();
            }
            stream.extend([1, 1, 0, !1, !0, b']']);
            crc.update(b"]");
            let list = inflate(&stream);
            assert_eq!((list.len(), crc_of(&list)), (total + 1, crc.sum()));
            let items: Vec<serde_json::Value> = serde_json::from_slice(&list).expect("a list");
            assert_eq!((items.len(), &items[149]["metadata"]["name"]), (150, &"foo-149".into()));
        }
    }

    fn runs(objects: &[Arc<Object>]) -> Vec<(usize, bool)> {
        let (mut segments, mut found) = (Segments::new(objects.iter()), Vec::new());
        while let Some(Segment { objects, deflated }) = segments.next_segment() {
            found.push((objects.len(), deflated.is_some()));
        }
        found
    }

    #[test]
    fn a_block_is_whole_while_all_its_objects_are_there_in_order() {
        let plain: Vec<_> = (0..8).map(|number| object(Form::Typed, number, &"note ".repeat(50))).collect();
        let sealed: Vec<_> = Sealer::new(Arc::default()).seal(&plain);
        assert_eq!(runs(&sealed), [(8, true)]);
        assert_eq!(runs(&plain), [(1, false); 8]);
        let mut updated = sealed.clone();
        updated[3] = plain[3].clone();
        assert_eq!(runs(&updated), [(3, false), (1, false), (1, false), (1, false), (1, false), (1, false)]);
        assert_eq!(runs(&sealed[1..]), [(1, false); 7]);
        assert_eq!(runs(&sealed[..7]), [(7, false)]);
        let again: Vec<_> = Sealer::new(Arc::default()).seal(&plain);
        let mixed = [&sealed[..4], &again[4..]].concat();
        assert_eq!(runs(&mixed), [(4, false), (1, false), (1, false), (1, false), (1, false)]);
        assert_eq!(runs(&[sealed, again].concat()), [(8, true), (8, true)]);
    }

    fn crc_of(bytes: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum()
    }

    #[test]
    fn who_walks_inflates_each_block_once_and_touches_nobody_elses() {
        let recent = Arc::<RecentBlocks>::default();
        let plain: Vec<_> = (0..150).map(|number| object(Form::Typed, number, "")).collect();
        let sealed = Sealer::new(recent.clone()).seal(&plain);
        let (mut scratch, before) = (Scratch::default(), INFLATED.get());
        let mut opened = Vec::new();
        for (plain, sealed) in plain.iter().zip(&sealed) {
            assert!(Arc::ptr_eq(&scratch.plain(plain), plain));
            assert_eq!(&*scratch.bytes(sealed), &*plain.body());
            opened.push(scratch.plain(sealed));
        }
        let inflated = INFLATED.get() - before;
        let blocks = sealed.iter().filter(|object| object.part().is_some_and(|part| part.index == 0)).count();
        assert!(blocks > 1 && inflated == blocks && recent.len() == 0, "{blocks}: {inflated}");
        for (opened, (plain, sealed)) in opened.iter().zip(plain.iter().zip(&sealed)) {
            assert_eq!(&*opened.body(), &*plain.body());
            same(opened, sealed);
        }
    }

    #[test]
    fn what_does_not_shrink_stays_plain() {
        let mut state = 1u64;
        let mut noise = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(33 + (state >> 58) as u8 % 58)
        };
        let text: String = (0..20_000).map(|_| noise()).filter(|c| !matches!(c, '"' | '\\')).collect();
        let whole = [object(Form::Typed, 1, &text[..12_000]), object(Form::Typed, 2, &text[12_000..])];
        let dense = Sealer::new(Arc::default()).seal(&whole);
        for (plain, dense) in whole.iter().zip(&dense) {
            assert!(dense.is_dense() && dense.part().is_none() && !plain.is_dense());
            assert_eq!(&*plain.body(), &*dense.body());
        }
        let again = Sealer::new(Arc::default()).seal(&dense);
        assert!(Arc::ptr_eq(&again[0], &dense[0]), "it is not copied each time");
        // Judged by its middle.
        let long: String = (0..300_000).map(|_| noise()).filter(|c| !matches!(c, '"' | '\\')).collect();
        assert!(Sealer::new(Arc::default()).seal(&[object(Form::Typed, 1, &long)])[0].is_dense());
        // One that was in a block with others and is left without them.
        let mixed = [object(Form::Typed, 1, &text), object(Form::Typed, 2, &"x".repeat(40_000))];
        let sealed = Sealer::new(Arc::default()).seal(&mixed);
        assert!(sealed[0].part().is_some());
        let alone = Sealer::new(Arc::default()).seal(&sealed[..1]);
        assert!(alone[0].is_dense());
        assert_eq!(&*alone[0].body(), &*mixed[0].body());
    }

    #[test]
    fn a_run_is_cut_into_blocks_of_even_size() {
        let cut = |sizes: &[usize]| {
            let note = |&size: &usize| "x".repeat(size);
            let run: Vec<_> = sizes.iter().map(|size| object(Form::Typed, 1, &note(size))).collect();
            groups(&run).into_iter().map(|group| group.len()).collect::<Vec<_>>()
        };
        let kb = 1 << 10;
        for (sizes, expected) in [
            (vec![8 * kb; 3], vec![3]),
            (vec![8 * kb; 8], vec![8]),
            (vec![8 * kb; 11], vec![11]),
            (vec![8 * kb; 12], vec![6, 6]),
            (vec![8 * kb; 100], vec![8, 7, 8, 8, 7, 8, 8, 8, 7, 8, 8, 7, 8]),
            (vec![0; 95], vec![95]),
            (vec![0; 96], vec![48, 48]),
            ([vec![kb; 50], vec![1024 * kb], vec![kb; 50]].concat(), vec![50, 1, 50]),
            (vec![1024 * kb; 3], vec![1, 1, 1]),
            (vec![1024 * kb], vec![1]),
        ] {
            let found = cut(&sizes);
            assert_eq!(found.iter().sum::<usize>(), sizes.len());
            assert_eq!(found, expected, "{sizes:?}");
        }
        assert!(groups(&[]).is_empty());
    }

    #[test]
    fn a_block_that_lost_a_member_gets_its_old_group_back() {
        let plain: Vec<_> = (0..40).map(|number| object(Form::Typed, number, &"y".repeat(7_000))).collect();
        let mut run = Sealer::new(Arc::default()).seal(&plain);
        let first = run[13].part().expect("sealed");
        let (from, len) = (13 - first.index(), first.block.objects());
        assert!(len > 5);
        // One grew, one was deleted.
        run[13] = object(Form::Typed, 13, &"z".repeat(7_500));
        run.remove(from);
        let again = Sealer::new(Arc::default()).seal(&run[from..from + len - 1]);
        let part = again[0].part().expect("sealed");
        assert_eq!((part.index(), part.block.objects()), (0, len - 1));
        for (old, new) in run[from..].iter().zip(&again) {
            assert_eq!((&*old.body(), old.revision()), (&*new.body(), new.revision()));
        }
        // Together with those beside it, which are left as they are.
        run.splice(from..from + len - 1, again);
        let all = Sealer::new(Arc::default()).seal(&run[from..from + len - 1]);
        assert!(all.iter().zip(&run[from..]).all(|(one, other)| Arc::ptr_eq(one, other)));
    }

    #[test]
    fn so_many_inflated_blocks_are_kept() {
        let recent = Arc::<RecentBlocks>::default();
        let plain: Vec<_> =
            (0..10 * BLOCK_OBJECTS as u64).map(|number| object(Form::Typed, number, "")).collect();
        let sealed = Sealer::new(recent.clone()).seal(&plain);
        sealed.iter().for_each(|object| assert!(!object.body().is_empty()));
        assert_eq!(recent.len(), RECENT_MAX);
        recent.clear();
        assert_eq!(recent.len(), 0);
    }
}
