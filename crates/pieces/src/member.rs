//! A gzip member that is put together: what the cache has deflated as it is, and the rest compressed.
//!
//! In: plain text and deflated segments, in turn. Out: gzip's head, then for each segment its own deflated
//! bytes, stored blocks for the commas between them, and what is not in a block compressed; in the end an
//! empty final block and the CRC of it all, which is combined from those of the parts. One member, because
//! readers of one stop at its end (zlib, and who is built on it). Every part ends on a byte boundary. Never:
//! holds a compressor: each thread has one.

use std::cell::RefCell;

use flate2::Crc;
use forebay_deflate::Deflate;
use forebay_object::Deflated;
use forebay_reads::Sink;
use zlib_rs::crc32::crc32_combine;

use crate::limits::{DEFLATE_BYTES, STORED_BYTES_MAX};

/// No name, no time; compressed fast, on a system that is not told.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255];

/// A final block with nothing in it.
const END: [u8; 2] = [0x03, 0x00];

/// A member, as far as it was put together.
#[derive(Clone)]
pub struct Member {
    /// What is finished.
    pub out: Vec<u8>,
    /// What comes after that and is not deflated yet.
    pub plain: Vec<u8>,
    sum: Sum,
}

/// What a member says of its plain text in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    crc: u32,
    // Modulo 2^32.
    len: u32,
}

thread_local! {
    // Some 300 KB for each thread of the server.
    static DEFLATE: RefCell<Deflate> = RefCell::default();
}

impl Member {
    /// - `plain`: what it begins with.
    pub fn begin(plain: Vec<u8>) -> Member {
        Member { out: HEAD.to_vec(), plain, sum: Sum::default() }
    }

    /// All of `plain` by itself.
    pub fn whole(plain: &[u8]) -> Vec<u8> {
        let mut member = Member::begin(Vec::new());
        member.add(plain);
        member.end();
        member.out
    }

    /// Deflates what was not.
    pub fn flush(&mut self) {
        let mut plain = std::mem::take(&mut self.plain);
        self.add(&plain);
        plain.clear();
        self.plain = plain;
    }

    /// Puts what was not deflated into it as it is.
    pub fn store(&mut self) {
        let plain = std::mem::take(&mut self.plain);
        self.sum.add(&plain);
        store(&plain, &mut self.out);
    }

    /// What comes next, deflated by itself to a byte boundary.
    ///
    /// - `crc`, `len`: of its plain text.
    pub fn add_deflated(&mut self, deflated: &[u8], crc: u32, len: usize) {
        self.flush();
        self.out.extend_from_slice(deflated);
        self.sum.count(crc, len);
    }

    /// An empty stored block: its reader has all that is before it at once. Go's inflater keeps what it has
    /// until there is more, or this.
    pub fn pause(&mut self) {
        store_block(&[], &mut self.out);
    }

    /// Deflates `plain`, or stores it when there is little of it.
    fn add(&mut self, plain: &[u8]) {
        if plain.is_empty() {
            return;
        }
        self.sum.add(plain);
        if plain.len() <= STORED_BYTES_MAX {
            store(plain, &mut self.out);
        } else {
            deflate(plain, &mut self.out);
        }
    }

    /// Nothing comes after it.
    pub fn end(&mut self) {
        self.flush();
        self.sum.end(&mut self.out);
    }
}

impl Sum {
    /// Takes in a text.
    fn add(&mut self, plain: &[u8]) {
        let mut crc = Crc::new();
        crc.update(plain);
        self.count(crc.sum(), plain.len());
    }

    /// The same by its own checksum and length.
    fn count(&mut self, crc: u32, len: usize) {
        // Less than half a microsecond.
        self.crc = crc32_combine(self.crc, crc, len as u64);
        self.len = self.len.wrapping_add(len as u32);
    }

    /// Nothing comes after it.
    fn end(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&END);
        out.extend_from_slice(&self.crc.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
    }
}

impl Sink for Member {
    fn text(&mut self) -> &mut Vec<u8> {
        &mut self.plain
    }

    fn deflated(&mut self, items: Deflated<'_>) {
        self.add_deflated(items.bytes(), items.crc(), items.plain_len());
    }

    fn bytes(&self) -> usize {
        self.out.len() + self.plain.len()
    }

    fn deflated_bytes(&self, items: Deflated<'_>) -> usize {
        items.bytes().len()
    }
}

/// `plain` in stored blocks.
fn store(plain: &[u8], out: &mut Vec<u8>) {
    plain.chunks(usize::from(u16::MAX)).for_each(|some| store_block(some, out));
}

/// A stored block: its length, the same inverted, and the bytes, of which there are less than 2^16.
fn store_block(plain: &[u8], out: &mut Vec<u8>) {
    let len = plain.len() as u16;
    out.push(0);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&(!len).to_le_bytes());
    out.extend_from_slice(plain);
}

/// `plain` by itself, to a byte boundary; as it is where nothing else is shorter.
pub(crate) fn deflate(plain: &[u8], out: &mut Vec<u8>) {
    DEFLATE.with_borrow_mut(|deflate| {
        for piece in plain.chunks(DEFLATE_BYTES) {
            match deflate.deflate(piece, piece.len()) {
                Some(deflated) => out.extend_from_slice(deflated),
                None => store(piece, out),
            }
        }
    });
}

#[cfg(test)]
pub(crate) mod testing {
    use std::io::Read as _;
    use std::sync::Arc;

