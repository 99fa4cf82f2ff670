//! One object: its bytes, and what one pass over them found.
//!
//! In: a [walk](super::walk) that enters an object. Out: [`ObjectText`], which knows who the object is and at
//! which `resourceVersion`, and turns into the value that `Object::decode` reads. Never: a tree; a change to
//! what it does not know.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use forebay_apimachinery::json::string_end;
use forebay_object::{Form, Marks};

use super::error::{WireError, garbled};
use super::text::unescape;
use super::walk::{Coming, Reached, Take, Visit, whole};
use crate::limits::OBJECT_BYTES_MAX;

/// On the bookmark that ends the initial events of a watch list.
pub(super) const INITIAL_EVENTS_END: &[u8] = b"k8s.io/initial-events-end";

/// An object as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectText {
    // The object's bytes, by themselves or as a part of the text that they came in.
    bytes: Bytes,
    found: Found,
}

/// What an object is, for those that come without: items of a list do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TypeMeta {
    pub kind: String,
    pub api_version: String,
}

/// What was found in an object, as places in its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    kind: Place,
    api_version: Place,
    namespace: Place,
    name: Place,
    uid: Place,
    resource_version: Place,
    // The values, brackets included.
    metadata: Place,
    labels: Place,
    has_labels_twice: bool,
    ends_initial_events: bool,
    // Whether its first two members, and no others, are `kind` and `apiVersion`.
    type_leads: bool,
    // Whether nothing stands between its tokens.
    is_compact: bool,
    // Members that a value goes without, in their order.
    cuts: Vec<Cut>,
}

/// A string with its quotes; empty when there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    from: u32,
    to: u32,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    // From the quote of the name to the end of the value.
    member: Range<usize>,
    what: What,
}

/// A member that is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum What {
    #[default]
    Kind,
    ApiVersion,
    Namespace,
    Name,
    Uid,
    ResourceVersion,
    Labels,
    InitialEventsEnd,
}

/// The number that a `resourceVersion` is, if it is one; servers may have others.
pub fn decimal(resource_version: &str) -> Option<u64> {
    let digits = resource_version.as_bytes();
    let is_number = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || !digits.starts_with(b"0"));
    if is_number { resource_version.parse().ok() } else { None }
}

impl ObjectText {
    /// Reads a text that is one object.
    ///
    /// # Errors
    /// [`WireError`] when it is none, or is too long.
    pub fn read(text: &[u8]) -> Result<ObjectText, WireError> {
        let text = text.trim_ascii_start();
        let mut alone = Alone::default();
        whole(text, &mut alone)?;
        alone.object.finish(text, alone.end, |span| Bytes::copy_from_slice(&text[span]))
    }

    /// The object, as it came.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// `kind`; empty when it has none, as the others are.
    pub fn kind(&self) -> Cow<'_, str> {
        self.text(self.found.kind)
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> Cow<'_, str> {
        self.text(self.found.api_version)
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> Cow<'_, str> {
        self.text(self.found.namespace)
    }

    /// `metadata.name`.
    pub fn name(&self) -> Cow<'_, str> {
        self.text(self.found.name)
    }

    /// `metadata.uid`.
    pub fn uid(&self) -> Cow<'_, str> {
        self.text(self.found.uid)
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> Cow<'_, str> {
        self.text(self.found.resource_version)
    }

    /// `metadata.resourceVersion` where it is a decimal number.
    pub fn revision(&self) -> Option<u64> {
        decimal(&self.resource_version())
    }

    /// Whether the annotation is there that says that a watch list has sent its initial events.
    pub fn ends_initial_events(&self) -> bool {
        self.found.ends_initial_events
    }

    /// Where that is which a cache asks of an object that it keeps as it came; nothing where it has to be
    /// [written anew](ObjectText::into_value).
    pub fn marks(&self) -> Option<Marks> {
        let Found { api_version, resource_version, metadata, labels, .. } = self.found;
        let comes_once = |what: What| self.found.cuts.iter().filter(|cut| cut.what == what).count() == 1;
        let is_kept = self.found.is_compact
            && !self.found.has_labels_twice
            && [What::Kind, What::ApiVersion, What::ResourceVersion].into_iter().all(comes_once)
            && [self.found.kind, api_version, resource_version].into_iter().all(|it| it != Place::default());
        let inner = |place: Place| place.from + 1..place.to - 1;
        is_kept.then(|| Marks {
            metadata: metadata.from..metadata.to,
            revision: inner(resource_version),
            labels: labels.from..labels.to,
            api_version: inner(api_version),
        })
    }

    fn text(&self, place: Place) -> Cow<'_, str> {
        let quoted = &self.bytes[place.from as usize..place.to as usize];
        let inner = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        match unescape(inner) {
            Ok(Cow::Borrowed(text)) => String::from_utf8_lossy(text),
            Ok(Cow::Owned(text)) => Cow::Owned(String::from_utf8_lossy(&text).into_owned()),
            Err(_) => Cow::Borrowed(""),
        }
    }

    /// The value that `Object::decode` reads: without `metadata.resourceVersion` and without white space, and
    /// with its type, which for [`Form::Typed`] leads. What is so already is not copied twice.
    ///
    /// - `of`: the type of an object that says none.
    pub fn into_value(self, form: Form, of: &TypeMeta) -> Vec<u8> {
        let Found { kind, api_version, .. } = self.found;
        let has_type = kind != Place::default() && api_version != Place::default();
        let keeps_type = match form {
            Form::Typed => self.found.type_leads,
            Form::Whole => has_type,
        };
        let front = match (keeps_type, has_type) {
            (true, _) => Vec::new(),
            (false, true) => front(form, self.quoted(kind), self.quoted(api_version)),
            (false, false) => front(form, &quote(&of.kind), &quote(&of.api_version)),
        };
        let goes = |cut: &&Cut| cut.what == What::ResourceVersion || !keeps_type;
        let cuts = || self.found.cuts.iter().filter(goes);
        let (mut some, is_compact) = (cuts(), self.found.is_compact);
        match (some.next(), some.next()) {
            (None, _) if is_compact && front.is_empty() => self.bytes.into(),
            (None, _) if is_compact && self.bytes.len() > b"{}".len() => splice(&self.bytes, 1..1, &front),
            (Some(cut), None) if is_compact && cut.what == What::ResourceVersion => {
                splice(&self.bytes, with_comma(&self.bytes, cut.member.clone()), &front)
            }
            _ => rewrite(&self.bytes, cuts(), &front),
        }
    }

    fn quoted(&self, place: Place) -> &[u8] {
        &self.bytes[place.from as usize..place.to as usize]
    }
}

