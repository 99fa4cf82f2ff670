//! One option's fault, in kube-apiserver's words.
//!
//! In: the field, the value as a message shows it (`go_quote` for a string, `to_go_text` for what is not
//! one), and what is wrong. Out: a [`Cause`], or the [`Status`] around several. Never: checks anything.

use crate::json::go_quote;
use crate::{Cause, CauseReason, Status};

/// `Invalid value: "x": <detail>`.
pub fn field_invalid(field: &str, shown: &str, detail: &str) -> Cause {
    let message = format!("Invalid value: {shown}: {detail}");
    Cause::new(CauseReason::FieldValueInvalid, field, message)
}

/// `Unsupported value: "x": supported values: "a", "b"`.
pub fn field_not_supported(field: &str, shown: &str, supported: &[&str]) -> Cause {
    let supported: Vec<String> = supported.iter().map(|value| go_quote(value)).collect();
    let message = format!("Unsupported value: {shown}: supported values: {}", supported.join(", "));
    Cause::new(CauseReason::FieldValueNotSupported, field, message)
}

/// `Forbidden: <detail>`.
pub fn field_forbidden(field: &str, detail: &str) -> Cause {
    Cause::new(CauseReason::FieldValueForbidden, field, format!("Forbidden: {detail}"))
}

/// `Required value: <detail>`.
pub fn field_required(field: &str, detail: &str) -> Cause {
    Cause::new(CauseReason::FieldValueRequired, field, format!("Required value: {detail}"))
}

/// `Too long: may not be more than 128 bytes`.
pub(super) fn field_too_long(field: &str, bytes_max: usize) -> Cause {
    let message = format!("Too long: may not be more than {bytes_max} bytes");
    Cause::new(CauseReason::FieldValueTooLong, field, message)
}

/// Refuses options of this kind when there are causes to.
pub(super) fn refuse(kind: &str, causes: Vec<Cause>) -> Result<(), Status> {
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid("meta.k8s.io", kind, "", causes)) }
}
