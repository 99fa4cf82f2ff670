//! What a merge asks of a type.
//!
//! In: a handle to a type, whoever keeps types. Out: what its values may be, and the types below it. Never:
//! keeps a type.
//!
//! A handle is copied freely: a number into the table of the built-in kinds, a reference to a node of a CRD's
//! schema. What a schema says at a field (`x-kubernetes-map-type` beside a type that is used elsewhere too)
//! is part of the handle.
//!
//! Source: structured-merge-diff's `schema` package. Its unions are in its data and in nothing that it does since v6; they are
//! left out here.

use serde_json::Value;

/// A handle to a type.
pub trait TypeRef: Copy {
    /// What its values may be.
    fn atom(self) -> Atom<Self>;

    /// The type of a field that an object of this type declares.
    fn field(self, name: &str) -> Option<Self>;

    /// The name of a key of an associative list of this type; `None` behind the last one. A list without keys
    /// is a set.
    fn key(&self, at: usize) -> Option<&str>;

    /// What a declared field is when it is missing, if that is said: a key of an item may be left out then.
    fn default_of(self, field: &str) -> Option<Value>;

    /// The fields that an object of this type has whether it says so or not, by name.
    fn always(self) -> impl Iterator<Item = Always<Self>> {
        std::iter::empty()
    }

    /// Whether an object has a field of this type of which it says `value`: a zero may be none.
    fn is_said(self, _value: &Value) -> bool {
        true
    }
}

/// A field that an object always has.
#[derive(Clone, Copy, Debug)]
pub struct Always<T> {
    pub name: &'static str,
    /// Its type, if it is an object where nothing is said of it; otherwise it is null, or a scalar's zero.
    pub object: Option<T>,
}

/// What values of a type may be. Usually one of the three; what has no schema may be all.
#[derive(Clone, Copy, Debug)]
pub struct Atom<T> {
    pub scalar: Option<ScalarType>,
    pub list: Option<List<T>>,
    pub map: Option<Map<T>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarType {
    Numeric,
    String,
    Boolean,
    /// Any of them.
    Untyped,
}

/// How the items of a list hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The list is one value.
    Atomic,
    /// Items are told apart by their keys, or, without keys, by what they are.
    Associative,
}

#[derive(Clone, Copy, Debug)]
pub struct List<T> {
    pub relation: Relation,
    pub item: Option<T>,
}

/// Of an object: a map or a struct, or both.
#[derive(Clone, Copy, Debug)]
pub struct Map<T> {
    /// The object is one value.
    pub atomic: bool,
    /// The type of fields that are not declared; `None` if none may be.
    pub item: Option<T>,
    /// Nothing is declared and anything may be in it: nothing is known of how it was typed before either.
    pub deduced: bool,
}

impl<T> Atom<T> {
    pub fn scalar(scalar: ScalarType) -> Atom<T> {
        Atom { scalar: Some(scalar), list: None, map: None }
    }

    pub fn list(list: List<T>) -> Atom<T> {
        Atom { scalar: None, list: Some(list), map: None }
    }

    pub fn map(map: Map<T>) -> Atom<T> {
        Atom { scalar: None, list: None, map: Some(map) }
    }

    /// The same of other handles.
    pub fn of_types<U>(self, each: impl Fn(T) -> U) -> Atom<U> {
        let of_list = |list: List<T>| List { relation: list.relation, item: list.item.map(&each) };
        let of_map =
            |map: Map<T>| Map { atomic: map.atomic, item: map.item.map(&each), deduced: map.deduced };
        Atom { scalar: self.scalar, list: self.list.map(of_list), map: self.map.map(of_map) }
    }

    /// Which of what it may be `value` is; all of them if it is none or nothing.
    pub(crate) fn kinds(&self, value: Option<&Value>) -> AtomKinds {
        let all =
            AtomKinds { map: self.map.is_some(), scalar: self.scalar.is_some(), list: self.list.is_some() };
        let none = AtomKinds { map: false, scalar: false, list: false };
        match value {
            Some(Value::Object(_)) if all.map => AtomKinds { map: true, ..none },
            Some(Value::Array(_)) if all.list => AtomKinds { list: true, ..none },
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if all.scalar => {
                AtomKinds { scalar: true, ..none }
            }
            _ => all,
        }
    }

    /// What a value of these kinds is treated as.
    pub(crate) fn treated(&self, kinds: AtomKinds) -> Treated<T>
    where
        T: Copy,
    {
        match (self.map, self.scalar, self.list) {
            (Some(map), ..) if kinds.map => Treated::Map(map),
            (_, Some(scalar), _) if kinds.scalar => Treated::Scalar(scalar),
            (_, _, Some(list)) if kinds.list => Treated::List(list),
            _ => Treated::Nothing,
        }
    }

    /// Whether values of one of these kinds are treated as those of the other.
    pub(crate) fn treats_alike(&self, kinds: AtomKinds, other: AtomKinds) -> bool
    where
        T: Copy,
    {
        std::mem::discriminant(&self.treated(kinds)) == std::mem::discriminant(&self.treated(other))
    }

    /// What `value` is treated as.
    pub(crate) fn of(&self, value: &Value) -> Treated<T>
    where
        T: Copy,
    {
        self.treated(self.kinds(Some(value)))
    }
}

/// Which of the three a value may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtomKinds {
    map: bool,
    scalar: bool,
    list: bool,
}

impl AtomKinds {
    /// Nothing is known of the value.
    pub(crate) const ANY: AtomKinds = AtomKinds { map: true, scalar: true, list: true };
}

/// The part of an atom that counts for a value.
pub(crate) enum Treated<T> {
    Map(Map<T>),
    Scalar(ScalarType),
    List(List<T>),
    Nothing,
}

/// What has no schema: objects field by field, lists as one value, and so is all in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untyped {
    Deduced,
    Atomic,
}

impl Untyped {
    /// The atom, for whoever has such types among its own.
    ///
    /// - `deduced`, `atomic`: its handles to the two.
    pub fn atom_as<T>(self, deduced: T, atomic: T) -> Atom<T>
    where
        T: Copy,
    {
        let is_atomic = self == Untyped::Atomic;
        Atom {
            scalar: Some(ScalarType::Untyped),
            list: Some(List { relation: Relation::Atomic, item: Some(atomic) }),
            map: Some(Map {
                atomic: is_atomic,
                item: Some(if is_atomic { atomic } else { deduced }),
                deduced: !is_atomic,
            }),
        }
    }
}

impl TypeRef for Untyped {
    fn atom(self) -> Atom<Untyped> {
        self.atom_as(Untyped::Deduced, Untyped::Atomic)
    }

    fn field(self, _name: &str) -> Option<Untyped> {
        None
    }

    fn key(&self, _at: usize) -> Option<&str> {
        None
    }

    fn default_of(self, _field: &str) -> Option<Value> {
        None
    }
}
