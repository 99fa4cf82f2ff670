//! Bytes of objects that few will ask for again, deflated together with those of their neighbours: objects of one kind
//! are nearly alike.
//!
//! In: plain objects. Out: the same objects, which share a block between them; who asks for the bytes of one inflates its
//! block, of which the last few are kept. Never: changes an object, touches one whose bytes are asked for often.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::{Body, Messages, Object};

/// Objects in a block, and plain bytes after which a block takes no further one. 20,000 pods of 2.1 KB with random values in
/// them, each replaced once: a window of 43.8 MB becomes one of 13.1 MB, an object's bytes an eighth of what they were, the
/// rest is headers (`cargo run --release -p forebay-watchcache --example sealing`). One object a block would be 2.4 times
/// smaller, 8 are 7.0 times, and whoever reads one inflates all.
const OBJECTS_MAX: usize = 16;
const PLAIN_BYTES_MAX: usize = 64 << 10;

/// A block that is not smaller than this part of the plain bytes is not worth its inflation: 2/3.
const WORTH: (usize, usize) = (2, 3);

/// Inflated blocks kept of one resource: 8 x 64 KB, while somebody reads old events.
const RECENT_MAX: usize = 8;

/// Fast, and within a tenth of the best on what objects of one kind look like.
const LEVEL: u32 = 1;

/// The blocks of one resource that were inflated last. Shared by its blocks.
#[derive(Debug, Default)]
pub struct RecentBlocks {
    next_id: AtomicU64,
    // (block's id, its plain bytes), newest last, at most RECENT_MAX.
    held: Mutex<VecDeque<(u64, Bytes)>>,
}

#[derive(Debug)]
pub(super) struct Block {
    id: u64,
    deflated: Box<[u8]>,
    plain_len: usize,
    recent: Arc<RecentBlocks>,
}

/// The bytes of one object in a block.
#[derive(Clone, Debug)]
pub(super) struct Part {
    block: Arc<Block>,
    from: u32,
    len: u32,
}

/// Makes blocks. Keeps the compressor's memory between them.
pub struct Sealer {
    compress: Compress,
    recent: Arc<RecentBlocks>,
    plain: Vec<u8>,
}

impl RecentBlocks {
    /// Lets go of all of them.
    pub fn clear(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        *held = VecDeque::new();
    }

    fn find(&self, id: u64) -> Option<Bytes> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().find(|(known, _)| *known == id).map(|(_, plain)| plain.clone())
    }

    fn keep(&self, id: u64, plain: Bytes) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if held.len() == RECENT_MAX {
            held.pop_front();
        }
        held.push_back((id, plain));
    }
}

impl Part {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Its part of what its block takes.
    pub(super) fn cost_bytes(&self) -> usize {
        let block = self.block.deflated.len() + size_of::<Block>();
        block * self.len() / self.block.plain_len.max(1)
    }

    /// The bytes, inflated. Holds up whoever asks for about a tenth of a millisecond.
    pub(super) fn bytes(&self) -> Bytes {
        let from = self.from as usize;
        self.block.plain().slice(from..from + self.len())
    }
}

impl Block {
    fn plain(&self) -> Bytes {
        if let Some(known) = self.recent.find(self.id) {
            return known;
        }
        let mut plain = Vec::with_capacity(self.plain_len);
        let done = Decompress::new(false).decompress_vec(&self.deflated, &mut plain, FlushDecompress::Finish);
        assert!(
            matches!(done, Ok(Status::StreamEnd)) && plain.len() == self.plain_len,
            "a block of this process cannot be inflated: {done:?}"
        );
        let plain = Bytes::from(plain);
        self.recent.keep(self.id, plain.clone());
        plain
    }
}

impl Sealer {
    pub fn new(recent: Arc<RecentBlocks>) -> Sealer {
        Sealer { compress: Compress::new(Compression::new(LEVEL), false), recent, plain: Vec::new() }
    }

    /// `objects` with their bytes in blocks and without their messages, in order; `None` for each that is better left
    /// as it is.
    pub fn seal(&mut self, objects: &[Arc<Object>]) -> Vec<Option<Arc<Object>>> {
        let mut sealed = Vec::with_capacity(objects.len());
        let mut rest = objects;
        while !rest.is_empty() {
            let (group, after) = rest.split_at(group_len(rest));
            rest = after;
            sealed.extend(self.seal_group(group));
        }
        sealed
    }

