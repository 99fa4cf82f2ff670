//! Objects that came packed: another server sent the text of neighbours as one run of deflate, which is kept
//! as it came instead of being deflated anew.
//!
//! The objects are of [`Form::Whole`]. Around each object the block's text has whatever the server sent
//! there, such as `{"type":"ADDED","object":`, and each object has its revision where that server wrote it.
//!
//! In: a run's plain and deflated text, the places of the objects, and what was found in them. Out: the
//! objects, in a block or plain. Never: trusts what it is given: a run that is not worth it, or whose objects
//! are not neighbours, is refused.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};

use crate::block::{Block, Framing, Part, RecentBlocks};
use crate::intern::Interner;
use crate::layout::{Form, Layout};
use crate::message::Messages;
use crate::object::{Body, Object, split_key};
use crate::scan::{self, ScanError};
use crate::sealer::{BLOCK_BYTES, BLOCK_OBJECTS, is_small, is_worth_it};
use crate::texts;

/// The most objects of a run that is kept as it came: when one of them changes, the whole block is made anew.
const OBJECTS_MAX: usize = 2 * BLOCK_OBJECTS;

/// The most bytes around an object. A run that has more would take memory for nothing.
const AROUND_BYTES_MAX: usize = 128;

/// Neighbours that came as one run of deflate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    plain: Bytes,
    // Raw deflate of that, not final, to a byte boundary.
    deflated: Bytes,
    objects: Vec<Came>, // in key order
}

/// An object of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    pub key: Key,
    pub revision: Revision,
    /// The object in the run's plain text.
    pub span: Range<usize>,
    pub marks: Marks,
}

/// What was found in an object without white space between its tokens, as places in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// The metadata object, braces included.
    pub metadata: Range<u32>,
    /// The digits of its `resourceVersion`.
    pub revision: Range<u32>,
    /// The object `metadata.labels`; empty when there is none.
    pub labels: Range<u32>,
    /// What `apiVersion` says, without quotes.
    pub api_version: Range<u32>,
}

impl Packed {
    /// The objects of a run; nothing where they are better taken one by one.
    ///
    /// - `plain`, `deflated`: the run's text, and what inflates to it: raw deflate, not final, to a byte
    ///   boundary.
    pub fn new(plain: Bytes, deflated: Bytes, objects: Vec<Came>) -> Option<Packed> {
        let is_of_size = plain.len() <= 2 * BLOCK_BYTES && objects.len() <= OBJECTS_MAX || objects.len() == 1;
        let is_neighbours = objects.is_sorted_by(|one, next| one.key < next.key);
        let mut at = 0;
        let mut is_dense = |came: &Came| {
            let around = came.span.start.checked_sub(at);
            at = came.span.end;
            around.is_some_and(|around| around <= AROUND_BYTES_MAX) && came.is_within(&plain)
        };
        let is_kept = is_of_size
            && is_neighbours
            && !is_small(plain.len(), objects.len())
            && is_worth_it(plain.len(), deflated.len())
            && objects.iter().all(&mut is_dense)
            && plain.len() - at <= AROUND_BYTES_MAX;
        is_kept.then_some(Packed { plain, deflated, objects })
    }

    /// Never 0.
    pub fn objects(&self) -> &[Came] {
        &self.objects
    }

    /// Bytes of the text.
    pub fn plain_len(&self) -> usize {
        self.plain.len()
    }

    /// All of the objects, in a block of the text as it came.
    ///
    /// - `recent`: the blocks of the resource that were inflated last.
    ///
    /// # Errors
    /// [`ScanError`] of the first that is no object.
    pub fn at_rest(
        &self,
        layout: &Layout,
        recent: Arc<RecentBlocks>,
        interner: &mut Interner,
    ) -> Result<Vec<Object>, ScanError> {
        let block = Block::new(&self.plain, self.objects.len(), &self.deflated, recent, Framing::AsItCame);
        let block = Arc::new(block);
        let place = |(index, came): (usize, &Came)| {
            let (from, len) = (came.span.start as u32, came.span.len() as u32);
            let body = Body::Sealed(Part { block: block.clone(), from, len, index: index as u16 });
            self.object(layout, came, body, interner)
        };
        self.objects.iter().enumerate().map(place).collect()
    }

    /// One of the objects by itself, in plain form.
    ///
    /// # Errors
    /// [`ScanError`] when it is no object.
    pub fn plain(&self, layout: &Layout, came: &Came, interner: &mut Interner) -> Result<Object, ScanError> {
        let body = Bytes::copy_from_slice(&self.plain[came.span.clone()]);
        self.object(layout, came, Body::Plain(body), interner)
    }

