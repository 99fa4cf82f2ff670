//! The fields that a value has.
//!
//! In: a value. Out: the set of its leaves and items. Never: whether it is right beyond what that takes.

use serde_json::Value;

use super::list::{element_of, members};
use crate::element::Element;
use crate::fault::Faults;
use crate::schema::{List, Map, Relation, Treated, TypeRef};
use crate::set::{Set, SetBuilder};

pub fn fields<T: TypeRef>(value: &Value, ty: T) -> Result<Set, Faults> {
    let mut walk = Fields::default();
    walk.visit(value, Some(ty));
    walk.faults.or(()).map(|()| Set::of(walk.set))
}

#[derive(Default)]
struct Fields<'v> {
    path: Vec<Element<'v>>,
    set: SetBuilder,
    faults: Faults,
}

impl<'v> Fields<'v> {
    fn visit<T: TypeRef>(&mut self, value: &'v Value, ty: Option<T>) {
        let Some(ty) = ty else { return self.faults.add(&self.path, "schema error: invalid atom: inlined") };
        match ty.atom().of(value) {
            Treated::Map(Map { atomic: true, .. }) | Treated::Scalar(_) => self.set.add(&self.path),
            Treated::List(List { relation: Relation::Atomic, .. }) => self.set.add(&self.path),
            Treated::Map(map) => {
                for (name, value) in members(value.as_object()) {
                    self.member(name, value, ty, &map);
                }
            }
            Treated::List(list) => self.items(value.as_array().map_or(&[], Vec::as_slice), ty, &list),
            Treated::Nothing => self.faults.add(&self.path, "schema error: invalid atom: inlined"),
        }
    }

    fn member<T: TypeRef>(&mut self, name: &'v str, value: &'v Value, ty: T, map: &Map<T>) {
        let declared = ty.field(name);
        self.path.push(Element::field(name));
        self.visit(value, declared.or(map.item));
        let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        if is_empty || declared.is_none() {
            self.set.add(&self.path);
        }
        self.leave();
    }

    /// Of items that are the same, all are one field, whatever is in them. So are those whose keys were taken
    /// out.
    fn items<T: TypeRef>(&mut self, items: &'v [Value], ty: T, list: &List<T>) {
        let element = |item: &'v Value| element_of(ty, list, item).unwrap_or(Element::keyless());
        let mut elements: Vec<_> = items.iter().map(|item| (element(item), item)).collect();
        elements.sort_by(|(a, _), (b, _)| a.cmp(b));
        for same in elements.chunk_by(|(a, _), (b, _)| a == b) {
            self.path.push(same[0].0.clone());
            if let [(_, item)] = same {
                self.visit(item, list.item);
            }
            self.set.add(&self.path);
            self.leave();
        }
    }

    fn leave(&mut self) {
        self.path.pop();
        self.set.leave(self.path.len());
    }
}
