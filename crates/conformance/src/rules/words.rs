//! What a rule speaks of: the texts, numbers and names in it, from which values are drawn.
//!
//! In: the text of a rule. Out: [`Words`]. Never: an understanding of it.

use std::collections::BTreeSet;

#[derive(Debug, Default)]
pub(super) struct Words {
    pub texts: Vec<String>,
    pub numbers: Vec<i64>,
    /// Fields, among others.
    pub names: BTreeSet<String>,
}

impl Words {
    pub fn of(rule: &str) -> Words {
        let mut words = Words::default();
        let mut rest = rule;
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '\'' | '"' => {
                    let inner = &rest[1..];
                    let length = end_of_text(inner, first);
                    words.texts.push(inner[..length].replace("\\\\", "\\"));
                    length + 2
                }
                _ if first.is_ascii_digit() => {
                    let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                    if let Ok(number) = rest[..length].parse::<i64>() {
                        words.numbers.extend([number - 1, number, number + 1]);
                    }
                    length
                }
                _ if first.is_alphabetic() || first == '_' => {
                    let is_name = |c: char| c.is_alphanumeric() || c == '_';
                    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
                    words.names.insert(rest[..length].replace("__dash__", "-").replace("__dot__", "."));
                    length
                }
                _ => first.len_utf8(),
            };
            rest = rest.get(length..).unwrap_or("");
        }
        words
    }
}

/// Bytes up to the quote that ends a text.
fn end_of_text(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            _ if c == quote && !is_escaped => return at,
            _ => is_escaped = false,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_numbers_and_names_of_a_rule_are_found() {
        let words = Words::of(r#"self.type == 'Exact\\.a' ? size(self.x__dash__y) <= 63 : has(self.b)"#);
        assert_eq!(words.texts, [r"Exact\.a"]);
        assert_eq!(words.numbers, [62, 63, 64]);
        assert!(["self", "type", "x-y", "b"].iter().all(|name| words.names.contains(*name)));
    }
}
