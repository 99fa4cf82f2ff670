//! Whether a value is of its type.
//!
//! In: a value. Out: all that is wrong with it. Never: more than that: what a field may say is for whoever
//! knows it.

use serde_json::Value;

use super::list::{element_of, list_of, map_of, members};
use super::scalar;
use crate::element::Element;
use crate::fault::Faults;
use crate::schema::{List, Map, Relation, Treated, TypeRef};

/// Whether two items of a set, or with one key, are let through: what was stored may have them, what is
/// applied may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Allowed,
    Refused,
}

pub fn validate<T: TypeRef>(value: &Value, ty: T, duplicates: Duplicates) -> Result<(), Faults> {
    let mut walk = Validate { path: Vec::new(), faults: Faults::default(), duplicates };
    walk.visit(value, Some(ty));
    walk.faults.or(())
}

struct Validate<'v> {
    path: Vec<Element<'v>>,
    faults: Faults,
    duplicates: Duplicates,
}

impl<'v> Validate<'v> {
    fn visit<T: TypeRef>(&mut self, value: &'v Value, ty: Option<T>) {
        let Some(ty) = ty else { return self.fault("schema error: invalid atom: inlined") };
        match ty.atom().of(value) {
            Treated::Map(map) => match map_of(value) {
                Ok(map_members) => self.members(members(map_members), ty, &map),
                Err(why) => self.fault(why),
            },
            Treated::List(list) => match list_of(value) {
                Ok(items) => self.items(items.map_or(&[], Vec::as_slice), ty, &list),
                Err(why) => self.fault(why),
            },
            Treated::Scalar(kind) => {
                if let Some(why) = scalar::fault(kind, value, "") {
                    self.fault(why);
                }
            }
            Treated::Nothing => self.fault("schema error: invalid atom: inlined"),
        }
    }

    fn members<T: TypeRef>(
        &mut self,
        members: impl Iterator<Item = (&'v String, &'v Value)>,
        ty: T,
        map: &Map<T>,
    ) {
        for (name, value) in members {
            let field = ty.field(name).or(map.item);
            self.path.push(Element::field(name));
            match field {
                Some(_) => self.visit(value, field),
                None => self.fault("field not declared in schema"),
            }
            self.path.pop();
            // As upstream: one field that is not declared is enough.
            if field.is_none() {
                return;
            }
        }
    }

    fn items<T: TypeRef>(&mut self, items: &'v [Value], ty: T, list: &List<T>) {
        let mut elements = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let element = match list.relation {
                Relation::Atomic => Ok(Element::index(index as i64)),
                Relation::Associative => element_of(ty, list, item),
            };
            let Ok(element) = element.map_err(|why| self.fault(format!("element {index}: {why}"))) else {
                return;
            };
            if list.relation == Relation::Associative {
                elements.push(element.clone());
            }
            self.path.push(element);
            self.visit(item, list.item);
            self.path.pop();
        }
        if self.duplicates == Duplicates::Refused {
            self.refuse_duplicates(elements);
        }
    }

    fn refuse_duplicates(&mut self, mut elements: Vec<Element<'static>>) {
        elements.sort();
        for pair in elements.windows(2).filter(|pair| pair[0] == pair[1]) {
            self.fault(duplicate(&pair[1]));
        }
    }

    fn fault(&mut self, why: impl Into<String>) {
        self.faults.add(&self.path, why);
    }
}

/// What is said of the second item that is the same.
pub fn duplicate(element: &Element<'_>) -> String {
    format!("duplicate entries for key {element}")
}
