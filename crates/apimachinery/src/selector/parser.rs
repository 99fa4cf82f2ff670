//! The grammar of label selectors.
//!
//! In: the text of a `labelSelector`. Out: its requirements in order of appearance, or kube-apiserver's
//! message. Never: recurses.
//!
//! Source: apimachinery v0.36.3 `labels/selector.go`.

use super::label::{LabelOperator, LabelRequirement, invalid_key};
use super::lexer::{Token, tokens};

/// Reads `text`.
///
/// # Errors
/// kube-apiserver's message for a selector that it does not take.
pub(super) fn parse(text: &str) -> Result<Vec<LabelRequirement>, String> {
    let mut parser = Parser { tokens: tokens(text), next: 0 };
    let mut requirements = Vec::new();
    loop {
        match parser.peek() {
            (Token::Identifier | Token::Not, _) => {}
            (Token::End, _) => return Ok(requirements),
            (_, found) => {
                return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
            }
        }
        let requirement = parser.requirement();
        requirements.push(requirement.map_err(|message| format!("unable to parse requirement: {message}"))?);
        match parser.take() {
            (Token::End, _) => return Ok(requirements),
            (Token::Comma, _) => {}
            (_, found) => return Err(format!("found '{found}', expected: ',' or 'end of string'")),
        }
        match parser.peek() {
            (Token::Identifier | Token::Not, _) => {}
            (_, found) => return Err(format!("found '{found}', expected: identifier after ','")),
        }
    }
}

struct Parser<'t> {
    tokens: Vec<(Token, &'t str)>, // ends with Token::End, which is never passed
    next: usize,
}

impl<'t> Parser<'t> {
    /// The next token, where it can only be a key or a value: `in` is a word there.
    fn peek(&self) -> (Token, &'t str) {
        match self.peek_operator() {
            (Token::In | Token::NotIn, text) => (Token::Identifier, text),
            other => other,
        }
    }

    fn peek_operator(&self) -> (Token, &'t str) {
        self.tokens.get(self.next).copied().unwrap_or((Token::End, ""))
    }

    fn take(&mut self) -> (Token, &'t str) {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn requirement(&mut self) -> Result<LabelRequirement, String> {
        let is_negated = self.peek().0 == Token::Not;
        if is_negated {
            self.next += 1;
        }
        let key = match self.take() {
            (Token::Identifier, key) => key,
            (_, found) => return Err(format!("found '{found}', expected: identifier")),
        };
        if let Some(message) = invalid_key(key, "<nil>") {
            return Err(message);
        }
        if is_negated {
            return LabelRequirement::new(key, LabelOperator::DoesNotExist, Vec::new());
        }
        if let Token::End | Token::Comma = self.peek().0 {
            return LabelRequirement::new(key, LabelOperator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            LabelOperator::In | LabelOperator::NotIn => self.values()?,
            _ => vec![self.exact_value()?],
        };
        LabelRequirement::new(key, operator, values)
    }

    fn operator(&mut self) -> Result<LabelOperator, String> {
        let (token, found) = self.peek_operator();
        self.next += 1;
        Ok(match token {
            Token::In => LabelOperator::In,
            Token::NotIn => LabelOperator::NotIn,
            Token::Equals => LabelOperator::Equals,
            Token::DoubleEquals => LabelOperator::DoubleEquals,
            Token::NotEquals => LabelOperator::NotEquals,
            Token::GreaterThan => LabelOperator::GreaterThan,
            Token::LessThan => LabelOperator::LessThan,
            _ => return Err(format!("found '{found}', expected: in, notin, =, ==, !=, gt, lt")),
        })
    }

    /// Reads `(a,b)`. Nothing between the commas is the empty value.
    fn values(&mut self) -> Result<Vec<String>, String> {
        match self.take() {
            (Token::OpenParenthesis, _) => {}
            (_, found) => return Err(format!("found '{found}' expected: '('")),
        }
        match self.peek() {
            (Token::Identifier | Token::Comma, _) => self.identifiers(),
            (Token::CloseParenthesis, _) => {
                self.next += 1;
                Ok(vec![String::new()])
            }
            (_, found) => Err(format!("found '{found}', expected: ',', ')' or identifier")),
        }
    }

    /// Reads what stands between the parentheses, and the closing one.
    fn identifiers(&mut self) -> Result<Vec<String>, String> {
        let mut values = Vec::new();
        loop {
            match self.take() {
                (Token::Identifier, value) => {
                    values.push(value.to_string());
                    match self.peek() {
                        (Token::Comma, _) => {}
                        (Token::CloseParenthesis, _) => break,
                        (_, found) => return Err(format!("found '{found}', expected: ',' or ')'")),
                    }
                }
                (Token::Comma, _) => {
                    let next = self.peek().0;
                    if values.is_empty() || matches!(next, Token::Comma | Token::CloseParenthesis) {
                        values.push(String::new());
                    }
                    if next == Token::CloseParenthesis {
                        break;
                    }
                }
                (_, found) => return Err(format!("found '{found}', expected: ',', or identifier")),
            }
        }
        self.next += 1;
        Ok(values)
    }

    fn exact_value(&mut self) -> Result<String, String> {
        if let Token::End | Token::Comma = self.peek().0 {
            return Ok(String::new());
        }
        match self.take() {
            (Token::Identifier, value) => Ok(value.to_string()),
            (_, found) => Err(format!("found '{found}', expected: identifier")),
        }
    }
}