    fn seal_group(&mut self, group: &[Arc<Object>]) -> Vec<Option<Arc<Object>>> {
        self.plain.clear();
        let mut spans: Vec<Option<Range<usize>>> = Vec::with_capacity(group.len());
        for object in group {
            spans.push(match &object.body {
                Body::Plain(bytes) => {
                    let from = self.plain.len();
                    self.plain.extend_from_slice(bytes);
                    Some(from..self.plain.len())
                }
                Body::Sealed(_) => None,
            });
        }
        let block = self.block().map(Arc::new);
        let part = |span: Option<Range<usize>>| {
            let (span, block) = span.zip(block.clone())?;
            Some(Part { block, from: span.start as u32, len: span.len() as u32 })
        };
        let parts = spans.into_iter().map(part);
        parts.zip(group).map(|(part, object)| Some(Arc::new(object.with_body(Body::Sealed(part?))))).collect()
    }

    /// A block of what is in `plain`, if it is worth it.
    fn block(&mut self) -> Option<Block> {
        let room = self.plain.len() * WORTH.0 / WORTH.1;
        let mut deflated = Vec::with_capacity(room);
        self.compress.reset();
        let done = self.compress.compress_vec(&self.plain, &mut deflated, FlushCompress::Finish);
        // What did not fit into that room is not worth it.
        if !matches!(done, Ok(Status::StreamEnd)) {
            return None;
        }
        Some(Block {
            id: self.recent.next_id.fetch_add(1, Ordering::Relaxed),
            deflated: deflated.into_boxed_slice(),
            plain_len: self.plain.len(),
            recent: self.recent.clone(),
        })
    }
}

/// How many of `objects`, at least one, make the next block.
fn group_len(objects: &[Arc<Object>]) -> usize {
    let mut bytes = 0;
    let fits = |object: &&Arc<Object>| {
        let first = bytes == 0;
        bytes += object.body_len();
        first || bytes <= PLAIN_BYTES_MAX
    };
    objects.iter().take(OBJECTS_MAX).take_while(fits).count()
}

impl Object {
    /// The same object with its bytes elsewhere and without messages.
    fn with_body(&self, body: Body) -> Object {
        Object {
            key: self.key.clone(),
            revision: self.revision,
            body,
            rv: self.rv.clone(),
            metadata: self.metadata.clone(),
            version: self.version.clone(),
            namespace_at: self.namespace_at,
            name_at: self.name_at,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            messages: Messages::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Form, Interner, Layout, Scope};
    use crate::{Key, Revision};

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
        assert_eq!((plain.body(), plain.metadata()), (sealed.body(), sealed.metadata()));
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
                (0..100).map(|number| object(form, number, &"x".repeat(number as usize * 7))).collect();
            let counted = Arc::default();
            drop(plain[0].message(1, &counted, || vec![0; 100]));
            let sealed = Sealer::new(Arc::default()).seal(&plain);
            // Backwards and forwards: more blocks than are kept inflated.
            for at in (0..100).rev().chain(0..100) {
                same(&plain[at], sealed[at].as_ref().expect("worth it"));
            }
            let cost = |objects: &mut dyn Iterator<Item = &Arc<Object>>| {
                objects.map(|object| object.cost_bytes()).sum::<usize>()
            };
            let (before, after) = (cost(&mut plain.iter()), cost(&mut sealed.iter().flatten()));
            assert!(after * 2 < before, "{before} {after}");
            assert!(sealed[0].as_ref().is_some_and(|object| object.message_made(1).is_none()));
            let again = Sealer::new(Arc::default()).seal(&sealed.into_iter().flatten().collect::<Vec<_>>());
            assert!(again.iter().all(Option::is_none), "they are sealed already");
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
        let sealed = Sealer::new(Arc::default()).seal(&[object(Form::Typed, 1, &text)]);
        assert!(sealed[0].is_none());
    }

    #[test]
    fn so_many_inflated_blocks_are_kept() {
        let recent = Arc::<RecentBlocks>::default();
        let plain: Vec<_> = (0..320).map(|number| object(Form::Typed, number, "")).collect();
        let sealed = Sealer::new(recent.clone()).seal(&plain);
        let held = || recent.held.lock().expect("not poisoned").len();
        sealed.iter().flatten().for_each(|object| assert!(!object.body().is_empty()));
        assert_eq!(held(), RECENT_MAX);
        recent.clear();
        assert_eq!(held(), 0);
    }
}
