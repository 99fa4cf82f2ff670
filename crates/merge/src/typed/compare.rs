//! What is different between two values.
//!
//! In: two values of a type. Out: the fields that were removed, modified and added. Never: a field in two of
//! the three.
//!
//! Source: structured-merge-diff v6.3.3 `typed/compare.go`.

use serde_json::Value;

use super::list::{element_of, list_of, map_of, members};
use super::scalar::{self, equal};
use crate::element::Element;
use crate::fault::Faults;
use crate::schema::{Atom, AtomKinds, List, Map, Relation, Treated, TypeRef};
use crate::set::{Filter, Set, SetBuilder};

/// What is different between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    pub removed: Set,
    pub modified: Set,
    pub added: Set,
}

impl Comparison {
    /// Whether nothing is.
    pub fn is_same(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }

    /// What of it counts.
    pub fn filtered(self, filter: Option<&Filter>) -> Comparison {
        let Some(filter) = filter else { return self };
        Comparison {
            removed: filter.of(&self.removed),
            modified: filter.of(&self.modified),
            added: filter.of(&self.added),
        }
    }
}

pub fn compare<T: TypeRef>(left: &Value, right: &Value, ty: T) -> Result<Comparison, Faults> {
    let mut walk = Compare::default();
    walk.visit(Some(left), Some(right), Some(ty));
    let Compare { removed, modified, added, faults, .. } = walk;
    faults.or(Comparison { removed: Set::of(removed), modified: Set::of(modified), added: Set::of(added) })
}

#[derive(Default)]
struct Compare<'v> {
    path: Vec<Element<'v>>,
    removed: SetBuilder,
    modified: SetBuilder,
    added: SetBuilder,
    faults: Faults,
}

/// A value, if there is one.
type Side<'v> = Option<&'v Value>;

/// Whether what was compared is one value, or has fields.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Leaf,
    Fields,
}

impl<'v> Compare<'v> {
    fn visit<T: TypeRef>(&mut self, left: Side<'v>, right: Side<'v>, ty: Option<T>) {
        let Some(ty) = ty else { return self.fault("schema error: invalid atom: inlined") };
        let atom = ty.atom();
        let (left_kinds, right_kinds) = (atom.kinds(left), atom.kinds(right));
        let found = match (left, right) {
            (_, None) => self.visit_as(left_kinds, left, right, ty, &atom),
            (Some(_), Some(_)) if !atom.treats_alike(left_kinds, right_kinds) => {
                self.visit_as(left_kinds, left, right, ty, &atom);
                self.visit_as(right_kinds, left, right, ty, &atom)
            }
            _ => self.visit_as(right_kinds, left, right, ty, &atom),
        };
        match (found, left, right) {
            (Found::Fields, None, _) => self.added.add(&self.path),
            (Found::Fields, _, None) => self.removed.add(&self.path),
            _ => {}
        }
    }

    fn visit_as<T: TypeRef>(
        &mut self,
        kinds: AtomKinds,
        left: Side<'v>,
        right: Side<'v>,
        ty: T,
        atom: &Atom<T>,
    ) -> Found {
        match atom.treated(kinds) {
            Treated::Map(map) => self.maps(left, right, ty, &map),
            Treated::List(list) => self.lists(left, right, ty, &list),
            Treated::Scalar(kind) => {
                let fault = |side: Side<'v>, name| side.and_then(|value| scalar::fault(kind, value, name));
                match (fault(left, "lhs: "), fault(right, "rhs: ")) {
                    (Some(left), Some(right)) => {
                        self.fault(left);
                        self.fault(right);
                        Found::Fields
                    }
                    _ => self.leaf(left, right),
                }
            }
            Treated::Nothing => {
                self.fault("schema error: invalid atom: inlined");
                Found::Fields
            }
        }
    }

    fn leaf(&mut self, left: Side<'v>, right: Side<'v>) -> Found {
        match (left, right) {
            (None, _) => self.added.add(&self.path),
            (_, None) => self.removed.add(&self.path),
            (Some(left), Some(right)) if !equal(left, right) => self.modified.add(&self.path),
            _ => {}
        }
        Found::Leaf
    }

