//! One pass over a body into a `Value`.
//!
//! In: bytes. Out: the value and the paths of its duplicate members, or an error in the words of Go's
//! `encoding/json`, which is what clients of kube-apiserver know. Never: recurses deeper than [`DEPTH_MAX`];
//! looks at what members mean.
//!
//! It is not serde_json's parser because three things differ: the words, invalid UTF-8 and lone surrogates
//! (Go reads U+FFFD, serde_json refuses), and that a second member of one name must be seen.
//!
//! Source: `sigs.k8s.io/json` (`UnmarshalStrict`), as of Kubernetes 1.36.

use std::borrow::Cow;

use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use super::quote::{go_quote, quote_byte};
use super::weight::{self, ARRAY_BYTES, ITEM_BYTES, MEMBER_BYTES, NODE_MEMBERS, OBJECT_BYTES};
use crate::lease::{Exhausted, Lease, Meter};

/// Objects and arrays inside each other: 512 frames of a few hundred bytes, also for whoever walks the value.
/// Deeper bodies are refused with Go's words; Go's own limit is 10,000, no known kind comes near 50.
pub const DEPTH_MAX: usize = 512;

/// Duplicate members that are reported; as upstream, later ones are forgotten.
pub const DUPLICATES_MAX: usize = 100;

/// Bytes of path looked at for duplicates of one body, so that a long member name around many duplicates
/// stays cheap; what comes after is not reported.
const DUPLICATE_PATH_BYTES_MAX: usize = 1 << 20;

/// A body, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// Of two members with one name, the last one counts.
    pub value: Value,
    /// `spec.containers[0].image`: members that came twice, in order of appearance, each once, <=
    /// [`DUPLICATES_MAX`].
    pub duplicates: Vec<String>,
}

impl Parsed {
    /// `duplicate field "spec.foo"`, for each duplicate: how a strict decoder words it.
    pub fn duplicate_fields(&self) -> impl Iterator<Item = String> + '_ {
        self.duplicates.iter().map(|path| format!("duplicate field {}", go_quote(path)))
    }
}

/// Why a body is not JSON that we read. Prints as Go prints it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    #[error("unexpected end of JSON input")]
    UnexpectedEnd,
    /// A byte that cannot stand where it stands. Nesting that is too deep is reported in this way as well.
    #[error("invalid character {} {context}", quote_byte(*.byte))]
    InvalidCharacter { byte: u8, context: &'static str, offset: usize },
    /// A number beyond the range of a 64-bit float.
    #[error("json: cannot unmarshal number {number} into Go value of type float64")]
    NumberOutOfRange { number: Box<str> },
    /// The value would take more memory than its request may hold.
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
}

/// Reads one JSON value that fills `body`, white space aside.
///
/// Integers that fit `i64` stay integers, also when written as `-0`; every other number becomes a float.
/// Invalid UTF-8 and lone surrogates in strings are read as U+FFFD.
///
/// - `lease`: what the value takes is charged to it while it is made, and stays charged.
///
/// Cost: one pass, one allocation per string and collection.
///
/// # Errors
/// [`ParseError`]; the client must send something else.
pub fn parse(body: &[u8], lease: &Lease) -> Result<Parsed, ParseError> {
    match std::str::from_utf8(body) {
        Ok(text) => parse_text(text, lease),
        Err(_) => {
            // Each wrong byte becomes three.
            let text_bytes = 3 * body.len();
            lease.charge(text_bytes)?;
            let parsed = parse_text(&replace_invalid_utf8(body), lease);
            lease.give_back(text_bytes);
            parsed.map_err(|error| blame_original(error, body))
        }
    }
}

/// Reads what was taken in before: serde_json does so faster, but not what is nested deeper than 127 levels.
///
/// # Errors
/// [`ParseError`]; it is no JSON, or deeper than what is taken in.
pub fn read(stored: &[u8]) -> Result<Value, ParseError> {
    let parse = |_| parse(stored, &Lease::of_server()).map(|parsed| parsed.value);
    serde_json::from_slice(stored).or_else(parse)
}

