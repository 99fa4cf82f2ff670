//! A label selector cut into tokens.
//!
//! In: text. Out: tokens, the last of which is [`Token::End`]. Never: fails; what makes no sense is the
//! parser's matter.
//!
//! Source: apimachinery v0.36.3 `labels/selector.go`.

/// What a label selector is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Identifier,
    In,
    NotIn,
    Not,
    Equals,
    DoubleEquals,
    NotEquals,
    GreaterThan,
    LessThan,
    OpenParenthesis,
    CloseParenthesis,
    Comma,
    End,
}

/// The tokens of `text`, each with the text that it was read from.
pub(super) fn tokens(text: &str) -> Vec<(Token, &str)> {
    // Upstream takes a NUL for the end of the text where a token could begin, and drops one that ends a
    // token.
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let (token, len) = match rest.as_bytes() {
            [] | [0, ..] => {
                tokens.push((Token::End, ""));
                return tokens;
            }
            [b'=', b'=', ..] => (Token::DoubleEquals, 2),
            [b'!', b'=', ..] => (Token::NotEquals, 2),
            [b'=', ..] => (Token::Equals, 1),
            [b'!', ..] => (Token::Not, 1),
            [b'>', ..] => (Token::GreaterThan, 1),
            [b'<', ..] => (Token::LessThan, 1),
            [b'(', ..] => (Token::OpenParenthesis, 1),
            [b')', ..] => (Token::CloseParenthesis, 1),
            [b',', ..] => (Token::Comma, 1),
            bytes => {
                let len = bytes.iter().position(|&byte| ends_word(byte)).unwrap_or(bytes.len());
                (word(&rest[..len]), len)
            }
        };
        tokens.push((token, &rest[..len]));
        rest = &rest[len..];
        rest = rest.strip_prefix('\0').unwrap_or(rest);
    }
}

fn ends_word(byte: u8) -> bool {
    matches!(byte, 0 | b'=' | b'!' | b'(' | b')' | b',' | b'>' | b'<' | b' ' | b'\t' | b'\r' | b'\n')
}

fn word(text: &str) -> Token {
    match text {
        "in" => Token::In,
        "notin" => Token::NotIn,
        _ => Token::Identifier,
    }
}
