//! Base64 as Go's standard decoder reads it: line breaks are ignored, unused bits of the last letter too.

use std::borrow::Cow;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Returns the text as Go would write the bytes again.
///
/// # Errors
/// The offset that Go names as illegal.
pub(super) fn canonical(text: &str) -> Result<Cow<'_, str>, usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut rewrite = false;
    while at < bytes.len() {
        match quantum(bytes, at)? {
            (end, Quantum::Clean) => at = end,
            (end, Quantum::Loose) => {
                rewrite = true;
                at = end;
            }
        }
    }
    Ok(if rewrite { Cow::Owned(rewritten(bytes)) } else { Cow::Borrowed(text) })
}

/// Writes bytes with padding.
pub(super) fn encoded(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for letter in 0..4 {
            let value = (bits >> (18 - 6 * letter) & 63) as usize;
            out.push(if letter <= chunk.len() { char::from(ALPHABET[value]) } else { '=' });
        }
    }
    out
}

enum Quantum {
    Clean,
    /// With line breaks, or with unused bits that are not zero.
    Loose,
}

/// Reads up to four letters from `start`; returns where the next quantum starts.
fn quantum(bytes: &[u8], start: usize) -> Result<(usize, Quantum), usize> {
    let mut at = start;
    let mut loose = false;
    let mut last = 0;
    let mut letters = 0;
    while letters < 4 {
        let Some(&byte) = bytes.get(at) else {
            // Line breaks at the very end are no quantum at all.
            return if letters == 0 { Ok((at, Quantum::Loose)) } else { Err(at - letters) };
        };
        at += 1;
        if let Some(value) = value_of(byte) {
            last = value;
            letters += 1;
        } else if is_break(byte) {
            loose = true;
        } else if byte == b'=' && letters >= 2 {
            let unused = if letters == 2 { 0x0f } else { 0x03 };
            loose |= last & unused != 0;
            let end = padding(bytes, at, letters, &mut loose)?;
            return Ok((end, if loose { Quantum::Loose } else { Quantum::Clean }));
        } else {
            return Err(at - 1);
        }
    }
    Ok((at, if loose { Quantum::Loose } else { Quantum::Clean }))
}

/// Reads what follows the first `=`; nothing but line breaks may.
fn padding(bytes: &[u8], mut at: usize, letters: usize, loose: &mut bool) -> Result<usize, usize> {
    if letters == 2 {
        at = skip_breaks(bytes, at, loose);
        match bytes.get(at) {
            None => return Err(bytes.len()),
            Some(b'=') => at += 1,
            Some(_) => return Err(at - 1),
        }
    }
    at = skip_breaks(bytes, at, loose);
    if at < bytes.len() { Err(at) } else { Ok(at) }
}

fn skip_breaks(bytes: &[u8], mut at: usize, loose: &mut bool) -> usize {
    while bytes.get(at).is_some_and(|&byte| is_break(byte)) {
        *loose = true;
        at += 1;
    }
    at
}

fn is_break(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

fn value_of(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

fn rewritten(bytes: &[u8]) -> String {
    let mut out: Vec<u8> = bytes.iter().copied().filter(|&byte| !is_break(byte)).collect();
    let padding = out.iter().rev().take_while(|&&byte| byte == b'=').count();
    if let Some(at) = out.len().checked_sub(padding + 1).filter(|_| padding > 0) {
        let mask = if padding == 2 { 0x30 } else { 0x3c };
        let value = value_of(out[at]).unwrap_or_default() & mask;
        out[at] = ALPHABET[usize::from(value)];
    }
    out.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::{Cow, canonical, encoded};

    #[test]
    fn bytes_are_padded() {
        let check = |bytes: &[u8], want: &str| assert_eq!(encoded(bytes), want);
        check(b"", "");
        check(b"a", "YQ==");
        check(b"ab", "YWI=");
        check(b"abc", "YWJj");
        check(&[0, 255, 254, 253], "AP/+/Q==");
    }

    #[test]
    fn base64_is_read_as_go_reads_it() {
        let check = |text: &str, want: Result<&str, usize>| {
            let got = canonical(text).map(Cow::into_owned);
            assert_eq!(got, want.map(str::to_owned), "{text:?}");
        };
        check("", Ok(""));
        check("YWJj", Ok("YWJj"));
        check("YWI=", Ok("YWI="));
        check("YQ==", Ok("YQ=="));
        check("YWJj\nYWJj\r\n", Ok("YWJjYWJj"));
        check("YQ=\n=", Ok("YQ=="));
        check("\n", Ok(""));
        check("YR==", Ok("YQ=="));
        check("YWK=", Ok("YWI="));
        check("YWJ", Err(0));
        check("YWJjYQ", Err(4));
        check("YWJj!WJj", Err(4));
        check("YQ=", Err(3));
        check("YQ=x", Err(2));
        check("YQ==x", Err(4));
        check("=", Err(0));
        check("Y===", Err(1));
        check("YWJj=", Err(4));
        check("YW-_", Err(2));
    }
}
