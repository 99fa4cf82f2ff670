//! Selectors and opaque parameters, which classes, claims and allocations have.
//!
//! In: the members that hold them. Out: causes. Never: understands parameters.

use serde_json::Value;

use super::expression::{self, Allowance};
use super::lists::bounded;
use crate::core::pod::csi_driver_name;
use crate::field::{Causes, Path};
use crate::value::{Members, child, text};

const SELECTORS_MAX: usize = 32;
const PARAMETERS_BYTES_MAX: usize = 10 << 10;
pub const CONFIG_MAX: usize = 32;

/// Whether something was let through before, when less was asked of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    New,
    Stored,
}

/// The list `selectors` of `of`.
///
/// - `allowance`: of the whole object.
pub fn selectors(of: &Members, origin: Origin, allowance: &Allowance, at: &Path<'_>, causes: &mut Causes) {
    let items = bounded(of, "selectors", SELECTORS_MAX, at, causes);
    for (index, selector) in items.iter().filter_map(Value::as_object).enumerate() {
        let at = at.child("selectors");
        let at = at.index(index);
        match child(selector, "cel") {
            None => causes.required(&at.child("cel"), ""),
            Some(cel) => {
                let at = at.child("cel");
                let (text, at) = (text(cel, "expression"), at.child("expression"));
                expression::validate(text, origin, allowance, &at, causes);
            }
        }
    }
}

/// What a driver is told.
pub fn opaque(config: &Members, origin: Origin, at: &Path<'_>, causes: &mut Causes) {
    let at = at.child("opaque");
    let Some(opaque) = child(config, "opaque") else { return causes.required(&at, "") };
    csi_driver_name(text(opaque, "driver"), &at.child("driver"), causes);
    raw(opaque.get("parameters"), origin, PARAMETERS_BYTES_MAX, &at.child("parameters"), causes);
}

/// An object of any form.
pub fn raw(value: Option<&Value>, origin: Origin, bytes_max: usize, at: &Path<'_>, causes: &mut Causes) {
    match value {
        None | Some(Value::Null) => causes.required(at, ""),
        Some(value) if origin == Origin::New && value.to_string().len() > bytes_max => {
            causes.too_long(at, bytes_max);
        }
        Some(Value::Object(_)) => {}
        Some(_) => causes.invalid(at, "<value omitted>", "must be a valid JSON object"),
    }
}
