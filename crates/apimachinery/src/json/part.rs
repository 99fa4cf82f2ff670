//! Reading a part of a JSON text.
//!
//! In: the text, and who says which members are wanted. Out: a value with those; the rest is skipped, not
//! built: most of a pod is environment, volumes and managed fields. Never: a value where the text is no JSON.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// What is wanted of a value; of an array, the same of each item.
pub trait Part: Copy {
    /// What is wanted of its member `name`; `None` is nothing.
    fn member(self, name: &str) -> Option<Self>;
}

/// Reads `part` of `json`.
///
/// # Errors
/// It is no JSON, or what is wanted of it is nested deeper than 127 levels.
pub fn read_part(part: impl Part, json: &[u8]) -> serde_json::Result<Value> {
    let mut json = serde_json::Deserializer::from_slice(json);
    let value = Seed(part).deserialize(&mut json)?;
    json.end().map(|()| value)
}

#[derive(Clone, Copy)]
struct Seed<P>(P);

impl<'de, P: Part> DeserializeSeed<'de> for Seed<P> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de, P: Part> Visitor<'de> for Seed<P> {
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
        while let Some(wanted) = from.next_key_seed(Name(self.0))? {
            match wanted {
                Some((name, part)) => drop(members.insert(name, from.next_value_seed(Seed(part))?)),
                None => drop(from.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(members))
    }
}

/// Reads a member's name, and keeps it where the member is wanted.
struct Name<P>(P);

impl<'de, P: Part> DeserializeSeed<'de> for Name<P> {
    type Value = Option<(String, P)>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_str(self)
    }
}

impl<P: Part> Visitor<'_> for Name<P> {
    type Value = Option<(String, P)>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.member(name).map(|part| (name.to_owned(), part)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Members of the names that begin so, and what is in them.
    #[derive(Clone, Copy)]
    struct Beginning(&'static str);

    impl Part for Beginning {
        fn member(self, name: &str) -> Option<Beginning> {
            name.starts_with(self.0).then_some(self)
        }
    }

    #[test]
    fn what_nobody_asks_for_is_left_out() {
        let text = r#"{"a":{"ab":1.5,"b":[2]},"b":{"a":3},"a\u0031":[null,{"a":-4,"c":true},[{"a":"x"}]]}"#;
        for (beginning, want) in [
            ("", serde_json::from_str(text).unwrap()),
            ("a", json!({"a":{"ab":1.5},"a1":[null,{"a":-4},[{"a":"x"}]]})),
            ("c", json!({})),
        ] {
            assert_eq!(read_part(Beginning(beginning), text.as_bytes()).unwrap(), want, "{beginning}");
        }
    }

    #[test]
    fn what_is_no_json_is_an_error() {
        for text in ["", "{", "{} {}", "{\"a\":}", "{\"b\":}", "[1,]"] {
            assert!(read_part(Beginning("a"), text.as_bytes()).is_err(), "{text}");
        }
    }
}
