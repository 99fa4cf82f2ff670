//! What an expression's parts are, before they have values.
//!
//! In: names. Out: types that are compared, assigned and printed as cel-go does. Never: the limits of a
//! schema, which are `decl.rs`'s.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::decl::Decl;

/// A type of the checker.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// Anything, judged when it is evaluated.
    Dyn,
    /// What has been complained of.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    Duration,
    Timestamp,
    Param(Arc<str>),
    List(Arc<Type>),
    Map(Arc<(Type, Type)>),
    Opaque(Arc<str>, Arc<[Type]>),
    Struct(Arc<StructType>),
    /// A primitive type that may be null.
    Wrapper(Arc<Type>),
    /// A message of protobuf in another, as dynamic as `Dyn` is.
    Any,
    /// The type of a type.
    Type(Option<Arc<Type>>),
}

/// A type with fields, or one that has none but its name.
#[derive(Debug)]
pub struct StructType {
    pub name: Arc<str>,
    pub fields: Fields,
}

/// What can be selected of a type.
#[derive(Debug)]
pub enum Fields {
    /// Nothing: it is a library's.
    None,
    /// Any name, and nobody knows the type.
    Any,
    Known(BTreeMap<Arc<str>, Type>),
    /// What a schema declares.
    Declared(Arc<Decl>),
}

impl StructType {
    pub(crate) fn field(&self, name: &str) -> Option<Type> {
        match &self.fields {
            Fields::None => None,
            Fields::Any => Some(Type::Dyn),
            Fields::Known(fields) => fields.get(name).cloned(),
            Fields::Declared(decl) => Some(decl.field(name)?.decl.checked(&format!("{}.{name}", self.name))),
        }
    }
}

impl PartialEq for StructType {
    fn eq(&self, other: &StructType) -> bool {
        self.name == other.name
    }
}

pub(crate) const OPTIONAL: &str = "optional_type";

impl Type {
    pub fn list(item: Type) -> Type {
        Type::List(Arc::new(item))
    }

    pub fn map(key: Type, value: Type) -> Type {
        Type::Map(Arc::new((key, value)))
    }

    pub fn optional(inner: Type) -> Type {
        Type::Opaque(OPTIONAL.into(), Arc::new([inner]))
    }

    /// A type of a library.
    pub fn named(name: &str) -> Type {
        Type::Struct(Arc::new(StructType { name: name.into(), fields: Fields::None }))
    }

    pub(crate) fn wrapper(inner: Type) -> Type {
        Type::Wrapper(Arc::new(inner))
    }

    /// What is in a wrapper.
    pub(crate) fn unwrapped(&self) -> &Type {
        if let Type::Wrapper(inner) = self { inner } else { self }
    }

    pub(crate) fn unwrap_optional(&self) -> Option<&Type> {
        match self {
            Type::Opaque(name, params) if &**name == OPTIONAL => params.first(),
            _ => None,
        }
    }

    pub(crate) fn is_dyn_or_error(&self) -> bool {
        matches!(self, Type::Dyn | Type::Any | Type::Error)
    }

    /// The name without its parameters.
    pub fn name(&self) -> &str {
        match self {
            Type::Dyn => "dyn",
            Type::Error => "!error!",
            Type::Null => "null_type",
            Type::Bool => "bool",
            Type::Int => "int",
            Type::Uint => "uint",
            Type::Double => "double",
            Type::String => "string",
            Type::Bytes => "bytes",
            Type::Duration => "google.protobuf.Duration",
            Type::Timestamp => "google.protobuf.Timestamp",
            Type::Param(name) | Type::Opaque(name, _) => name,
            Type::List(_) => "list",
            Type::Map(_) => "map",
            Type::Struct(it) => &it.name,
            Type::Wrapper(inner) => inner.name(),
            Type::Any => "google.protobuf.Any",
            Type::Type(_) => "type",
        }
    }

    /// As cel-go writes a type that is declared, messages by their full names; in errors they are written
    /// shorter.
    pub fn declared(&self) -> String {
        let params: Vec<String> = self.params().into_iter().map(Type::declared).collect();
        match self {
            Type::Wrapper(inner) => format!("wrapper({})", inner.name()),
            _ if params.is_empty() => self.name().to_owned(),
            _ => format!("{}({})", self.name(), params.join(", ")),
        }
    }

    pub(crate) fn params(&self) -> Vec<&Type> {
        match self {
            Type::List(item) => vec![item],
            Type::Map(both) => vec![&both.0, &both.1],
            Type::Opaque(_, params) => params.iter().collect(),
            Type::Type(Some(inner)) => vec![inner],
            _ => Vec::new(),
        }
    }

    /// The same kind of thing, whatever its parameters.
    pub(crate) fn is_same_kind(&self, other: &Type) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// As an error has it.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Null => return f.write_str("null"),
            Type::Duration => return f.write_str("duration"),
            Type::Timestamp => return f.write_str("timestamp"),
            Type::Any => return f.write_str("any"),
            Type::Wrapper(inner) => return write!(f, "wrapper({inner})"),
            _ => f.write_str(self.name())?,
        }
        let params = self.params();
        if params.is_empty() {
            return Ok(());
        }
        f.write_str("(")?;
        for (at, param) in params.into_iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{param}")?;
        }
        f.write_str(")")
    }
}
