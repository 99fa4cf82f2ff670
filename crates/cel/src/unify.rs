//! Which types may stand for which, and what type parameters become by it.
//!
//! In: pairs of types. Out: whether one may be given for the other, the parameters bound. Never: an error's
//! words.
//!
//! Source: cel-go v0.26.0 `checker/types.go`.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::limits::{TYPE_HEIGHT_MAX, TYPE_PARTS_MAX};
use crate::types::Type;

/// What each type parameter stands for.
pub(crate) struct Bindings {
    bound: HashMap<Arc<str>, Type>,
    /// What stood there before an assignment that is being tried.
    before: Vec<(Arc<str>, Option<Type>)>,
    steps: Cell<u64>,
    steps_max: u64,
    is_over: Cell<bool>,
}

/// What becomes of a parameter that stands for nothing.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Free {
    Kept,
    Dyn,
}

impl Bindings {
    /// - `steps_max`: how many parts of types may be looked at.
    pub fn new(steps_max: u64) -> Bindings {
        let (bound, before) = (HashMap::new(), Vec::new());
        Bindings { bound, before, steps: Cell::new(0), steps_max, is_over: Cell::new(false) }
    }

    pub fn bind(&mut self, name: Arc<str>, to: Type) {
        self.bound.insert(name, to);
    }

    /// Whether a type was larger or higher than one may be, or too much was looked at: nothing that is said
    /// from then on counts.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Whether a type that was made may be; parameters are not followed.
    pub fn is_small(&self, it: &Type) -> bool {
        let mut left = TYPE_PARTS_MAX;
        let fits = is_within(it, 0, &mut left);
        self.look(TYPE_PARTS_MAX - left);
        if !fits {
            self.is_over.set(true);
        }
        fits
    }

    /// Notes parts that are looked at; whether there may be more.
    fn look(&self, parts: usize) -> bool {
        self.steps.set(self.steps.get().saturating_add(1 + parts as u64));
        if self.steps.get() > self.steps_max {
            self.is_over.set(true);
        }
        !self.is_over.get()
    }

