//! A refused value as a message shows it, in the words of upstream's `field.Error`.
//!
//! In: a value. Out: its text; of a long one, the beginning. Never: decides what is wrong.
//!
//! Source: apimachinery v0.36.3 `util/validation/field/errors.go` (`ErrorBody`).

use std::borrow::Cow;

use serde_json::Value;

use crate::go_format::print_number;
use crate::json::{go_quote, to_go_text};

/// Bytes that are shown of one value: of a longer one, its beginning.
const SHOWN_BYTES_MAX: usize = 256 << 10;

/// A refused value, shown as Go shows its type.
#[derive(Clone, Debug)]
pub enum BadValue<'a> {
    /// Quoted.
    Text(&'a str),
    Int(i64),
    Bool(bool),
    /// Strings quoted, scalars plain, the rest as JSON with sorted members.
    Json(&'a Value),
    /// As JSON in any case.
    Encoded(&'a Value),
    /// Already as it is to be shown.
    Shown(Cow<'a, str>),
    /// A nil pointer.
    Nil,
}

impl<'a> BadValue<'a> {
    /// One that is already as it is to be shown.
    pub fn shown(text: impl Into<Cow<'a, str>>) -> BadValue<'a> {
        BadValue::Shown(text.into())
    }

    /// What a pointer points at, as JSON in any case.
    pub fn encoded(value: Option<&'a Value>) -> BadValue<'a> {
        value.map_or(BadValue::Nil, BadValue::Encoded)
    }

    /// A list of values that are already as they are to be shown: as many as are shown of it.
    pub fn shown_list(items: impl Iterator<Item = String>) -> BadValue<'static> {
        let mut list = String::from("[");
        for (index, item) in items.enumerate() {
            if list.len() > SHOWN_BYTES_MAX {
                break;
            }
            if index > 0 {
                list.push(',');
            }
            list.push_str(&item);
        }
        list.push(']');
        BadValue::shown(list)
    }

    /// Its text.
    pub fn show(&self) -> String {
        match self {
            BadValue::Text(text) => go_quote(beginning(text)),
            BadValue::Int(int) => int.to_string(),
            BadValue::Bool(bool) => bool.to_string(),
            BadValue::Json(Value::String(text)) => go_quote(beginning(text)),
            BadValue::Json(Value::Number(number)) => print_number(number),
            BadValue::Json(value) | BadValue::Encoded(value) => {
                let mut text = to_go_text(value);
                text.truncate(beginning(&text).len());
                text.shrink_to_fit();
                text
            }
            BadValue::Shown(text) => beginning(text).to_owned(),
            BadValue::Nil => "null".into(),
        }
    }
}

/// As much of `text` as is shown.
pub fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(SHOWN_BYTES_MAX)]
}

impl<'a> From<&'a str> for BadValue<'a> {
    fn from(text: &'a str) -> Self {
        BadValue::Text(text)
    }
}

impl From<i64> for BadValue<'_> {
    fn from(int: i64) -> Self {
        BadValue::Int(int)
    }
}

impl From<bool> for BadValue<'_> {
    fn from(bool: bool) -> Self {
        BadValue::Bool(bool)
    }
}

impl<'a> From<&'a Value> for BadValue<'a> {
    fn from(value: &'a Value) -> Self {
        BadValue::Json(value)
    }
}

impl<'a> From<Option<&'a Value>> for BadValue<'a> {
    fn from(value: Option<&'a Value>) -> Self {
        value.map_or(BadValue::Nil, BadValue::Json)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_upstream_shows_their_types() {
        let rows = [
            (json!("a\"b"), r#""a\"b""#),
            (json!(7), "7"),
            (json!(1.5), "1.5"),
            (json!(1_000_000.0), "1e+06"),
            (json!(0.00001), "1e-05"),
            (json!(true), "true"),
            (json!(null), "null"),
            (json!({"b": 1, "a": "<"}), r#"{"a":"\u003c","b":1}"#),
            (json!([1e-7]), "[1e-7]"),
        ];
        for (value, want) in &rows {
            assert_eq!(BadValue::from(value).show(), *want);
        }
        assert_eq!(BadValue::Encoded(&json!(1_000_000.0)).show(), "1000000");
        assert_eq!(BadValue::from(None).show(), "null");
    }

    #[test]
    fn of_a_long_value_the_beginning_is_shown_whatever_it_is() {
        let long = "ä".repeat(SHOWN_BYTES_MAX);
        let quoted = SHOWN_BYTES_MAX + 2;
        assert_eq!(BadValue::from(long.as_str()).show().len(), quoted);
        assert_eq!(BadValue::from(&json!(long)).show().len(), quoted);
        for value in [json!([long]), json!({ "a": long })] {
            assert!(BadValue::from(&value).show().len() <= SHOWN_BYTES_MAX);
            assert!(BadValue::Encoded(&value).show().len() <= SHOWN_BYTES_MAX);
        }
        assert_eq!(BadValue::shown(long.as_str()).show().len(), SHOWN_BYTES_MAX);
        let list = BadValue::shown_list((0..10).map(|_| long.clone())).show();
        assert_eq!(list.len(), SHOWN_BYTES_MAX - 1, "cut before the character that it would cut");
    }
}
