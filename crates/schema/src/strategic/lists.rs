//! Merging lists: by merge key where elements are maps, as sets where they are scalars; and the order of the
//! result.
//!
//! The order is that of `$setElementOrder`, then of the patch; what only the server has keeps its place among
//! what it knew before.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::error::{GO_MAP, PatchError, go_format_list, go_format_lists};
use super::lookup::{Merging, Strategy};
use super::maps::{self, DIRECTIVE};
use super::walk::{Walk, weight};

/// What a patch's list is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Merge,
    /// `$deleteFromPrimitiveList`.
    Delete,
}

/// Merges two lists that are merged element by element.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    merging: Merging,
    mode: Mode,
    walk: Walk<'_>,
) -> Result<Vec<Value>, PatchError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = merging.key;
    walk.pass(weight_of(&original, key) + weight_of(&patch, key))?;
    if element_type(&original, &patch)? != Elements::Maps {
        if mode == Mode::Delete {
            let gone = Positions::of(&patch, "")?;
            return Ok(original.into_iter().filter(|item| gone.get(item, "").is_none()).collect());
        }
        if !key.is_empty() {
            // Upstream looks for the key in the scalars.
            let first = original.iter().chain(&patch).next();
            return Err(first.map_or(PatchError::NoElements, |item| PatchError::bad_type(GO_MAP, item)));
        }
        let (known, wanted) = (Positions::of(&original, key)?, Positions::of(&patch, key)?);
        let merged = without_duplicates(original.into_iter().chain(patch));
        return arrange(merged, &wanted, &known, key);
    }
    Ok(merge_maps(original, patch, merging, walk)?.merged)
}

struct Merged {
    merged: Vec<Value>,
    /// Where elements stand for `$setElementOrder`: what survives of the original, and then as many of the
    /// new ones as were deleted. Upstream's new elements take the deleted ones' room in the original's array.
    known: Positions,
}

fn merge_maps(
    original: Vec<Value>,
    patch: Vec<Value>,
    merging: Merging,
    walk: Walk<'_>,
) -> Result<Merged, PatchError> {
    let key = merging.key;
    if key.is_empty() {
        return Err(PatchError::ListWithoutMergeKey { kind: merging.schema.kind_name() });
    }
    let room = original.len();
    let Directed { original, patch, replaced } = apply_directives(original, patch, key)?;
    let wanted = Positions::of(&patch, key)?;
    let known = Positions::of_known(&original, key);
    let survivors = original.len();
    let unordered = merge_by_key(original, patch, merging, walk)?;
    check_keys(&unordered, key)?;
    let mut outer = known.clone();
    let added = unordered.iter().enumerate().skip(survivors).take_while(|(at, _)| *at < room);
    added.for_each(|(at, item)| outer.add(item, key, at));
    let known_to_outer = replaced.unwrap_or(outer);
    Ok(Merged { merged: arrange(unordered, &wanted, &known, key)?, known: known_to_outer })
}

/// Merges the lists of a key that has a `$setElementOrder`. At least one of them is given.
pub(super) fn merge_ordered(
    original: Option<Vec<Value>>,
    patch: Option<Vec<Value>>,
    order: &[Value],
    merging: Merging,
    walk: Walk<'_>,
) -> Result<Vec<Value>, PatchError> {
    let key = merging.key;
    let all = [original.as_deref(), patch.as_deref(), Some(order)];
    walk.pass(all.iter().flatten().map(|items| weight_of(items, key)).sum())?;
    let (before, added) = (original.as_deref().unwrap_or_default(), patch.as_deref().unwrap_or_default());
    let elements = element_type(before, added);
    let keyed = check_keys(before, key);
    let mut known = Positions::of_known(before, key);
    let merged = match (original, patch) {
        (Some(original), None) => original,
        (None, patch) => {
            let mut added = Value::Array(patch.unwrap_or_default());
            maps::remove_directives(&mut added, walk)?;
            match added {
                Value::Array(items) => items,
                _ => Vec::new(),
            }
        }
        (Some(original), Some(patch)) if merging.strategy == Strategy::Merge => {
            if elements == Ok(Elements::Maps) {
                let merged = merge_maps(original, patch, merging, walk.deeper())?;
                known = merged.known;
                merged.merged
            } else {
                merge(original, patch, merging, Mode::Merge, walk.deeper())?
            }
        }
        (Some(_), Some(patch)) => patch,
    };
    if !key.is_empty() {
        check_keys(&merged, key)?;
    }
    let wanted = if key.is_empty() { Positions::of(order, key)? } else { Positions::of_order(order, key) };
    if !key.is_empty()
        && let Some(index) = wanted.not_a_map
    {
        // Upstream searches the order for every element and stops where it is not a map.
        let found = |item: &Value| wanted.get(item, key).is_some_and(|at| at < index);
        if !merged.iter().all(found) {
            return Err(PatchError::NotAMap { index });
        }
    }
    if elements? == Elements::Maps {
        check_keys(order, key)?;
        keyed?;
    }
    arrange(merged, &wanted, &known, key)
}