    /// The same `depth` types within each other, bound parameters counted.
    fn look_at(&self, depth: u32) -> bool {
        if depth > 2 * TYPE_HEIGHT_MAX {
            self.is_over.set(true);
        }
        self.look(0)
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Param(name) => self.bound.get(name),
            _ => None,
        }
    }

    /// Binds what makes `given` fit `wanted`, or nothing.
    pub fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        let fits = self.fits(given, wanted, 0);
        self.settle(fits)
    }

    /// As [`assign`](Bindings::assign), all of them or none.
    pub fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        if given.len() != wanted.len() {
            return false;
        }
        let fits = given.iter().zip(wanted).all(|(given, wanted)| self.fits(given, wanted, 0));
        self.settle(fits)
    }

    /// Keeps what was bound, or takes it back.
    fn settle(&mut self, fits: bool) -> bool {
        for (name, before) in self.before.drain(..).rev() {
            match before {
                _ if fits => {}
                Some(before) => {
                    self.bound.insert(name, before);
                }
                None => {
                    self.bound.remove(&name);
                }
            }
        }
        fits
    }

    fn fits(&mut self, one: &Type, two: &Type, depth: u32) -> bool {
        if !self.look_at(depth) {
            return true;
        }
        if let Type::Param(_) = two {
            let (valid, was_bound) = self.substitutes(one, two, depth);
            if valid || was_bound {
                return valid;
            }
        }
        if let Type::Param(_) = one {
            return self.substitutes(two, one, depth).0;
        }
        if one.is_dyn_or_error() || two.is_dyn_or_error() {
            return true;
        }
        match (one, two) {
            (Type::Null, other) | (other, Type::Null) => {
                let nullable = Type::is_same_kind(other, &Type::Null);
                nullable
                    || matches!(
                        other,
                        Type::Opaque(..)
                            | Type::Struct(_)
                            | Type::Wrapper(_)
                            | Type::Duration
                            | Type::Timestamp
                    )
            }
            (Type::Type(_), Type::Type(_)) => true,
            (Type::Wrapper(inner), other) | (other, Type::Wrapper(inner)) => {
                **inner == *other || matches!(other, Type::Wrapper(it) if it == inner)
            }
            (Type::List(_) | Type::Map(_) | Type::Opaque(..), _) => {
                let (ones, twos) = (one.params(), two.params());
                one.is_same_kind(two)
                    && one.name() == two.name()
                    && ones.len() == twos.len()
                    && ones.into_iter().zip(twos).all(|(one, two)| self.fits(one, two, depth + 1))
            }
            _ => one == two,
        }
    }

    /// Whether the parameter `param` may be `it`, and whether it was bound before.
    fn substitutes(&mut self, it: &Type, param: &Type, depth: u32) -> (bool, bool) {
        // A parameter is of one part.
        if it == param {
            return (true, true);
        }
        if let Some(bound) = self.find(param).cloned() {
            // As large as a type may be, both of them.
            if self.is_small(it) && *it == bound {
                return (true, true);
            }
            if !self.fits(it, &bound, depth + 1) {
                return (false, true);
            }
            let general = most_general(it, &bound).clone();
            if self.is_not_within(param, &general, depth) {
                self.put(param, general);
            }
            return (true, true);
        }
        let fits = self.is_not_within(param, it, depth);
        if fits {
            self.put(param, it.clone());
        }
        (fits, false)
    }

    fn put(&mut self, param: &Type, to: Type) {
        if let Type::Param(name) = param {
            let before = self.bound.insert(name.clone(), to);
            self.before.push((name.clone(), before));
        }
    }

    fn is_not_within(&self, param: &Type, within: &Type, depth: u32) -> bool {
        if !self.look_at(depth) {
            return true;
        }
        if param == within {
            return false;
        }
        match within {
            Type::Param(_) => {
                self.find(within).is_none_or(|bound| self.is_not_within(param, bound, depth + 1))
            }
            _ => within.params().into_iter().all(|inner| self.is_not_within(param, inner, depth + 1)),
        }
    }

    /// The type with its parameters replaced. One that may not be is none.
    pub fn resolve(&self, it: &Type, free: Free) -> Type {
        let mut left = TYPE_PARTS_MAX;
        let found = self.resolved(it, free, 0, &mut left);
        self.look(TYPE_PARTS_MAX - left);
        found.unwrap_or_else(|| {
            self.is_over.set(true);
            Type::Error
        })
    }

    fn resolved(&self, it: &Type, free: Free, depth: u32, left: &mut usize) -> Option<Type> {
        let mut it = it;
        while let Some(bound) = self.find(it) {
            self.look(0).then_some(())?;
            it = bound;
        }
        if self.is_over() || depth > TYPE_HEIGHT_MAX {
            return None;
        }
        *left = left.checked_sub(1)?;
        let mut inner = |it: &Type| self.resolved(it, free, depth + 1, left);
        Some(match it {
            Type::Param(_) if free == Free::Dyn => Type::Dyn,
            Type::List(item) => Type::list(inner(item)?),
            Type::Map(both) => Type::map(inner(&both.0)?, inner(&both.1)?),
            Type::Opaque(name, params) => {
                Type::Opaque(name.clone(), params.iter().map(inner).collect::<Option<_>>()?)
            }
            Type::Type(Some(of)) => Type::Type(Some(Arc::new(inner(of)?))),
            _ => it.clone(),
        })
    }
}

/// Whether a type is no higher and no larger than one may be.
fn is_within(it: &Type, depth: u32, left: &mut usize) -> bool {
    if depth > TYPE_HEIGHT_MAX || *left == 0 {
        return false;
    }
    *left -= 1;
    match it {
        Type::List(item) => is_within(item, depth + 1, left),
        Type::Map(both) => is_within(&both.0, depth + 1, left) && is_within(&both.1, depth + 1, left),
        Type::Opaque(_, params) => params.iter().all(|param| is_within(param, depth + 1, left)),
        Type::Type(Some(inner)) => is_within(inner, depth + 1, left),
        _ => true,
    }
}

pub(crate) fn most_general<'t>(one: &'t Type, two: &'t Type) -> &'t Type {
    if is_equal_or_less_specific(one, two) { one } else { two }
}

fn is_equal_or_less_specific(one: &Type, two: &Type) -> bool {
    match (one, two) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Param(_)) => false,
        (Type::Type(_), Type::Type(_)) => true,
        (Type::List(_) | Type::Map(_) | Type::Opaque(..), _) => {
            let (ones, twos) = (one.params(), two.params());
            one.is_same_kind(two)
                && one.name() == two.name()
                && ones.len() == twos.len()
                && ones.into_iter().zip(twos).all(|(one, two)| is_equal_or_less_specific(one, two))
        }
        _ => one.unwrapped() == two.unwrapped(),
    }
}
