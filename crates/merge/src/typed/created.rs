//! The fields that a new value has.
//!
//! In: a value of an object's type, which may leave out what its type always has. Out: what a comparison with
//! nothing but that would say is new, made in one walk without a copy. Never: an answer where it takes a
//! comparison to have one: what is not of its type, items that are the same.

use serde_json::Value;

use super::list::{element_of, list_of, map_of, members};
use super::{Duplicates, scalar, validate};
use crate::element::Element;
use crate::schema::{Always, List, Map, Relation, Treated, TypeRef};
use crate::set::{Set, nodes};

/// The fields of a new object that are not as its type always has them; `None` if that takes a comparison.
pub fn created<T: TypeRef>(value: &Value, ty: T) -> Option<Set> {
    let mut out = Vec::new();
    visit(value, Some(ty), Before::Object, &mut out)?;
    Some(Set::of_nodes(out))
}

/// What there was before anything was said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Null, or the zero of a scalar.
    Zero,
    /// An object with what its type always has.
    Object,
}

/// Appends what is new below a value; whether the value itself is.
fn visit<T: TypeRef>(value: &Value, ty: Option<T>, before: Before, out: &mut Vec<u8>) -> Option<bool> {
    let ty = ty?;
    match ty.atom().of(value) {
        Treated::Map(map) => visit_map(value, ty, &map, before, out),
        Treated::List(list) => visit_list(value, ty, &list, before, out),
        Treated::Scalar(kind) if scalar::fault(kind, value, "").is_none() => match before {
            Before::Nothing => Some(true),
            Before::Zero => (!is_zero(value)).then_some(true),
            Before::Object => None,
        },
        _ => None,
    }
}

/// Whether it may be what a scalar is where nothing is said of it; that of a quantity is a text.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => matches!(&**text, "" | "0"),
        Value::Number(number) => number.as_f64() == Some(0.0),
        other => matches!(other, Value::Null | Value::Bool(false)),
    }
}

fn visit_map<T: TypeRef>(
    value: &Value,
    ty: T,
    map: &Map<T>,
    before: Before,
    out: &mut Vec<u8>,
) -> Option<bool> {
    let Some(said) = map_of(value).ok()? else { return (before == Before::Nothing).then_some(true) };
    if map.atomic {
        return one_value(value, ty, before);
    }
    let mut always = ty.always().peekable();
    let said = members(Some(said)).map(|(name, value)| (name, value, ty.field(name).or(map.item)));
    let mut said = said.filter(|(_, value, ty)| ty.is_none_or(|ty| ty.is_said(value))).peekable();
    if said.peek().is_none() && always.peek().is_none() {
        return Some(before != Before::Object);
    }
    loop {
        let is_said = match (said.peek(), always.peek()) {
            (None, None) => return Some(before == Before::Nothing),
            (Some((name, ..)), Some(field)) => name.as_str() <= field.name,
            (is_said, _) => is_said.is_some(),
        };
        match said.next_if(|_| is_said) {
            Some((name, value, ty)) => {
                let field = always.next_if(|field| field.name == name);
                let below = before_field(before, field);
                append(&Element::field(name), out, |out| visit(value, ty, below, out))?;
            }
            None => {
                let unsaid = always.next().filter(|_| before != Before::Object);
                unsaid.into_iter().for_each(|field| append_zero(&field, out));
            }
        }
    }
}

/// What there was of a field, in an object of which there was `before`.
fn before_field<T>(before: Before, field: Option<Always<T>>) -> Before {
    match field {
        Some(field) if before == Before::Object => field.object.map_or(Before::Zero, |_| Before::Object),
        _ => Before::Nothing,
    }
}

/// Appends a field that nothing is said of and that is there.
fn append_zero<T: TypeRef>(field: &Always<T>, out: &mut Vec<u8>) {
    nodes::write(out, &Element::field(field.name), true, |out| {
        let object = field.object.filter(|ty| ty.atom().map.is_some_and(|map| !map.atomic));
        object.into_iter().flat_map(TypeRef::always).for_each(|field| append_zero(&field, out));
    });
}

fn visit_list<T: TypeRef>(
    value: &Value,
    ty: T,
    list: &List<T>,
    before: Before,
    out: &mut Vec<u8>,
) -> Option<bool> {
    let items = list_of(value).ok()?.map_or(&[][..], Vec::as_slice);
    if list.relation == Relation::Atomic || items.is_empty() {
        return one_value(value, ty, before);
    }
    let elements = items.iter().map(|item| Some((element_of(ty, list, item).ok()?, item)));
    let mut elements: Vec<_> = elements.collect::<Option<_>>()?;
    elements.sort_by(|(a, _), (b, _)| a.cmp(b));
    if elements.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    for (element, item) in elements {
        // What is not said is no key, which only a comparison makes something of.
        let is_unsaid = |name: &str| {
            let ty = list.item.and_then(|ty| ty.field(name));
            item.get(name).zip(ty).is_some_and(|(value, ty)| !ty.is_said(value))
        };
        if (0..).map_while(|at| ty.key(at)).any(is_unsaid) {
            return None;
        }
        append(&element, out, |out| visit(item, list.item, Before::Nothing, out))?;
    }
    match before {
        Before::Object => None,
        before => Some(before == Before::Nothing),
    }
}

/// Of what is one value nothing is said but that it is new.
fn one_value<T: TypeRef>(value: &Value, ty: T, before: Before) -> Option<bool> {
    validate::validate(value, ty, Duplicates::Allowed).ok()?;
    match before {
        Before::Nothing => Some(true),
        Before::Zero => (!value.is_null()).then_some(true),
        Before::Object => None,
    }
}

fn append(
    element: &Element<'_>,
    out: &mut Vec<u8>,
    below: impl FnOnce(&mut Vec<u8>) -> Option<bool>,
) -> Option<()> {
    let begun = nodes::begin(out, element);
    let is_new = below(out)?;
    begun.end(out, is_new);
    Some(())
}
