//! The query of a URL.
//!
//! In: the text behind the `?`. Out: names and values, decoded as Go's `net/url` decodes them. Never: fails;
//! pairs that make no sense are left out, as upstream leaves them out.

use std::num::IntErrorKind;

use crate::json::{go_quote, replace_invalid_utf8};

/// The names and values of a query, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Reads the text behind the `?`, without it.
    pub fn parse(text: &str) -> Query {
        let pairs = text.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        let decode = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((unescape(name)?, unescape(value)?))
        };
        Query { pairs: pairs.filter_map(decode).collect() }
    }

    /// These names and values, in order.
    pub fn of(pairs: impl IntoIterator<Item = (String, String)>) -> Query {
        Query { pairs: pairs.into_iter().collect() }
    }

    /// The first value of `name`; `Some("")` for a name without one.
    pub fn first(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// The values of `name`, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.pairs.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn text(&self, name: &str) -> String {
        self.first(name).unwrap_or_default().to_string()
    }

    pub(super) fn texts(&self, name: &str) -> Vec<String> {
        self.all(name).map(str::to_string).collect()
    }

    /// Only `0` and `false` are false: as upstream has it, `?watch` and `?watch=no` are true.
    pub fn boolean(&self, name: &str) -> Option<bool> {
        self.first(name).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// # Errors
    /// Go's message for text that is not a 64-bit integer, the empty text among it.
    pub fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        self.first(name).map(parse_int).transpose()
    }
}

fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|error: std::num::ParseIntError| {
        let fault = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {fault}", go_quote(text))
    })
}

/// Decodes `%XX` and `+`; `None` when a `%` stands alone. Bytes that are not UTF-8 become U+FFFD.
fn unescape(text: &str) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_string());
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        match byte {
            b'+' => decoded.push(b' '),
            b'%' => {
                let (&[high, low], tail) = rest.split_first_chunk()?;
                let digit = |byte| char::from(byte).to_digit(16);
                decoded.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
                rest = tail;
            }
            byte => decoded.push(byte),
        }
    }
    Some(String::from_utf8(decoded).unwrap_or_else(|error| replace_invalid_utf8(error.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[(&str, &str)]) {
        let query = Query::parse(text);
        assert_eq!(query.iter().collect::<Vec<_>>(), want, "{text}");
    }

    #[test]
    fn pairs_are_decoded_in_order() {
        check("", &[]);
        check("watch&limit=5&limit=6", &[("watch", ""), ("limit", "5"), ("limit", "6")]);
        check("a+b=c%3Dd%2c%20e+f&=x&y==", &[("a b", "c=d, e f"), ("", "x"), ("y", "=")]);
        check("&&a=%C3%A9&", &[("a", "é")]);
    }

    #[test]
    fn pairs_that_make_no_sense_are_left_out() {
        check("a=%zz&b=%4&c=%&d=1;e=2&f=3", &[("f", "3")]);
        check("a=%ff&b=%e9%aa", &[("a", "\u{fffd}"), ("b", "\u{fffd}\u{fffd}")]);
    }

    #[test]
    fn only_0_and_false_are_false() {
        for (text, want) in [
            ("", None),
            ("watch", Some(true)),
            ("watch=", Some(true)),
            ("watch=0", Some(false)),
            ("watch=FALSE&watch=true", Some(false)),
            ("watch=no", Some(true)),
        ] {
            assert_eq!(Query::parse(text).boolean("watch"), want, "{text}");
        }
    }

    #[test]
    fn integers_fail_in_gos_words() {
        for (text, want) in [
            ("", Ok(None)),
            ("n=-5", Ok(Some(-5))),
            ("n=%2B5", Ok(Some(5))),
            ("n", Err("strconv.ParseInt: parsing \"\": invalid syntax")),
            ("n=5x&n=5", Err("strconv.ParseInt: parsing \"5x\": invalid syntax")),
            (
                "n=9223372036854775808",
                Err("strconv.ParseInt: parsing \"9223372036854775808\": value out of range"),
            ),
        ] {
            assert_eq!(Query::parse(text).integer("n"), want.map_err(str::to_string), "{text}");
        }
    }
}
