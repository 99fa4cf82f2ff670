//! The bytes of a saved state: `docs/formats/informer-state.md`.
//!
//! In: objects in key order, or a file. Out: records, each of neighbours with the deflated text that they are
//! in. A text that is in memory is written as it is, and read as what a server sends packed. Never: trusts
//! what it reads, holds more than a record.

use std::io::{self, Read, Write};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use flate2::{Compress, Compression, Crc, FlushCompress};
use forebay_object::{Kept, Object, inflate};

use crate::limits::{RECORD_BYTES_MAX, RECORD_OBJECTS_MAX, RECORD_PLAIN_BYTES};

/// Neighbours and the text that they are in.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) plain: Bytes,
    pub(super) deflated: Bytes,
    pub(super) spans: Vec<Range<usize>>,
}

/// Writes records.
pub(super) struct Records<W> {
    out: W,
    coder: Compress,
    // What is kept by itself, to be deflated together.
    plain: Vec<u8>,
    spans: Vec<Range<usize>>,
}

impl<W: Write> Records<W> {
    pub(super) fn new(out: W) -> Records<W> {
        let coder = Compress::new(Compression::fast(), false);
        Records { out, coder, plain: Vec::new(), spans: Vec::new() }
    }

    /// Writes `objects`, and returns what they were written to and how many they were.
    ///
    /// # Errors
    /// The disk's, or that of an object that was spilled and is lost.
    pub(super) fn write<'a>(
        mut self,
        objects: impl Iterator<Item = &'a Arc<Object>>,
    ) -> io::Result<(W, u64)> {
        let (mut objects, mut count) = (objects.peekable(), 0);
        while let Some(object) = objects.next() {
            count += 1;
            let Some(kept) = object.kept() else {
                self.add(&object.try_body().map_err(io::Error::other)?)?;
                continue;
            };
            self.flush()?;
            let (mut spans, mut last) = (vec![kept.span()], kept);
            let follows =
                |last: &Kept<'_>, next: &&Arc<Object>| next.kept().is_some_and(|next| last.is_before(&next));
            while let Some(next) = objects.next_if(|next| follows(&last, next)).and_then(|next| next.kept()) {
                (last, count) = (next, count + 1);
                spans.push(next.span());
            }
            self.put(kept.plain_len(), kept.deflated(), &spans)?;
        }
        self.flush()?;
        Ok((self.out, count))
    }

    /// One that is kept by itself.
    fn add(&mut self, body: &[u8]) -> io::Result<()> {
        let from = self.plain.len();
        self.plain.extend_from_slice(body);
        self.spans.push(from..self.plain.len());
        match self.plain.len() >= RECORD_PLAIN_BYTES || self.spans.len() >= RECORD_OBJECTS_MAX {
            true => self.flush(),
            false => Ok(()),
        }
    }

    /// Writes those that are kept by themselves.
    fn flush(&mut self) -> io::Result<()> {
        if self.spans.is_empty() {
            return Ok(());
        }
        let (plain, spans) = (std::mem::take(&mut self.plain), std::mem::take(&mut self.spans));
        self.coder.reset();
        // What does not get smaller gets larger by five bytes for each 16 KiB, and by what a flush is.
        let mut deflated = Vec::with_capacity(plain.len() + plain.len() / 1_024 + 64);
        self.coder.compress_vec(&plain, &mut deflated, FlushCompress::Full)?;
        if self.coder.total_in() != plain.len() as u64 {
            return Err(io::Error::other("a record does not fit its room"));
        }
        self.put(plain.len(), &deflated, &spans)?;
        (self.plain, self.spans) = (plain, spans);
        self.plain.clear();
        self.spans.clear();
        Ok(())
    }

    fn put(&mut self, plain_len: usize, deflated: &[u8], spans: &[Range<usize>]) -> io::Result<()> {
        let mut head = Vec::with_capacity(8 + 8 * spans.len());
        let mut number = |number: usize| head.extend_from_slice(&(number as u32).to_le_bytes());
        [plain_len, spans.len()].into_iter().for_each(&mut number);
        spans.iter().flat_map(|span| [span.start, span.end]).for_each(number);
        let mut sum = Crc::new();
        [&head[..], deflated].into_iter().for_each(|bytes| sum.update(bytes));
        let len = (head.len() + deflated.len()) as u32;
        [&len.to_le_bytes()[..], &sum.sum().to_le_bytes(), &head, deflated]
            .into_iter()
            .try_for_each(|bytes| self.out.write_all(bytes))
    }
}

/// Behind the last record: none is so short.
pub(super) fn end(objects: u64) -> Vec<u8> {
    [&0_u32.to_le_bytes()[..], &objects.to_le_bytes()].concat()
}

/// What comes next in a file.
pub(super) enum Next {
    Record(Record),
    /// That was all, and so many objects.
    End(u64),
}

/// # Errors
/// The disk's, and `InvalidData` for what nobody wrote so.
pub(super) fn next(file: &mut impl Read) -> io::Result<Next> {
    let len = number(file)? as usize;
    if len == 0 {
        let (low, high) = (number(file)?, number(file)?);
        return Ok(Next::End(u64::from(low) | u64::from(high) << 32));
    }
    let sum = number(file)?;
    if len > RECORD_BYTES_MAX {
        return Err(super::garbled("a record that is too long"));
    }
    let mut bytes = vec![0; len];
    file.read_exact(&mut bytes)?;
    let mut own = Crc::new();
    own.update(&bytes);
    if own.sum() != sum {
        return Err(super::garbled("a record that was spoiled"));
    }
    record(Bytes::from(bytes)).map(Next::Record).ok_or_else(|| super::garbled("a record that says nothing"))
}

/// What the bytes of a record say, if they say it.
fn record(bytes: Bytes) -> Option<Record> {
    let mut head = &bytes[..];
    let mut number = || taken(&mut head);
    let (plain_len, objects) = (number()?, number()?);
    if plain_len > RECORD_BYTES_MAX || objects > RECORD_BYTES_MAX / 8 {
        return None;
    }
    let spans = (0..objects).map(|_| Some(number()?..number()?)).collect::<Option<Vec<_>>>()?;
    let deflated = bytes.slice_ref(head);
    let plain = inflate(&deflated, plain_len)?;
    let are_within = spans.iter().all(|span| span.start <= span.end && span.end <= plain_len);
    are_within.then_some(Record { plain, deflated, spans })
}

fn taken(from: &mut &[u8]) -> Option<usize> {
    let (number, rest) = from.split_first_chunk()?;
    *from = rest;
    Some(u32::from_le_bytes(*number) as usize)
}

fn number(file: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    file.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
