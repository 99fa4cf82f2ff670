//! How well objects compress together: what a cache that keeps them deflated can hope for.
//!
//! In: objects in the order of their keys. Out: plain bytes over deflated ones, level 6, in blocks of
//! neighbours. This is measured on what a server sends, and by no server: it is the same figure for
//! everybody. Never: a block below or above its size but for the last, and where one object is larger.

use flate2::{Compress, Compression, FlushCompress};

/// A block ends with the object that fills it to this.
const BLOCK_BYTES_MIN: usize = 64 << 10;
/// And before the one that would make it larger than this.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// Plain bytes over deflated ones; 1 where there is nothing.
pub fn block_ratio<'a>(objects: impl Iterator<Item = &'a [u8]>) -> f64 {
    let (mut plain, mut deflated) = (0, 0);
    let mut block = Vec::new();
    let mut close = |block: &mut Vec<u8>| {
        plain += block.len();
        deflated += deflated_len(block);
        block.clear();
    };
    for object in objects {
        if !block.is_empty() && block.len() + object.len() > BLOCK_BYTES_MAX {
            close(&mut block);
        }
        block.extend_from_slice(object);
        if block.len() >= BLOCK_BYTES_MIN {
            close(&mut block);
        }
    }
    if !block.is_empty() {
        close(&mut block);
    }
    if deflated == 0 { 1.0 } else { plain as f64 / deflated as f64 }
}

fn deflated_len(block: &[u8]) -> usize {
    let mut compress = Compress::new(Compression::new(6), false);
    let mut out = Vec::with_capacity(block.len() + block.len() / 8 + 1_024);
    match compress.compress_vec(block, &mut out, FlushCompress::Finish) {
        Ok(_) => out.len(),
        Err(_) => block.len(),
    }
}

/// The items of a LIST as text, each from its brace to its brace.
pub fn items(list: &[u8]) -> Option<Vec<&[u8]>> {
    let begin = b"\"items\":[";
    let mut at = list.windows(begin.len()).position(|window| window == begin)? + begin.len();
    let mut items = Vec::new();
    loop {
        match list.get(at)? {
            b']' => return Some(items),
            b'{' => {
                let end = object_end(&list[at..])?;
                items.push(&list[at..at + end]);
                at += end;
            }
            _ => at += 1,
        }
    }
}

/// Length of the object that `text` begins with.
fn object_end(text: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut at) = (0_usize, false, 0);
    loop {
        match text.get(at)? {
            b'\\' if in_string => at += 1,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;

    #[test]
    fn repetition_has_a_high_ratio_and_random_bytes_none() {
        let same = vec![b'a'; 8 << 10];
        assert!(block_ratio(std::iter::repeat_n(&same[..], 32)) > 100.0);
        let random: Vec<Vec<u8>> = (0..32).map(|at| Draw::of("bytes", at).bytes(8 << 10)).collect();
        let ratio = block_ratio(random.iter().map(|bytes| &bytes[..]));
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
        assert!((block_ratio(std::iter::empty()) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn items_are_found_whole_whatever_their_strings_hold() {
        let list = br#"{"kind":"List","metadata":{},"items":[{"a":"}\"]"}, {"b":{"c":[1]}}]}"#;
        let found: Vec<_> =
            items(list).unwrap().into_iter().map(|item| std::str::from_utf8(item).unwrap()).collect();
        assert_eq!(found, [r#"{"a":"}\"]"}"#, r#"{"b":{"c":[1]}}"#]);
        assert_eq!(items(br#"{"items":[]}"#), Some(vec![]));
        assert_eq!(items(br#"{"items":[{"a":1}"#), None);
        assert_eq!(items(b"{}"), None);
    }
}