fn quote(text: &str) -> Vec<u8> {
    serde_json::Value::from(text).to_string().into_bytes()
}

/// The members of the type, in the order of the form.
fn front(form: Form, kind: &[u8], api_version: &[u8]) -> Vec<u8> {
    let (kind, api_version) = ([b"\"kind\":", kind].concat(), [b"\"apiVersion\":", api_version].concat());
    match form {
        Form::Typed => [&kind[..], b",", &api_version].concat(),
        Form::Whole => [&api_version[..], b",", &kind].concat(),
    }
}

/// A member of a compact object with the comma that goes with it.
fn with_comma(bytes: &[u8], member: Range<usize>) -> Range<usize> {
    match (bytes[member.start - 1], bytes[member.end]) {
        (_, b',') => member.start..member.end + 1,
        (b',', _) => member.start - 1..member.end,
        _ => member,
    }
}

/// `bytes` without `cut`, and with `front` as the first members.
fn splice(bytes: &[u8], cut: Range<usize>, front: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() - cut.len() + front.len() + 1);
    out.push(b'{');
    if !front.is_empty() {
        out.extend_from_slice(front);
        out.push(b',');
    }
    out.extend_from_slice(&bytes[1..cut.start]);
    out.extend_from_slice(&bytes[cut.end..]);
    out
}

/// The same of an object with white space, or with more cuts. Commas are written where something stands on
/// both sides.
fn rewrite<'c>(bytes: &[u8], cuts: impl Iterator<Item = &'c Cut>, front: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + front.len() + 1);
    out.push(b'{');
    out.extend_from_slice(front);
    let mut owes_comma = !front.is_empty();
    let mut cuts = cuts.map(|cut| cut.member.clone()).peekable();
    let mut at = 1;
    while let Some(&byte) = bytes.get(at) {
        if let Some(cut) = cuts.next_if(|cut| cut.start == at) {
            at = cut.end;
            continue;
        }
        let end = if byte == b'"' { string_end(bytes, at + 1).unwrap_or(bytes.len()) } else { at + 1 };
        match byte {
            b' ' | b'\n' | b'\r' | b'\t' => {}
            b',' => owes_comma |= !matches!(out.last(), Some(b'{' | b'[')),
            b'}' | b']' => {
                owes_comma = false;
                out.push(byte);
            }
            _ => {
                if std::mem::take(&mut owes_comma) {
                    out.push(b',');
                }
                out.extend_from_slice(&bytes[at..end]);
            }
        }
        at = end;
    }
    out
}

/// The part of a visitor that looks at an object. Levels are those within it.
#[derive(Debug, Default)]
pub(super) struct ObjectScan {
    // Where the object begins in the text; what was found is told from there.
    from: usize,
    // Bytes between tokens before it.
    spaces: usize,
    members: usize,
    has_metadata: bool,
    taking: What,
    found: Found,
}

impl ObjectScan {
    /// An object begins at the value that comes.
    pub(super) fn begin(coming: Coming<'_>) -> ObjectScan {
        ObjectScan { from: coming.at, spaces: coming.spaces, ..ObjectScan::default() }
    }

    /// As [`super::walk::Walk::forget`].
    pub(super) fn forget(&mut self, len: usize) {
        self.from = self.from.saturating_sub(len);
    }

