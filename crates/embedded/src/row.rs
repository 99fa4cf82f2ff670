//! The bytes of one row: every change of one revision. `docs/formats/embedded.md` gives them byte by byte.
//!
//! In: changes to write; bytes to read. Out: bytes with a checksum; changes whose values are still
//! compressed. Never: does IO, trusts a length that it reads.

use std::cell::RefCell;

use bytes::Bytes;
use forebay_apimachinery::Key;
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use twox_hash::XxHash3_64;

const VERSION: u8 = 1;
const PUT: u8 = 1;
const EXPIRES: u8 = 2;
const LZ4: u8 = 4;
// Version and count.
const HEAD_BYTES: usize = 5;
const CHECKSUM_BYTES: usize = 8;

/// Why a row cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum RowError {
    #[error("the row of revision {revision} does not have the checksum it was written with")]
    Checksum { revision: u64 },
    #[error("the row of revision {revision} has format {found}, this version reads {VERSION}")]
    Version { revision: u64, found: u8 },
    #[error("the row of revision {revision} ends early, or has an unknown flag or a key that is not text")]
    Malformed { revision: u64 },
    #[error("a value in the row of revision {revision} cannot be decompressed")]
    Compressed { revision: u64 },
}

/// A value as it is stored: compressed when that makes it smaller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Plain(Bytes),
    Lz4 { plain_len: u32, block: Bytes },
}

impl Stored {
    /// Compresses `value` if it pays. Cost: about 2 ms a MiB.
    pub(crate) fn new(value: Bytes) -> Stored {
        match COMPRESSOR.with_borrow_mut(|compressor| compressor.compress(&value)) {
            Some(block) => Stored::Lz4 { plain_len: value.len() as u32, block },
            None => Stored::Plain(value),
        }
    }
}

thread_local! {
    /// Kept by each thread that commits: the table alone is 8 KiB, which a new one has to clear.
    static COMPRESSOR: RefCell<Compressor> = const { RefCell::new(Compressor { table: None, out: Vec::new() }) };
}

/// What compressing needs besides the value.
struct Compressor {
    table: Option<CompressTable>,
    // At most OUT_BYTES_KEPT between two values.
    out: Vec<u8>,
}

/// Output that is kept for the next value.
const OUT_BYTES_KEPT: usize = 64 << 10;

impl Compressor {
    /// The compressed form; `None` when it is not smaller.
    fn compress(&mut self, value: &[u8]) -> Option<Bytes> {
        let len_max = get_maximum_output_size(value.len());
        if self.out.len() < len_max {
            self.out.resize(len_max, 0);
        }
        // A table for large values does not fit small ones as well, so each is made new for them.
        let is_large = value.len() >= usize::from(u16::MAX);
        let mut large = is_large.then(CompressTable::large);
        let table = match &mut large {
            Some(table) => table,
            None => self.table.get_or_insert_with(CompressTable::small),
        };
        let len = compress_into_with_table(value, &mut self.out, table).ok();
        let block = len.filter(|len| *len < value.len()).map(|len| Bytes::copy_from_slice(&self.out[..len]));
        if self.out.len() > OUT_BYTES_KEPT {
            self.out = Vec::new();
        }
        block
    }
}

/// One change to be written.
#[derive(Clone, Debug)]
pub(crate) struct NewChange {
    pub(crate) key: Key,
    /// `None` deletes.
    pub(crate) put: Option<NewPut>,
}

#[derive(Clone, Debug)]
pub(crate) struct NewPut {
    pub(crate) value: Bytes,
    pub(crate) stored: Stored,
    /// Unix milliseconds at which the store deletes the key.
    pub(crate) expires_ms: Option<u64>,
}

/// One change as it was read; the value is still as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowChange<'a> {
    pub(crate) key: &'a str,
    /// `None` is a delete.
    pub(crate) put: Option<RowPut<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPut<'a> {
    pub(crate) expires_ms: Option<u64>,
    plain_len: u32,
    lz4: bool,
    stored: &'a [u8],
    revision: u64,
}

