//! A walk over one JSON object that comes in pieces.
//!
//! In: what there is of the text, again and longer each time, and somebody who says of each member whether it
//! is passed over, taken or entered. Out: the values that were taken, in their order, and where the object
//! ends. Each byte is looked at once: a string that is not whole is gone on with where it was left. Nesting
//! of what is passed over is counted; entered are only [`LEVELS_MAX`] levels, which the visitor chooses and
//! not the text. Never: recurses; allocates, but for a member whose name has escapes; judges the grammar
//! within a value that is passed over, apart from its strings and from where it ends.

use std::borrow::Cow;
use std::ops::Range;

use forebay_apimachinery::json::string_end;

use super::error::{WireError, garbled};
use super::text::unescape;

/// Objects and arrays inside each other that a visitor enters: a list, its items, one of them, its metadata,
/// its annotations.
pub(super) const LEVELS_MAX: usize = 5;

/// What is done with a value that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Take {
    /// Passed over.
    Skip,
    /// Given to [`Visit::passed`] when it is whole.
    Value,
    /// Its members or elements come one by one. It begins with a bracket.
    Enter,
}

/// How far a walk came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// The end of what there is.
    More,
    /// The visitor wanted to be asked.
    Stop,
    /// The end of the object.
    End,
}

/// A value whose first byte is there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming<'a> {
    /// Members of the outermost object have level 0.
    pub(super) level: usize,
    /// Without escapes; empty for an element of an array.
    pub(super) name: &'a [u8],
    pub(super) first: u8,
    /// Where the value begins.
    pub(super) at: usize,
    /// Bytes between values so far.
    pub(super) spaces: usize,
}

/// Who is asked on the way. Places are those of the text that the walk was given.
pub(super) trait Visit {
    fn comes(&mut self, coming: Coming<'_>) -> Result<Take, WireError>;

    /// A value was taken. Its member goes from the quote of the name to the end of the value.
    fn passed(&mut self, level: usize, value: &[u8], member: Range<usize>) -> Result<(), WireError>;

    /// One that was entered is closed, `at` is behind its bracket. The level is that of its members.
    fn left(&mut self, level: usize, at: usize, spaces: usize) -> Reached;
}

/// What the next token has to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    /// The outermost object.
    Object,
    /// A member, an element or the closing bracket.
    First,
    Name,
    Colon,
    Value,
    /// The rest of a value that is a string,
    String,
    /// an object or array,
    Nested,
    /// or a number or literal.
    Word,
    Comma,
}

/// The place of a walk.
#[derive(Debug)]
pub(super) struct Walk {
    expect: Expect,
    // Where the object that is walked over began.
    begun: usize,
    // Where the token begins that is expected or not whole.
    at: usize,
    // How far the unfinished token was looked at.
    seen: usize,
    // Brackets that are open in a nested value, and whether `seen` is in a string of it.
    depth: usize,
    in_string: bool,
    // The name of the member, with its quotes.
    name: Range<usize>,
    take: Take,
    // Entered ones, and whether each is an array.
    level: usize,
    arrays: [bool; LEVELS_MAX],
    spaces: usize,
}

impl Walk {
    pub(super) fn new() -> Walk {
        Walk {
            expect: Expect::Object,
            begun: 0,
            at: 0,
            seen: 0,
            depth: 0,
            in_string: false,
            name: 0..0,
            take: Take::Skip,
            level: 0,
            arrays: [false; LEVELS_MAX],
            spaces: 0,
        }
    }

    /// Where it stands: behind the object after [`Reached::End`].
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Where the object began that it is in, or that it has left last.
    pub(super) fn begun(&self) -> usize {
        self.begun
    }

    /// Whether an object has begun and has not ended.
    pub(super) fn is_within(&self) -> bool {
        self.expect != Expect::Object
    }

    /// The text is given without its first `len` bytes from now on.
    pub(super) fn forget(&mut self, len: usize) {
        self.begun = self.begun.saturating_sub(len);
        self.at = self.at.saturating_sub(len);
        self.seen = self.seen.saturating_sub(len);
        self.name = self.name.start.saturating_sub(len)..self.name.end.saturating_sub(len);
    }

    /// Goes on until the text or the object ends or the visitor stops it.
    ///
    /// - `text`: what it was the last time, apart from what was [forgotten](Walk::forget), and what came
    ///   since.
    pub(super) fn go(&mut self, text: &[u8], visit: &mut impl Visit) -> Result<Reached, WireError> {
        loop {
            let is_whole = match self.expect {
                Expect::String => self.pass_string(text),
                Expect::Nested => self.pass_nested(text)?,
                Expect::Word => self.pass_word(text),
                Expect::Name => {
                    if !self.pass_name(text)? {
                        return Ok(Reached::More);
                    }
                    continue;
                }
                _ => {
                    let Some(byte) = self.solid(text) else { return Ok(Reached::More) };
                    match self.punctuation(text, byte, visit)? {
                        Some(reached) => return Ok(reached),
                        None => continue,
                    }
                }
            };
            if !is_whole {
                return Ok(Reached::More);
            }
            if self.take == Take::Value {
                let from = if self.in_array() { self.at } else { self.name.start };
                visit.passed(self.level - 1, &text[self.at..self.seen], from..self.seen)?;
            }
            self.at = self.seen;
            self.expect = Expect::Comma;
        }
    }

