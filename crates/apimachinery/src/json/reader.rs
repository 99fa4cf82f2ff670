//! A place in compact JSON text that moves from token to token.
//!
//! In: text without white space between its tokens, as objects are stored. Out: names, strings and where
//! values end, in whichever order the caller asks. Never: builds a tree; recurses: what is passed over is
//! counted; judges what is passed over beyond where it ends; panics, whatever the text is.

use std::borrow::Cow;

use serde_json::Value;

use super::quote_or_escape;

/// Something else was to stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct Unexpected {
    pub what: &'static str,
    pub at: usize,
}

/// A place in JSON text.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// All of the text.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The place, in bytes from the beginning.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes back to a place that it was at.
    pub fn go_back(&mut self, at: usize) {
        self.at = at.min(self.at);
    }

    /// The byte that comes next.
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// An error that names this place.
    ///
    /// # Errors
    /// Always.
    pub fn fail<T>(&self, what: &'static str) -> Result<T, Unexpected> {
        Err(Unexpected { what, at: self.at })
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Enters an object or an array.
    ///
    /// # Errors
    /// It is none.
    pub fn begin(&mut self, bracket: u8) -> Result<(), Unexpected> {
        if self.peek() != Some(bracket) {
            return self.fail(if bracket == b'[' { "not an array" } else { "not an object" });
        }
        self.at += 1;
        Ok(())
    }

    /// The name of the next member, with the place moved to its value; `None` behind the closing brace.
    ///
    /// - `index`: how many members of the object came before.
    ///
    /// # Errors
    /// What comes is no member.
    pub fn member(&mut self, index: usize) -> Result<Option<Cow<'a, [u8]>>, Unexpected> {
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                return Ok(None);
            }
            Some(b',') if index > 0 => self.at += 1,
            Some(b'"') if index == 0 => {}
            _ => return self.fail("a member was expected"),
        }
        let from = self.at;
        let name = match self.skip_string()? {
            false => Cow::Borrowed(&self.bytes[from + 1..self.at - 1]),
            true => Cow::Owned(self.unescape(from)?.into_bytes()),
        };
        if self.peek() != Some(b':') {
            return self.fail("a colon was expected");
        }
        self.at += 1;
        Ok(Some(name))
    }

    /// Whether another element comes, with the place moved to it; otherwise it is behind the closing bracket.
    ///
    /// - `index`: how many elements of the array came before.
    ///
    /// # Errors
    /// What comes is neither.
    pub fn element(&mut self, index: usize) -> Result<bool, Unexpected> {
        match self.peek() {
            Some(b']') => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if index > 0 => self.at += 1,
            Some(_) if index == 0 => {}
            _ => return self.fail("an element was expected"),
        }
        Ok(true)
    }

    /// A string, unescaped as Go reads it.
    ///
    /// # Errors
    /// It is none.
    pub fn string(&mut self) -> Result<Cow<'a, str>, Unexpected> {
        let from = self.at;
        if self.skip_string()? {
            return self.unescape(from).map(Cow::Owned);
        }
        let inner = &self.bytes[from + 1..self.at - 1];
        std::str::from_utf8(inner).map(Cow::Borrowed).or_else(|_| self.fail("not UTF-8"))
    }

    /// The string that begins at `from` and ends here.
    fn unescape(&self, from: usize) -> Result<String, Unexpected> {
        match super::read(&self.bytes[from..self.at]) {
            Ok(Value::String(text)) => Ok(text),
            _ => Err(Unexpected { what: "a bad escape", at: from }),
        }
    }

    /// A string, number or boolean as text; `None` for null, objects and arrays.
    ///
    /// # Errors
    /// No value comes.
    pub fn scalar(&mut self) -> Result<Option<Cow<'a, str>>, Unexpected> {
        match self.peek() {
            Some(b'"') => self.string().map(Some),
            Some(b'{' | b'[' | b'n') => self.skip().map(|()| None),
            _ => {
                let from = self.at;
                self.skip()?;
                Ok(std::str::from_utf8(&self.bytes[from..self.at]).ok().map(Cow::Borrowed))
            }
        }
    }

    /// Passes over a string. Whether something in it is escaped.
    #[inline]
    fn skip_string(&mut self) -> Result<bool, Unexpected> {
        if self.peek() != Some(b'"') {
            return self.fail("a string was expected");
        }
        self.at += 1;
        let mut has_escapes = false;
        loop {
            let rest = self.rest();
            match quote_or_escape(rest) {
                Some(hit) if rest[hit] == b'"' => {
                    self.at += hit + 1;
                    return Ok(has_escapes);
                }
                Some(hit) if hit + 1 < rest.len() => self.at += hit + 2,
                _ => return self.fail("a string without end"),
            }
            has_escapes = true;
        }
    }

    /// Passes over one value of any kind.
    ///
    /// # Errors
    /// No value comes.
    pub fn skip(&mut self) -> Result<(), Unexpected> {
        self.skip_within(usize::MAX)
    }

    /// Passes over one value of any kind.
    ///
    /// - `depth_max`: objects and arrays that may be inside each other.
    ///
    /// # Errors
    /// No value comes, or it is deeper.
    pub fn skip_within(&mut self, depth_max: usize) -> Result<(), Unexpected> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_string()?;
                    // Mostly another one follows.
                    while depth > 0 && matches!(self.rest(), [b':' | b',', b'"', ..]) {
                        self.at += 1;
                        self.skip_string()?;
                    }
                }
                Some(b'{' | b'[') => {
                    if depth == depth_max {
                        return self.fail("nesting that is too deep");
                    }
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                Some(b'}' | b']') if depth > 0 => {
                    depth -= 1;
                    self.at += 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => self.skip_word(),
                _ => return self.fail("a value was expected"),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn skip_word(&mut self) {
        let rest = &self.bytes[self.at..];
        let end = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']')).unwrap_or(rest.len());
        self.at += end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_come_one_by_one() {
        let mut text = Reader::new(br#"{"a":[1,"\u0062\"",{}],"\u0063":null}"#);
        text.begin(b'{').expect("an object");
        assert_eq!(text.member(0).expect("a member").as_deref(), Some(&b"a"[..]));
        text.begin(b'[').expect("an array");
        assert_eq!(text.element(0), Ok(true));
        assert_eq!(text.scalar().expect("a number").as_deref(), Some("1"));
        assert_eq!(text.element(1), Ok(true));
        assert_eq!(text.string().as_deref(), Ok("b\""));
        assert_eq!(text.element(2), Ok(true));
        text.skip().expect("an object");
        assert_eq!(text.element(3), Ok(false));
        assert_eq!(text.member(1).expect("a member").as_deref(), Some(&b"c"[..]));
        assert_eq!(text.scalar(), Ok(None));
        assert_eq!(text.member(2), Ok(None));
        assert_eq!(text.at(), text.bytes().len());
    }

    #[test]
    fn strings_say_what_go_reads() {
        for (text, want) in [
            (r#""a""#, "a"),
            (r#""\u00e9\/""#, "é/"),
            (r#""\ud83d\ude00""#, "😀"),
            (r#""\ud83d""#, "\u{fffd}"),
        ] {
            assert_eq!(Reader::new(text.as_bytes()).string().as_deref(), Ok(want), "{text}");
        }
        for text in [&b"\"a"[..], b"5", b"", br#""\x""#, br#""\u12""#, b"\"\xff\"", b"\"\\"] {
            assert!(Reader::new(text).string().is_err(), "{}", text.escape_ascii());
        }
    }

    #[test]
    fn nesting_is_counted_and_may_be_bounded() {
        let depth = 1_000_000;
        let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let mut reader = Reader::new(text.as_bytes());
        assert_eq!(reader.skip_within(depth), Ok(()));
        assert_eq!(reader.at(), text.len());
        let mut reader = Reader::new(text.as_bytes());
        let error = reader.skip_within(depth - 1).expect_err("too deep");
        assert_eq!(error.at, depth - 1);
        assert!(Reader::new(b"{}").skip_within(0).is_err());
        assert_eq!(Reader::new(b"5").skip_within(0), Ok(()));
    }

    #[test]
    fn what_is_no_value_is_an_error() {
        for text in ["", "]", "x", "{", "[1", ",", r#"{"a"#, " 1"] {
            assert!(Reader::new(text.as_bytes()).skip().is_err(), "{text}");
        }
        assert!(Reader::new(b"[1 2]").element(1).is_err());
        assert!(Reader::new(b"").element(0).is_err());
        assert!(Reader::new(b"{}").begin(b'[').is_err());
    }
}
