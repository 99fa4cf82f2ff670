//! Values with their types.
//!
//! In: trees of values, charged to a lease, and handles to types. Out: what is wrong with one, the fields
//! that it has, two of them merged or compared, one with fields taken out. Never: changes a tree that it was
//! lent; recurses deeper than the tree.
//!
//! A missing value and null are two things: what was never said, and what was said to be nothing.

mod compare;
mod created;
mod fields;
mod items;
mod list;
mod merge;
mod scalar;
mod validate;

use std::borrow::Cow;

use forebay_apimachinery::json::weight;
use forebay_apimachinery::lease::{Exhausted, Lease};
use serde_json::Value;

pub use compare::Comparison;
pub use items::Extract;
pub use scalar::equal;
pub use validate::Duplicates;

use crate::fault::Faults;
use crate::schema::TypeRef;
use crate::set::Set;

/// A value of a type. Null is what there is before an object is created.
#[derive(Clone, Debug)]
pub struct TypedValue<'v, T> {
    pub value: Cow<'v, Value>,
    pub ty: T,
}

/// Why something was not done with a value.
#[derive(Debug, thiserror::Error)]
pub enum TypedError {
    #[error("{0}")]
    Faults(#[from] Faults),
    #[error("{0}")]
    Exhausted(#[from] Exhausted),
}

impl<'v, T: TypeRef> TypedValue<'v, T> {
    /// A value that is known to be of its type.
    pub fn known(value: &'v Value, ty: T) -> TypedValue<'v, T> {
        TypedValue { value: Cow::Borrowed(value), ty }
    }

    /// A value, checked.
    ///
    /// Cost: n log n in it, as for all that follows.
    ///
    /// # Errors
    /// All that is wrong with it.
    pub fn new(value: &'v Value, ty: T, duplicates: Duplicates) -> Result<TypedValue<'v, T>, Faults> {
        validate::validate(value, ty, duplicates)?;
        Ok(TypedValue::known(value, ty))
    }

    /// Every leaf and item that it has.
    ///
    /// # Errors
    /// It is not of its type.
    pub fn fields(&self) -> Result<Set, Faults> {
        fields::fields(&self.value, self.ty)
    }

    /// This with what `config` says: nothing goes away, what both say is as `config` says, items are in the
    /// order of `config` where that changes something.
    ///
    /// # Errors
    /// Two items of a list in `config` are the same, or one of the two is not of its type; the lease is
    /// exhausted.
    pub fn merge(
        &self,
        config: &TypedValue<'_, T>,
        lease: &Lease,
    ) -> Result<TypedValue<'static, T>, TypedError> {
        // What is merged has no value that neither has.
        for value in [&self.value, &config.value] {
            lease.meter().charge(weight::of(value))?;
        }
        let value = merge::merge(&self.value, &config.value, self.ty)?;
        Ok(TypedValue { value: Cow::Owned(value), ty: self.ty })
    }

    /// Every field that this new object has besides what its type always has; `None` if it takes a comparison
    /// to say: it is not of its type, or has an item twice.
    pub(crate) fn created(&self) -> Option<Set> {
        created::created(&self.value, self.ty)
    }

    /// What is different in `other`.
    ///
    /// # Errors
    /// One of the two is not of its type.
    pub fn compare(&self, other: &TypedValue<'_, T>) -> Result<Comparison, Faults> {
        compare::compare(&self.value, &other.value, self.ty)
    }

    /// This without these fields and items.
    ///
    /// # Errors
    /// The lease is exhausted.
    pub fn without(&self, fields: &Set, lease: &Lease) -> Result<TypedValue<'static, T>, Exhausted> {
        let value = items::remove(weight::copy(&self.value, lease)?, fields, self.ty);
        Ok(TypedValue { value: Cow::Owned(value), ty: self.ty })
    }

    /// This as pruning leaves it when it takes nothing out.
    pub(crate) fn pruned_of_nothing(self) -> TypedValue<'static, T> {
        let value = items::remove(self.value.into_owned(), &Set::default(), self.ty);
        TypedValue { value: Cow::Owned(value), ty: self.ty }
    }

    /// Of this, these fields and items only.
    ///
    /// # Errors
    /// The lease is exhausted.
    pub fn only(
        &self,
        fields: &Set,
        how: Extract,
        lease: &Lease,
    ) -> Result<TypedValue<'static, T>, Exhausted> {
        let with_keys = match how {
            Extract::Fields => None,
            Extract::FieldsAndKeys => {
                // Of what it does not have, no keys either.
                self.fields().ok().map(|own| fields.union(&fields.intersection(&own).keys_of_items()))
            }
        };
        let fields = with_keys.as_ref().unwrap_or(fields);
        let value = items::extract(weight::copy(&self.value, lease)?, fields, self.ty);
        Ok(TypedValue { value: Cow::Owned(value), ty: self.ty })
    }
}