    fn object(
        &self,
        layout: &Layout,
        came: &Came,
        body: Body,
        interner: &mut Interner,
    ) -> Result<Object, ScanError> {
        assert!(layout.form == Form::Whole, "they are kept with all that they came with");
        let text = &self.plain[came.span.clone()];
        let marks = &came.marks;
        let scanned = match layout.fields.is_empty() {
            true => Vec::new(),
            false => scan::fields(text, layout)?,
        };
        let mut fields = Vec::new();
        scanned.iter().for_each(|field| texts::push(&mut fields, field.as_deref()));
        let api_version = &text[span(&marks.api_version)];
        let version = memchr::memrchr(b'/', api_version).map_or(0, |slash| slash + 1);
        let mut version_at = 0;
        if version < api_version.len() {
            texts::push(&mut fields, Some(texts::as_str(&api_version[version..])));
            version_at = marks.api_version.start + version as u32;
        }
        let (labels, labels_counted) = match &*scan::labels(&text[span(&marks.labels)])? {
            [] => (None, false),
            labels => {
                let (labels, made) = interner.share(labels);
                (Some(labels), made)
            }
        };
        let (namespace_at, name_at) = split_key(layout, &came.key);
        Ok(Object {
            key: came.key.clone(),
            revision: came.revision,
            body,
            labels,
            fields: Box::from(&fields[..]),
            messages: Messages::default(),
            rv_at: marks.revision.start,
            rv_len: marks.revision.len() as u8,
            labels_counted,
            metadata: marks.metadata.clone(),
            version_at,
            namespace_at,
            name_at,
        })
    }
}

impl Came {
    /// Whether `packed` is an object in `plain`, and each of its marks is a place in the object with the text
    /// that belongs there.
    fn is_within(&self, plain: &[u8]) -> bool {
        let Some(text) = plain.get(self.span.clone()) else { return false };
        let Marks { metadata, revision, labels, api_version } = &self.marks;
        let is_object = |range: &Range<u32>| {
            let text = text.get(span(range));
            text.is_some_and(|text| text.starts_with(b"{") && text.ends_with(b"}"))
        };
        let digits = text.get(span(revision)).and_then(|digits| str::from_utf8(digits).ok());
        is_object(&(0..text.len() as u32))
            && is_object(metadata)
            && text.get(span(labels)).is_some_and(|text| text.is_empty() || is_object(labels))
            && metadata.start < revision.start
            && revision.end < metadata.end
            && digits.is_some_and(|digits| digits == self.revision.to_string())
            && text.get(span(api_version)).is_some()
    }
}

fn span(range: &Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}

#[cfg(test)]
mod tests {
    use forebay_deflate::Deflate;

    use super::*;
    use crate::seal::Sealer;
    use crate::{Scope, Segments};

    fn layout(fields: &[&str]) -> Layout {
        let fields = fields.iter().map(|path| path.split('.').map(String::from).collect()).collect();
        Layout { prefix_len: 1, scope: Scope::Namespaced, form: Form::Whole, fields }
    }

