//! JSON as Go writes it again: without white space, and with what HTML would trip over escaped.
//!
//! In: a text that a client sent. Out: how long it gets, and then the text. Never: bytes that nobody was told
//! of before they are made: of a text that is nothing but `<` it is six times as many.
//!
//! Source: Go's `encoding/json`, `appendCompact` with `escape`.

use bytes::Bytes;

/// See the module's doc.
pub(crate) struct Compact<'j> {
    json: &'j str,
    len: usize,
}

impl<'j> Compact<'j> {
    /// `None` for what is no JSON. Cost: two passes.
    pub fn of(json: &'j [u8]) -> Option<Compact<'j>> {
        let json = std::str::from_utf8(json).ok()?;
        serde_json::from_str::<serde::de::IgnoredAny>(json).ok()?;
        let mut len = 0;
        each_part(json.as_bytes(), |part| len += part.len());
        Some(Compact { json, len })
    }

    /// How long it gets.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn written(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.len);
        each_part(self.json.as_bytes(), |part| out.extend_from_slice(part));
        out.into()
    }
}

/// The text part by part.
fn each_part(json: &[u8], mut tell: impl FnMut(&[u8])) {
    let (mut is_in_string, mut from, mut at) = (false, 0, 0);
    while let Some(&byte) = json.get(at) {
        let (len, instead): (usize, &[u8]) = match byte {
            b'"' => {
                is_in_string = !is_in_string;
                (0, b"")
            }
            b'\\' => {
                // What it escapes ends no string.
                at += 2;
                continue;
            }
            b' ' | b'\n' | b'\r' | b'\t' if !is_in_string => (1, b""),
            b'<' => (1, b"\\u003c"),
            b'>' => (1, b"\\u003e"),
            b'&' => (1, b"\\u0026"),
            0xE2 => match json[at..] {
                [_, 0x80, 0xA8, ..] => (3, b"\\u2028"),
                [_, 0x80, 0xA9, ..] => (3, b"\\u2029"),
                _ => (0, b""),
            },
            _ => (0, b""),
        };
        if len == 0 {
            at += 1;
            continue;
        }
        tell(&json[from..at]);
        tell(instead);
        at += len;
        from = at;
    }
    tell(&json[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_go_writes_it_again_and_as_long_as_was_said() {
        for (json, want) in [
            ("{ \"a\" : [ 1,\n2 ] }\r\n\t", Some(r#"{"a":[1,2]}"#)),
            (r#"{"a b":"x \" y\\","c":"<&>"}"#, Some(r#"{"a b":"x \" y\\","c":"\u003c\u0026\u003e"}"#)),
            ("[\"\u{2028}\u{2029} â\u{20ac}\\u2028\"]", Some("[\"\\u2028\\u2029 â\u{20ac}\\u2028\"]")),
            ("\"\"", Some("\"\"")),
            ("a: b", None),
            ("{", None),
            ("", None),
        ] {
            let compact = Compact::of(json.as_bytes());
            let written = compact.as_ref().map(Compact::written);
            assert_eq!(written.as_deref(), want.map(str::as_bytes), "{json}");
            assert_eq!(compact.map(|compact| compact.len()), want.map(str::len), "{json}");
        }
    }
}
