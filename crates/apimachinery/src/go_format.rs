//! How Go prints values: quoting, numbers and JSON, because the messages that clients compare are made by
//! Go's `fmt`.
//!
//! In: strings, numbers, JSON values. Out: text. Never parses.

use crate::json::write_string;
pub use crate::json::{go_quote as quote, is_print, to_go_text as to_json};
use serde_json::{Number, Value};

/// A JSON number as Kubernetes decodes it: an integer when it was written as one and fits, a float otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Num {
    Int(i64),
    Float(f64),
}

impl Num {
    pub fn of(number: &Number) -> Num {
        match number.as_i64() {
            Some(i) => Num::Int(i),
            None => Num::Float(number.as_f64().unwrap_or(0.0)),
        }
    }

    pub fn as_f64(self) -> f64 {
        match self {
            Num::Int(i) => i as f64,
            Num::Float(f) => f,
        }
    }
}

/// Prints a number as `%v` does.
pub fn print_number(number: &Number) -> String {
    match Num::of(number) {
        Num::Int(i) => i.to_string(),
        Num::Float(f) => print_float(f),
    }
}

/// Prints a float as `%v` does: shortest digits, an exponent below -4 or from 6 on.
pub fn print_float(value: f64) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".into()
        } else if value > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        };
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0".into() } else { "0".into() };
    }
    let exponent = decimal_exponent(value);
    if (-4..6).contains(&exponent) { format!("{value}") } else { with_exponent(value, 2) }
}

fn decimal_exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
}

/// `1.5e+21`, with at least `digits` digits in a negative or positive exponent as Go pads them.
fn with_exponent(value: f64, digits: usize) -> String {
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, size) = match exponent.strip_prefix('-') {
        Some(size) => ('-', size),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{size:0>digits$}")
}

/// Appends `text` as a JSON string.
pub fn push_json_string(out: &mut String, text: &str) {
    let mut json = Vec::with_capacity(text.len() + 2);
    write_string(text, &mut json);
    out.push_str(std::str::from_utf8(&json).expect("JSON made of text is UTF-8"));
}

/// The Go type of a decoded JSON value, as `%T` prints it.
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) => match Num::of(n) {
            Num::Int(_) => "int64",
            Num::Float(_) => "float64",
        },
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_strconv_does() {
        let rows = [
            ("", r#""""#),
            ("a\"\\b", r#""a\"\\b""#),
            ("\u{7}\u{8}\u{c}\n\r\t\u{b}", r#""\a\b\f\n\r\t\v""#),
            ("\u{1}\u{7f}", r#""\x01\x7f""#),
            ("\u{a0}\u{feff}\u{e000}", r#""\u00a0\ufeff\ue000""#),
            ("\u{e0001}", r#""\U000e0001""#),
            ("é中\u{301}😀", "\"é中\u{301}😀\""),
        ];
        for (text, want) in rows {
            assert_eq!(quote(text), want);
        }
    }

    #[test]
    fn numbers_print_as_percent_v() {
        let rows = [
            ("1", "1"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("9223372036854775808", "9.223372036854776e+18"),
            ("1.0", "1"),
            ("1.5", "1.5"),
            ("1e6", "1e+06"),
            ("123456789.0", "1.23456789e+08"),
            ("100000.5", "100000.5"),
            ("12345678.9", "1.23456789e+07"),
            ("1e20", "1e+20"),
            ("1e21", "1e+21"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("-0.0", "-0"),
        ];
        for (text, want) in rows {
            let number: Number = serde_json::from_str(text).expect("a number");
            assert_eq!(print_number(&number), want, "{text}");
        }
    }

    #[test]
    fn json_is_encoded_as_gos_marshal_does() {
        let rows = [
            (
                json!({"b": [1, null, true], "a": {"x": "<&>"}}),
                r#"{"a":{"x":"\u003c\u0026\u003e"},"b":[1,null,true]}"#,
            ),
            (json!(1.0), "1"),
            (json!(1e21), "1e+21"),
            (json!(1e-7), "1e-7"),
            (json!("\u{2028}\u{1}"), r#""\u2028\u0001""#),
        ];
        for (value, want) in rows {
            assert_eq!(to_json(&value), want);
        }
    }

    #[test]
    fn values_name_their_go_type() {
        assert_eq!(type_name(&json!([1])), "[]interface {}");
    }
}
