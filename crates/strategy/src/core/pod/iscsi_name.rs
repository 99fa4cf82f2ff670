//! Names of iSCSI targets and initiators: `iqn.2001-04.com.example:disk`, `eui.` and 16 digits, `naa.` and 32.
//!
//! In: a name. Out: whether it is well made, in linear time. Never: asks whom it names.
//!
//! Source: kubernetes v1.36.3 `apis/core/validation`; RFC 3720, 3.2.6.3.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_of_a_scheme_and_well_made_by_it() {
        use IscsiName::{Malformed, OfNoScheme, Well};
        let digits = |scheme: &str, count: usize| format!("{scheme}{}", "0a".repeat(count / 2));
        for (name, expected) in [
            ("iqn.2001-04.com.example:storage.disk1", Well),
            ("iqn.2001-04.com-a.example:a:b", Well),
            ("iqn:iqn.2001-04.a:b", Well),
            ("iqn/iqn.2001-04.a:b", Well),
            ("iqn.2001-04.com.example:", Malformed),
            ("iqn.2001-04.com.example", Malformed),
            ("iqn.2001-04.:b", Malformed),
            ("iqn.2001-4.com.example:a", Malformed),
            ("iqn.2001-04.com_example:a", Malformed),
            ("iqn.2001-04.com.example:a b", Malformed),
            ("iqn.2001-04.com.example:a,b:c", Malformed),
            ("eui.", Malformed),
            (&digits("eui.", 16), Well),
            (&digits("eui\u{e9}", 16), Well),
            (&digits("eui.", 18), Malformed),
            (&digits("naa.", 32), Well),
            (&digits("naa.", 30), Malformed),
            ("", OfNoScheme),
            ("Iqn.2001-04.com.example:a", OfNoScheme),
        ] {
            assert_eq!(of(name), expected, "{name}");
        }
    }

    #[test]
    fn a_long_name_takes_as_long_as_it_is() {
        for (part, expected) in [
            ("iqn.2001-04.", IscsiName::Malformed),
            ("iqn.2001-04.a:", IscsiName::Well),
            ("iqn.2001-04.a: ", IscsiName::Malformed),
        ] {
            assert_eq!(of(&part.repeat(200_000)), expected, "{part}");
        }
    }
}