fn parse_text(text: &str, lease: &Lease) -> Result<Parsed, ParseError> {
    let mut parser = Parser::new(text, lease);
    let value = parser.value(0)?;
    if let Some(&byte) = parser.bytes.get(parser.skip_space()) {
        return Err(parser.unexpected(byte, "after top-level value"));
    }
    match parser.out_of_range.take() {
        Some(error) => Err(error),
        None => Ok(Parsed { value, duplicates: parser.duplicates }),
    }
}

/// One U+FFFD for each byte that is not part of a character, as Go counts them.
pub(crate) fn replace_invalid_utf8(body: &[u8]) -> String {
    let mut text = String::with_capacity(body.len() + 16);
    for chunk in body.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Names the byte of `body` in whose place the repaired text has a wrong one.
fn blame_original(error: ParseError, body: &[u8]) -> ParseError {
    let ParseError::InvalidCharacter { offset, byte, context } = error else { return error };
    let (mut repaired, mut original) = (0, 0); // where the chunk begins in both
    for chunk in body.utf8_chunks() {
        let valid = chunk.valid().len();
        let grown = chunk.invalid().len() * char::REPLACEMENT_CHARACTER.len_utf8();
        if offset < repaired + valid + grown {
            let in_chunk = offset - repaired;
            let in_invalid = in_chunk.saturating_sub(valid) / char::REPLACEMENT_CHARACTER.len_utf8();
            let offset = original + in_chunk.min(valid) + in_invalid;
            return ParseError::InvalidCharacter { offset, byte: body[offset], context };
        }
        repaired += valid + grown;
        original += valid + chunk.invalid().len();
    }
    ParseError::InvalidCharacter { offset: original, byte, context }
}

struct Parser<'t> {
    meter: Meter,
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    path: Vec<Step>, // from the root to the value being read, <= DEPTH_MAX
    duplicates: Vec<String>,
    path_bytes_left: usize,
    out_of_range: Option<ParseError>, // the first one; reported only if the syntax is sound, as upstream
}

/// One step of a path.
enum Step {
    /// A member: where its name stands in the text, between the quotes, still escaped.
    Member {
        from: usize,
        to: usize,
    },
    Index(usize),
}

/// Bytes of a string that stand for themselves.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let mut byte = 0;
    while byte < 0x20 {
        plain[byte] = false;
        byte += 1;
    }
    plain[b'"' as usize] = false;
    plain[b'\\' as usize] = false;
    plain
};

