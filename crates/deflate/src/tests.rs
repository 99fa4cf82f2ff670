//! What readers of the format make of it, whatever the text.
//!
//! In: texts of a seed. Out: that two readers have them back, that they are as small as they ought to be.
//! Never: another text.

use std::io::Read;

use forebay_rt::Random;

use super::*;

/// What a reader of the format makes of it: those of Go and of browsers take what these two take.
fn inflated(deflated: &[u8], len: usize) -> Vec<u8> {
    assert!(deflated.ends_with(&FLUSHED));
    // A last block, stored and empty.
    let whole = [deflated, &[1, 0, 0, 0xff, 0xff]].concat();
    let (mut streamed, mut at_once) = (Vec::new(), vec![0; len]);
    flate2::read::DeflateDecoder::new(&whole[..]).read_to_end(&mut streamed).expect("deflate");
    let read = libdeflater::Decompressor::new().deflate_decompress(&whole, &mut at_once).expect("deflate");
    assert!(read == len && streamed == at_once);
    streamed
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let room = text.len() + text.len() / 4 + 1024;
    Deflate::new().deflate(text, room).expect("there is room").to_vec()
}

/// Objects that differ in a few values.
fn objects(count: usize, random: &Random) -> Vec<u8> {
    let object = |number| {
        format!(
            r#"{{"metadata":{{"name":"web-{number}","uid":"{}","labels":{{"app":"web","hash":"{:x}"}}}},"spec":{{"image":"registry.example.com/team/web:v{}","path":"/dev/termination-log"}}}}"#,
            random.uuid(),
            random.below(1 << 40),
            random.below(100),
        )
    };
    (0..count).map(object).collect::<Vec<_>>().join(",").into_bytes()
}

/// A text of words, repetitions of any length and distance, runs of a byte, and chance.
fn text(len: usize, random: &Random) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 4096);
    while text.len() < len {
        let part = random.below(4096) as usize >> random.below(11);
        match random.below(5) {
            0 if !text.is_empty() => {
                let start = text.len() - 1 - random.below(text.len().min(70_000) as u64) as usize;
                (start..start + part).for_each(|at| text.push(text[at]));
            }
            1 => text.extend(std::iter::repeat_n(random.below(256) as u8, part)),
            2 => text.extend((0..part).map(|_| random.below(256) as u8)),
            3 => text.extend((0..part).map(|_| b'a' + random.below(4) as u8)),
            _ => text.extend(br#""name":"value","#.iter().cycle().take(part)),
        }
    }
    text.truncate(len);
    text
}

#[test]
fn every_reader_gets_the_text_back() {
    let random = Random::seeded(39);
    let ends = [0, 1, 2, 3, 11, 12, 13, 14, 257, 258, 259, 260, 261, 262, 516, 65_535, 65_536, 65_537];
    let lens = ends.into_iter().chain([BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES + 7]);
    for len in lens.chain((0..300).map(|_| random.below(20_000) as usize)) {
        let one_byte = vec![b'x'; len];
        for text in [text(len, &random), one_byte] {
            assert!(inflated(&deflate(&text), len) == text, "{len}");
        }
    }
}

/// Counts that grow as fast as each is the two before it together: without a limit the codes have as many
/// bits as there are of them.
#[test]
fn codes_are_never_longer_than_the_format_has_them() {
    let mut counts = [0; LITERALS];
    let (mut one, mut other) = (1u32, 1u32);
    for count in &mut counts[..40] {
        *count = one;
        (one, other) = (other, one + other);
    }
    for limit in [7, 9, 15] {
        let code = Code::of(&counts, limit);
        let lengths: Vec<u8> = code.lengths(0).collect();
        assert_eq!(lengths.iter().max(), Some(&(limit as u8)));
        let taken: u32 = lengths.iter().map(|&length| 1 << (limit - usize::from(length))).sum();
        assert_eq!(taken, 1 << limit, "each bit has a meaning");
        assert!(
            lengths.is_sorted_by(|one, next| one >= next),
            "{lengths:?}: what comes more often is not longer"
        );
    }
    // The same written and read, as bytes in which nothing is looked for.
    let (mut text, mut one, mut other) = (Vec::new(), 1, 1);
    for byte in 0..22 {
        text.extend(std::iter::repeat_n(byte, one));
        (one, other) = (other, one + other);
    }
    let mut steps = Vec::new();
    repeats::push(text.len(), 0, 0, &mut steps);
    let mut into = vec![0; text.len()];
    let mut bits = Bits::new(&mut into);
    write_block(&text, 0..text.len(), &steps, &mut bits).expect("there is room");
    bits.put(0, 3);
    let len = bits.end(&FLUSHED);
    assert_eq!(inflated(&into[..len], text.len()), text);
}

