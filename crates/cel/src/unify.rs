//! Which types may stand for which, and what type parameters become by it.
//!
//! In: pairs of types. Out: whether one may be given for the other, the parameters bound. Never: an error's
//! words.
//!
//! Source: cel-go v0.26.0 `checker/types.go`.

use std::collections::HashMap;
use std::sync::Arc;

use crate::types::Type;

/// What each type parameter stands for.
#[derive(Clone, Default)]
pub(crate) struct Bindings(HashMap<Arc<str>, Type>);

/// What becomes of a parameter that stands for nothing.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Free {
    Kept,
    Dyn,
}

impl Bindings {
    pub fn bind(&mut self, name: Arc<str>, to: Type) {
        self.0.insert(name, to);
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Param(name) => self.0.get(name),
            _ => None,
        }
    }

    /// Binds what makes `given` fit `wanted`, or nothing.
    pub fn assign(&mut self, given: &Type, wanted: &Type) -> bool {
        let mut trial = self.clone();
        let fits = trial.fits(given, wanted);
        if fits {
            *self = trial;
        }
        fits
    }

    /// As [`assign`](Bindings::assign), all of them or none.
    pub fn assign_all(&mut self, given: &[Type], wanted: &[Type]) -> bool {
        if given.len() != wanted.len() {
            return false;
        }
        let mut trial = self.clone();
        let fits = given.iter().zip(wanted).all(|(given, wanted)| trial.fits(given, wanted));
        if fits {
            *self = trial;
        }
        fits
    }

    fn fits(&mut self, one: &Type, two: &Type) -> bool {
        if let Type::Param(_) = two {
            let (valid, was_bound) = self.substitutes(one, two);
            if valid || was_bound {
                return valid;
            }
        }
        if let Type::Param(_) = one {
            return self.substitutes(two, one).0;
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
                    && ones.into_iter().zip(twos).all(|(one, two)| self.fits(one, two))
            }
            _ => one == two,
        }
    }

    /// Whether the parameter `param` may be `it`, and whether it was bound before.
    fn substitutes(&mut self, it: &Type, param: &Type) -> (bool, bool) {
        if it == param {
            return (true, true);
        }
        if let Some(bound) = self.find(param).cloned() {
            if *it == bound {
                return (true, true);
            }
            if !self.fits(it, &bound) {
                return (false, true);
            }
            let general = most_general(it, &bound).clone();
            if self.is_not_within(param, &general) {
                self.put(param, general);
            }
            return (true, true);
        }
        let fits = self.is_not_within(param, it);
        if fits {
            self.put(param, it.clone());
        }
        (fits, false)
    }

    fn put(&mut self, param: &Type, to: Type) {
        if let Type::Param(name) = param {
            self.0.insert(name.clone(), to);
        }
    }

    fn is_not_within(&self, param: &Type, within: &Type) -> bool {
        if param == within {
            return false;
        }
        match within {
            Type::Param(_) => self.find(within).is_none_or(|bound| self.is_not_within(param, bound)),
            _ => within.params().into_iter().all(|inner| self.is_not_within(param, inner)),
        }
    }

    /// The type with its parameters replaced.
    pub fn resolve(&self, it: &Type, free: Free) -> Type {
        if let Some(bound) = self.find(it) {
            return self.resolve(bound, free);
        }
        match it {
            Type::Param(_) if free == Free::Dyn => Type::Dyn,
            Type::List(item) => Type::list(self.resolve(item, free)),
            Type::Map(both) => Type::map(self.resolve(&both.0, free), self.resolve(&both.1, free)),
            Type::Opaque(name, params) => {
                Type::Opaque(name.clone(), params.iter().map(|param| self.resolve(param, free)).collect())
            }
            Type::Type(Some(inner)) => Type::Type(Some(Arc::new(self.resolve(inner, free)))),
            _ => it.clone(),
        }
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
