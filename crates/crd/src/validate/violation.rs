//! One violation while it is being found, and the field error that it becomes.
//!
//! The message of a violation names the path once more (`spec.a in body must be …`), because kube-openapi's
//! does; it is also what makes two violations the same.

use serde_json::Value;

use super::At;
use crate::field::{BadValue, FieldError, Reason};
use forebay_apimachinery::go_format as go;

pub(super) enum Code {
    Invalid,
    TypeInvalid,
    Required,
    TooLong(i64),
    TooMany {
        size: usize,
        max: i64,
    },
    NotSupported(Vec<String>),
    /// Said of no field at all.
    Plain,
}

pub(super) struct Violation {
    code: Code,
    /// The path as the messages have it.
    name: String,
    /// The value as printed.
    value: Option<String>,
    pub(super) message: String,
}

impl Violation {
    pub(super) fn new(code: Code, at: &At<'_>, value: Option<String>, text: &str) -> Self {
        let name = at.to_string();
        Violation { code, message: format!("{name} in body {text}"), name, value }
    }

    pub(super) fn invalid(at: &At<'_>, value: String, text: &str) -> Self {
        Self::new(Code::Invalid, at, Some(value), text)
    }

    /// `actual` is the type, or the text that has not the format.
    pub(super) fn wrong_type(at: &At<'_>, wanted: &str, actual: &str) -> Self {
        let actual = go::quote(actual);
        let text = format!("must be of type {wanted}: {actual}");
        Self::new(Code::TypeInvalid, at, Some(actual), &text)
    }

    pub(super) fn required(at: &At<'_>, name: &str) -> Self {
        Self::new(Code::Required, &At::Key(at, name), None, "is required")
    }

    pub(super) fn forbidden_property(at: &At<'_>, name: &str) -> Self {
        let place = at.to_string();
        Violation {
            code: Code::Invalid,
            message: format!("{place}.{name} in body is a forbidden property"),
            name: place,
            value: Some(go::quote(name)),
        }
    }

    pub(super) fn bad_factor(at: &At<'_>, factor: &str) -> Self {
        let name = at.to_string();
        Violation {
            code: Code::Invalid,
            message: format!("factor MultipleOf declared for {name} must be positive: {factor}"),
            name,
            value: Some(factor.to_owned()),
        }
    }

    pub(super) fn not_supported(at: &At<'_>, value: &Value, choices: &[Value]) -> Self {
        let print = |choice: &Value| match choice {
            Value::String(text) => text.clone(),
            other => go::to_json(other),
        };
        let supported: Vec<String> = choices.iter().map(print).collect();
        let text = format!("should be one of [{}]", supported.join(" "));
        Self::new(Code::NotSupported(supported), at, Some(BadValue::Json(value).show()), &text)
    }

    pub(super) fn junctor(at: &At<'_>, text: &str) -> Self {
        Self::plain(format!("{} {text}", go::quote(&at.to_string())))
    }

    pub(super) fn plain(message: String) -> Self {
        Violation { code: Code::Plain, name: String::new(), value: None, message }
    }

    /// Bytes of its texts.
    pub(super) fn bytes(&self) -> usize {
        let choices = match &self.code {
            Code::NotSupported(choices) => choices.iter().map(String::len).sum(),
            _ => 0,
        };
        self.name.len() + self.message.len() + self.value.as_ref().map_or(0, String::len) + choices
    }

    /// Makes the field error; `prefix` is where the checked value stands.
    pub(super) fn into_error(self, prefix: &str) -> FieldError {
        let Violation { code, name, value, message } = self;
        let name = name.strip_prefix('.').unwrap_or(&name);
        let field = match (prefix, name) {
            (prefix, "") => prefix.to_owned(),
            ("<nil>", name) => name.to_owned(),
            (prefix, name) => format!("{prefix}.{name}"),
        };
        let value = value.or_else(|| Some("\"\"".to_owned()));
        match code {
            Code::Invalid | Code::Plain => FieldError::at(Reason::Invalid, field, value, message),
            Code::TypeInvalid => FieldError::at(Reason::TypeInvalid, field, value, message),
            Code::Required => FieldError::at(Reason::Required, field, None, ""),
            Code::TooLong(max) => FieldError::too_long_at(field, max),
            Code::TooMany { size, max } => FieldError::too_many_at(field, size, max),
            Code::NotSupported(supported) => {
                FieldError::not_supported_at(field, value.unwrap_or_default(), &supported)
            }
        }
    }
}
