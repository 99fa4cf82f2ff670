//! Names of iSCSI targets and initiators: `iqn.2001-04.com.example:disk`, `eui.` and 16 digits, or `naa.`
//! and 32.
//!
//! In: a name. Out: whether it is well made, in linear time. Never: asks whom it names.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`; RFC 3720, 3.2.6.3.

#[cfg(test)]
mod tests;

/// What a text is as a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IscsiName {
    Well,
    Malformed,
    /// It begins with the name of no scheme.
    OfNoScheme,
}

/// What `text` is as a name.
///
/// Cost: one walk through it.
pub fn of(text: &str) -> IscsiName {
    let well = match text.as_bytes() {
        [b'i', b'q', b'n', ..] => is_iqn(text),
        [b'e', b'u', b'i', ..] => is_number(&text[3..], 16),
        [b'n', b'a', b'a', ..] => is_number(&text[3..], 32),
        _ => return IscsiName::OfNoScheme,
    };
    if well { IscsiName::Well } else { IscsiName::Malformed }
}

/// Any one character, and so many digits and letters.
fn is_number(text: &str, count: usize) -> bool {
    let mut rest = text.chars();
    rest.next().is_some_and(|c| c != '\n')
        && rest.as_str().len() == count
        && rest.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// A date and a domain in reverse, and after a colon what the owner of the domain says. It may come after
/// something else, as upstream does not ask where it begins.
fn is_iqn(text: &str) -> bool {
    let in_no_tail = |byte: u8| b",;*&$| \t\n\x0c\r".contains(&byte);
    let tail = text.bytes().rposition(in_no_tail).map_or(0, |last| last + 1);
    let in_domain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    let mut start = 0;
    for (colon, _) in text.match_indices(':') {
        let before = &text.as_bytes()[start..colon];
        // Once: each byte between two colons.
        let domain = before.iter().rposition(|byte| !in_domain(*byte)).map_or(0, |last| last + 1);
        if colon + 1 >= tail && colon + 1 < text.len() && has_date_and_domain(&before[domain..]) {
            return true;
        }
        start = colon + 1;
    }
    false
}

/// `iqn.2001-04.` and more.
fn has_date_and_domain(text: &[u8]) -> bool {
    const DATE: &[u8] = b"iqn.0000-00.";
    let fits = |(is, pattern): (&u8, &u8)| if *pattern == b'0' { is.is_ascii_digit() } else { is == pattern };
    text.windows(DATE.len() + 1).any(|window| window.iter().zip(DATE).all(fits))
}