/// Writes the row of `revision` into `row`, which is cleared first.
pub(crate) fn encode(revision: u64, changes: &[NewChange], row: &mut Vec<u8>) {
    begin(changes.len(), row);
    for change in changes {
        let Some(put) = &change.put else {
            put_key(0, change.key.as_str(), row);
            continue;
        };
        let (plain_len, block, lz4) = match &put.stored {
            Stored::Plain(value) => (value.len() as u32, value, 0),
            Stored::Lz4 { plain_len, block } => (*plain_len, block, LZ4),
        };
        let expires = if put.expires_ms.is_some() { EXPIRES } else { 0 };
        put_key(PUT | expires | lz4, change.key.as_str(), row);
        put_value(put.expires_ms, plain_len, lz4 != 0, block, row);
    }
    finish(revision, row);
}

/// Writes the row of `revision` again with only those `changes` of it.
pub(crate) fn encode_rest(revision: u64, changes: &[RowChange<'_>], row: &mut Vec<u8>) {
    begin(changes.len(), row);
    for change in changes {
        let Some(put) = &change.put else {
            put_key(0, change.key, row);
            continue;
        };
        let expires = if put.expires_ms.is_some() { EXPIRES } else { 0 };
        let lz4 = if put.lz4 { LZ4 } else { 0 };
        put_key(PUT | expires | lz4, change.key, row);
        put_value(put.expires_ms, put.plain_len, put.lz4, put.stored, row);
    }
    finish(revision, row);
}

/// Reads the changes of the row of `revision`. Values are neither copied nor decompressed.
///
/// # Errors
/// [`RowError`] when these are not the bytes that were written for that revision.
pub(crate) fn decode(revision: u64, row: &[u8]) -> Result<Vec<RowChange<'_>>, RowError> {
    let malformed = RowError::Malformed { revision };
    let Some(body_len) = row.len().checked_sub(CHECKSUM_BYTES) else { return Err(malformed) };
    let (body, checksum) = row.split_at(body_len);
    if checksum != checksum_of(revision, body).to_le_bytes() {
        return Err(RowError::Checksum { revision });
    }
    let mut reader = Reader { rest: body };
    let found = reader.u8().ok_or(RowError::Malformed { revision })?;
    if found != VERSION {
        return Err(RowError::Version { revision, found });
    }
    read_changes(&mut reader, revision).ok_or(malformed)
}

fn read_changes<'a>(reader: &mut Reader<'a>, revision: u64) -> Option<Vec<RowChange<'a>>> {
    let count = reader.u32()? as usize;
    // A change is 3 bytes at least: a count that cannot be true reserves nothing.
    let mut changes = Vec::with_capacity(count.min(reader.rest.len() / 3));
    for _ in 0..count {
        changes.push(read_change(reader, revision)?);
    }
    reader.rest.is_empty().then_some(changes)
}

fn read_change<'a>(reader: &mut Reader<'a>, revision: u64) -> Option<RowChange<'a>> {
    let flags = reader.u8()?;
    let key_len = reader.u16()? as usize;
    let key = std::str::from_utf8(reader.take(key_len)?).ok()?;
    if flags == 0 {
        return Some(RowChange { key, put: None });
    }
    if flags & PUT == 0 || flags & !(PUT | EXPIRES | LZ4) != 0 {
        return None;
    }
    let expires_ms = if flags & EXPIRES != 0 { Some(reader.u64()?) } else { None };
    let plain_len = reader.u32()?;
    let lz4 = flags & LZ4 != 0;
    let stored_len = if lz4 { reader.u32()? } else { plain_len };
    let stored = reader.take(stored_len as usize)?;
    Some(RowChange { key, put: Some(RowPut { expires_ms, plain_len, lz4, stored, revision }) })
}