    pub(super) fn comes(&mut self, level: usize, coming: Coming<'_>) -> Result<Take, WireError> {
        self.members += usize::from(level == 0);
        self.taking = match (level, coming.name) {
            (0, b"kind") => What::Kind,
            (0, b"apiVersion") => What::ApiVersion,
            (0, b"metadata") => return self.metadata(coming),
            (1, b"namespace") => What::Namespace,
            (1, b"name") => What::Name,
            (1, b"uid") => What::Uid,
            (1, b"resourceVersion") => What::ResourceVersion,
            (1, b"labels") if coming.first == b'{' => What::Labels,
            (1, b"annotations") if coming.first == b'{' => return Ok(Take::Enter),
            (2, INITIAL_EVENTS_END) => What::InitialEventsEnd,
            _ => return Ok(Take::Skip),
        };
        Ok(Take::Value)
    }

    /// A place in the text as one in the object.
    fn place(&self, at: usize) -> Result<u32, WireError> {
        match at - self.from {
            place if place > OBJECT_BYTES_MAX => Err(WireError::TooLong),
            place => Ok(place as u32),
        }
    }

    fn metadata(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        if std::mem::replace(&mut self.has_metadata, true) {
            return garbled("a second metadata");
        }
        match coming.first {
            b'{' => {
                self.found.metadata.from = self.place(coming.at)?;
                Ok(Take::Enter)
            }
            b'n' => Ok(Take::Skip),
            _ => garbled("metadata that is no object"),
        }
    }

    pub(super) fn passed(&mut self, value: &[u8], member: Range<usize>) -> Result<(), WireError> {
        let member = member.start - self.from..member.end - self.from;
        let taking = self.taking;
        if matches!(taking, What::Kind | What::ApiVersion | What::ResourceVersion) {
            self.found.cuts.push(Cut { member: member.clone(), what: taking });
        }
        if matches!(taking, What::Kind | What::ApiVersion) {
            self.found.type_leads = false;
        }
        if member.end > OBJECT_BYTES_MAX {
            return Err(WireError::TooLong);
        }
        let place = Place { from: (member.end - value.len()) as u32, to: member.end as u32 };
        match value {
            // As Go reads `null`: the value before it stays.
            b"null" => return Ok(()),
            [b'"', inner @ .., b'"'] => {
                let text = unescape(inner)?;
                if taking == What::InitialEventsEnd {
                    self.found.ends_initial_events = &*text == b"true";
                    return Ok(());
                }
            }
            _ if taking == What::InitialEventsEnd => return Ok(()),
            _ if taking == What::Labels => {}
            _ => return garbled("a member that names the object and is no string"),
        }
        match taking {
            What::Kind => self.found.kind = place,
            What::ApiVersion => self.found.api_version = place,
            What::Namespace => self.found.namespace = place,
            What::Name => self.found.name = place,
            What::Uid => self.found.uid = place,
            What::ResourceVersion => self.found.resource_version = place,
            What::Labels => {
                let before = std::mem::replace(&mut self.found.labels, place);
                self.found.has_labels_twice |= before != Place::default();
            }
            What::InitialEventsEnd => {}
        }
        let has_both = self.found.kind != Place::default() && self.found.api_version != Place::default();
        self.found.type_leads |= self.members == 2 && has_both;
        Ok(())
    }

    /// An object in it that was entered is closed, or itself; `at` is behind the brace.
    pub(super) fn left(&mut self, level: usize, at: usize, spaces: usize) {
        match level {
            0 => self.found.is_compact = spaces == self.spaces,
            // What is too long is refused as a whole.
            1 => self.found.metadata.to = self.place(at).unwrap_or_default(),
            _ => {}
        }
    }

    /// The object, once it was left.
    ///
    /// - `end`: behind its closing brace.
    /// - `hold`: that part of the text, for as long as somebody has the object.
    pub(super) fn finish(
        self,
        text: &[u8],
        end: usize,
        hold: impl FnOnce(Range<usize>) -> Bytes,
    ) -> Result<ObjectText, WireError> {
        let span = self.from..end;
        let text = &text[span.clone()];
        if text.len() > OBJECT_BYTES_MAX {
            return Err(WireError::TooLong);
        }
        if str::from_utf8(text).is_err() {
            return garbled("an object that is not UTF-8");
        }
        Ok(ObjectText { bytes: hold(span), found: self.found })
    }
}

/// An object that is all of the text.
#[derive(Debug, Default)]
struct Alone {
    object: ObjectScan,
    end: usize,
}

impl Visit for Alone {
    fn comes(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        self.object.comes(coming.level, coming)
    }

    fn passed(&mut self, _: usize, value: &[u8], member: Range<usize>) -> Result<(), WireError> {
        self.object.passed(value, member)
    }

    fn left(&mut self, level: usize, at: usize, spaces: usize) -> Reached {
        self.object.left(level, at, spaces);
        self.end = at;
        Reached::More
    }
}
