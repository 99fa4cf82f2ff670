//! One pass over a stored value: where the type ends, where the revision goes, labels and fields.
//!
//! In: a value that this server has stored, so it is compact JSON. Out: places in it, and the texts that
//! selectors ask for; an error for any other bytes. Never: panics, makes a tree.

use std::borrow::Cow;
use std::ops::Range;

use forebay_apimachinery::json::{Reader, Unexpected};

use crate::layout::{Form, Layout, Scope};
use crate::texts;

pub(crate) const RV_HEAD: &[u8] = br#","resourceVersion":""#;

/// The value is not an object as this server stores them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored object: {what} at byte {at}")]
pub struct ScanError {
    pub what: &'static str,
    pub at: usize,
}

impl From<Unexpected> for ScanError {
    fn from(Unexpected { what, at }: Unexpected) -> ScanError {
        ScanError { what, at }
    }
}

#[derive(Default)]
pub(crate) struct Scanned<'a> {
    // Where the first member after the type begins: behind `"apiVersion":"v1",` of a typed object.
    pub(crate) type_end: usize,
    // Where `resourceVersion` belongs: behind the member of metadata that comes before it.
    pub(crate) rv_at: usize,
    // The metadata object, braces included.
    pub(crate) metadata: Range<usize>,
    // The version's text in apiVersion.
    pub(crate) version: Range<usize>,
    // Texts: a label, its value, and so on, as they stand in the object.
    pub(crate) labels: Vec<u8>,
    pub(crate) fields: Vec<Option<Cow<'a, str>>>,
}

pub(crate) fn scan<'a>(value: &'a [u8], layout: &Layout) -> Result<Scanned<'a>, ScanError> {
    let mut scan = Scan::new(value, layout, Numbered::No);
    scan.all()?;
    if scan.out.rv_at == 0 {
        return fail(&scan.text, "no metadata");
    }
    if layout.form == Form::Typed && scan.out.type_end == 0 {
        return fail(&scan.text, "no type");
    }
    Ok(scan.out)
}

/// The fields of an object that has its revision in it.
pub(crate) fn fields<'a>(object: &'a [u8], layout: &Layout) -> Result<Vec<Option<Cow<'a, str>>>, ScanError> {
    let mut scan = Scan::new(object, layout, Numbered::Yes);
    scan.all()?;
    Ok(scan.out.fields)
}

/// The texts of a JSON object of labels; empty for an empty `object`.
pub(crate) fn labels(object: &[u8]) -> Result<Vec<u8>, ScanError> {
    let layout = Layout { prefix_len: 0, scope: Scope::Cluster, form: Form::Whole, fields: Vec::new() };
    let mut scan = Scan::new(object, &layout, Numbered::Yes);
    if !object.is_empty() {
        scan.labels(&[])?;
    }
    Ok(scan.out.labels)
}

fn fail<T>(text: &Reader<'_>, what: &'static str) -> Result<T, ScanError> {
    Err(ScanError { what, at: text.at() })
}

/// Whether an object has its revision in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Numbered {
    Yes,
    /// As it is stored.
    No,
}

struct Scan<'a, 'l> {
    text: Reader<'a>,
    layout: &'l Layout,
    numbered: Numbered,
    out: Scanned<'a>,
}

impl<'a, 'l> Scan<'a, 'l> {
    fn new(object: &'a [u8], layout: &'l Layout, numbered: Numbered) -> Scan<'a, 'l> {
        let fields = vec![None; layout.fields.len()];
        let out = Scanned { fields, ..Scanned::default() };
        Scan { text: Reader::new(object), layout, numbered, out }
    }

    fn all(&mut self) -> Result<(), ScanError> {
        let wanted: Vec<usize> = (0..self.layout.fields.len()).collect();
        self.root(&wanted)
    }