impl RowPut<'_> {
    /// The value as it was put.
    ///
    /// # Errors
    /// [`RowError::Compressed`] when the block does not give as many bytes as it should.
    pub(crate) fn value(&self) -> Result<Bytes, RowError> {
        if !self.lz4 {
            return Ok(Bytes::copy_from_slice(self.stored));
        }
        let wrong = RowError::Compressed { revision: self.revision };
        // A block expands at most 255 times; a length beyond that would only reserve memory.
        if self.plain_len as usize > self.stored.len().saturating_mul(256) {
            return Err(wrong);
        }
        let mut plain = vec![0; self.plain_len as usize];
        match lz4_flex::block::decompress_into(self.stored, &mut plain) {
            Ok(len) if len == plain.len() => Ok(Bytes::from(plain)),
            _ => Err(wrong),
        }
    }
}

fn begin(count: usize, row: &mut Vec<u8>) {
    row.clear();
    row.push(VERSION);
    row.extend((count as u32).to_le_bytes());
    debug_assert_eq!(row.len(), HEAD_BYTES);
}

fn put_key(flags: u8, key: &str, row: &mut Vec<u8>) {
    let key_len = u16::try_from(key.len()).expect("keys are at most KEY_BYTES_MAX long");
    row.push(flags);
    row.extend(key_len.to_le_bytes());
    row.extend(key.as_bytes());
}

fn put_value(expires_ms: Option<u64>, plain_len: u32, lz4: bool, stored: &[u8], row: &mut Vec<u8>) {
    if let Some(expires_ms) = expires_ms {
        row.extend(expires_ms.to_le_bytes());
    }
    row.extend(plain_len.to_le_bytes());
    if lz4 {
        row.extend((stored.len() as u32).to_le_bytes());
    }
    row.extend(stored);
}

fn finish(revision: u64, row: &mut Vec<u8>) {
    let checksum = checksum_of(revision, row);
    row.extend(checksum.to_le_bytes());
}

