//! One pass over a stored value: where the type ends, where the revision goes, labels and fields.
//!
//! The value was written by this server, so it is compact JSON; anything else is an error, never a panic.

use std::borrow::Cow;
use std::ops::Range;

use super::{Form, Layout, texts};
use crate::json::quote_or_escape;

pub(super) const RV_HEAD: &[u8] = br#","resourceVersion":""#;

/// The value is not an object as this server stores them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored object: {what} at byte {at}")]
pub struct ScanError {
    pub what: &'static str,
    pub at: usize,
}

#[derive(Default)]
pub(super) struct Scanned<'a> {
    // Behind `"apiVersion":"v1",` of a typed object: where its first other member begins.
    pub(super) type_end: usize,
    // Behind the member of metadata that `resourceVersion` follows.
    pub(super) rv_at: usize,
    // The metadata object, braces included.
    pub(super) metadata: Range<usize>,
    // The version's text in apiVersion.
    pub(super) version: Range<usize>,
    // Texts: a label, its value, and so on, as they stand in the object.
    pub(super) labels: Vec<u8>,
    pub(super) fields: Vec<Option<Cow<'a, str>>>,
}

pub(super) fn scan<'a>(value: &'a [u8], layout: &Layout) -> Result<Scanned<'a>, ScanError> {
    let mut scan = Scan { text: Text { bytes: value, at: 0 }, layout, out: Scanned::default() };
    scan.out.fields = vec![None; layout.fields.len()];
    let wanted: Vec<usize> = (0..layout.fields.len()).collect();
    scan.root(&wanted)?;
    if scan.out.rv_at == 0 {
        return scan.text.fail("no metadata");
    }
    if layout.form == Form::Typed && scan.out.type_end == 0 {
        return scan.text.fail("no type");
    }
    Ok(scan.out)
}

struct Scan<'a, 'l> {
    text: Text<'a>,
    layout: &'l Layout,
    out: Scanned<'a>,
}