    use flate2::read::GzDecoder;
    use forebay_apimachinery::{Key, Revision};
    use forebay_object::seal::Sealer;
    use forebay_object::{Form, Interner, Layout, Object, Scope};

    /// Objects at rest, `foo-0` and so on, all in blocks.
    pub fn sealed(count: u64) -> Vec<Arc<Object>> {
        let layout = Layout { prefix_len: 10, scope: Scope::Cluster, form: Form::Typed, fields: Vec::new() };
        let object = |number: u64| {
            let value = format!(
                r#"{{"kind":"Foo","apiVersion":"v1","metadata":{{"name":"foo-{number}","uid":"{}"}},"spec":{{"text":"{}"}}}}"#,
                number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                "the same in each of them, ".repeat(20 + number as usize % 90)
            );
            let (key, revision) =
                (Key::from(format!("/registry/foo-{number:06}")), Revision::from_log(number + 1));
            let made = Object::decode(&layout, key, revision, value.as_bytes(), &mut Interner::default());
            Arc::new(made.expect("valid"))
        };
        let plain: Vec<_> = (0..count).map(object).collect();
        Sealer::new(Arc::default()).seal(&plain)
    }

    /// What a reader of gzip makes of it, to the last byte.
    pub fn read(member: &[u8]) -> Vec<u8> {
        let (mut plain, mut reader) = (Vec::new(), GzDecoder::new(member));
        reader.read_to_end(&mut plain).expect("gzip");
        assert!(reader.into_inner().is_empty(), "one member, and nothing behind it");
        plain
    }
}

#[cfg(test)]
mod tests {
    use forebay_object::Segments;

    use super::testing::{read, sealed};
    use super::*;

    #[test]
    fn a_member_of_segments_and_text_reads_as_their_plain_text() {
        let sealed = sealed(400);
        let (mut walk, mut segments) = (Segments::new(sealed.iter()), Vec::new());
        while let Some(segment) = walk.next_segment() {
            segments.extend(segment.deflated);
        }
        assert!(segments.len() > 5);
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..30 {
            let (mut member, mut plain) = (Member::begin(b"{\"items\":[".to_vec()), b"{\"items\":[".to_vec());
            for segment in &segments {
                // Nothing, a comma, or objects of hot and of broken segments, which may be long.
                let text = b",{\"hot\":true}".repeat([0, 1, 5, 300, 9_000][random(5) as usize]);
                for sink in [&mut member as &mut dyn FnMutSink, &mut plain] {
                    sink.add(&text, *segment);
                }
                if random(3) == 0 {
                    member.flush();
                }
            }
            member.end();
            assert!(read(&member.out) == plain);
            assert!(member.out.len() * 4 < plain.len(), "{} of {}", member.out.len(), plain.len());
        }
    }

    /// Both sinks take the same.
    trait FnMutSink {
        fn add(&mut self, text: &[u8], items: Deflated<'_>);
    }

    impl<S: Sink> FnMutSink for S {
        fn add(&mut self, text: &[u8], items: Deflated<'_>) {
            self.text().extend_from_slice(text);
            self.deflated(items);
        }
    }

    #[test]
    fn what_does_not_shrink_and_what_is_nothing_are_read_too() {
        let noise: Vec<u8> = (0..300_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for plain in [&b""[..], b",", &noise, &noise[..STORED_BYTES_MAX], &noise[..=STORED_BYTES_MAX]] {
            assert!(read(&Member::whole(plain)) == plain, "{} bytes", plain.len());
        }
    }

    #[test]
    fn a_piece_that_does_not_shrink_is_stored_and_the_next_is_deflated() {
        let mut state = 1u64;
        let mut noise = |shift: u32| -> Vec<u8> {
            let mut byte = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                b'A'.wrapping_add((state >> shift) as u8)
            };
            (0..2 * DEFLATE_BYTES).map(|_| byte()).collect()
        };
        let (letters, bytes) = (noise(58), noise(56));
        let text = b"{\"kind\":\"Pod\"},".repeat(2 * DEFLATE_BYTES / 15);
        let len = |plain: &[u8]| {
            let mut out = Vec::new();
            deflate(plain, &mut out);
            out.len()
        };
        // Six bits of eight, and stored blocks with their heads.
        assert!(len(&letters) * 100 < letters.len() * 76, "{}", len(&letters));
        assert_eq!(len(&bytes), bytes.len() + 2 * 3 * 5);
        assert_eq!(len(&[&bytes[..], &text].concat()), len(&bytes) + len(&text));
        assert!(len(&text) * 100 < text.len(), "{}", len(&text));
        let all = [&bytes[..], &text, &letters, &bytes].concat();
        assert!(read(&Member::whole(&all)) == all);
    }

    #[test]
    fn checksums_of_parts_make_that_of_the_whole() {
        let text: Vec<u8> = (0..70_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let crc = |text: &[u8]| {
            let mut crc = Crc::new();
            crc.update(text);
            crc.sum()
        };
        for cut in [0, 1, 2, 255, 256, 65_535, 65_536, 69_999, 70_000] {
            let mut sum = Sum::default();
            let (first, second) = text.split_at(cut);
            sum.count(crc(first), first.len());
            sum.count(crc(second), second.len());
            assert_eq!(sum, Sum { crc: crc(&text), len: 70_000 }, "{cut}");
        }
    }
}
