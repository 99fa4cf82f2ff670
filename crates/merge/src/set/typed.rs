//! Sets and the types of their fields.
//!
//! In: a set and a type. Out: the set with the structs above its fields, or as it would be had the type
//! always been what it is now. Never: a value.
//!
//! Source: structured-merge-diff v6.3.3 `typed/reconcile_schema.go`.

use super::Set;
use super::nodes::{self, Nodes, SetBuilder};
use crate::element::{Element, ElementKind};
use crate::fault::Faults;
use crate::schema::{AtomKinds, Relation, Treated, TypeRef};

impl Set {
    /// With every declared field that has one of its fields below it.
    pub fn with_declared_fields<T: TypeRef>(&self, ty: T) -> Set {
        let mut out = Vec::with_capacity(self.0.len());
        declare(self.nodes(), Some(ty), &mut out);
        Set(out)
    }

    /// As it would be had its type always been `ty`: of what has become one value only that is owned. `None`
    /// if it is the same.
    ///
    /// # Errors
    /// The type is of no kind.
    pub fn reconciled<T: TypeRef>(&self, ty: T) -> Result<Option<Set>, Faults> {
        let mut walk = Reconcile::default();
        walk.visit(Some(self.nodes()), Some(ty), false);
        let Reconcile { marked, is_marked, faults, .. } = walk;
        let marked = Set::of(marked);
        faults.or(is_marked.then(|| self.recursive_difference(&marked).union(&marked)))
    }
}

fn declare<T: TypeRef>(nodes: Nodes<'_>, ty: Option<T>, out: &mut Vec<u8>) {
    let atom = ty.map(TypeRef::atom);
    let map = atom.as_ref().and_then(|atom| atom.map);
    let list = atom.as_ref().and_then(|atom| atom.list);
    for node in nodes {
        let declared = match (node.element.name(), ty) {
            (Some(name), Some(ty)) if map.is_some() => ty.field(name),
            _ => None,
        };
        let below = match node.element.kind() {
            ElementKind::Field => declared.or(map.and_then(|map| map.item)),
            ElementKind::Key => list.and_then(|list| list.item),
            ElementKind::Value | ElementKind::Index | ElementKind::Keyless => None,
        };
        let member = node.member || (declared.is_some() && !node.below.is_empty());
        nodes::write(out, &node.element, member, |out| declare(node.below, below, out));
    }
}

/// Finds what has become one value.
#[derive(Default)]
struct Reconcile<'a> {
    path: Vec<Element<'a>>,
    /// What is one value now and was not.
    marked: SetBuilder,
    is_marked: bool,
    faults: Faults,
}

impl<'a> Reconcile<'a> {
    /// - `was_atomic`: whether the field is owned, and nothing below it.
    fn visit<T: TypeRef>(&mut self, nodes: Option<Nodes<'a>>, ty: Option<T>, was_atomic: bool) {
        let Some(ty) = ty else { return self.faults.add(&self.path, "schema error: invalid atom: inlined") };
        let atom = ty.atom();
        match atom.treated(AtomKinds::ANY) {
            Treated::Map(map) if map.deduced => {}
            Treated::Map(map) if map.atomic && !was_atomic => {
                if nodes.is_some_and(|nodes| !nodes.is_empty()) {
                    self.mark();
                }
            }
            Treated::Map(map) => {
                let type_of =
                    |element: &Element<'_>| element.name().and_then(|name| ty.field(name)).or(map.item);
                self.visit_below(nodes, |element| type_of(element).map(Some));
            }
            Treated::List(list) if list.relation == Relation::Atomic && !was_atomic => self.mark(),
            Treated::List(list) => self.visit_below(nodes, |_| Some(list.item)),
            Treated::Scalar(_) => {}
            Treated::Nothing => self.faults.add(&self.path, "schema error: invalid atom: inlined"),
        }
    }

    /// - `type_of`: the type of an element; `None` if it is passed over.
    fn visit_below<T: TypeRef>(
        &mut self,
        nodes: Option<Nodes<'a>>,
        type_of: impl Fn(&Element<'_>) -> Option<Option<T>>,
    ) {
        for node in nodes.unwrap_or_default() {
            let Some(ty) = type_of(&node.element) else { continue };
            let below = (!node.below.is_empty()).then_some(node.below);
            self.path.push(node.element);
            self.visit(below, ty, node.member && below.is_none());
            self.path.pop();
            self.marked.leave(self.path.len());
        }
    }

    fn mark(&mut self) {
        self.marked.add(&self.path);
        self.is_marked = true;
    }
}