impl Scan<'_, '_> {
    fn root(&mut self, wanted: &[usize]) -> Result<(), ScanError> {
        let mut types_seen = 0;
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            match &*name {
                b"apiVersion" | b"kind" => {
                    let from = self.text.at;
                    self.text.skip()?;
                    if &*name == b"apiVersion" {
                        self.api_version(from..self.text.at);
                    }
                    types_seen += 1;
                    if types_seen == 2 && member == 2 && self.text.peek() == Some(b',') {
                        self.out.type_end = self.text.at + 1;
                    }
                }
                // The place of the revision is in one of them, and what metadata is in the other.
                b"metadata" if self.out.metadata.end > 0 => return self.text.fail("a second metadata"),
                b"metadata" => self.metadata(wanted)?,
                other => self.descend(other, 0, wanted)?,
            }
        }
        if self.text.at == self.text.bytes.len() { Ok(()) } else { self.text.fail("trailing bytes") }
    }

    fn api_version(&mut self, quoted: Range<usize>) {
        let inner = quoted.start + 1..quoted.end.saturating_sub(1).max(quoted.start + 1);
        let slash = self.text.bytes.get(inner.clone()).and_then(|text| memchr::memrchr(b'/', text));
        self.out.version = inner.start + slash.map_or(0, |slash| slash + 1)..inner.end;
    }

    fn metadata(&mut self, wanted: &[usize]) -> Result<(), ScanError> {
        let from = self.text.at;
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            match &*name {
                b"resourceVersion" => return self.text.fail("a resourceVersion in the stored object"),
                b"labels" => self.labels()?,
                _ => self.descend(&name, 1, &self.below(b"metadata", 0, wanted))?,
            }
            if self.precedes_revision(&name) {
                self.out.rv_at = self.text.at;
            }
        }
        self.out.metadata = from..self.text.at;
        Ok(())
    }

    /// Whether a member of metadata stands before `resourceVersion` in this form's order.
    fn precedes_revision(&self, name: &[u8]) -> bool {
        match self.layout.form {
            Form::Typed => matches!(name, b"name" | b"generateName" | b"namespace" | b"selfLink" | b"uid"),
            Form::Whole => name < b"resourceVersion".as_slice(),
        }
    }

    fn labels(&mut self) -> Result<(), ScanError> {
        if self.text.peek() != Some(b'{') {
            return self.text.skip();
        }
        self.text.begin(b'{')?;
        let mut member = 0;
        while let Some(name) = self.text.member(member)? {
            member += 1;
            let name = str::from_utf8(&name).or_else(|_| self.text.fail("not UTF-8"))?;
            let value = self.text.string()?;
            texts::push(&mut self.out.labels, Some(name));
            texts::push(&mut self.out.labels, Some(&value));
        }
        Ok(())
    }

    /// Reads the value of member `name`, the `depth`th part of a path, for the fields in `wanted`.
    fn descend(&mut self, name: &[u8], depth: usize, wanted: &[usize]) -> Result<(), ScanError> {
        let below = self.below(name, depth, wanted);
        if below.is_empty() {
            return self.text.skip();
        }
        for &field in &below {
            if self.layout.fields[field].len() == depth + 1 {
                let from = self.text.at;
                self.out.fields[field] = self.text.scalar()?;
                self.text.at = from;
            }
        }
        if self.text.peek() != Some(b'{') {
            return self.text.skip();
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

/// A place in JSON text.
struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    fn fail<T>(&self, what: &'static str) -> Result<T, ScanError> {
        Err(ScanError { what, at: self.at })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn begin(&mut self, brace: u8) -> Result<(), ScanError> {
        if self.peek() != Some(brace) {
            return self.fail("not an object");
        }
        self.at += 1;
        Ok(())
    }

    /// The name of the next member, with the place moved to its value; `None` behind the closing brace.
    fn member(&mut self, index: usize) -> Result<Option<Cow<'a, [u8]>>, ScanError> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if index > 0 => self.at += 1,
            Some(b'"') if index == 0 => {}
            _ => return self.fail("a member was expected"),
        }
        let from = self.at;
        let name = match self.skip_string()? {
            false => Cow::Borrowed(&self.bytes[from + 1..self.at - 1]),
            true => {
                self.at = from;
                Cow::Owned(self.string()?.into_owned().into_bytes())
            }
        };
        if self.peek() != Some(b':') {
            return self.fail("a colon was expected");
        }
        self.at += 1;
        Ok(Some(name))
    }

    /// A string, unescaped.
    fn string(&mut self) -> Result<Cow<'a, str>, ScanError> {
        let from = self.at;
        if !self.skip_string()? {
            let inner = &self.bytes[from + 1..self.at - 1];
            return std::str::from_utf8(inner).map(Cow::Borrowed).or_else(|_| self.fail("not UTF-8"));
        }
        serde_json::from_slice(&self.bytes[from..self.at])
            .map(Cow::Owned)
            .or_else(|_| self.fail("a bad escape"))
    }

    /// A string, number or boolean as text; `None` for null, objects and arrays.
    fn scalar(&mut self) -> Result<Option<Cow<'a, str>>, ScanError> {
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            Some(b'{' | b'[' | b'n') => self.skip().map(|()| None),
            _ => {
                let from = self.at;
                self.skip()?;
                Ok(std::str::from_utf8(&self.bytes[from..self.at]).ok().map(Cow::Borrowed))
            }
        }
    }

    /// Passes over a string. Whether something in it is escaped.
    #[inline]
    fn skip_string(&mut self) -> Result<bool, ScanError> {
        if self.peek() != Some(b'"') {
            return self.fail("a string was expected");
        }
        self.at += 1;
        let mut has_escapes = false;
        loop {
            let rest = self.rest();
            match quote_or_escape(rest) {
                Some(hit) if rest[hit] == b'"' => {
                    self.at += hit + 1;
                    return Ok(has_escapes);
                }
                Some(hit) if hit + 1 < rest.len() => self.at += hit + 2,
                _ => return self.fail("a string without end"),
            }
            has_escapes = true;
        }
    }

    /// Passes over one value of any kind.
    fn skip(&mut self) -> Result<(), ScanError> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_string()?;
                    // Mostly another one follows.
                    while depth > 0 && matches!(self.rest(), [b':' | b',', b'"', ..]) {
                        self.at += 1;
                        self.skip_string()?;
                    }
                }
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => self.skip_word(),
                _ => return self.fail("a value was expected"),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_word(&mut self) {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
        self.at += end;
    }
}