/// A patch's list must be in the order that it asks for, and ask for all that it holds.
pub(super) fn check_order(patch: &[Value], order: &[Value], key: &'static str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let is_directive = |item: &Value| item.get(DIRECTIVE).is_some();
    if !key.is_empty()
        // Once: for the whole list.
        && let Some(item) = patch.iter().find(|item| !item.is_object())
    {
        return Err(PatchError::bad_type(GO_MAP, item));
    }
    let deleted = |item: &Value| !key.is_empty() && item.get(DIRECTIVE).is_some_and(|d| d == "delete");
    let mut rest = patch.iter().filter(|item| !deleted(item)).peekable();
    let mut order_left = order.iter().peekable();
    while let (Some(item), Some(wanted)) = (rest.peek(), order_left.peek()) {
        if is_directive(item) {
            rest.next();
            continue;
        }
        if equal(item, wanted, key)? {
            rest.next();
        }
        order_left.next();
    }
    if rest.peek().is_some() && order_left.peek().is_none() {
        let (patch, order) = (go_format_list(patch), go_format_list(order));
        return Err(PatchError::OrderMismatch { patch, order });
    }
    Ok(())
}

fn equal(left: &Value, right: &Value, key: &'static str) -> Result<bool, PatchError> {
    if key.is_empty() {
        return Ok(left == right);
    }
    Ok(merge_key_of(left, key)? == merge_key_of(right, key)?)
}

fn merge_key_of<'a>(item: &'a Value, key: &'static str) -> Result<&'a Value, PatchError> {
    let map = item.as_object().ok_or_else(|| PatchError::bad_type(GO_MAP, item))?;
    map.get(key).ok_or_else(|| PatchError::no_merge_key(map, key))
}

/// What it costs to match the elements, each some eight times, by what they are matched by.
fn weight_of(items: &[Value], key: &'static str) -> usize {
    let matched = |item: &Value| if key.is_empty() { weight(item) } else { item.get(key).map_or(0, weight) };
    items.iter().map(|item| 8 + matched(item)).sum()
}

