//! Field paths and field errors in the shape and the words of Kubernetes API validation.
//!
//! In: a path built on the stack while a tree is walked, a reason, a bad value, a detail. Out: a
//! [`FieldError`] that becomes one cause of an Invalid Status. Never decides what is wrong, and never names
//! an HTTP status.

use std::fmt;

use forebay_apimachinery::{Cause, CauseReason, FaultBytes, Seen};

use forebay_apimachinery::go_format as go;

pub use forebay_apimachinery::bad_value::BadValue;
pub use forebay_apimachinery::fault_path::Path;

/// Why a field was refused; the string form is the `reason` of a Status cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooMany,
    TypeInvalid,
    Internal,
}

impl Reason {
    /// The machine-readable cause type, for instance `FieldValueInvalid`.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Required => "FieldValueRequired",
            Reason::Duplicate => "FieldValueDuplicate",
            Reason::Invalid => "FieldValueInvalid",
            Reason::NotSupported => "FieldValueNotSupported",
            Reason::Forbidden => "FieldValueForbidden",
            Reason::TooLong => "FieldValueTooLong",
            Reason::TooMany => "FieldValueTooMany",
            Reason::TypeInvalid => "FieldValueTypeInvalid",
            Reason::Internal => "InternalError",
        }
    }

    fn phrase(self) -> &'static str {
        match self {
            Reason::Required => "Required value",
            Reason::Duplicate => "Duplicate value",
            Reason::Invalid | Reason::TypeInvalid => "Invalid value",
            Reason::NotSupported => "Unsupported value",
            Reason::Forbidden => "Forbidden",
            Reason::TooLong => "Too long",
            Reason::TooMany => "Too many",
            Reason::Internal => "Internal error",
        }
    }
}

impl From<Reason> for CauseReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Required => CauseReason::FieldValueRequired,
            Reason::Duplicate => CauseReason::FieldValueDuplicate,
            Reason::Invalid => CauseReason::FieldValueInvalid,
            Reason::NotSupported => CauseReason::FieldValueNotSupported,
            Reason::Forbidden => CauseReason::FieldValueForbidden,
            Reason::TooLong => CauseReason::FieldValueTooLong,
            Reason::TooMany => CauseReason::FieldValueTooMany,
            Reason::TypeInvalid => CauseReason::FieldValueTypeInvalid,
            Reason::Internal => CauseReason::InternalError,
        }
    }
}

/// Violations, as causes of a `Status`.
pub fn causes(violations: &[FieldError]) -> Vec<Cause> {
    let cause = |error: &FieldError| Cause::new(error.reason.into(), error.field.clone(), error.message());
    violations.iter().map(cause).collect()
}

/// One violation: where, why, and what the client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    pub reason: Reason,
    /// Field path, for instance `spec.items[2].name`.
    pub field: String,
    /// The refused value as it is printed, already quoted or encoded; none where Kubernetes leaves it out.
    value: Option<String>,
    detail: String,
}

