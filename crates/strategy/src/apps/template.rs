//! What the controllers of `apps` ask alike: selectors, templates, counts and rolling updates.
//!
//! In: parts of specs and statuses. Out: causes. Never: one kind's own rules.
//!
//! Source: kubernetes v1.36.3 `apis/apps/validation`.

use serde_json::Value;

use crate::core::pod;
use crate::field::{Causes, Path};
use crate::format;
use crate::meta::IMMUTABLE;
use crate::selector;
use crate::value::{Members, child, child_or_empty, int, same_member};

pub use crate::counts::{not_more_than, not_negative, replica_counts};

/// A selector that must say something.
pub fn selector_of(spec: &Members, at: &Path<'_>, empty: &str, causes: &mut Causes) {
    let at = at.child("selector");
    let Some(selector) = child(spec, "selector") else { return causes.required(&at, "") };
    selector::validate(selector, &at, causes);
    if selector::is_empty(selector) {
        causes.invalid(&at, selector::shown(spec.get("selector")), empty);
    }
}

/// A template whose pods the selector selects, and that run for good.
pub fn template_of(spec: &Members, at: &Path<'_>, unreadable: &str, owner: &str, causes: &mut Causes) {
    let template = child_or_empty(spec, "template");
    match selector::of(spec, "selector") {
        Err(_) => {
            return causes.invalid(&at.child("selector"), selector::shown(spec.get("selector")), unreadable);
        }
        Ok(selector) => {
            let labels = child(child_or_empty(template, "metadata"), "labels");
            if !selector.is_everything() && !selector::selects(&selector, labels) {
                pod::template_not_selected(template, &at.child("template"), causes);
            }
        }
    }
    pod::validate_template(template, &at.child("template"), causes);
    pod::only_always(template, owner, &at.child("template"), causes);
}

/// The selector stays what it was.
pub fn same_selector(spec: &Members, old: &Members, causes: &mut Causes) {
    if !same_member(spec, old, "selector") {
        let at = Path::root("spec");
        causes.invalid(&at.child("selector"), selector::shown(spec.get("selector")), IMMUTABLE);
    }
}

/// A status counter that only goes up.
pub fn not_decremented(status: &Members, old: &Members, name: &str, causes: &mut Causes) {
    let (new, old) = (int(status, name), int(old, name));
    if old.is_some() && new.unwrap_or(i64::MIN) < old.unwrap_or(0) {
        let at = Path::root("status");
        causes.invalid(&at.child(name), new.unwrap_or(0), "cannot be decremented");
    }
}

/// A number or a percentage, not negative.
pub fn int_or_percent(value: Option<&Value>, at: &Path<'_>, causes: &mut Causes) {
    match value {
        Some(Value::String(text)) => {
            if let Some(fault) = format::percent(text) {
                causes.invalid(at, text.as_str(), fault);
            }
        }
        number => {
            if let Some(number) = number.and_then(Value::as_i64).filter(|number| *number < 0) {
                causes.invalid(at, number, "must be greater than or equal to 0");
            }
        }
    }
}

/// The number, or the number of percent; 0 for what is neither.
pub fn amount(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::String(text)) => percent(text).or_else(|| text.parse().ok()).unwrap_or(0),
        number => number.and_then(Value::as_i64).unwrap_or(0),
    }
}

fn percent(text: &str) -> Option<i64> {
    format::percent(text).is_none().then(|| text.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// Not more than everything.
pub fn at_most_all(value: Option<&Value>, at: &Path<'_>, causes: &mut Causes) {
    if let Some(Value::String(text)) = value
        && percent(text).is_some_and(|percent| percent > 100)
    {
        causes.invalid(at, text.as_str(), "must not be greater than 100%");
    }
}
