//! The words of an expression.
//!
//! In: the text. Out: tokens with their places, in code points, one at a time. Never: recurses.

use std::sync::Arc;

use crate::ast::Literal;
use crate::issue::Issue;

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    End,
    Ident(Arc<str>),
    /// A name between backquotes, which Kubernetes' environments do not have.
    Quoted(Arc<str>),
    Literal(Literal),
    /// A number without its sign, which is negated where the grammar has a sign.
    Number(Arc<str>),
    /// An operator or bracket.
    Sign(&'static str),
}

/// The longest first.
const SIGNS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "?", ":", "+", "-", "*", "/", "%", "(", ")", "[", "]",
    "{", "}", ",", ".",
];

pub(crate) struct Lexer<'t> {
    text: &'t str,
    /// In bytes.
    at: usize,
    /// In code points.
    chars: u32,
}

impl<'t> Lexer<'t> {
    pub fn new(text: &'t str) -> Lexer<'t> {
        Lexer { text, at: 0, chars: 0 }
    }

    /// The next token and where it begins.
    pub fn next(&mut self) -> Result<(Token, u32), Issue> {
        self.skip_space();
        let (from, rest) = (self.chars, &self.text[self.at..]);
        let Some(first) = rest.chars().next() else { return Ok((Token::End, from)) };
        if let Some(quote) = string_start(rest) {
            return self.string(quote).map(|token| (token, from));
        }
        if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return self.number().map(|token| (token, from));
        }
        if let Some(end) = rest.strip_prefix('`').and_then(|quoted| quoted.find('`')) {
            let name = self.advance(end + 2).trim_matches('`').into();
            return Ok((Token::Quoted(name), from));
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let word = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            return Ok((word_token(word), from));
        }
        match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            Some(sign) => {
                self.advance(sign.len());
                Ok((Token::Sign(sign), from))
            }
            None => Err(Issue::syntax(from, format!("token recognition error at: '{first}'"))),
        }
    }

    fn advance(&mut self, bytes: usize) -> &'t str {
        let taken = &self.text[self.at..self.at + bytes];
        self.at += bytes;
        self.chars += taken.chars().count() as u32;
        taken
    }

    fn take_while(&mut self, mut fits: impl FnMut(char) -> bool) -> &'t str {
        let rest = &self.text[self.at..];
        let bytes = rest.find(|c| !fits(c)).unwrap_or(rest.len());
        self.advance(bytes)
    }

    fn skip_space(&mut self) {
        loop {
            self.take_while(|c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{c}'));
            if !self.text[self.at..].starts_with("//") {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn number(&mut self) -> Result<Token, Issue> {
        let (start, from) = (self.at, self.chars);
        if self.text[start..].starts_with("0x") {
            self.advance(2);
            self.take_while(|c| c.is_ascii_hexdigit());
        } else {
            self.take_while(|c| c.is_ascii_digit());
            let rest = &self.text[self.at..];
            if rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit()) {
                self.advance(1);
                self.take_while(|c| c.is_ascii_digit());
            }
            self.exponent();
        }
        let digits = &self.text[start..self.at];
        if self.text[self.at..].starts_with(['u', 'U']) {
            self.advance(1);
            let read = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok(),
                None => digits.parse().ok(),
            };
            let value = read.ok_or_else(|| Issue::syntax(from, "invalid uint literal".to_owned()))?;
            return Ok(Token::Literal(Literal::Uint(value)));
        }
        Ok(Token::Number(digits.into()))
    }

    fn exponent(&mut self) {
        let rest = &self.text[self.at..];
        let Some(after) = rest.strip_prefix(['e', 'E']) else { return };
        let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
        if digits.starts_with(|c: char| c.is_ascii_digit()) {
            self.advance(rest.len() - digits.len());
            self.take_while(|c| c.is_ascii_digit());
        }
    }

    fn string(&mut self, start: Start) -> Result<Token, Issue> {
        let from = self.chars;
        self.advance(start.prefix);
        let quote = start.quote;
        self.advance(quote.len());
        let begins = self.at;
        loop {
            let rest = &self.text[self.at..];
            let Some(next) = rest.chars().next() else {
                return Err(Issue::syntax(from, "token recognition error: a string has no end".to_owned()));
            };
            if rest.starts_with(quote) {
                break;
            }
            if next == '\\' && !start.raw {
                self.advance(1);
                let escaped = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
                self.advance(escaped);
                continue;
            }
            if quote.len() == 1 && matches!(next, '\n' | '\r') {
                return Err(Issue::syntax(
                    from,
                    "token recognition error: a string goes over lines".to_owned(),
                ));
            }
            self.advance(next.len_utf8());
        }
        let body = &self.text[begins..self.at];
        self.advance(quote.len());
        let literal = match (start.raw, start.bytes) {
            (true, false) => Literal::String(normal(body).into()),
            (true, true) => Literal::Bytes(normal(body).into_bytes().into()),
            (false, bytes) => {
                unescape(&normal(body), bytes).map_err(|why| Issue::syntax(from, why.to_owned()))?
            }
        };
        Ok(Token::Literal(literal))
    }
}

fn word_token(word: &str) -> Token {
    match word {
        "true" => Token::Literal(Literal::Bool(true)),
        "false" => Token::Literal(Literal::Bool(false)),
        "null" => Token::Literal(Literal::Null),
        "in" => Token::Sign("in"),
        _ => Token::Ident(word.into()),
    }
}

struct Start {
    /// Letters before the quote.
    prefix: usize,
    quote: &'static str,
    raw: bool,
    bytes: bool,
}

fn string_start(rest: &str) -> Option<Start> {
    let prefix = rest.bytes().take(2).take_while(|b| matches!(b, b'r' | b'R' | b'b' | b'B')).count();
    let letters = rest[..prefix].to_ascii_lowercase();
    if letters == "rr" || letters == "bb" {
        return None;
    }
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| rest[prefix..].starts_with(quote))?;
    Some(Start { prefix, quote, raw: letters.contains('r'), bytes: letters.contains('b') })
}