impl<'t> Parser<'t> {
    fn new(text: &'t str, lease: &Lease) -> Parser<'t> {
        Parser {
            meter: lease.meter(),
            text,
            bytes: text.as_bytes(),
            at: 0,
            path: Vec::new(),
            duplicates: Vec::new(),
            path_bytes_left: DUPLICATE_PATH_BYTES_MAX,
            out_of_range: None,
        }
    }

    fn unexpected(&self, byte: u8, context: &'static str) -> ParseError {
        ParseError::InvalidCharacter { byte, context, offset: self.at }
    }

    /// Moves to the next byte that is not white space.
    #[inline]
    fn skip_space(&mut self) -> usize {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
        self.at
    }

    /// The next byte that is not white space; it stays the next one.
    #[inline]
    fn peek(&mut self) -> Result<u8, ParseError> {
        let at = self.skip_space();
        self.bytes.get(at).copied().ok_or(ParseError::UnexpectedEnd)
    }

    fn value(&mut self, depth: usize) -> Result<Value, ParseError> {
        match self.peek()? {
            b'"' => self.string().map(Value::String),
            byte @ (b'{' | b'[') if depth >= DEPTH_MAX => Err(self.unexpected(byte, "exceeded max depth")),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(&TRUE).map(|()| Value::Bool(true)),
            b'f' => self.literal(&FALSE).map(|()| Value::Bool(false)),
            b'n' => self.literal(&NULL).map(|()| Value::Null),
            byte => Err(self.unexpected(byte, "looking for beginning of value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, ParseError> {
        self.at += 1;
        let mut members = Map::new();
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        self.meter.charge(OBJECT_BYTES)?;
        loop {
            if members.len() >= NODE_MEMBERS {
                self.meter.charge(MEMBER_BYTES)?;
            }
            self.member(depth, &mut members)?;
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => break,
                byte => return Err(self.unexpected(byte, "after object key:value pair")),
            }
        }
        self.at += 1;
        Ok(Value::Object(members))
    }

    fn member(&mut self, depth: usize, members: &mut Map<String, Value>) -> Result<(), ParseError> {
        match self.peek()? {
            b'"' => {}
            byte => return Err(self.unexpected(byte, "looking for beginning of object key string")),
        }
        let from = self.at + 1;
        let name = self.string()?;
        let to = self.at - 1;
        match self.peek()? {
            b':' => self.at += 1,
            byte => return Err(self.unexpected(byte, "after object key")),
        }
        self.path.push(Step::Member { from, to });
        match members.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(self.value(depth + 1)?);
            }
            Entry::Occupied(mut entry) => {
                self.note_duplicate();
                entry.insert(self.value(depth + 1)?);
            }
        }
        self.path.pop();
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<Value, ParseError> {
        self.at += 1;
        let mut items = Vec::new();
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        self.meter.charge(ARRAY_BYTES)?;
        loop {
            self.meter.charge(ITEM_BYTES)?;
            self.path.push(Step::Index(items.len()));
            items.push(self.value(depth + 1)?);
            self.path.pop();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => break,
                byte => return Err(self.unexpected(byte, "after array element")),
            }
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    /// Reads `true`, `false` or `null`, whose first letter has been seen.
    fn literal(&mut self, rest: &[(u8, &'static str)]) -> Result<(), ParseError> {
        for &(letter, context) in rest {
            self.at += 1;
            let byte = self.byte_or_space();
            if byte != letter {
                return Err(self.unexpected(byte, context));
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The next byte; Go takes the end for a space where a word or a number is cut off.
    #[inline]
    fn byte_or_space(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(b' ')
    }

    /// Reads the string whose opening quote is the next byte.
    fn string(&mut self) -> Result<String, ParseError> {
        let start = self.at + 1;
        self.skip_plain(start);
        let plain = &self.text[start..self.at];
        if self.bytes.get(self.at) == Some(&b'"') {
            self.at += 1;
            self.meter.charge(weight::text(plain.len()))?;
            return Ok(plain.to_owned());
        }
        let mut string = String::with_capacity(plain.len() + 32);
        string.push_str(plain);
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => string.push(self.escape()?),
                Some(&byte) => return Err(self.unexpected(byte, "in string literal")),
                None => return Err(ParseError::UnexpectedEnd),
            }
            let start = self.at;
            self.skip_plain(start);
            string.push_str(&self.text[start..self.at]);
        }
        self.at += 1;
        self.meter.charge(weight::text(string.capacity()))?;
        Ok(string)
    }

    #[inline]
    fn skip_plain(&mut self, start: usize) {
        let rest = &self.bytes[start..];
        let len = rest.iter().position(|&byte| !PLAIN[usize::from(byte)]).unwrap_or(rest.len());
        self.at = start + len;
    }

    /// Reads an escape whose backslash is the next byte.
    fn escape(&mut self) -> Result<char, ParseError> {
        self.at += 1;
        let c = match self.byte_or_space() {
            byte @ (b'"' | b'\\' | b'/') => char::from(byte),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(),
            byte => return Err(self.unexpected(byte, "in string escape code")),
        };
        self.at += 1;
        Ok(c)
    }

    /// Reads `uXXXX`, and the other half of a surrogate pair behind it if there is one.
    fn unicode_escape(&mut self) -> Result<char, ParseError> {
        let first = self.hex()?;
        if let Some(c) = char::from_u32(first) {
            return Ok(c);
        }
        let behind = self.at;
        if self.bytes[behind..].starts_with(b"\\u") {
            self.at += 1;
            let second = self.hex()?;
            if let Some(Ok(c)) = char::decode_utf16([first as u16, second as u16]).next() {
                return Ok(c);
            }
        }
        self.at = behind;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    /// Reads four hexadecimal digits behind the `u` that is the next byte.
    fn hex(&mut self) -> Result<u32, ParseError> {
        self.at += 1;
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.byte_or_space();
            let Some(digit) = char::from(byte).to_digit(16) else {
                return Err(self.unexpected(byte, "in \\u hexadecimal character escape"));
            };
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }

    fn number(&mut self) -> Result<Value, ParseError> {
        let start = self.at;
        let mut has_point = false;
        self.at += usize::from(self.bytes[start] == b'-');
        if self.byte_or_space() == b'0' {
            self.at += 1;
        } else {
            self.digits("in numeric literal")?;
        }
        if self.byte_or_space() == b'.' {
            has_point = true;
            self.at += 1;
            self.digits("after decimal point in numeric literal")?;
        }
        if let b'e' | b'E' = self.byte_or_space() {
            self.at += 1;
            self.at += usize::from(matches!(self.byte_or_space(), b'+' | b'-'));
            self.digits("in exponent of numeric literal")?;
        }
        Ok(Value::Number(self.number_from(start, has_point)))
    }

    /// Skips digits, at least one.
    fn digits(&mut self, context: &'static str) -> Result<(), ParseError> {
        let byte = self.byte_or_space();
        if !byte.is_ascii_digit() {
            return Err(self.unexpected(byte, context));
        }
        while self.byte_or_space().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    /// The number between `start` and here.
    fn number_from(&mut self, start: usize, has_point: bool) -> Number {
        let number = &self.text[start..self.at];
        if !has_point && let Ok(integer) = number.parse::<i64>() {
            return Number::from(integer);
        }
        let float = number.parse().ok().and_then(Number::from_f64);
        float.unwrap_or_else(|| {
            self.out_of_range.get_or_insert_with(|| ParseError::NumberOutOfRange { number: number.into() });
            Number::from(0)
        })
    }

    /// Writes down where the parser stands, unless it has been written down before.
    fn note_duplicate(&mut self) {
        if self.duplicates.len() >= DUPLICATES_MAX || self.path_bytes_left == 0 {
            return;
        }
        let size = self.path.iter().map(Step::size).sum();
        self.path_bytes_left = self.path_bytes_left.saturating_sub(size);
        let path = self.path_text(size);
        if !self.duplicates.contains(&path) {
            self.duplicates.push(path);
        }
    }

    fn path_text(&self, size: usize) -> String {
        let mut path = String::with_capacity(size);
        for (index, step) in self.path.iter().enumerate() {
            match *step {
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Member { from, to } => {
                    if index > 0 {
                        path.push('.');
                    }
                    path.push_str(&self.unescaped(from, to));
                }
            }
        }
        path
    }

    /// A name that has been read before, between its quotes.
    fn unescaped(&self, from: usize, to: usize) -> Cow<'t, str> {
        let raw = &self.text[from..to];
        if !raw.contains('\\') {
            return Cow::Borrowed(raw);
        }
        let mut again = Parser::new(self.text, self.meter.lease());
        again.at = from - 1;
        again.string().map_or(Cow::Borrowed(raw), Cow::Owned)
    }
}

impl Step {
    /// About how many bytes it takes in a path.
    fn size(&self) -> usize {
        match self {
            Step::Member { from, to } => to - from + 1,
            Step::Index(_) => 4,
        }
    }
}

const TRUE: [(u8, &str); 3] = [
    (b'r', "in literal true (expecting 'r')"),
    (b'u', "in literal true (expecting 'u')"),
    (b'e', "in literal true (expecting 'e')"),
];
const FALSE: [(u8, &str); 4] = [
    (b'a', "in literal false (expecting 'a')"),
    (b'l', "in literal false (expecting 'l')"),
    (b's', "in literal false (expecting 's')"),
    (b'e', "in literal false (expecting 'e')"),
];
const NULL: [(u8, &str); 3] = [
    (b'u', "in literal null (expecting 'u')"),
    (b'l', "in literal null (expecting 'l')"),
    (b'l', "in literal null (expecting 'l')"),
];