fn check_keys(items: &[Value], key: &'static str) -> Result<(), PatchError> {
    items.iter().try_for_each(|item| merge_key_of(item, key).map(|_| ()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Elements {
    Maps,
    Scalars,
}

/// All elements of both lists must be of one type.
fn element_type(original: &[Value], patch: &[Value]) -> Result<Elements, PatchError> {
    let mut items = original.iter().chain(patch);
    let first = items.next().ok_or(PatchError::NoElements)?;
    if first.is_array() {
        return Err(PatchError::ListOfLists);
    }
    let ty = super::error::go_type(first);
    if first.is_null() || items.any(|item| super::error::go_type(item) != ty) {
        return Err(PatchError::MixedElements { lists: go_format_lists(&[original, patch]) });
    }
    Ok(if first.is_object() { Elements::Maps } else { Elements::Scalars })
}

/// Lists after the patch's directives.
struct Directed {
    original: Vec<Value>,
    patch: Vec<Value>,
    /// The original's order, if the patch replaced it.
    replaced: Option<Positions>,
}

/// Applies elements with a `$patch` and takes them out.
fn apply_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    key: &'static str,
) -> Result<Directed, PatchError> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    let mut deleted: Vec<Value> = Vec::new();
    for item in patch {
        let Value::Object(map) = &item else { continue }; // all are maps
        match map.get(DIRECTIVE) {
            None => plain.push(item),
            Some(Value::String(directive)) if directive == "delete" => match map.get(key) {
                Some(value) => deleted.push(value.clone()),
                None => return Err(PatchError::no_merge_key(map, key)),
            },
            Some(Value::String(directive)) if directive == "replace" => replace = true,
            Some(Value::String(directive)) if directive == "merge" => {
                return Err(PatchError::MergeDirectiveInList);
            }
            Some(directive) => return Err(maps::unknown_directive(directive, map)),
        }
    }
    if !deleted.is_empty() {
        let deleted = Positions::of(&deleted, "")?;
        original.retain(|item| item.get(key).is_none_or(|value| deleted.get(value, "").is_none()));
    }
    if replace {
        let replaced = Some(Positions::of_known(&original, key));
        return Ok(Directed { original: plain, patch: Vec::new(), replaced });
    }
    Ok(Directed { original, patch: plain, replaced: None })
}

fn merge_by_key(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merging: Merging,
    walk: Walk<'_>,
) -> Result<Vec<Value>, PatchError> {
    let key = merging.key;
    let mut positions = Positions::of_known(&original, key);
    for item in patch {
        match positions.get(&item, key) {
            Some(at) => {
                let Value::Object(new) = item else { continue }; // all are maps
                let old = match original[at].take() {
                    Value::Object(old) => old,
                    _ => Map::new(),
                };
                original[at] = Value::Object(maps::merge(old, new, merging.schema, walk.deeper())?);
            }
            None => {
                positions.add(&item, key, original.len());
                original.push(item);
            }
        }
    }
    Ok(original)
}

fn without_duplicates(items: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut seen = std::collections::HashSet::new();
    items.filter(|item| seen.insert(item.to_string())).collect()
}

/// Where elements first stand in a list, by merge key or, without one, by value.
#[derive(Clone)]
struct Positions {
    by_text: HashMap<String, usize>,
    not_a_map: Option<usize>,
}

impl Positions {
    /// Every element must have the merge key.
    fn of(items: &[Value], key: &'static str) -> Result<Self, PatchError> {
        if !key.is_empty() {
            check_keys(items, key)?;
        }
        Ok(Self::of_known(items, key))
    }

    /// Elements without the merge key are passed over.
    fn of_known(items: &[Value], key: &'static str) -> Self {
        let mut positions = Self { by_text: HashMap::with_capacity(items.len()), not_a_map: None };
        for (at, item) in items.iter().enumerate() {
            positions.add(item, key, at);
        }
        positions
    }

    fn of_order(items: &[Value], key: &'static str) -> Self {
        let mut positions = Self::of_known(items, key);
        // Once: for the whole list.
        positions.not_a_map = items.iter().position(|item| !item.is_object());
        positions
    }

    fn add(&mut self, item: &Value, key: &'static str, at: usize) {
        if let Some(text) = text_of(item, key) {
            self.by_text.entry(text).or_insert(at);
        }
    }

    fn get(&self, item: &Value, key: &'static str) -> Option<usize> {
        text_of(item, key).and_then(|text| self.by_text.get(&text).copied())
    }
}

fn text_of(item: &Value, key: &'static str) -> Option<String> {
    if key.is_empty() { Some(item.to_string()) } else { item.get(key).map(Value::to_string) }
}

/// Orders what the patch names as it asks, the rest as it was, and weaves both: an element of the rest goes
/// before one of the patch if it was so before.
fn arrange(
    merged: Vec<Value>,
    wanted: &Positions,
    known: &Positions,
    key: &'static str,
) -> Result<Vec<Value>, PatchError> {
    struct Item {
        value: Value,
        known: Option<usize>,
        order: Option<usize>,
    }
    let size = merged.len();
    let (mut named, mut rest) = (Vec::new(), Vec::new());
    for value in merged {
        let known = known.get(&value, key);
        match wanted.get(&value, key) {
            Some(at) => named.push(Item { value, known, order: Some(at) }),
            None => rest.push(Item { value, known, order: known }),
        }
    }
    sort(&mut named, |item| item.order);
    sort(&mut rest, |item| item.order);
    let mut arranged = Vec::with_capacity(size);
    let (mut named, mut rest) = (named.into_iter().peekable(), rest.into_iter().peekable());
    loop {
        let rest_first = match (rest.peek(), named.peek()) {
            (None, None) => return Ok(arranged),
            (Some(left), Some(right)) => {
                matches!((left.known, right.known), (Some(left), Some(right)) if left < right)
            }
            (left, _) => left.is_some(),
        };
        let next = if rest_first { rest.next() } else { named.next() };
        arranged.extend(next.map(|item| item.value));
    }
}

/// Sorts as Go's stable sort does by upstream's comparison, which calls an element of unknown place smaller
/// than any other: up to twenty elements that is an insertion sort. Longer lists with unknown
/// elements, which no client of ours writes, keep those at the end.
fn sort<T>(items: &mut [T], place: impl Fn(&T) -> Option<usize>) {
    if items.len() > 20 || items.iter().all(|item| place(item).is_some()) {
        items.sort_by_key(|item| place(item).unwrap_or(usize::MAX));
        return;
    }
    for end in 1..items.len() {
        let mut at = end;
        while at > 0 {
            let less = match (place(&items[at]), place(&items[at - 1])) {
                (Some(this), Some(before)) => this < before,
                _ => true,
            };
            if !less {
                break;
            }
            items.swap(at, at - 1);
            at -= 1;
        }
    }
}