    fn maps<T: TypeRef>(&mut self, left: Side<'v>, right: Side<'v>, ty: T, map: &Map<T>) -> Found {
        let of = |side: Side<'v>| side.and_then(|value| map_of(value).ok().flatten());
        let (left_map, right_map) = (of(left), of(right));
        // Two that have nothing are one value each: null and an empty one are not the same.
        if map.atomic || [left_map, right_map].iter().flatten().all(|map| map.is_empty()) {
            return self.leaf(left, right);
        }
        let (mut lefts, mut rights) = (members(left_map).peekable(), members(right_map).peekable());
        loop {
            let name = match (lefts.peek(), rights.peek()) {
                (None, None) => return Found::Fields,
                (Some((name, _)), None) | (None, Some((name, _))) => *name,
                (Some((left, _)), Some((right, _))) => *left.min(right),
            };
            let left = lefts.next_if(|(found, _)| *found == name).map(|(_, value)| value);
            let right = rights.next_if(|(found, _)| *found == name).map(|(_, value)| value);
            self.path.push(Element::field(name));
            self.visit(left, right, ty.field(name).or(map.item));
            self.leave();
        }
    }

    fn lists<T: TypeRef>(&mut self, left: Side<'v>, right: Side<'v>, ty: T, list: &List<T>) -> Found {
        let of = |side: Side<'v>| side.and_then(|value| list_of(value).ok().flatten());
        let (left_list, right_list) = (of(left), of(right));
        if list.relation == Relation::Atomic
            || [left_list, right_list].iter().flatten().all(|list| list.is_empty())
        {
            return self.leaf(left, right);
        }
        let mut items = Vec::new();
        for (side, found) in [(Right::No, left_list), (Right::Yes, right_list)] {
            for (index, item) in found.into_iter().flatten().enumerate() {
                match element_of(ty, list, item) {
                    Ok(element) => items.push((element, side, item)),
                    Err(why) => self.fault(format!("element {index}: {why}")),
                }
            }
        }
        // Stable: the items of a side stay in order.
        items.sort_by(|(a, side_a, _), (b, side_b, _)| a.cmp(b).then(side_a.cmp(side_b)));
        for same in items.chunk_by(|(a, ..), (b, ..)| a == b) {
            let split = same.partition_point(|(_, side, _)| *side == Right::No);
            self.path.push(same[0].0.clone());
            self.items(&same[..split], &same[split..], list);
            self.leave();
        }
        Found::Fields
    }

    /// Items that are the same, of both sides: more than one of a side are one value.
    fn items<T: TypeRef>(&mut self, lefts: &[Item<'v>], rights: &[Item<'v>], list: &List<T>) {
        match (lefts, rights) {
            ([] | [_], [] | [_]) => self.visit(only(lefts), only(rights), list.item),
            ([_, _, ..], [_, _, ..]) => {
                let same = |(left, right): (&Item<'v>, &Item<'v>)| equal(left.2, right.2);
                if lefts.len() != rights.len() || !lefts.iter().zip(rights).all(same) {
                    self.modified.add(&self.path);
                }
            }
            ([_, _, ..], _) => {
                if let Some(right) = only(rights) {
                    self.visit(None, Some(right), list.item);
                }
                self.removed.add(&self.path);
            }
            (_, _) => {
                if let Some(left) = only(lefts) {
                    self.visit(Some(left), None, list.item);
                }
                self.added.add(&self.path);
            }
        }
    }

    fn leave(&mut self) {
        self.path.pop();
        for set in [&mut self.removed, &mut self.modified, &mut self.added] {
            set.leave(self.path.len());
        }
    }

    fn fault(&mut self, why: impl Into<String>) {
        self.faults.add(&self.path, why);
    }
}

/// Which side an item is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Right {
    No,
    Yes,
}

type Item<'v> = (Element<'static>, Right, &'v Value);

fn only<'v>(items: &[Item<'v>]) -> Side<'v> {
    items.first().map(|(_, _, item)| *item)
}
