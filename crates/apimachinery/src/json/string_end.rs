//! Where a JSON string ends.
//!
//! In: bytes behind a quote. Out: where the closing one is, or where to go on when more came. Never: looks at
//! what it says.

use memchr::memchr2;

/// Where a string goes that is open at `at`: behind its closing quote, or, as an error, where to go on once
/// there is more.
#[inline]
pub fn string_end(text: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        match quote_or_escape(&text[at..]) {
            Some(hit) if text[at + hit] == b'"' => return Ok(at + hit + 1),
            Some(hit) if at + hit + 1 < text.len() => at += hit + 2,
            // What is escaped comes with the next piece.
            Some(hit) => return Err(at + hit),
            None => return Err(text.len()),
        }
    }
}

/// Where the first quote or backslash is. Most strings are short: those of up to four words cost no call.
#[inline]
pub fn quote_or_escape(text: &[u8]) -> Option<usize> {
    const WORDS: usize = 4;
    for (number, word) in text.as_chunks::<8>().0.iter().take(WORDS).enumerate() {
        let word = u64::from_le_bytes(*word);
        let hits = zero_bytes(word ^ bytes_of(b'"')) | zero_bytes(word ^ bytes_of(b'\\'));
        if hits != 0 {
            return Some(number * 8 + hits.trailing_zeros() as usize / 8);
        }
    }
    let passed = (text.len() / 8).min(WORDS) * 8;
    Some(passed + memchr2(b'"', b'\\', &text[passed..])?)
}

const fn bytes_of(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The top bit of the first byte that is zero; bits of bytes behind that one mean nothing.
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(bytes_of(1)) & !word & bytes_of(0x80)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_quote_or_backslash_is_found_wherever_it_stands() {
        // Those that differ from a wanted one by a bit or by a carry, and what is not ASCII.
        let others = [b'a', b'!', b'#', b'[', b']', b'\\' - 1, 0, 1, 0x7f, 0x80, 0xa2, 0xdc, 0xff];
        for len in 0..48 {
            for other in others {
                let mut text = vec![other; len];
                assert_eq!(quote_or_escape(&text), None, "{other:#x} x {len}");
                for at in 0..len {
                    for (wanted, behind) in [(b'"', b'\\'), (b'\\', b'"'), (b'"', other)] {
                        text[at] = wanted;
                        if at + 1 < len {
                            text[at + 1] = behind;
                        }
                        assert_eq!(
                            quote_or_escape(&text),
                            Some(at),
                            "{other:#x} x {len}, {wanted:#x} at {at}"
                        );
                        text[at..].fill(other);
                    }
                }
            }
        }
    }

    #[test]
    fn a_string_ends_at_its_quote_wherever_it_is_cut() {
        let text = br#"plain \" and \\ and a text that is long enough for a call \u0022, not \\\" here, but here\\"tail"#;
        let end = text.len() - b"tail".len();
        assert_eq!(string_end(text, 0), Ok(end));
        for cut in 0..end {
            let seen = string_end(&text[..cut], 0).expect_err("it goes on");
            assert!(seen <= cut && cut - seen <= 1, "{cut} {seen}");
            assert_eq!(string_end(text, seen), Ok(end), "cut at {cut}");
        }
    }
}