    /// The next byte that is not white space; it stays the next one.
    #[inline]
    fn solid(&mut self, text: &[u8]) -> Option<u8> {
        loop {
            match text.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => {
                    self.at += 1;
                    self.spaces += 1;
                }
                other => return other.copied(),
            }
        }
    }

    fn in_array(&self) -> bool {
        self.arrays[self.level - 1]
    }

    /// Takes a byte between strings and words.
    #[inline]
    fn punctuation(
        &mut self,
        text: &[u8],
        byte: u8,
        visit: &mut impl Visit,
    ) -> Result<Option<Reached>, WireError> {
        match (self.expect, byte) {
            (Expect::Object, b'{') => {
                self.begun = self.at;
                self.open(byte);
            }
            (Expect::Object, _) => return garbled("an object was expected"),
            (Expect::First | Expect::Comma, b'}' | b']') => return self.close(byte, visit),
            (Expect::First, _) => self.expect_next(),
            (Expect::Comma, b',') => {
                self.at += 1;
                self.expect_next();
            }
            (Expect::Colon, b':') => {
                self.at += 1;
                self.expect = Expect::Value;
            }
            (Expect::Value, _) => self.value(text, byte, visit)?,
            (Expect::Colon, _) => return garbled("a colon was expected"),
            _ => return garbled("a comma or a closing bracket was expected"),
        }
        Ok(None)
    }

    fn expect_next(&mut self) {
        self.seen = self.at;
        self.expect = if self.in_array() { Expect::Value } else { Expect::Name };
    }

    fn open(&mut self, bracket: u8) {
        assert!(self.level < LEVELS_MAX, "visitors enter no more than that");
        self.arrays[self.level] = bracket == b'[';
        self.level += 1;
        self.at += 1;
        self.expect = Expect::First;
    }

    fn close(&mut self, bracket: u8, visit: &mut impl Visit) -> Result<Option<Reached>, WireError> {
        if (bracket == b']') != self.in_array() {
            return garbled("another bracket is open");
        }
        self.at += 1;
        self.level -= 1;
        self.expect = if self.level == 0 { Expect::Object } else { Expect::Comma };
        let reached = visit.left(self.level, self.at, self.spaces);
        Ok(match (self.level, reached) {
            (0, _) => Some(Reached::End),
            (_, Reached::Stop) => Some(Reached::Stop),
            _ => None,
        })
    }

    /// A value begins here: what becomes of it.
    fn value(&mut self, text: &[u8], first: u8, visit: &mut impl Visit) -> Result<(), WireError> {
        let name = match self.in_array() {
            true => Cow::Borrowed(&b""[..]),
            false => unescape(&text[self.name.start + 1..self.name.end - 1])?,
        };
        let expect = match first {
            b'"' => Expect::String,
            b'{' | b'[' => Expect::Nested,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Expect::Word,
            _ => return garbled("a value was expected"),
        };
        let coming = Coming { level: self.level - 1, name: &name, first, at: self.at, spaces: self.spaces };
        self.take = visit.comes(coming)?;
        if self.take == Take::Enter && expect == Expect::Nested {
            self.open(first);
            return Ok(());
        }
        self.expect = expect;
        self.seen = self.at + usize::from(expect != Expect::Word);
        self.depth = 1;
        self.in_string = false;
        Ok(())
    }

    /// Whether the name of a member is whole.
    fn pass_name(&mut self, text: &[u8]) -> Result<bool, WireError> {
        match self.solid(text) {
            None => return Ok(false),
            Some(b'"') => self.seen = self.seen.max(self.at + 1),
            Some(_) => return garbled("a member was expected"),
        }
        if !self.pass_string(text) {
            return Ok(false);
        }
        self.name = self.at..self.seen;
        self.at = self.seen;
        self.expect = Expect::Colon;
        Ok(true)
    }

    /// Whether the string that is open at `seen` is whole.
    fn pass_string(&mut self, text: &[u8]) -> bool {
        let end = string_end(text, self.seen);
        self.seen = end.unwrap_or_else(|seen| seen);
        end.is_ok()
    }

    /// Whether a number or a literal is whole: something else follows.
    fn pass_word(&mut self, text: &[u8]) -> bool {
        let rest = &text[self.seen..];
        let is_word =
            |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.');
        let len = rest.iter().position(|byte| !is_word(byte));
        self.seen += len.unwrap_or(rest.len());
        len.is_some()
    }

    /// Whether the object or array is whole whose first bracket is behind.
    fn pass_nested(&mut self, text: &[u8]) -> Result<bool, WireError> {
        if self.in_string {
            if !self.pass_string(text) {
                return Ok(false);
            }
            self.in_string = false;
        }
        let (mut at, mut depth, mut spaces) = (self.seen, self.depth, self.spaces);
        while depth > 0 {
            let Some(&byte) = text.get(at) else { break };
            at += 1;
            match byte {
                b'"' => match strings_end(text, at) {
                    Ok(end) => at = end,
                    Err(seen) => {
                        at = seen;
                        self.in_string = true;
                        break;
                    }
                },
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                b' ' | b'\n' | b'\r' | b'\t' => spaces += 1,
                b',' | b':' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'+' | b'-' | b'.' => {}
                _ => return garbled("a byte that is not JSON"),
            }
        }
        (self.seen, self.depth, self.spaces) = (at, depth, spaces);
        Ok(depth == 0)
    }
}

