//! The values that an `enum` allows.
//!
//! In: the list as written, and a value. Out: whether the value is one of them, after the conversions that
//! Go's reflection allows between their types. Never: searches a long list.

use forebay_apimachinery::{Seen, steps};
use serde_json::Value;

use super::limits::CHOICES_SEARCHED_MAX;
use forebay_apimachinery::go_format::Num;

#[derive(Debug, Default)]
pub(crate) struct Choices {
    values: Box<[Value]>,
    /// Made of a long list only.
    index: Option<Box<Index>>,
}

#[derive(Debug, Default)]
struct Index {
    ints: Seen<i64>,
    /// By their bits, both zeros as one.
    floats: Seen<u64>,
    others: Seen<Value>,
}

impl Choices {
    pub(crate) fn of(values: &[Value]) -> Choices {
        let index = (values.len() > CHOICES_SEARCHED_MAX).then(|| Box::new(Index::of(values)));
        Choices { values: values.into(), index }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// As they are written.
    pub(crate) fn values(&self) -> &[Value] {
        &self.values
    }

    pub(crate) fn has(&self, value: &Value) -> bool {
        match &self.index {
            Some(index) => index.has(value),
            // Few: at most `CHOICES_SEARCHED_MAX`.
            None => self.values.iter().any(|choice| {
                steps::add(1);
                is_choice(value, choice)
            }),
        }
    }
}

impl Index {
    fn of(values: &[Value]) -> Index {
        let mut index = Index::default();
        for value in values {
            match value {
                Value::Null => false,
                Value::Number(number) => match Num::of(number) {
                    Num::Int(int) => index.ints.again(int),
                    float => index.floats.again(bits(float.as_f64())),
                },
                other => index.others.again(other.clone()),
            };
        }
        index
    }

    fn has(&self, value: &Value) -> bool {
        match value {
            Value::Null => false,
            Value::Number(number) => match Num::of(number) {
                Num::Int(int) => {
                    self.ints.has(&int)
                        || self.floats.has(&bits(Num::Int(int).as_f64()))
                        || self.others.has(&Value::from(character(int).to_string()))
                }
                Num::Float(float) => self.ints.has(&(float as i64)) || self.floats.has(&bits(float)),
            },
            other => self.others.has(other),
        }
    }
}

fn bits(float: f64) -> u64 {
    // Adding zero makes the negative zero the other one.
    (float + 0.0).to_bits()
}

/// The text that Go converts a number to.
fn character(int: i64) -> char {
    u32::try_from(int).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn is_choice(value: &Value, choice: &Value) -> bool {
    match (value, choice) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(choice)) => match (Num::of(value), Num::of(choice)) {
            (Num::Int(v), Num::Int(c)) => v == c,
            (Num::Float(v), Num::Int(c)) => v as i64 == c,
            (v, Num::Float(c)) => v.as_f64() == c,
        },
        (Value::Number(value), Value::String(choice)) => match Num::of(value) {
            Num::Int(v) => choice.chars().eq([character(v)]),
            Num::Float(_) => false,
        },
        (value, choice) => value == choice,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_list_has_what_a_search_finds() {
        let some = json!([
            null, true, false, 0, 0.0, -0.0, 1, 1.0, 1.5, -1, 65, 18_446_744_073_709_551_615_u64, "", "A", "1",
            "\u{1}", "\u{fffd}", "AB", [], [1], [1.0], ["A"], {}, { "a": 1 }, { "a": 1.0 }, { "a": null }
        ]);
        let some = some.as_array().expect("a list");
        for choice in some {
            let filling = (0..CHOICES_SEARCHED_MAX).map(|index| json!(format!("filling {index}")));
            let many: Vec<Value> = [choice.clone()].into_iter().chain(filling).collect();
            let long = Choices::of(&many);
            assert!(long.index.is_some());
            for value in some {
                assert_eq!(long.has(value), is_choice(value, choice), "{value} of {choice}");
            }
        }
    }
}