/// Ends of lines are one character.
fn normal(body: &str) -> String {
    body.replace("\r\n", "\n").replace('\r', "\n")
}

fn unescape(body: &str, bytes: bool) -> Result<Literal, &'static str> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = &rest[at + 1..];
        let kind = rest.chars().next().ok_or("unable to unescape string, found '\\' as last character")?;
        rest = &rest[kind.len_utf8()..];
        let digits = match kind {
            'x' | 'X' => Some((2, 16)),
            'u' => Some((4, 16)),
            'U' => Some((8, 16)),
            '0'..='3' => Some((2, 8)),
            _ => None,
        };
        let Some((count, radix)) = digits else {
            out.push(simple_escape(kind).ok_or("unable to unescape string")?);
            continue;
        };
        let text = rest.get(..count).filter(|text| text.bytes().all(|b| b.is_ascii_alphanumeric()));
        let text = text.ok_or("unable to unescape string")?;
        let mut code = u32::from_str_radix(text, radix).map_err(|_| "unable to unescape string")?;
        if radix == 8 {
            code += kind.to_digit(8).unwrap_or(0) * 64;
        }
        rest = &rest[count..];
        if bytes {
            if matches!(kind, 'u' | 'U') {
                return Err("unable to unescape string");
            }
            out.push(u8::try_from(code).map_err(|_| "unable to unescape string")?);
        } else {
            let c = char::from_u32(code).ok_or("invalid unicode code point")?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out.extend_from_slice(rest.as_bytes());
    if bytes {
        return Ok(Literal::Bytes(out.into()));
    }
    String::from_utf8(out).map(|text| Literal::String(text.into())).map_err(|_| "invalid string")
}

fn simple_escape(kind: char) -> Option<u8> {
    Some(match kind {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => kind as u8,
        _ => return None,
    })
}