/// The revision is the seed, so that a whole row in another row's place is noticed.
fn checksum_of(revision: u64, body: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(revision, body)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(key: &str, value: &[u8], expires_ms: Option<u64>) -> NewChange {
        let value = Bytes::copy_from_slice(value);
        let stored = Stored::new(value.clone());
        NewChange { key: Key::new(key), put: Some(NewPut { value, stored, expires_ms }) }
    }

    fn delete(key: &str) -> NewChange {
        NewChange { key: Key::new(key), put: None }
    }

    fn row_of(revision: u64, changes: &[NewChange]) -> Vec<u8> {
        let mut row = Vec::new();
        encode(revision, changes, &mut row);
        row
    }

    #[test]
    fn what_was_written_is_read() {
        let long = b"{\"kind\":\"Pod\"}".repeat(100);
        let cases = [
            vec![],
            vec![put("/a", b"", None)],
            vec![put("/a/b", b"short", Some(1_700_000_000_000)), delete("/c")],
            vec![put("/a/b", &long, None), delete("/c"), put("/d", &[0xff; 3], Some(0))],
        ];
        for changes in cases {
            let row = row_of(9, &changes);
            let read = decode(9, &row).expect("just written");
            assert_eq!(read.len(), changes.len());
            for (read, written) in read.iter().zip(&changes) {
                assert_eq!(read.key, written.key.as_str());
                let value = read.put.map(|put| (put.value().expect("just written"), put.expires_ms));
                assert_eq!(value, written.put.as_ref().map(|put| (put.value.clone(), put.expires_ms)));
            }
        }
    }

    #[test]
    fn a_value_is_compressed_only_when_that_makes_it_smaller() {
        assert!(matches!(Stored::new(Bytes::from_static(b"abc")), Stored::Plain(_)));
        assert!(matches!(Stored::new(Bytes::from(vec![b'x'; 500])), Stored::Lz4 { plain_len: 500, .. }));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let row = row_of(7, &[put("/a/b", &b"value ".repeat(20), Some(5)), delete("/c")]);
        for bit in 0..row.len() * 8 {
            let mut flipped = row.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(7, &flipped), Err(RowError::Checksum { revision: 7 }), "bit {bit}");
        }
    }

    #[test]
    fn a_row_of_another_revision_is_noticed() {
        let row = row_of(7, &[delete("/c")]);
        assert_eq!(decode(8, &row), Err(RowError::Checksum { revision: 8 }));
    }

    #[test]
    fn bytes_that_are_no_row_are_refused_even_with_a_good_checksum() {
        let good = row_of(7, &[put("/a/b", b"value", Some(5)), delete("/c")]);
        let body = &good[..good.len() - CHECKSUM_BYTES];
        for len in 0..body.len() {
            let mut short = body[..len].to_vec();
            finish(7, &mut short);
            assert_eq!(decode(7, &short), Err(RowError::Malformed { revision: 7 }), "cut at {len}");
        }
        let with = |offset: usize, byte: u8| {
            let mut changed = body.to_vec();
            changed[offset] = byte;
            finish(7, &mut changed);
            decode(7, &changed).map(|_| ())
        };
        assert_eq!(with(0, 2), Err(RowError::Version { revision: 7, found: 2 }));
        assert_eq!(with(1, 0xff), Err(RowError::Malformed { revision: 7 }), "count");
        assert_eq!(with(HEAD_BYTES, 0x80), Err(RowError::Malformed { revision: 7 }), "unknown flag");
        assert_eq!(
            with(HEAD_BYTES, EXPIRES),
            Err(RowError::Malformed { revision: 7 }),
            "a delete that expires"
        );
        assert_eq!(with(HEAD_BYTES + 3, 0xff), Err(RowError::Malformed { revision: 7 }), "key not UTF-8");
        assert_eq!(decode(7, &[]), Err(RowError::Malformed { revision: 7 }));
    }

    #[test]
    fn a_length_that_cannot_be_true_reserves_nothing() {
        let stored = &[0x11, 0x22][..];
        let put = RowPut { expires_ms: None, plain_len: u32::MAX, lz4: true, stored, revision: 3 };
        assert_eq!(put.value(), Err(RowError::Compressed { revision: 3 }));
    }

    #[test]
    fn the_rest_of_a_row_is_written_as_it_was() {
        let keep = put("/a", &b"value ".repeat(20), Some(5));
        let row = row_of(7, &[keep.clone(), delete("/c")]);
        let changes = decode(7, &row).expect("just written");
        let mut rest = Vec::new();
        encode_rest(7, &changes[..1], &mut rest);
        assert_eq!(rest, row_of(7, &[keep]));
    }

    #[test]
    fn fuzz_rows() {
        let mut row = Vec::new();
        let value = Bytes::from("a value that is long enough to be compressed ".repeat(8));
        let stored = Stored::new(value);
        let Stored::Lz4 { plain_len, block } = &stored else { panic!("it is not compressed") };
        let put =
            |stored, plain_len, lz4| RowPut { expires_ms: Some(7), plain_len, lz4, stored, revision: 3 };
        let changes = [
            RowChange { key: "/registry/a", put: Some(put(block, *plain_len, true)) },
            RowChange { key: "/registry/b", put: Some(put(b"plain", 5, false)) },
            RowChange { key: "/registry/c", put: None },
        ];
        encode_rest(3, &changes, &mut row);
        // Behind the checksum, which is put right: damage that it would not show.
        row.truncate(row.len() - CHECKSUM_BYTES);
        let corpus = forebay_fuzz::Corpus { inputs: &[&row], ..Default::default() };
        forebay_fuzz::run("rows", &corpus, |body| {
            let mut row = body.to_vec();
            finish(3, &mut row);
            let changes = decode(3, &row).map_err(forebay_fuzz::gist)?;
            let values = changes.iter().filter_map(|change| change.put.as_ref());
            let readable = values.filter(|put| put.value().is_ok()).count();
            let mut again = Vec::new();
            encode_rest(3, &changes, &mut again);
            assert_eq!(again, row);
            // One bit, and the checksum says so.
            again[0] ^= 1;
            assert_eq!(decode(3, &again).err(), Some(RowError::Checksum { revision: 3 }));
            Ok::<_, String>((changes.len(), readable))
        });
    }
}