/// Of one deflated block, and of three: all there is room for is used, and not a byte more is asked for than
/// words take.
#[test]
fn what_has_no_room_is_not_written() {
    let random = Random::seeded(5);
    for text in [objects(200, &random), text(2 * BLOCK_BYTES + 9, &random)] {
        let whole = deflate(&text);
        let ends = whole.len() - 40..whole.len() + 40;
        let mut fits = false;
        for room in (0..whole.len()).step_by(997).chain(ends) {
            match Deflate::new().deflate(&text, room) {
                Some(deflated) => {
                    assert_eq!(deflated, whole);
                    fits = true;
                }
                None => assert!(!fits && room < whole.len() + 16, "{room} of {}", whole.len()),
            }
        }
        assert!(fits);
    }
}

#[test]
fn a_text_is_the_same_after_others() {
    let random = Random::seeded(6);
    let texts: Vec<Vec<u8>> = (0..20).map(|number| text(number * 9_000, &random)).collect();
    let mut one = Deflate::new();
    for text in texts.iter().chain(texts.iter().rev()) {
        let deflated = one.deflate(text, 400_000).expect("there is room");
        assert!(deflated == deflate(text), "nothing is left of the text before");
    }
}

/// Not a fiftieth larger than zlib's level 4 makes them.
#[test]
fn objects_are_as_small_as_a_library_makes_them() {
    let text = objects(300, &Random::seeded(7));
    let ours = deflate(&text).len();
    let mut theirs = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::new(4));
    std::io::Write::write_all(&mut theirs, &text).expect("in memory");
    let theirs = theirs.finish().expect("in memory").len();
    assert!(ours * 50 <= theirs * 51, "{ours} of {} where a library makes {theirs}", text.len());
}

/// Where what repeats is chance, each byte takes as many bits as a code of such bytes has, and hardly more.
#[test]
fn texts_of_chance_are_as_small_as_their_letters_make_them() {
    let random = Random::seeded(8);
    for (letters, bits) in
        [(&b"0123456789"[..], 3.4), (b"0123456789abcdef", 4.0), (b"abcdefghijklmnopqrstuvwxyz", 4.8)]
    {
        let text: Vec<u8> =
            (0..200_000).map(|_| letters[random.below(letters.len() as u64) as usize]).collect();
        let deflated = deflate(&text);
        assert!(inflated(&deflated, text.len()) == text);
        let len = deflated.len();
        let most = text.len() as f64 * bits / 8.0 * 1.06;
        assert!((len as f64) < most, "{len} of {} letters", letters.len());
    }
}

/// As a Secret among small objects is.
#[test]
fn what_repeats_behind_chance_is_found() {
    let random = Random::seeded(9);
    let objects = objects(200, &random);
    let alone = deflate(&objects).len();
    for chance in [8, 32, 48, 64] {
        let noise: Vec<u8> = (0..chance << 10).map(|_| b'0' + random.below(64) as u8).collect();
        let len = deflate(&[&noise[..], &objects].concat()).len();
        // Six bits of eight; and one code for both, which suits neither.
        let both = noise.len() * 3 / 4 + 2 * alone;
        assert!(len < both, "{len} of {both} behind {chance} KB");
    }
}