/// Behind the string that is open at `at`, and behind those that follow it with only a colon or a comma
/// between, as most do.
#[inline]
fn strings_end(text: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        at = string_end(text, at)?;
        match text.get(at..) {
            Some([b':' | b',', b'"', ..]) => at += 2,
            _ => return Ok(at),
        }
    }
}

/// Walks over a text that is one object and nothing else.
pub(super) fn whole(text: &[u8], visit: &mut impl Visit) -> Result<(), WireError> {
    let mut walk = Walk::new();
    loop {
        match walk.go(text, visit)? {
            Reached::Stop => {}
            Reached::More => return garbled("half an object"),
            Reached::End => break,
        }
    }
    if walk.solid(text).is_some() { garbled("bytes behind the object") } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters the first levels, takes what is there, and writes down what it is told.
    struct Told {
        levels: usize,
        told: String,
    }

    impl Visit for Told {
        fn comes(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
            let name = String::from_utf8_lossy(coming.name);
            self.told += &format!("{}{name}? ", ".".repeat(coming.level));
            let enters = coming.level + 1 < self.levels && matches!(coming.first, b'{' | b'[');
            Ok(if enters { Take::Enter } else { Take::Value })
        }

        fn passed(&mut self, _: usize, value: &[u8], member: Range<usize>) -> Result<(), WireError> {
            self.told += &format!("{} ({}) ", String::from_utf8_lossy(value), member.len());
            Ok(())
        }

        fn left(&mut self, level: usize, _: usize, spaces: usize) -> Reached {
            self.told += &format!("/{level} {spaces} ");
            Reached::More
        }
    }

    fn tell(text: &[u8], levels: usize, cut: usize) -> Result<String, WireError> {
        let mut told = Told { levels, told: String::new() };
        let mut walk = Walk::new();
        if walk.go(&text[..cut], &mut told)? == Reached::More {
            assert_eq!(walk.go(text, &mut told)?, Reached::End);
        }
        Ok(told.told.trim_end().into())
    }

    #[test]
    fn members_come_in_their_order_wherever_the_text_is_cut() {
        let text = br#" { "a" : [1,{"x":[ ]},"]}"] ,"\u0062":{"c":-1.5e3 ,"d":"\"}"},"e":null}"#;
        let want = r#"a? .? 1 (1) .? {"x":[ ]} (9) .? "]}" (4) /1 5 b? .c? -1.5e3 (10) .d? "\"}" (9) /1 7 e? null (8) /0 7"#;
        for cut in 0..=text.len() {
            assert_eq!(tell(text, 2, cut).as_deref(), Ok(want), "cut at {cut}");
        }
    }

    #[test]
    fn a_million_brackets_cost_no_stack() {
        let depth = 1_000_000;
        let text = format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let mut told = Told { levels: 1, told: String::new() };
        assert_eq!(whole(text.as_bytes(), &mut told), Ok(()));
    }

    #[test]
    fn what_is_no_object_is_garbled() {
        let rows = [
            "",
            "[]",
            "{",
            "{]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":1]",
            "{1:1}",
            "{\"a\":1 1}",
            "{\"a\":\"b\"\"c\"}",
            "{\"a\":12\"c\"}",
            "{\"a\":[}",
            "{\"a\":{\"b\":;}}",
            "{\"\\x\":1}",
            "{} x",
            "{}{}",
            "{\"a\"::1}",
            "null",
        ];
        for text in rows {
            let mut told = Told { levels: 2, told: String::new() };
            assert!(whole(text.as_bytes(), &mut told).is_err(), "{text}");
        }
    }
}