    /// An object as a server sends it, and what a cache is told of one that comes alone.
    fn texts(number: usize) -> (String, String) {
        let text = |revision: &str| {
            let note = "the same in all of them ".repeat(300);
            format!(
                r#"{{"kind":"Foo","apiVersion":"g.io/v1","metadata":{{"name":"foo-{number:03}","namespace":"here","uid":"u{number}",{revision}"creationTimestamp":null,"labels":{{"app":"a\"b","n":"{number}"}}}},"spec":{{"on":"node-{number}","note":"{note}"}}}}"#
            )
        };
        (text(&format!(r#""resourceVersion":"{}","#, number + 70)), text(""))
    }

    fn place(text: &str, of: &str, ends: usize) -> Range<u32> {
        let from = text.find(of).expect("it is there") + of.len();
        from as u32..(from + ends) as u32
    }

    fn marks(text: &str) -> Marks {
        let up_to = |from: &str, to: &str| {
            let at = text.find(from).expect("it is there") + from.len();
            place(text, from, text[at..].find(to).expect("it ends"))
        };
        let (metadata, labels) = (up_to("\"metadata\":", ",\"spec\""), up_to("\"labels\":", "}"));
        let labels = labels.start..labels.end + 1;
        let (revision, api_version) = (up_to("resourceVersion\":\"", "\""), up_to("apiVersion\":\"", "\""));
        Marks { metadata, revision, labels, api_version }
    }

    /// What a run is made of.
    type Given = (Bytes, Bytes, Vec<Came>);

    fn run(count: usize) -> Given {
        let (mut plain, mut objects) = (Vec::new(), Vec::new());
        for number in 0..count {
            let (text, _) = texts(number);
            plain.extend_from_slice(b"{\"type\":\"ADDED\",\"object\":");
            let from = plain.len();
            plain.extend_from_slice(text.as_bytes());
            let (key, revision) =
                (Key::from(format!("/here/foo-{number:03}")), Revision::from_log(number as u64 + 70));
            objects.push(Came { key, revision, span: from..plain.len(), marks: marks(&text) });
            plain.extend_from_slice(b"}\n");
        }
        let deflated = Deflate::new().deflate(&plain, plain.len()).expect("it shrinks").to_vec();
        (plain.into(), deflated.into(), objects)
    }

    fn packed(count: usize) -> Packed {
        let (plain, deflated, objects) = run(count);
        Packed::new(plain, deflated, objects).expect("neighbours")
    }

    #[test]
    fn objects_that_came_packed_say_what_those_say_that_come_alone() {
        for layout in [layout(&[]), layout(&["spec.on", "metadata.labels.n", "spec.none"])] {
            let (packed, mut interner) = (packed(9), Interner::default());
            let rested = packed.at_rest(&layout, Arc::default(), &mut interner).expect("objects");
            for (number, (rested, came)) in rested.iter().zip(packed.objects()).enumerate() {
                let (sent, value) = texts(number);
                let (key, revision) = (came.key.clone(), came.revision);
                let alone =
                    Object::decode(&layout, key, revision, value.as_bytes(), &mut interner).expect("valid");
                let plain = packed.plain(&layout, came, &mut interner).expect("an object");
                assert!(rested.part().is_some() && plain.part().is_none());
                for object in [rested, &plain] {
                    assert_eq!(&*object.body(), sent.as_bytes());
                    assert_eq!((object.key(), object.revision()), (alone.key(), alone.revision()));
                    assert_eq!((object.name(), object.namespace()), (alone.name(), alone.namespace()));
                    assert_eq!(object.stored_version(), "v1");
                    assert!(object.labels().eq(alone.labels()) && object.label("app") == Some("a\"b"));
                    assert!((0..3).all(|field| object.field(field) == alone.field(field)));
                    // The members are in another order.
                    let read = |object: &Object, revision: Option<Revision>| {
                        let (mut body, mut metadata) = (Vec::new(), Vec::new());
                        object.write_body(revision, Some("v2"), &mut body);
                        object.write_metadata(revision, &mut metadata);
                        [body, metadata]
                            .map(|text| serde_json::from_slice::<serde_json::Value>(&text).expect("JSON"))
                    };
                    for revision in [None, Some(Revision::from_log(1_234_567))] {
                        assert_eq!(read(object, revision), read(&alone, revision));
                    }
                }
            }
        }
    }

    #[test]
    fn what_came_packed_is_a_block_but_not_what_a_list_has_of_it() {
        let rested = packed(9).at_rest(&layout(&[]), Arc::default(), &mut Interner::default());
        let rested: Vec<_> = rested.expect("objects").into_iter().map(Arc::new).collect();
        let mut sealer = Sealer::new(Arc::default());
        assert!(sealer.seal(&rested).iter().zip(&rested).all(|(one, other)| Arc::ptr_eq(one, other)));
        let whole = |objects: &[Arc<Object>]| {
            Segments::new(objects.iter()).next_segment().expect("some").deflated.is_some()
        };
        assert!(!whole(&rested));
        // Without one of them it is made anew, as a LIST has it.
        let anew = sealer.seal(&rested[1..]);
        assert!(whole(&anew));
        assert!(anew.iter().zip(&rested[1..]).all(|(one, other)| *one.body() == *other.body()));
    }

    #[test]
    fn a_run_that_is_not_of_neighbours_or_not_worth_it_is_none() {
        let is_some = |change: &dyn Fn(&mut Given)| {
            let mut run = run(9);
            change(&mut run);
            Packed::new(run.0, run.1, run.2).is_some()
        };
        assert!(is_some(&|_| {}));
        assert!(!is_some(&|(_, _, objects)| objects.swap(2, 3)), "another order");
        assert!(!is_some(&|(_, _, objects)| objects[3].key = objects[2].key.clone()), "one twice");
        assert!(!is_some(&|(_, _, objects)| drop(objects.remove(4))), "text that is of none");
        assert!(!is_some(&|(_, _, objects)| drop(objects.pop())));
        assert!(!is_some(&|(_, _, objects)| objects.clear()));
        assert!(!is_some(&|(plain, deflated, _)| *deflated = plain.slice(..plain.len() * 3 / 4)), "dense");
        assert!(!is_some(&|(_, _, objects)| objects[2].span.end += 2), "no object");
        assert!(!is_some(&|(_, _, objects)| objects[2].span = 90_000..90_010));
        assert!(!is_some(&|(_, _, objects)| objects[2].span.start = objects[2].span.end + 1));
        assert!(!is_some(&|(_, _, objects)| objects[2].revision = Revision::from_log(5)), "another revision");
        let backwards = Range { start: 5, end: 4 };
        for wrong in [0..0, backwards, 0..100_000, 90_000..90_000] {
            let set = |at: usize| {
                let wrong = wrong.clone();
                is_some(&move |(_, _, objects): &mut Given| {
                    let marks = &mut objects[1].marks;
                    let places =
                        [&mut marks.metadata, &mut marks.revision, &mut marks.labels, &mut marks.api_version];
                    *places.into_iter().nth(at).expect("one of four") = wrong.clone();
                })
            };
            // None has labels, or a version, that are empty.
            let may_be_empty = wrong == (0..0);
            assert_eq!([0, 1, 2, 3].map(set), [false, false, may_be_empty, may_be_empty], "{wrong:?}");
        }
        let few = |count: usize| Packed::new(run(count).0, run(count).1, run(count).2).is_some();
        assert_eq!([1, 2, 5, 17, 40].map(few), [false, false, true, true, false], "blocks have a size");
    }
}
