//! An object as a cache keeps it: its bytes, and the few values that selectors ask for.
//!
//! In: a stored value (the object's JSON without `metadata.resourceVersion`) and the revision that put it.
//! Out: an [`Object`], whose bytes serve LIST, WATCH and GET alike, and its messages in protobuf, while
//! somebody asks for them. Never: makes a decoded tree.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};

use crate::block::{Part, Text};
use crate::delta::Delta;
use crate::intern::Interner;
use crate::layout::{Form, Layout, Scope};
use crate::message::{Keep, Message, MessageBytes, Messages};
use crate::scan::{self, ScanError};
use crate::spill::{Damaged, held};
use crate::texts::{self, Texts};

/// One object at one revision. Immutable and shared.
#[derive(Debug)]
pub struct Object {
    pub(crate) key: Key,
    pub(crate) revision: Revision,
    // Form::Typed: from the first member after the type to the closing brace. Form::Whole: the whole object.
    pub(crate) body: Body,
    // Texts: each label and its value, as they stand in the object. Shared with objects that have the same.
    pub(crate) labels: Option<Arc<[u8]>>,
    // Texts: by index of Layout::fields; behind them, for Form::Whole, the version that `apiVersion` names.
    pub(crate) fields: Box<[u8]>,
    pub(crate) messages: Messages,
    // Where the digits of metadata.resourceVersion begin in `body`, and how many they are.
    pub(crate) rv_at: u32,
    pub(crate) rv_len: u8,
    // Whether the labels are counted here.
    pub(crate) labels_counted: bool,
    // The metadata object in `body`, braces included.
    pub(crate) metadata: Range<u32>,
    // Where the version stands in `body`; 0 when there is none.
    pub(crate) version_at: u32,
    // Where the namespace begins in `key`; equal to `name_at` when there is none.
    pub(crate) namespace_at: u32,
    pub(crate) name_at: u32,
}

/// Where an object's bytes are.
#[derive(Debug)]
pub(crate) enum Body {
    Plain(Bytes),
    /// Plain for good, because deflated it would be little smaller.
    Dense(Bytes),
    /// At rest: in a block with its neighbours.
    Sealed(Part),
    /// Replaced: as its difference from its successor.
    Behind(Box<Delta>),
}

impl Object {
    /// Reads `value` in one pass.
    ///
    /// # Errors
    /// [`ScanError`] when it is not an object as this server stores them.
    pub fn decode(
        layout: &Layout,
        key: Key,
        revision: Revision,
        value: &[u8],
        interner: &mut Interner,
    ) -> Result<Object, ScanError> {
        let scanned = scan::scan(value, layout)?;
        let rv = revision.to_string();
        let cut = if layout.form == Form::Typed { scanned.type_end } else { 0 };
        let mut body = Vec::with_capacity(value.len() + scan::RV_HEAD.len() + rv.len() + 1 - cut);
        body.extend_from_slice(&value[cut..scanned.rv_at]);
        body.extend_from_slice(scan::RV_HEAD);
        let rv_at = body.len() as u32;
        body.extend_from_slice(rv.as_bytes());
        body.push(b'"');
        body.extend_from_slice(&value[scanned.rv_at..]);
        let shift = scanned.version.start > scanned.rv_at;
        let moved = if shift { body.len() - (value.len() - cut) } else { 0 };
        let mut fields = Vec::new();
        scanned.fields.iter().for_each(|field| texts::push(&mut fields, field.as_deref()));
        let mut version_at = 0;
        if layout.form == Form::Whole && !scanned.version.is_empty() {
            texts::push(&mut fields, Some(texts::as_str(&value[scanned.version.clone()])));
            version_at = (scanned.version.start + moved) as u32;
        }
        let (labels, labels_counted) = match &scanned.labels[..] {
            [] => (None, false),
            labels => {
                let (labels, made) = interner.share(labels);
                (Some(labels), made)
            }
        };
        let grown = body.len() + cut - value.len();
        let metadata = (scanned.metadata.start - cut) as u32..(scanned.metadata.end - cut + grown) as u32;
        let (namespace_at, name_at) = split_key(layout, &key);
        Ok(Object {
            key,
            revision,
            body: Body::Plain(Bytes::from(body)),
            labels,
            // Copied: a vector that is cut to its length keeps what it had.
            fields: Box::from(&fields[..]),
            messages: Messages::default(),
            rv_at,
            rv_len: rv.len() as u8,
            labels_counted,
            metadata,
            version_at,
            namespace_at,
            name_at,
        })
    }

