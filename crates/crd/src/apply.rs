//! The nodes of a compiled schema as server-side apply's merge asks for them: as kube-apiserver turns them
//! into types.
//!
//! In: a node and what is around it. Out: what a merge asks. Never: what a merge does not ask, validation
//! among it.
//!
//! The metadata of the object and of resources embedded in it has the built-in type, whatever the schema says
//! of it. Below a node that keeps unknown fields all do.
//!
//! Source: kube-openapi `pkg/schemaconv/openapi.go`; apiextensions-apiserver v0.36.3 `pkg/controller/openapi/builder`.

use forebay_merge::{Atom, List, Map, Relation, ScalarType, Untyped};
use serde_json::Value;

use crate::Schema;
use crate::schema::{Additional, Flags, Kind, Node};

/// A type in an object of a CRD.
#[derive(Clone, Copy, Debug)]
pub enum NodeType<'s> {
    Node(ApplyNode<'s>),
    /// The built-in type of metadata.
    Metadata,
    /// `apiVersion` and `kind`.
    Text,
    Untyped(Untyped),
}

const DEDUCED: NodeType<'static> = NodeType::Untyped(Untyped::Deduced);
const ATOMIC: NodeType<'static> = NodeType::Untyped(Untyped::Atomic);

/// A node of a CRD's schema.
#[derive(Clone, Copy, Debug)]
pub struct ApplyNode<'s> {
    node: &'s Node,
    /// It has a version, a kind and metadata.
    is_resource: bool,
    /// Unknown fields are kept here or above.
    preserve: bool,
}

impl<'s> ApplyNode<'s> {
    /// The type of whole objects.
    pub fn root(schema: &'s Schema) -> ApplyNode<'s> {
        ApplyNode::new(schema.root(), true, false)
    }

    fn new(node: &'s Node, is_resource: bool, preserve: bool) -> ApplyNode<'s> {
        ApplyNode { node, is_resource, preserve: preserve || node.has(Flags::PRESERVE_UNKNOWN) }
    }

    fn below(self, node: &'s Node) -> NodeType<'s> {
        NodeType::Node(ApplyNode::new(node, node.has(Flags::EMBEDDED), self.preserve))
    }

    /// What its values may be.
    pub fn atom(self) -> Atom<NodeType<'s>> {
        match self.node.kind {
            Kind::Object => Atom::map(self.map()),
            Kind::Array => Atom::list(self.list()),
            Kind::Integer | Kind::Number => Atom::scalar(ScalarType::Numeric),
            Kind::Boolean => Atom::scalar(ScalarType::Boolean),
            Kind::String => Atom::scalar(self.text()),
            Kind::None => {
                let scalar = Some(ScalarType::Untyped);
                Atom { scalar, list: Some(self.list()), map: Some(self.map()) }
            }
            Kind::Unknown => Atom::scalar(ScalarType::Untyped),
        }
    }

    /// Text in a format may be written otherwise than it was read.
    fn text(self) -> ScalarType {
        let format = self.node.rules.as_ref().and_then(|rules| rules.format.as_deref());
        match format {
            None | Some("" | "byte") => ScalarType::String,
            Some(_) => ScalarType::Untyped,
        }
    }

    fn list(self) -> List<NodeType<'s>> {
        let is_associative = self.node.has(Flags::LIST_SET) || self.node.has(Flags::LIST_MAP);
        let item = self.node.item().map_or(ATOMIC, |item| self.below(item));
        List {
            relation: if is_associative { Relation::Associative } else { Relation::Atomic },
            item: Some(item),
        }
    }

    fn map(self) -> Map<NodeType<'s>> {
        let declares_nothing = !self.is_resource && self.node.properties().len() == 0;
        let item = match &self.node.additional {
            Additional::Unset if self.preserve || declares_nothing => Some(DEDUCED),
            Additional::Unset | Additional::Deny => None,
            Additional::Allow => Some(DEDUCED),
            Additional::Schema(node) => Some(self.below(node)),
        };
        let deduced = declares_nothing && matches!(item, Some(NodeType::Untyped(_)));
        Map { atomic: self.node.has(Flags::MAP_ATOMIC), item, deduced }
    }

    /// The type of a field that is declared.
    pub fn field(self, name: &str) -> Option<NodeType<'s>> {
        match name {
            "apiVersion" | "kind" if self.is_resource => Some(NodeType::Text),
            "metadata" if self.is_resource => Some(NodeType::Metadata),
            _ => self.node.property(name).map(|node| self.below(node)),
        }
    }

    /// The name of a key of a list that is a map; `None` behind the last one.
    pub fn key(&self, at: usize) -> Option<&str> {
        let is_map = self.node.has(Flags::LIST_MAP);
        is_map.then(|| self.node.list_map_keys().get(at)).flatten().map(|key| &**key)
    }

    /// What a declared field is when it is missing.
    pub fn default_of(self, field: &str) -> Option<Value> {
        let is_declared = !(self.is_resource && matches!(field, "apiVersion" | "kind" | "metadata"));
        is_declared.then(|| self.node.property(field)).flatten()?.default_value().cloned()
    }
}
