//! Where a fault is and how it is said: field paths, and causes in the words of upstream's `field.Error`.
//!
//! In: a path built on the stack while an object is walked, a bad value, a detail. Out: [`Cause`]s in the
//! order they were found. Never: decides what is wrong; allocates while nothing is.

#[cfg(test)]
mod tests;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{CAUSES_MAX, Cause, CauseReason, FaultBytes};

pub use forebay_apimachinery::bad_value::BadValue;
use forebay_apimachinery::bad_value::beginning;
pub use forebay_apimachinery::fault_path::Path;

use crate::privileged::Privileged;

/// Faults in the order in which they were found, as many as are told.
#[derive(Debug, Default)]
pub struct Causes {
    found: Vec<Cause>,
    told: FaultBytes,
    /// What counts as one beside what is wrong anywhere.
    pub privileged: Privileged,
}

impl Causes {
    /// None yet, in a cluster where that may be.
    pub fn under(privileged: Privileged) -> Causes {
        Causes { privileged, ..Causes::default() }
    }

    pub fn into_vec(self) -> Vec<Cause> {
        self.found
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether what else is found is not told: nothing is made of it.
    pub fn is_full(&self) -> bool {
        self.told.is_full() || self.found.len() >= CAUSES_MAX
    }

    #[cold]
    pub fn required(&mut self, at: &Path<'_>, detail: &str) {
        self.push(CauseReason::FieldValueRequired, at, "Required value", None, detail);
    }

    #[cold]
    pub fn forbidden(&mut self, at: &Path<'_>, detail: &str) {
        self.push(CauseReason::FieldValueForbidden, at, "Forbidden", None, detail);
    }

    #[cold]
    pub fn invalid<'b>(&mut self, at: &Path<'_>, bad: impl Into<BadValue<'b>>, detail: &str) {
        self.push(CauseReason::FieldValueInvalid, at, "Invalid value", Some(bad.into()), detail);
    }

    /// Invalid, with the value left out.
    #[cold]
    pub fn invalid_omitted(&mut self, at: &Path<'_>, detail: &str) {
        self.push(CauseReason::FieldValueInvalid, at, "Invalid value", None, detail);
    }

    #[cold]
    pub fn duplicate<'b>(&mut self, at: &Path<'_>, bad: impl Into<BadValue<'b>>) {
        self.push(CauseReason::FieldValueDuplicate, at, "Duplicate value", Some(bad.into()), "");
    }

    #[cold]
    pub fn duplicate_because<'b>(&mut self, at: &Path<'_>, bad: impl Into<BadValue<'b>>, detail: &str) {
        self.push(CauseReason::FieldValueDuplicate, at, "Duplicate value", Some(bad.into()), detail);
    }

    #[cold]
    pub fn not_found<'b>(&mut self, at: &Path<'_>, bad: impl Into<BadValue<'b>>) {
        self.push(CauseReason::FieldValueNotFound, at, "Not found", Some(bad.into()), "");
    }

    #[cold]
    pub fn not_found_because<'b>(&mut self, at: &Path<'_>, bad: impl Into<BadValue<'b>>, detail: &str) {
        self.push(CauseReason::FieldValueNotFound, at, "Not found", Some(bad.into()), detail);
    }

    #[cold]
    pub fn not_supported<'b>(&mut self, at: &Path<'_>, bad: impl Into<BadValue<'b>>, supported: &[&str]) {
        if self.is_full() {
            return;
        }
        let quoted: Vec<String> = supported.iter().map(|value| go_quote(value)).collect();
        let detail = format!("supported values: {}", quoted.join(", "));
        self.push(CauseReason::FieldValueNotSupported, at, "Unsupported value", Some(bad.into()), &detail);
    }

    #[cold]
    pub fn too_long(&mut self, at: &Path<'_>, bytes_max: usize) {
        let bytes = if bytes_max == 1 { "byte" } else { "bytes" };
        let detail = format!("may not be more than {bytes_max} {bytes}");
        self.push(CauseReason::FieldValueTooLong, at, "Too long", None, &detail);
    }

    #[cold]
    pub fn too_many(&mut self, at: &Path<'_>, count: usize, count_max: usize) {
        let items = if count_max == 1 { "item" } else { "items" };
        let detail = format!("must have at most {count_max} {items}");
        self.push(CauseReason::FieldValueTooMany, at, "Too many", Some(BadValue::Int(count as i64)), &detail);
    }

    pub fn internal(&mut self, at: &Path<'_>, detail: &str) {
        self.push(CauseReason::InternalError, at, "Internal error", None, detail);
    }

    /// What was found elsewhere.
    pub fn append(&mut self, causes: Vec<Cause>) {
        for cause in causes {
            if self.is_full() {
                return;
            }
            self.told.add(cause.field.len() + cause.message.len());
            self.found.push(cause);
        }
    }

    /// One cause a fault of `bad`'s text.
    pub fn faults(&mut self, at: &Path<'_>, bad: &str, faults: Vec<String>) {
        for fault in faults {
            self.invalid(at, bad, &fault);
        }
    }

    fn push(
        &mut self,
        reason: CauseReason,
        at: &Path<'_>,
        phrase: &str,
        bad: Option<BadValue<'_>>,
        detail: &str,
    ) {
        if self.is_full() {
            return;
        }
        let mut message = phrase.to_string();
        for part in
            bad.iter().map(BadValue::show).chain((!detail.is_empty()).then(|| beginning(detail).to_string()))
        {
            message.push_str(": ");
            message.push_str(&part);
        }
        self.append(vec![Cause::new(reason, at.to_string(), message)]);
    }
}
