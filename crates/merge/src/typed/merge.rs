//! One value with what another says.
//!
//! In: what is there and what is applied. Out: both in one. Never: takes anything away.
//!
//! Source: structured-merge-diff v6.3.3 `typed/merge.go`.

use serde_json::Value;

use super::list::{element_of, list_of, map_of, members};
use super::scalar;
use super::validate::duplicate;
use crate::element::Element;
use crate::fault::Faults;
use crate::schema::{Atom, AtomKinds, List, Map, Relation, Treated, TypeRef};

pub fn merge<T: TypeRef>(live: &Value, config: &Value, ty: T) -> Result<Value, Faults> {
    let mut walk = Merge::default();
    let merged = walk.visit(Some(live), Some(config), Some(ty));
    walk.faults.or(merged.unwrap_or(Value::Null))
}

#[derive(Default)]
struct Merge<'v> {
    path: Vec<Element<'v>>,
    faults: Faults,
}

/// A value, if there is one.
type Side<'v> = Option<&'v Value>;

impl<'v> Merge<'v> {
    fn visit<T: TypeRef>(&mut self, left: Side<'v>, right: Side<'v>, ty: Option<T>) -> Option<Value> {
        let Some(ty) = ty else { return self.fault("schema error: invalid atom: inlined") };
        let atom = ty.atom();
        let (left_kinds, right_kinds) = (atom.kinds(left), atom.kinds(right));
        match (left, right) {
            (_, None) => self.visit_as(left_kinds, left, right, ty, &atom),
            (Some(_), Some(_)) if !atom.treats_alike(left_kinds, right_kinds) => {
                // What is there is only looked at for what is wrong with it.
                self.visit_as(left_kinds, left, right, ty, &atom);
                self.visit_as(right_kinds, left, right, ty, &atom)
            }
            _ => self.visit_as(right_kinds, left, right, ty, &atom),
        }
    }

    fn visit_as<T: TypeRef>(
        &mut self,
        kinds: AtomKinds,
        left: Side<'v>,
        right: Side<'v>,
        ty: T,
        atom: &Atom<T>,
    ) -> Option<Value> {
        match atom.treated(kinds) {
            Treated::Map(map) => self.maps(left, right, ty, &map),
            Treated::List(list) => self.lists(left, right, ty, &list),
            Treated::Scalar(kind) => {
                let fault = |side: Side<'v>, name| side.and_then(|value| scalar::fault(kind, value, name));
                if let (Some(left), Some(right)) = (fault(left, "lhs: "), fault(right, "rhs: ")) {
                    self.faults.add(&self.path, left);
                    return self.fault(right);
                }
                right.or(left).cloned()
            }
            Treated::Nothing => self.fault("schema error: invalid atom: inlined"),
        }
    }

    fn maps<T: TypeRef>(&mut self, left: Side<'v>, right: Side<'v>, ty: T, map: &Map<T>) -> Option<Value> {
        let of = |side: Side<'v>| side.and_then(|value| map_of(value).ok().flatten());
        let (left_map, right_map) = (of(left), of(right));
        if map.atomic || [left_map, right_map].iter().flatten().all(|map| map.is_empty()) {
            return right.or(left).cloned();
        }
        let mut merged = serde_json::Map::new();
        let only_right = |name: &str| left_map.is_none_or(|left| !left.contains_key(name));
        let lefts = members(left_map).map(|(name, value)| (name, Some(value)));
        let rights = members(right_map).filter(|(name, _)| only_right(name)).map(|(name, _)| (name, None));
        for (name, left) in lefts.chain(rights) {
            self.path.push(Element::field(name));
            let right = right_map.and_then(|right| right.get(name));
            if let Some(value) = self.visit(left, right, ty.field(name).or(map.item)) {
                merged.insert(name.clone(), value);
            }
            self.path.pop();
        }
        (!merged.is_empty()).then_some(Value::Object(merged))
    }

    fn lists<T: TypeRef>(&mut self, left: Side<'v>, right: Side<'v>, ty: T, list: &List<T>) -> Option<Value> {
        let of = |side: Side<'v>| side.and_then(|value| list_of(value).ok().flatten());
        let (left_list, right_list) = (of(left), of(right));
        if list.relation == Relation::Atomic
            || [left_list, right_list].iter().flatten().all(|list| list.is_empty())
        {
            return right.or(left).cloned();
        }
        let rights = self.elements(right_list, ty, list);
        let lefts = self.elements(left_list, ty, list);
        let (Some(lefts), Some(rights)) = (lefts, rights) else { return None };
        let items = Items::of(lefts, rights);
        if !self.refuse_duplicates(&items) {
            return None;
        }
        let mut merged = Vec::new();
        for step in items.order() {
            let (number, left, right) = match step {
                Step::Left(at) => (items.lefts[at].0, Some(items.lefts[at].1), None),
                Step::Right(at) => {
                    let (number, right) = items.rights[at];
                    (number, items.left_of(number), Some(right))
                }
            };
            self.path.push(items.distinct[number].element.clone());
            // As upstream: what is wrong in an item of a list is not said here.
            let before = std::mem::take(&mut self.faults);
            merged.extend(self.visit(left, right, list.item));
            self.faults = before;
            self.path.pop();
        }
        (!merged.is_empty()).then_some(Value::Array(merged))
    }

