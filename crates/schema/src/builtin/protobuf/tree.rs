//! JSON as it stands in a text, or in a value, without copies of its strings: what messages are made of.
//!
//! In: a text or a `Value`. Out: a tree that borrows from it. Never: changed.
//!
//! A pod of 3.7 KB becomes a message in 17 us (16.4 to 17.3) of its text, and in 31 us (29.4 to 31.7) by way
//! of a `Value`: `examples/message_speed.rs`, two cores, five runs.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree<'a> {
    Null,
    Bool(bool),
    Number(Number),
    String(Cow<'a, str>),
    Array(Vec<Tree<'a>>),
    Object(Members<'a>),
}

/// The members of an object, in their order. Of a name that comes twice the first one counts; in what is
/// stored none does.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Members<'a>(Vec<(Cow<'a, str>, Tree<'a>)>);

impl<'a> Members<'a> {
    pub(super) const NONE: Members<'static> = Members(Vec::new());

    /// The member `name`.
    ///
    /// - `next`: where to look first, and behind what was found afterwards: fields are asked for in about the
    ///   order in which they stand.
    pub(super) fn find(&self, name: &str, next: &mut usize) -> Option<&Tree<'a>> {
        let (before, from) = self.0.split_at((*next).min(self.0.len()));
        let place = |part: &[(Cow<'a, str>, Tree<'a>)]| part.iter().position(|(key, _)| key == name);
        let found = match place(from) {
            Some(place) => before.len() + place,
            None => place(before)?,
        };
        *next = found + 1;
        Some(&self.0[found].1)
    }

    /// Calls `each` with every member, sorted by name.
    pub(super) fn for_each_sorted<E>(
        &self,
        mut each: impl FnMut(&str, &Tree<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.0.is_sorted_by_key(|(key, _)| key) {
            return self.0.iter().try_for_each(|(key, value)| each(key, value));
        }
        let mut members: Vec<_> = self.0.iter().collect();
        members.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        members.into_iter().try_for_each(|(key, value)| each(key, value))
    }
}

impl Tree<'_> {
    pub(super) fn is_null(&self) -> bool {
        *self == Tree::Null
    }

    /// A copy, for the few places that hold JSON of any shape.
    pub(super) fn to_value(&self) -> Value {
        match self {
            Tree::Null => Value::Null,
            Tree::Bool(value) => Value::Bool(*value),
            Tree::Number(number) => Value::Number(number.clone()),
            Tree::String(text) => Value::String(text.to_string()),
            Tree::Array(items) => items.iter().map(Tree::to_value).collect(),
            Tree::Object(Members(members)) => {
                members.iter().map(|(key, value)| (key.to_string(), value.to_value())).collect()
            }
        }
    }
}

impl<'a> From<&'a Value> for Tree<'a> {
    fn from(value: &'a Value) -> Tree<'a> {
        match value {
            Value::Null => Tree::Null,
            Value::Bool(value) => Tree::Bool(*value),
            Value::Number(number) => Tree::Number(number.clone()),
            Value::String(text) => Tree::String(Cow::Borrowed(text)),
            Value::Array(items) => Tree::Array(items.iter().map(Tree::from).collect()),
            Value::Object(members) => {
                let member =
                    |(key, value): (&'a String, &'a Value)| (Cow::Borrowed(&**key), Tree::from(value));
                Tree::Object(Members(members.iter().map(member).collect()))
            }
        }
    }
}

/// A string that borrows unless it was escaped.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Tree<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree<'de>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Tree<'de>, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree<'de>, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree<'de>, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Tree<'de>, E> {
        Ok(Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Tree<'de>, E> {
        Ok(Tree::String(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(item) = items.next_element()? {
            all.push(item);
        }
        Ok(Tree::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some((Text(key), value)) = members.next_entry()? {
            all.push((key, value));
        }
        Ok(Tree::Object(Members(all)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_and_its_value_are_one_tree() {
        let text = r#"{"b":[1,-2,3.5,18446744073709551615,null,true,"x\ny\u00e9\ud83d\ude00"],"a":{"":{}},"k\"ey":"v"}"#;
        let value: Value = serde_json::from_str(text).expect("JSON");
        let tree: Tree = serde_json::from_str(text).expect("JSON");
        assert_eq!(tree.to_value(), value);
        assert_eq!(Tree::from(&value).to_value(), value);
        let plain: Tree = serde_json::from_str(r#"["x"]"#).expect("JSON");
        assert!(matches!(&plain, Tree::Array(items) if matches!(items[0], Tree::String(Cow::Borrowed("x")))));
        for broken in ["", "{", r#"{"a"}"#, "[1,]", r#"{"a":1}x"#, "nul"] {
            assert!(serde_json::from_str::<Tree>(broken).is_err(), "{broken}");
        }
        assert!(serde_json::from_str::<Tree>(&"[".repeat(200_000)).is_err(), "depth is bounded");
    }

    #[test]
    fn members_are_found_in_any_order_and_sorted() {
        let value = json!({"a": 1, "b": 2, "c": 3});
        let Tree::Object(members) = Tree::from(&value) else { panic!("an object") };
        for names in [["a", "b", "c"], ["c", "a", "b"], ["b", "b", "a"]] {
            let mut next = 0;
            for name in names {
                assert_eq!(members.find(name, &mut next).map(Tree::to_value), Some(value[name].clone()));
                assert!(members.find("x", &mut next).is_none());
            }
        }
        let Ok(Tree::Object(members)) = serde_json::from_str(r#"{"b":1,"a":2}"#) else { panic!("an object") };
        let mut names = Vec::new();
        let sorted = members.for_each_sorted(|name, _| {
            names.push(name.to_owned());
            Ok::<_, ()>(())
        });
        assert!(sorted.is_ok());
        assert_eq!(names, ["a", "b"]);
    }
}
