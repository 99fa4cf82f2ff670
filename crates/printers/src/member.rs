//! Reading an object that may lack anything: a member that is missing, null or of another type reads as Go's
//! zero value.
//!
//! In: a borrowed JSON value. Out: borrowed parts of it. Never: a panic, a copy, a change.

use std::borrow::Cow;

use forebay_apimachinery::quantity::{self, Precision};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::duration;

static NULL: Value = Value::Null;

/// Seconds of 0001-01-01T00:00:00Z, the time that counts as "not set".
const ZERO_TIME: i64 = -62_135_596_800;

/// A value inside an object, or the absence of one (null and missing are the same thing here).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Member<'a>(&'a Value);

impl<'a> Member<'a> {
    pub(crate) fn of(value: &'a Value) -> Self {
        Self(value)
    }

    pub(crate) fn value(self) -> &'a Value {
        self.0
    }

    /// The member of that name; absent when this is not an object.
    pub(crate) fn get(self, name: &str) -> Member<'a> {
        Self(self.0.get(name).unwrap_or(&NULL))
    }

    /// Whether there is a member of that name, null included.
    pub(crate) fn has(self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    /// Whether the pointer would be non-nil in Go.
    pub(crate) fn is_set(self) -> bool {
        !self.0.is_null()
    }

    pub(crate) fn text(self) -> &'a str {
        self.0.as_str().unwrap_or_default()
    }

    /// The text of an optional (pointer) field.
    pub(crate) fn text_if_set(self) -> Option<&'a str> {
        self.0.as_str()
    }

    /// The text, or `fallback` when it is empty or absent.
    pub(crate) fn text_or(self, fallback: &'a str) -> &'a str {
        match self.text() {
            "" => fallback,
            text => text,
        }
    }

    /// The canonical text of a quantity, something else as it is; `None` when it is absent.
    pub(crate) fn quantity(self, precision: Precision) -> Option<String> {
        let text = self.scalar()?;
        let canonical = quantity::canonical(&text, precision).ok().map(Cow::into_owned);
        Some(canonical.unwrap_or(text))
    }

    pub(crate) fn int(self) -> i64 {
        self.int_if_set().unwrap_or_default()
    }

    pub(crate) fn int_if_set(self) -> Option<i64> {
        self.0.as_i64()
    }

    pub(crate) fn flag(self) -> bool {
        self.flag_if_set().unwrap_or_default()
    }

    pub(crate) fn flag_if_set(self) -> Option<bool> {
        self.0.as_bool()
    }

    /// Text of a string or number, for quantities and int-or-string fields.
    pub(crate) fn scalar(self) -> Option<String> {
        match self.0 {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// The elements of a list; none when this is not a list.
    pub(crate) fn items(self) -> impl DoubleEndedIterator<Item = Member<'a>> + ExactSizeIterator {
        self.0.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(Self)
    }

    /// The key-value pairs of a map, in no order that may be relied upon.
    pub(crate) fn entries(self) -> impl Iterator<Item = (&'a str, Member<'a>)> {
        self.0.as_object().into_iter().flatten().map(|(key, value)| (key.as_str(), Self(value)))
    }

    /// Number of elements of a list or of keys of a map.
    pub(crate) fn count(self) -> i64 {
        let count = match self.0 {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            _ => 0,
        };
        i64::try_from(count).unwrap_or(i64::MAX)
    }

    /// A point in time, `None` when absent, zero or not a time.
    pub(crate) fn time(self) -> Option<Timestamp> {
        let time: Timestamp = self.0.as_str()?.parse().ok()?;
        (time.as_second() != ZERO_TIME || time.subsec_nanosecond() != 0).then_some(time)
    }

    /// Time since this point in time for people, `<unknown>` when there is none.
    pub(crate) fn since(self, now: Timestamp) -> String {
        duration::since(self.time(), now)
    }
}

/// What every object says about itself in `metadata`.
impl<'a> Member<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.get("metadata").get("name").text()
    }

    pub(crate) fn age(self, now: Timestamp) -> String {
        self.get("metadata").get("creationTimestamp").since(now)
    }

    pub(crate) fn is_deleting(self) -> bool {
        self.get("metadata").get("deletionTimestamp").is_set()
    }

    pub(crate) fn annotation(self, key: &str) -> Member<'a> {
        self.get("metadata").get("annotations").get(key)
    }

    /// The first of `status.conditions` of that type; absent when there is none.
    pub(crate) fn condition(self, type_: &str) -> Member<'a> {
        let conditions = self.get("status").get("conditions");
        conditions.items().find(|condition| condition.get("type").text() == type_).unwrap_or(Self(&NULL))
    }
}

/// The time between two points as Go's `Time.Sub` gives it, which stops at its widest duration (292 years).
pub(crate) fn between(then: Timestamp, now: Timestamp) -> SignedDuration {
    const WIDEST: SignedDuration = SignedDuration::from_nanos(i64::MAX);
    now.duration_since(then).clamp(-WIDEST, WIDEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_null_and_mistyped_members_read_as_zero() {
        for object in
            [json!({}), json!({"m": null}), json!({"m": {"m": [1]}}), json!([]), json!("m"), json!(7)]
        {
            let member = Member::of(&object).get("m");
            assert_eq!(member.text(), "", "{object}");
            assert_eq!(member.int(), 0, "{object}");
            assert!(!member.flag(), "{object}");
            assert_eq!(member.items().len(), 0, "{object}");
            assert_eq!(member.time(), None, "{object}");
            assert_eq!(member.text_or("x"), "x", "{object}");
        }
        assert!(!Member::of(&json!({"m": null})).get("m").is_set());
        assert!(Member::of(&json!({"m": ""})).get("m").is_set());
    }

    #[test]
    fn the_zero_time_and_what_is_no_time_are_not_set() {
        for (text, set) in [
            ("0001-01-01T00:00:00Z", false),
            ("0001-01-01T00:00:00.000001Z", true),
            ("0001-01-01T01:00:00+01:00", false),
            ("yesterday", false),
            ("", false),
            ("2026-06-01T12:00:00Z", true),
            ("2026-06-01T12:00:00.123456Z", true),
        ] {
            assert_eq!(Member::of(&json!(text)).time().is_some(), set, "{text}");
        }
    }
}