impl FieldError {
    fn new(reason: Reason, field: String, value: Option<String>, detail: impl Into<String>) -> Self {
        FieldError { reason, field, value, detail: detail.into() }
    }

    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Reason::Required, path.to_string(), None, detail)
    }

    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Reason::Forbidden, path.to_string(), None, detail)
    }

    pub(crate) fn forbidden_at(field: String, detail: impl Into<String>) -> Self {
        Self::new(Reason::Forbidden, field, None, detail)
    }

    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Self::new(Reason::Internal, path.to_string(), None, detail)
    }

    pub fn invalid(path: &Path<'_>, value: BadValue<'_>, detail: impl Into<String>) -> Self {
        Self::new(Reason::Invalid, path.to_string(), Some(value.show()), detail)
    }

    pub fn duplicate(path: &Path<'_>, value: BadValue<'_>) -> Self {
        Self::new(Reason::Duplicate, path.to_string(), Some(value.show()), "")
    }

    pub fn too_many(path: &Path<'_>, actual: usize, max: i64) -> Self {
        Self::too_many_at(path.to_string(), actual, max)
    }

    pub fn not_supported(path: &Path<'_>, value: BadValue<'_>, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|s| (*s).to_owned()).collect();
        Self::not_supported_at(path.to_string(), value.show(), &supported)
    }

    pub fn too_long(path: &Path<'_>, max: i64) -> Self {
        Self::too_long_at(path.to_string(), max)
    }

    /// As [`FieldError::invalid`], for callers that already hold the path and the printed value as text.
    pub(crate) fn at(
        reason: Reason,
        field: String,
        value: Option<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self::new(reason, field, value, detail)
    }

    pub(crate) fn too_long_at(field: String, max: i64) -> Self {
        let detail = match max {
            max if max < 0 => "value is too long".to_owned(),
            1 => "may not be more than 1 byte".to_owned(),
            _ => format!("may not be more than {max} bytes"),
        };
        Self::new(Reason::TooLong, field, None, detail)
    }

    pub(crate) fn too_many_at(field: String, actual: usize, max: i64) -> Self {
        let detail = match max {
            max if max < 0 => "has too many items".to_owned(),
            1 => "must have at most 1 item".to_owned(),
            _ => format!("must have at most {max} items"),
        };
        Self::new(Reason::TooMany, field, Some(actual.to_string()), detail)
    }

    pub(crate) fn not_supported_at(field: String, value: String, supported: &[String]) -> Self {
        let detail = match supported {
            [] => String::new(),
            values => {
                let quoted: Vec<String> = values.iter().map(|v| go::quote(v)).collect();
                format!("supported values: {}", quoted.join(", "))
            }
        };
        Self::new(Reason::NotSupported, field, Some(value), detail)
    }

    /// The message without the field path: the `message` of a Status cause.
    pub fn message(&self) -> String {
        let mut text = self.reason.phrase().to_owned();
        if let Some(value) = &self.value {
            text.push_str(": ");
            text.push_str(value);
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

/// Paths of unknown fields, as many as are told.
#[derive(Debug, Default)]
pub(super) struct Unknown {
    pub(super) paths: Vec<String>,
    told: FaultBytes,
}

impl Unknown {
    /// None yet, and as many more as are told beside these.
    pub(super) fn beside(&self) -> Unknown {
        Unknown { paths: Vec::new(), told: self.told }
    }

    /// Takes them one by one, until it is full.
    pub(super) fn extend(&mut self, paths: impl IntoIterator<Item = String>) {
        let mut paths = paths.into_iter();
        while !self.told.is_full()
            && let Some(path) = paths.next()
        {
            self.told.add(path.len());
            self.paths.push(path);
        }
    }
}

/// Field errors of one object, as many as are told.
#[derive(Debug, Default)]
pub(super) struct Faults {
    errors: Vec<FieldError>,
    told: FaultBytes,
}

impl Faults {
    /// Nothing more is told, and need not be made.
    pub(super) fn is_full(&self) -> bool {
        self.told.is_full()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.errors.len()
    }

    pub(super) fn push(&mut self, error: FieldError) {
        self.extend([error]);
    }

    /// Takes them one by one, until it is full.
    pub(super) fn extend(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        let mut errors = errors.into_iter();
        while !self.is_full()
            && let Some(error) = errors.next()
        {
            let value = error.value.as_ref().map_or(0, String::len);
            self.told.add(error.field.len() + value + error.detail.len());
            self.errors.push(error);
        }
    }

    pub(super) fn into_vec(self) -> Vec<FieldError> {
        self.errors
    }
}

impl IntoIterator for Faults {
    type Item = FieldError;
    type IntoIter = std::vec::IntoIter<FieldError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl FromIterator<FieldError> for Faults {
    fn from_iter<I: IntoIterator<Item = FieldError>>(errors: I) -> Faults {
        let mut faults = Faults::default();
        faults.extend(errors);
        faults
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message())
    }
}

/// Joins errors the way Kubernetes prints several of them: one alone as it is, more in brackets, repeats
/// dropped.
pub fn aggregate(errors: &[FieldError]) -> String {
    let mut seen = Seen::default();
    let mut texts = Vec::with_capacity(errors.len());
    for text in errors.iter().map(FieldError::to_string) {
        if !seen.again(text.clone()) {
            texts.push(text);
        }
    }
    aggregate_texts(&texts)
}

pub(crate) fn aggregate_texts(texts: &[String]) -> String {
    match texts {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn messages_use_the_words_of_kubernetes() {
        let at = Path::root("spec");
        let object = json!({"b": "<x>", "a": 1});
        let rows = [
            (FieldError::required(&at, ""), "spec: Required value"),
            (FieldError::required(&at, "say why"), "spec: Required value: say why"),
            (FieldError::forbidden(&at, "no"), "spec: Forbidden: no"),
            (FieldError::invalid(&at, BadValue::Text("a\"b"), "bad"), "spec: Invalid value: \"a\\\"b\": bad"),
            (
                FieldError::invalid(&at, BadValue::Json(&object), "bad"),
                "spec: Invalid value: {\"a\":1,\"b\":\"\\u003cx\\u003e\"}: bad",
            ),
            (FieldError::invalid(&at, BadValue::Json(&Value::Null), ""), "spec: Invalid value: null"),
            (FieldError::duplicate(&at, BadValue::Text("x")), "spec: Duplicate value: \"x\""),
            (
                FieldError::not_supported(&at, BadValue::Text("x"), &["a", "b"]),
                "spec: Unsupported value: \"x\": supported values: \"a\", \"b\"",
            ),
            (FieldError::too_many(&at, 9, 8), "spec: Too many: 9: must have at most 8 items"),
            (FieldError::too_many(&at, 2, 1), "spec: Too many: 2: must have at most 1 item"),
            (FieldError::too_long(&at, 63), "spec: Too long: may not be more than 63 bytes"),
        ];
        for (error, want) in rows {
            assert_eq!(error.to_string(), want);
        }
    }

    #[test]
    fn aggregates_drop_repeats_and_bracket_several() {
        let one = FieldError::required(&Path::root("a"), "");
        let two = FieldError::required(&Path::root("b"), "");
        assert_eq!(aggregate(std::slice::from_ref(&one)), "a: Required value");
        assert_eq!(aggregate(&[one.clone(), two, one]), "[a: Required value, b: Required value]");
    }
}