    /// The items of a list with the elements that they are; `None`, and what is wrong is said, if some are
    /// none.
    fn elements<T: TypeRef>(
        &mut self,
        items: Option<&'v Vec<Value>>,
        ty: T,
        list: &List<T>,
    ) -> Option<Vec<Item<'v>>> {
        let items = items.map_or(&[][..], Vec::as_slice);
        let mut elements = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            match element_of(ty, list, item) {
                Ok(element) => elements.push((element, item)),
                Err(why) => self.faults.add(&self.path, format!("element {index}: {why}")),
            }
        }
        (elements.len() == items.len()).then_some(elements)
    }

    /// Whether no item that is applied comes twice.
    fn refuse_duplicates(&mut self, items: &Items<'v>) -> bool {
        let twice = items.distinct.iter().filter(|item| item.rights > 1);
        let mut is_right = true;
        for item in twice {
            self.faults.add(&self.path, duplicate(&item.element));
            is_right = false;
        }
        is_right
    }

    fn fault(&mut self, why: impl Into<String>) -> Option<Value> {
        self.faults.add(&self.path, why);
        None
    }
}

type Item<'v> = (Element<'static>, &'v Value);

/// The items of two lists, those that are the same under one number.
struct Items<'v> {
    /// In order of their elements.
    distinct: Vec<Distinct<'v>>,
    /// In the order of their list: which of `distinct`, and the item.
    lefts: Vec<(usize, &'v Value)>,
    rights: Vec<(usize, &'v Value)>,
}

/// Items that are the same.
struct Distinct<'v> {
    element: Element<'static>,
    /// Of what is there; null if there is more than one, as none of them is merged with anything.
    left: Side<'v>,
    lefts: usize,
    rights: usize,
}

/// What comes next in a merged list.
#[derive(Clone, Copy)]
enum Step {
    /// An item that is there only.
    Left(usize),
    /// One that is applied, with the one that is there.
    Right(usize),
}

impl<'v> Items<'v> {
    /// Cost: n log n.
    fn of(lefts: Vec<Item<'v>>, rights: Vec<Item<'v>>) -> Items<'v> {
        let split = lefts.len();
        let mut all: Vec<_> = lefts.into_iter().chain(rights).enumerate().collect();
        all.sort_by(|(at, (a, _)), (other, (b, _))| a.cmp(b).then(at.cmp(other)));
        let mut numbered = vec![(0, &Value::Null); all.len()];
        let mut distinct: Vec<Distinct<'v>> = Vec::new();
        for (at, (element, item)) in all {
            if distinct.last().is_none_or(|last| last.element != element) {
                distinct.push(Distinct { element, left: None, lefts: 0, rights: 0 });
            }
            let number = distinct.len() - 1;
            let last = &mut distinct[number];
            if at < split {
                last.lefts += 1;
                last.left = Some(if last.lefts == 1 { item } else { &Value::Null });
            } else {
                last.rights += 1;
            }
            numbered[at] = (number, item);
        }
        let rights = numbered.split_off(split);
        Items { distinct, lefts: numbered, rights }
    }

    fn left_of(&self, number: usize) -> Side<'v> {
        self.distinct[number].left
    }

    /// The order of the merged list: that of what is applied, with what is there only where it was.
    fn order(&self) -> Vec<Step> {
        let is_shared = |number: usize| self.distinct[number].lefts > 0 && self.distinct[number].rights > 0;
        let mut shared =
            self.rights.iter().map(|(number, _)| *number).filter(|number| is_shared(*number)).peekable();
        let mut is_merged = vec![false; self.distinct.len()];
        let (mut steps, mut left, mut right) = (Vec::new(), 0, 0);
        while left < self.lefts.len() || right < self.rights.len() {
            let of_left = self.lefts.get(left).map(|(number, _)| *number);
            let of_right = self.rights.get(right).map(|(number, _)| *number);
            if let (Some(number), Some(other)) = (of_left, of_right) {
                if number == other {
                    is_merged[number] = true;
                    steps.push(Step::Right(right));
                    (left, right) = (left + 1, right + 1);
                    shared.next();
                    continue;
                }
                // Shared, but its turn comes later.
                if is_shared(number) && shared.peek().is_some_and(|next| *next != number) {
                    left += 1;
                    continue;
                }
            }
            if let Some(number) = of_left {
                if !is_shared(number) {
                    steps.push(Step::Left(left));
                    left += 1;
                    continue;
                }
                if is_merged[number] {
                    left += 1;
                }
            }
            if let Some(number) = of_right {
                is_merged[number] = true;
                steps.push(Step::Right(right));
                right += 1;
                shared.next_if_eq(&number);
            }
        }
        steps
    }
}
