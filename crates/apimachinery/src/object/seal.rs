//! Makes blocks of objects.
//!
//! In: plain objects. Out: the same objects, which share a block between them. Never: changes an object.

use std::ops::Range;
use std::sync::Arc;

use flate2::{Compress, Compression, FlushCompress, Status};

use super::block::{Block, Part, RecentBlocks};
use super::{Body, Messages, Object};

/// Objects in a block, and plain bytes after which a block takes no further one: ADR 25 has the table. Whoever reads one
/// object inflates all of its block.
const OBJECTS_MAX: usize = 64;
const PLAIN_BYTES_MAX: usize = 64 << 10;

/// A block that is not smaller than this part of the plain bytes is not worth its inflation: 2/3.
const WORTH: (usize, usize) = (2, 3);

/// On what objects of one kind look like: as fast as level 1 and a half smaller, a twentieth bigger than level 6.
const LEVEL: u32 = 4;

/// Makes blocks. Keeps the compressor's memory between them.
pub struct Sealer {
    compress: Compress,
    recent: Arc<RecentBlocks>,
    plain: Vec<u8>,
    deflated: Vec<u8>,
}

impl Sealer {
    pub fn new(recent: Arc<RecentBlocks>) -> Sealer {
        let compress = Compress::new(Compression::new(LEVEL), false);
        Sealer { compress, recent, plain: Vec::new(), deflated: Vec::new() }
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
        let places: Vec<Option<Place>> = group.iter().map(|object| self.add(object)).collect();
        let objects = places.iter().flatten().count();
        let block = self.block(objects).map(Arc::new);
        let mut index = 0;
        let mut part = |place: Option<Place>| {
            let Place { body, head } = place?;
            index += 1;
            let (from, len) = (body.start as u32, body.len() as u32);
            Some(Part { block: block.clone()?, from, len, index: index - 1, head })
        };
        let parts: Vec<Option<Part>> = places.into_iter().map(&mut part).collect();
        let sealed = |(part, object): (Option<Part>, &Arc<Object>)| {
            Some(Arc::new(object.with_body(Body::Sealed(part?))))
        };
        parts.into_iter().zip(group).map(sealed).collect()
    }

    /// Appends a plain object's item to the text.
    fn add(&mut self, object: &Object) -> Option<Place> {
        let Body::Plain(bytes) = &object.body else { return None };
        if !self.plain.is_empty() {
            self.plain.push(b',');
        }
        let head = u16::from(!bytes.starts_with(b"{"));
        if head > 0 {
            self.plain.push(b'{');
        }
        let from = self.plain.len();
        self.plain.extend_from_slice(bytes);
        Some(Place { body: from..self.plain.len(), head })
    }

    /// A block of what is in `plain`, if it is worth it.
    fn block(&mut self, objects: usize) -> Option<Block> {
        // What does not fit into that room is not worth it.
        let room = self.plain.len() * WORTH.0 / WORTH.1;
        self.deflated.clear();
        self.deflated.reserve_exact(room);
        let room = self.deflated.capacity().min(room);
        self.compress.reset();
        let done = self.compress.compress_vec(&self.plain, &mut self.deflated, FlushCompress::Sync);
        let whole = matches!(done, Ok(Status::Ok)) && self.deflated.len() < room;
        whole.then(|| Block::new(&self.plain, objects, &self.deflated, self.recent.clone()))
    }
}

/// Where an object's body is in the text, and how many bytes of its item are before it.
struct Place {
    body: Range<usize>,
    head: u16,
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
    pub(super) fn with_body(&self, body: Body) -> Object {
        Object {
            key: self.key.clone(),
            revision: self.revision,
            body,
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            messages: Messages::default(),
            rv_at: self.rv_at,
            rv_len: self.rv_len,
            labels_counted: self.labels_counted,
            metadata: self.metadata.clone(),
            version_at: self.version_at,
            namespace_at: self.namespace_at,
            name_at: self.name_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use flate2::Crc;

    use super::*;
    use crate::object::block::{RECENT_MAX, Scratch, Text};
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
            let sealed: Vec<_> = Sealer::new(Arc::default()).seal(&plain).into_iter().flatten().collect();
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
                    assert!(Arc::ptr_eq(own.block, part.block) && own.index == index);
                    let head = if form == Form::Typed { "{" } else { "" };
                    let item = [head.as_bytes(), &plain[at + index].body()].concat();
                    assert_eq!(inflated[own.span], item);
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

    fn crc_of(bytes: &[u8]) -> u32 {
        let mut crc = Crc::new();
        crc.update(bytes);
        crc.sum()
    }

    #[test]
    fn who_walks_inflates_each_block_once_and_touches_nobody_elses() {
        let recent = Arc::<RecentBlocks>::default();
        let plain: Vec<_> = (0..150).map(|number| object(Form::Typed, number, "")).collect();
        let sealed: Vec<_> = Sealer::new(recent.clone()).seal(&plain).into_iter().flatten().collect();
        let mut scratch = Scratch::default();
        let mut texts = std::collections::BTreeSet::new();
        for (plain, sealed) in plain.iter().zip(&sealed) {
            let opened = scratch.plain(sealed);
            same(&opened, sealed);
            assert!(Arc::ptr_eq(&scratch.plain(plain), plain));
            assert_eq!(&*opened.body(), &*plain.body());
            let part = sealed.part().expect("sealed");
            let Text::Held(body) = opened.body() else { panic!("it is plain") };
            texts.insert(body.as_ptr() as usize - part.span.start);
            recent.clear();
        }
        let blocks = sealed.iter().filter(|object| object.part().is_some_and(|part| part.index == 0)).count();
        assert!(texts.len() <= blocks, "{texts:?}");
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
        let plain: Vec<_> =
            (0..10 * OBJECTS_MAX as u64).map(|number| object(Form::Typed, number, "")).collect();
        let sealed = Sealer::new(recent.clone()).seal(&plain);
        sealed.iter().flatten().for_each(|object| assert!(!object.body().is_empty()));
        assert_eq!(recent.len(), RECENT_MAX);
        recent.clear();
        assert_eq!(recent.len(), 0);
    }
}
