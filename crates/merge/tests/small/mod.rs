//! A type that has some of everything, and a converter that does nothing.
//!
//! In: nothing. Out: what a test merges by. Never: used but in tests.

use forebay_merge::{Atom, ConvertError, Converter, List, Map, Relation, ScalarType, TypeRef, TypedValue};
use serde_json::Value;

/// Objects of a list of items with a key, and a set of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ty {
    Root,
    Items,
    Item,
    Numbers,
    Scalar(ScalarType),
}

impl TypeRef for Ty {
    fn atom(self) -> Atom<Ty> {
        let list = |item| Atom::list(List { relation: Relation::Associative, item: Some(item) });
        match self {
            Ty::Root | Ty::Item => Atom::map(Map { atomic: false, item: None, deduced: false }),
            Ty::Items => list(Ty::Item),
            Ty::Numbers => list(Ty::Scalar(ScalarType::Numeric)),
            Ty::Scalar(scalar) => Atom::scalar(scalar),
        }
    }

    fn field(self, name: &str) -> Option<Ty> {
        match (self, name) {
            (Ty::Root, "items") => Some(Ty::Items),
            (Ty::Root, "numbers") => Some(Ty::Numbers),
            (Ty::Item, "name" | "value") => Some(Ty::Scalar(ScalarType::String)),
            (Ty::Item, "items") => Some(Ty::Items),
            _ => None,
        }
    }

    fn key(&self, at: usize) -> Option<&str> {
        (*self == Ty::Items && at == 0).then_some("name")
    }

    fn default_of(self, _field: &str) -> Option<Value> {
        None
    }
}

/// Every version is the same.
pub struct Same;

impl<T: Copy> Converter<T> for Same {
    fn convert<'v>(
        &self,
        object: &'v TypedValue<'_, T>,
        _version: &str,
    ) -> Result<TypedValue<'v, T>, ConvertError> {
        Ok(TypedValue { value: std::borrow::Cow::Borrowed(&object.value), ty: object.ty })
    }
}
