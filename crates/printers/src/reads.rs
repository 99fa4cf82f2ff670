//! Which members of an object its cells are made of, and reading no more than those.
//!
//! In: an object as JSON text. Out: a value with the members that somebody asks for; the rest is skipped, not built: most of a
//! pod is environment, volumes and managed fields. Never: a value where the text is no JSON.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What is read of a value; of an array, the same of each item.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reads {
    All,
    /// These members and no others.
    Only(&'static [(&'static str, Reads)]),
    /// All but these members; `None` is nothing of one.
    AllBut(&'static [(&'static str, Option<Reads>)]),
}

/// What is read of a kind that does not say it: no cell shows who manages which field.
pub(crate) const UNMANAGED: Reads =
    Reads::AllBut(&[("metadata", Some(Reads::AllBut(&[("managedFields", None)])))]);

impl Reads {
    /// Reads `json`.
    pub(crate) fn read(self, json: &[u8]) -> serde_json::Result<Value> {
        let mut json = serde_json::Deserializer::from_slice(json);
        let value = self.deserialize(&mut json)?;
        json.end().map(|()| value)
    }

    fn of(self, member: &str) -> Option<Reads> {
        match self {
            Reads::All => Some(Reads::All),
            Reads::Only(named) => named.iter().find(|(name, _)| *name == member).map(|(_, reads)| *reads),
            Reads::AllBut(named) => {
                named.iter().find(|(name, _)| *name == member).map_or(Some(Reads::All), |(_, reads)| *reads)
            }
        }
    }
}

impl<'de> DeserializeSeed<'de> for Reads {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reads {
    type Value = Value;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element_seed(self)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<std::borrow::Cow<'de, str>>()? {
            match self.of(&name) {
                Some(reads) => drop(members.insert(name.into_owned(), from.next_value_seed(reads)?)),
                None => drop(from.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_nobody_asks_for_is_left_out() {
        let text = r#"{"metadata":{"name":"a","managedFields":[{"x":1}]},"list":[{"a":1,"b":2},null,[{"b":3}]],"n":-1.5}"#;
        let all: Value = serde_json::from_str(text).unwrap();
        for (reads, want) in [
            (Reads::All, all),
            (UNMANAGED, json!({"metadata":{"name":"a"},"list":[{"a":1,"b":2},null,[{"b":3}]],"n":-1.5})),
            (
                Reads::Only(&[("list", Reads::Only(&[("a", Reads::All)]))]),
                json!({"list":[{"a":1},null,[{}]]}),
            ),
            (Reads::Only(&[]), json!({})),
        ] {
            assert_eq!(reads.read(text.as_bytes()).unwrap(), want, "{reads:?}");
        }
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in ["", "{", "{} {}", "{\"a\":}", "[1,]"] {
            assert!(UNMANAGED.read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