    /// The storage key.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The revision that put it: its `resourceVersion`.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        &self.key.as_str()[self.name_at as usize..]
    }

    /// `metadata.namespace`; empty for cluster scope.
    pub fn namespace(&self) -> &str {
        let end = (self.name_at as usize).saturating_sub(1).max(self.namespace_at as usize);
        if self.namespace_at == self.name_at {
            ""
        } else {
            &self.key.as_str()[self.namespace_at as usize..end]
        }
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        let mut labels = Texts(self.labels.as_deref()?).flatten();
        while let (Some(label), Some(value)) = (labels.next(), labels.next()) {
            if label == name.as_bytes() {
                return Some(texts::as_str(value));
            }
        }
        None
    }

    /// The labels as they stand in the object, each with its value.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut labels = Texts(self.labels.as_deref().unwrap_or_default()).flatten();
        std::iter::from_fn(move || Some((texts::as_str(labels.next()?), texts::as_str(labels.next()?))))
    }

    /// The value at the `index`th path of [`Layout::fields`], as text; `None` when it is absent.
    pub fn field(&self, index: usize) -> Option<&str> {
        Texts(&self.fields).nth(index)?.map(texts::as_str)
    }

    /// The object's bytes: the whole object, or without `{` and type for a built-in kind. For callers whose
    /// objects are never spilled.
    pub fn body(&self) -> Text<'_> {
        held(self.try_body())
    }

    /// The same of any object.
    ///
    /// # Errors
    /// [`Damaged`], where it was spilled.
    pub fn try_body(&self) -> Result<Text<'_>, Damaged> {
        Ok(match &self.body {
            Body::Plain(bytes) | Body::Dense(bytes) => Text::Held(bytes),
            Body::Sealed(part) => Text::Inflated(part.bytes()?),
            Body::Behind(delta) => Text::Inflated(delta.bytes()?),
        })
    }

    /// How many bytes the body has.
    pub fn body_len(&self) -> usize {
        match &self.body {
            Body::Plain(bytes) | Body::Dense(bytes) => bytes.len(),
            Body::Sealed(part) => part.len(),
            Body::Behind(delta) => delta.len(),
        }
    }

    /// Whether `value` may be what this was read from, by its length: where not, nobody has to read it.
    pub fn may_be_of(&self, value: &[u8]) -> bool {
        // A value has no revision, and that of a built-in kind begins with its type.
        let unrevised = self.body_len() - (scan::RV_HEAD.len() + usize::from(self.rv_len) + 1);
        let cut = value.len().checked_sub(unrevised);
        cut.is_some_and(|cut| cut == 0 || value[..cut].ends_with(b","))
    }

    /// Bytes that are plain now and may still be put at rest; 0 for an object that is at rest, or plain for
    /// good.
    pub fn loose_bytes(&self) -> usize {
        match &self.body {
            Body::Plain(bytes) => bytes.len(),
            Body::Dense(_) | Body::Sealed(_) | Body::Behind(_) => 0,
        }
    }

    /// `metadata` as JSON, braces included. For callers whose objects are never spilled.
    pub fn metadata(&self) -> Text<'_> {
        held(self.try_metadata())
    }

    /// The same of any object.
    ///
    /// # Errors
    /// [`Damaged`], where it was spilled.
    pub fn try_metadata(&self) -> Result<Text<'_>, Damaged> {
        let span = self.metadata.start as usize..self.metadata.end as usize;
        Ok(match self.try_body()? {
            Text::Held(bytes) => Text::Held(&bytes[span]),
            Text::Inflated(bytes) => Text::Inflated(bytes.slice(span)),
        })
    }

    /// The version that `apiVersion` names; empty for a built-in kind.
    pub fn stored_version(&self) -> &str {
        let last = if self.version_at > 0 { Texts(&self.fields).last().flatten() } else { None };
        last.map_or("", texts::as_str)
    }

    /// Appends the bytes with another `resourceVersion` (a DELETED event's) or another version in
    /// `apiVersion`. `None` keeps what is there.
    pub fn write_body(&self, revision: Option<Revision>, version: Option<&str>, out: &mut Vec<u8>) {
        let revision = revision.filter(|new| *new != self.revision).map(|new| (self.rv(), new.to_string()));
        let version = version.filter(|_| self.version_at > 0).map(|new| {
            let from = self.version_at as usize;
            (from..from + self.stored_version().len(), new.to_string())
        });
        let mut splices = [revision, version];
        splices.sort_by_key(|splice| splice.as_ref().map(|(span, _)| span.start));
        self.read(|body| {
            let mut from = 0;
            for (span, text) in splices.into_iter().flatten() {
                out.extend_from_slice(&body[from..span.start]);
                out.extend_from_slice(text.as_bytes());
                from = span.end;
            }
            out.extend_from_slice(&body[from..]);
        });
    }

    /// Its JSON, without what says its kind.
    pub fn untyped_json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(self.body_len() + 1);
        json.push(b'{');
        self.write_body(None, None, &mut json);
        json
    }

    /// Appends `metadata` alone, braces included, with another `resourceVersion` if one is given.
    pub fn write_metadata(&self, revision: Option<Revision>, out: &mut Vec<u8>) {
        let (from, to) = (self.metadata.start as usize, self.metadata.end as usize);
        self.read(|body| match revision.filter(|new| *new != self.revision) {
            Some(new) => {
                out.extend_from_slice(&body[from..self.rv().start]);
                out.extend_from_slice(new.to_string().as_bytes());
                out.extend_from_slice(&body[self.rv().end..to]);
            }
            None => out.extend_from_slice(&body[from..to]),
        });
    }

    /// The digits of metadata.resourceVersion in the body.
    fn rv(&self) -> Range<usize> {
        let from = self.rv_at as usize;
        from..from + usize::from(self.rv_len)
    }

    /// Calls `read` with the bytes, inflated where necessary.
    fn read<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        read(&self.body())
    }

    /// The object's message of type `ty`, which `make` makes unless it is there: at most once, whoever asks.
    ///
    /// - `counted`: what counts the message's bytes for as long as they are in memory.
    /// - `keep`: whether the object keeps the message for as long as somebody asks for it now and then.
    pub fn message(
        &self,
        ty: u16,
        (counted, keep): (&Arc<MessageBytes>, Keep),
        make: impl FnOnce() -> Vec<u8>,
    ) -> Message {
        self.messages.get_or_make(ty, (counted, keep), make)
    }

    /// The object's message of type `ty`, if it was made already.
    pub fn message_made(&self, ty: u16) -> Option<Message> {
        self.messages.get(ty)
    }

    /// Drops the messages that nobody asked for since the last call.
    pub fn let_go_of_messages(&self) {
        self.messages.let_go();
    }

    /// Bytes of the messages that the object holds now. [`Object::cost_bytes`], which never changes, does not
    /// count them.
    pub fn message_bytes(&self) -> usize {
        self.messages.cost_bytes()
    }

    /// The object's part of a block, if it is in one.
    pub(crate) fn part(&self) -> Option<&Part> {
        match &self.body {
            Body::Sealed(part) => Some(part),
            Body::Plain(_) | Body::Dense(_) | Body::Behind(_) => None,
        }
    }

    /// Whether its bytes are deflated, with its neighbours'.
    pub fn is_sealed(&self) -> bool {
        self.part().is_some()
    }

    /// The object's index in its block, and how many objects the block has; `None` outside of blocks.
    pub fn place(&self) -> Option<(usize, usize)> {
        self.part().map(|part| (part.index(), part.block.objects()))
    }

    /// Whether the object is in its final form: its bytes are deflated, or were found to be better left
    /// plain.
    pub fn is_at_rest(&self) -> bool {
        self.is_sealed() || self.is_dense()
    }

    /// Whether deflating was tried, and the bytes were found to be better left plain.
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self.body, Body::Dense(_))
    }

    /// Whether its bytes are elsewhere than in memory: reading them may fail.
    pub fn is_spilled(&self) -> bool {
        self.part().is_some_and(|part| part.block.is_spilled())
    }

    /// The same object with its bytes elsewhere and without messages.
    pub(crate) fn with_body(&self, body: Body) -> Object {
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

    /// Bytes that the object holds, its header counted in.
    pub fn cost_bytes(&self) -> usize {
        let body = match &self.body {
            Body::Plain(bytes) | Body::Dense(bytes) => bytes.len(),
            Body::Sealed(part) => part.cost_bytes(),
            Body::Behind(delta) => delta.cost_bytes(),
        };
        body + self.header_bytes()
    }

    /// Bytes that the object holds besides its body. Shared labels are counted with the first object that had
    /// them.
    pub fn header_bytes(&self) -> usize {
        let labels = self.labels.as_deref().filter(|_| self.labels_counted);
        let labels = labels.map_or(0, |labels| COUNTS + labels.len());
        COUNTS + size_of::<Object>() + COUNTS + self.key.as_str().len() + self.fields.len() + labels
    }
}

