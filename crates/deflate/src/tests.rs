//! What readers of the format make of it, whatever the text.
//!
//! In: texts of a seed. Out: that two readers have them back, that they are as small as they ought to be. Never: another text.

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
    let mut into = vec![0; text.len() + text.len() / 4 + 1024];
    let len = Deflate::new().deflate(text, &mut into).expect("there is room");
    into.truncate(len);
    into
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

/// Codes of 15 bits and more: each byte comes as often as the two before it together.
#[test]
fn codes_are_never_longer_than_the_format_has_them() {
    let mut text = Vec::new();
    let (mut one, mut other) = (1, 1);
    for byte in 0..24 {
        text.extend(std::iter::repeat_n(byte, one));
        (one, other) = (other, one + other);
    }
    assert_eq!(inflated(&deflate(&text), text.len()), text);
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
}

#[test]
fn what_has_no_room_is_not_written() {
    let random = Random::seeded(5);
    let text = objects(200, &random);
    let whole = deflate(&text);
    let mut into = vec![0xaa; text.len()];
    for room in (0..whole.len() + 64).step_by(7) {
        let (own, others) = into.split_at_mut(room);
        match Deflate::new().deflate(&text, own) {
            Some(len) => assert_eq!(own[..len], whole),
            None => assert!(room < whole.len() + 16, "{room} of {}", whole.len()),
        }
        assert!(others.iter().all(|&byte| byte == 0xaa));
    }
}

#[test]
fn a_text_is_the_same_after_others() {
    let random = Random::seeded(6);
    let texts: Vec<Vec<u8>> = (0..20).map(|number| text(number * 9_000, &random)).collect();
    let mut one = Deflate::new();
    let mut into = vec![0; 400_000];
    for text in texts.iter().chain(texts.iter().rev()) {
        let len = one.deflate(text, &mut into).expect("there is room");
        assert!(into[..len] == deflate(text), "nothing is left of the text before");
    }
}

/// Objects become a ninth of what they were less, as they do by zlib's level 4 or better.
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
        let len = deflate(&text).len();
        let most = text.len() as f64 * bits / 8.0 * 1.03;
        assert!((len as f64) < most, "{len} of {} letters", letters.len());
    }
}
