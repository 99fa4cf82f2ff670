//! Formats of identifiers, numbers with check digits, colours and encoded bytes.

pub(super) fn is_object_id(text: &str) -> bool {
    text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// 8-4-4-4-12 hex digits; each dash may be missing. A version fixes the 13th digit, versions 4 and 5 also the
/// 17th.
pub(super) fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = String::with_capacity(32);
    let mut rest = text;
    for (i, size) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some((group, after)) = rest.split_at_checked(size) else { return false };
        digits.push_str(group);
        rest = after;
    }
    let variant = |digits: &[u8]| matches!(digits[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b');
    let bytes = digits.as_bytes();
    rest.is_empty()
        && bytes.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|v| bytes[12] == b'0' + v && (v == 3 || variant(bytes)))
}

fn without_spaces_and_dashes(text: &str) -> Vec<u8> {
    text.bytes().filter(|b| !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'-')).collect()
}

pub(super) fn is_isbn10(text: &str) -> bool {
    let code = without_spaces_and_dashes(text);
    let [digits @ .., last] = code.as_slice() else { return false };
    if digits.len() != 9
        || !digits.iter().all(u8::is_ascii_digit)
        || !(last.is_ascii_digit() || *last == b'X')
    {
        return false;
    }
    let check = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    let sum: u32 = digits.iter().zip(1..).map(|(digit, weight)| weight * u32::from(digit - b'0')).sum();
    (sum + 10 * check).is_multiple_of(11)
}

pub(super) fn is_isbn13(text: &str) -> bool {
    let code = without_spaces_and_dashes(text);
    if code.len() != 13 || !code.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 =
        code[..12].iter().zip([1, 3].into_iter().cycle()).map(|(d, w)| w * u32::from(d - b'0')).sum();
    u32::from(code[12] - b'0') == (10 - sum % 10) % 10
}

pub(super) fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_digit).map(|b| b - b'0').collect();
    is_card_number(&digits) && passes_luhn(&digits)
}

/// The length that the issuer's prefix asks for.
fn is_card_number(digits: &[u8]) -> bool {
    matches!(
        (digits, digits.len()),
        ([4, ..], 13 | 16)
            | ([5, 1..=5, ..], 16)
            | ([6, 0, 1, 1, ..] | [6, 5, ..], 16)
            | ([3, 4 | 7, ..], 15)
            | ([3, 0, 0..=5, ..] | [3, 6 | 8, ..], 14)
            | ([2, 1, 3, 1, ..] | [1, 8, 0, 0, ..], 15)
            | ([3, 5, ..], 16)
    )
}

fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(i, &digit)| match (i % 2, u32::from(digit) * 2) {
            (0, _) => u32::from(digit),
            (_, doubled) => doubled / 10 + doubled % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

pub(super) fn is_ssn(text: &str) -> bool {
    let is_sep = |b: u8| matches!(b, b'-' | b' ');
    text.len() == 11
        && text
            .bytes()
            .enumerate()
            .all(|(i, b)| if i == 3 || i == 6 { is_sep(b) } else { b.is_ascii_digit() })
}

pub(super) fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

pub(super) fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let channels: Vec<&str> = inner
        .split(',')
        .map(|c| c.trim_matches(|c| matches!(c, '\t' | '\n' | '\x0c' | '\r' | ' ')))
        .collect();
    let is_channel = |c: &str| {
        c.bytes().all(|b| b.is_ascii_digit()) && (c == "0" || !c.starts_with('0')) && c.parse::<u8>().is_ok()
    };
    channels.len() == 3 && channels.into_iter().all(is_channel)
}

/// Standard alphabet, padded, not empty.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.strip_suffix("==").or_else(|| text.strip_suffix('=')).unwrap_or(text);
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}