/// The bytes of an `Arc`'s two counts.
const COUNTS: usize = 2 * size_of::<usize>();

pub(crate) fn split_key(layout: &Layout, key: &Key) -> (u32, u32) {
    let rest = key.as_str().get(layout.prefix_len..).unwrap_or("");
    let from = layout.prefix_len as u32;
    match layout.scope {
        Scope::Cluster => (from, from),
        Scope::Namespaced => (from, from + rest.find('/').map_or(0, |slash| slash as u32 + 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(form: Form, fields: &[&str]) -> Layout {
        let fields = fields.iter().map(|path| path.split('.').map(String::from).collect()).collect();
        Layout { prefix_len: "/registry/pods/".len(), scope: Scope::Namespaced, form, fields }
    }

    fn decode(layout: &Layout, value: &str) -> Result<Object, ScanError> {
        let key = Key::new("/registry/pods/default/web");
        Object::decode(layout, key, Revision::from_log(42), value.as_bytes(), &mut Interner::default())
    }

    const POD: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","creationTimestamp":null,"labels":{"app":"a\"b","tier":"x"}},"spec":{"nodeName":"n1","hostNetwork":true,"containers":[{"name":"]}"}]},"status":{}}"#;

    #[test]
    fn a_built_in_object_loses_its_type_and_gains_its_revision() {
        let pod = decode(&layout(Form::Typed, &["spec.nodeName", "spec.hostNetwork", "status.phase"]), POD)
            .expect("valid");
        assert_eq!((pod.namespace(), pod.name()), ("default", "web"));
        assert!(pod.body().starts_with(
            br#""metadata":{"name":"web","namespace":"default","uid":"u","resourceVersion":"42","creationTimestamp""#
        ));
        let mut metadata = Vec::new();
        pod.write_metadata(Some(Revision::from_log(7)), &mut metadata);
        let metadata: serde_json::Value = serde_json::from_slice(&metadata).expect("valid");
        assert_eq!((&metadata["resourceVersion"], &metadata["labels"]["tier"]), (&"7".into(), &"x".into()));
        assert_eq!((pod.label("app"), pod.label("tier"), pod.label("x")), (Some("a\"b"), Some("x"), None));
        assert_eq!(pod.labels().collect::<Vec<_>>(), [("app", "a\"b"), ("tier", "x")]);
        assert_eq!((pod.field(0), pod.field(1), pod.field(2)), (Some("n1"), Some("true"), None));
    }

    #[test]
    fn a_value_of_another_length_is_not_what_an_object_was_read_from() {
        let foo = r#"{"apiVersion":"g.io/v1","kind":"Foo","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{}}"#;
        for (form, value) in [(Form::Typed, POD), (Form::Whole, foo)] {
            let object = decode(&layout(form, &[]), value).expect("valid");
            assert!(object.may_be_of(value.as_bytes()));
            for other in [value.replace("\"u\"", "\"uu\""), value.replace("\"u\"", "\"\""), "{}".into()] {
                assert!(!object.may_be_of(other.as_bytes()), "{other}");
            }
        }
    }

    #[test]
    fn a_custom_resource_keeps_its_type_and_its_order() {
        let value = r#"{"apiVersion":"g.io/v1","kind":"Foo","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{}}"#;
        let foo = decode(&layout(Form::Whole, &[]), value).expect("valid");
        assert_eq!(foo.stored_version(), "v1");
        let mut out = Vec::new();
        foo.write_body(Some(Revision::from_log(1234)), Some("v2beta1"), &mut out);
        assert_eq!(
            String::from_utf8(out).expect("text"),
            r#"{"apiVersion":"g.io/v2beta1","kind":"Foo","metadata":{"name":"web","namespace":"default","resourceVersion":"1234","uid":"u"},"spec":{}}"#
        );
    }

    #[test]
    fn a_version_behind_the_metadata_is_found_too() {
        // "Upper" sorts before "apiVersion", which Go's sorted order allows.
        let value = r#"{"Upper":{"metadata":{"name":"no"}},"apiVersion":"g.io/v1","kind":"Foo","metadata":{"name":"web","uid":"u"}}"#;
        let foo = decode(&layout(Form::Whole, &[]), value).expect("valid");
        assert_eq!(foo.stored_version(), "v1");
        let mut out = Vec::new();
        foo.write_body(None, None, &mut out);
        assert!(
            String::from_utf8(out)
                .expect("text")
                .ends_with(r#""metadata":{"name":"web","resourceVersion":"42","uid":"u"}}"#)
        );
    }

    #[test]
    fn a_header_is_small() {
        // With its counts 160 bytes, a size that allocators have.
        assert!(size_of::<Object>() <= 144, "{}", size_of::<Object>());
        let mut interner = Interner::default();
        let layout = layout(Form::Typed, &["spec.nodeName", "spec.hostNetwork"]);
        let mut decode = |name: &str| {
            let key = Key::from(format!("/registry/pods/default/{name}"));
            Object::decode(&layout, key, Revision::from_log(42), POD.as_bytes(), &mut interner)
                .expect("valid")
        };
        let (first, next) = (decode("web-1"), decode("web-2"));
        let labels = first.labels.as_ref().zip(next.labels.as_ref());
        assert!(labels.is_some_and(|(one, other)| Arc::ptr_eq(one, other)), "they have the same");
        let labels = first.labels.as_ref().map_or(0, |labels| labels.len() + COUNTS);
        assert_eq!(first.header_bytes(), next.header_bytes() + labels, "counted once");
        assert!(next.header_bytes() < 220, "{}", next.header_bytes());
        assert_eq!(next.cost_bytes(), next.header_bytes() + next.body_len());
    }

    #[test]
    fn garbage_is_an_error() {
        for value in
            ["", "{", "[]", r#"{"kind":"Pod"}"#, r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name""#]
        {
            assert!(decode(&layout(Form::Typed, &[]), value).is_err(), "{value}");
        }
        let twice = POD.replace(r#""uid":"u""#, r#""uid":"u","resourceVersion":"1""#);
        assert!(decode(&layout(Form::Typed, &[]), &twice).is_err());
        let second = POD.replace(r#""spec":"#, r#""metadata":{"name":"b"},"spec":"#);
        assert!(decode(&layout(Form::Typed, &[]), &second).is_err());
    }
}
