//! Types as server-side apply's merge asks for them: built-in kinds, and custom resources by their schemas.
//!
//! In: a built-in kind, or a compiled schema of a CRD. Out: a [`FieldType`], a handle of a few words that
//! says what a merge asks. Never: a copy of the table or of a schema; merges.

mod built_in;

use forebay_crd::{ApplyNode, NodeType, Schema};
use forebay_merge::{Always, Atom, Map, ScalarType, TypeRef, Untyped};
use forebay_schema::builtin::{Field, TypeId, is_said, table};
use serde_json::Value;

/// A type of a field, or of an object.
#[derive(Clone, Copy, Debug)]
pub enum FieldType<'s> {
    /// One of the table's, as a field has it.
    BuiltIn(TypeId, Option<&'static Field>),
    Custom(ApplyNode<'s>),
    /// `apiVersion` and `kind` of custom resources.
    Text,
    /// An object of which nothing is declared.
    AnyObject,
    Untyped(Untyped),
}

impl FieldType<'static> {
    /// The type of a built-in kind; `None` if there is no such kind. `group` is empty for the core group.
    pub fn of_kind(group: &str, version: &str, kind: &str) -> Option<FieldType<'static>> {
        table().kind(group, version, kind).map(|kind| FieldType::BuiltIn(kind.ty, None))
    }
}

impl<'s> FieldType<'s> {
    /// The type of custom resources that have this schema.
    pub fn of_schema(schema: &'s Schema) -> FieldType<'s> {
        FieldType::Custom(ApplyNode::root(schema))
    }
}

impl<'s> FieldType<'s> {
    fn of_node(node: NodeType<'s>) -> FieldType<'s> {
        match node {
            NodeType::Node(node) => FieldType::Custom(node),
            NodeType::Metadata => FieldType::BuiltIn(built_in::metadata(), None),
            NodeType::Text => FieldType::Text,
            NodeType::Untyped(untyped) => FieldType::Untyped(untyped),
        }
    }
}

impl<'s> TypeRef for FieldType<'s> {
    fn atom(self) -> Atom<FieldType<'s>> {
        match self {
            FieldType::BuiltIn(ty, field) => built_in::atom(ty, field),
            FieldType::Custom(custom) => custom.atom().of_types(FieldType::of_node),
            FieldType::Text => Atom::scalar(ScalarType::String),
            FieldType::AnyObject => Atom::map(Map { atomic: false, item: Some(DEDUCED), deduced: true }),
            FieldType::Untyped(untyped) => untyped.atom_as(DEDUCED, ATOMIC),
        }
    }

    fn field(self, name: &str) -> Option<FieldType<'s>> {
        match self {
            FieldType::BuiltIn(ty, _) => built_in::field(ty, name),
            FieldType::Custom(custom) => custom.field(name).map(FieldType::of_node),
            _ => None,
        }
    }

    fn key(&self, at: usize) -> Option<&str> {
        match self {
            FieldType::BuiltIn(_, field) => table().attrs((*field)?).list_map_keys().nth(at),
            FieldType::Custom(custom) => custom.key(at),
            _ => None,
        }
    }

    fn always(self) -> impl Iterator<Item = Always<FieldType<'s>>> {
        let built_in = match self {
            FieldType::BuiltIn(ty, _) => Some(built_in::always(ty)),
            _ => None,
        };
        built_in.into_iter().flatten()
    }

    fn is_said(self, value: &Value) -> bool {
        match self {
            FieldType::BuiltIn(_, Some(field)) => is_said(field, value),
            _ => true,
        }
    }

    fn default_of(self, field: &str) -> Option<Value> {
        match self {
            FieldType::BuiltIn(ty, _) => built_in::default_of(ty, field),
            FieldType::Custom(custom) => custom.default_of(field),
            _ => None,
        }
    }
}

/// What is in an object of which nothing is declared.
const DEDUCED: FieldType<'static> = FieldType::Untyped(Untyped::Deduced);
const ATOMIC: FieldType<'static> = FieldType::Untyped(Untyped::Atomic);