    fn root(&mut self, wanted: &[usize]) -> Result<(), ScanError> {
        let mut types_seen = 0;
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            match &*name {
                b"apiVersion" | b"kind" => {
                    let from = self.text.at();
                    self.text.skip()?;
                    if &*name == b"apiVersion" {
                        self.api_version(from..self.text.at());
                    }
                    types_seen += 1;
                    if types_seen == 2 && member == 2 && self.text.peek() == Some(b',') {
                        self.out.type_end = self.text.at() + 1;
                    }
                }
                // With two of them, the place for the revision could be in one and the range of metadata in
                // the other.
                b"metadata" if self.out.metadata.end > 0 => return fail(&self.text, "a second metadata"),
                b"metadata" => self.metadata(wanted)?,
                other => self.descend(other, 0, wanted)?,
            }
        }
        if self.text.at() == self.text.bytes().len() { Ok(()) } else { fail(&self.text, "trailing bytes") }
    }

    fn api_version(&mut self, quoted: Range<usize>) {
        let inner = quoted.start + 1..quoted.end.saturating_sub(1).max(quoted.start + 1);
        let slash = self.text.bytes().get(inner.clone()).and_then(|text| memchr::memrchr(b'/', text));
        self.out.version = inner.start + slash.map_or(0, |slash| slash + 1)..inner.end;
    }

    fn metadata(&mut self, wanted: &[usize]) -> Result<(), ScanError> {
        let from = self.text.at();
        let wanted = self.below(b"metadata", 0, wanted);
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            match &*name {
                b"resourceVersion" if self.numbered == Numbered::No => {
                    return fail(&self.text, "a resourceVersion in the stored object");
                }
                b"labels" => self.labels(&self.below(b"labels", 1, &wanted))?,
                _ => self.descend(&name, 1, &wanted)?,
            }
            if self.precedes_revision(&name) {
                self.out.rv_at = self.text.at();
            }
        }
        self.out.metadata = from..self.text.at();
        Ok(())
    }

    /// Whether a member of metadata stands before `resourceVersion` in this form's order.
    fn precedes_revision(&self, name: &[u8]) -> bool {
        match self.layout.form {
            Form::Typed => matches!(name, b"name" | b"generateName" | b"namespace" | b"selfLink" | b"uid"),
            Form::Whole => name < b"resourceVersion".as_slice(),
        }
    }

    /// - `wanted`: fields that are labels.
    fn labels(&mut self, wanted: &[usize]) -> Result<(), ScanError> {
        if self.text.peek() != Some(b'{') {
            return Ok(self.text.skip()?);
        }
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            let name = str::from_utf8(&name).or_else(|_| fail(&self.text, "not UTF-8"))?;
            let value = self.text.string()?;
            texts::push(&mut self.out.labels, Some(name));
            texts::push(&mut self.out.labels, Some(&value));
            let is_label =
                |field: &&usize| matches!(&self.layout.fields[**field][2..], [label] if label == name);
            for &field in wanted.iter().filter(is_label) {
                self.out.fields[field] = Some(value.clone());
            }
        }
        Ok(())
    }

    /// Reads the value of member `name`, the `depth`th part of a path, for the fields in `wanted`.
    fn descend(&mut self, name: &[u8], depth: usize, wanted: &[usize]) -> Result<(), ScanError> {
        let below = self.below(name, depth, wanted);
        if below.is_empty() {
            return Ok(self.text.skip()?);
        }
        for &field in &below {
            if self.layout.fields[field].len() == depth + 1 {
                let from = self.text.at();
                self.out.fields[field] = self.text.scalar()?;
                self.text.go_back(from);
            }
        }
        if self.text.peek() != Some(b'{') {
            return Ok(self.text.skip()?);
        }
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            self.descend(&name, depth + 1, &below)?;
        }
        Ok(())
    }

    fn below(&self, name: &[u8], depth: usize, wanted: &[usize]) -> Vec<usize> {
        let is_at = |part: &String| part.as_bytes() == name;
        let on_path = |field: &usize| self.layout.fields[*field].get(depth).is_some_and(is_at);
        wanted.iter().copied().filter(on_path).collect()
    }
}
