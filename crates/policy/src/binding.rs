//! A binding: which policy is in force, where, with which parameters, and what comes of it.
//!
//! In: a binding as it is stored. Out: the same as it is asked. Never: a parameter.

use std::sync::Arc;

use forebay_apimachinery::selector::LabelSelector;
use serde_json::{Map, Value};

use crate::matching::{Constraints, Matched, text, texts};
use crate::request::PolicyRequest;

/// See the module's doc.
pub struct Binding {
    pub name: Arc<str>,
    pub policy: Arc<str>,
    pub params: Option<ParamRef>,
    /// What a validating one does of what it finds.
    pub actions: Vec<ValidationAction>,
    /// All that the policy is about, if it has none.
    constraints: Option<Constraints>,
}

/// What is done of a failed validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidationAction {
    Deny,
    Warn,
    /// An audit log is told.
    Audit,
}

impl ValidationAction {
    /// As bindings name it.
    pub fn as_str(self) -> &'static str {
        match self {
            ValidationAction::Deny => "Deny",
            ValidationAction::Warn => "Warn",
            ValidationAction::Audit => "Audit",
        }
    }

    /// As what was done for a failure is counted.
    pub fn enforced(self) -> &'static str {
        match self {
            ValidationAction::Deny => "deny",
            ValidationAction::Warn => "warn",
            ValidationAction::Audit => "audit",
        }
    }
}

/// Which parameters a policy is evaluated with, one after the other.
pub struct ParamRef {
    pub name: Box<str>,
    /// Empty for that of the request.
    pub namespace: Box<str>,
    pub selector: Option<Result<LabelSelector, String>>,
    pub not_found: NotFound,
}

/// What comes of it when there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotFound {
    Allow,
    Deny,
}

impl Binding {
    pub fn read(binding: &Value) -> Option<Binding> {
        let spec = binding.get("spec")?.as_object()?;
        let actions = texts(spec, "validationActions").into_iter().filter_map(|action| match &*action {
            "Deny" => Some(ValidationAction::Deny),
            "Warn" => Some(ValidationAction::Warn),
            "Audit" => Some(ValidationAction::Audit),
            _ => None,
        });
        Some(Binding {
            name: binding.get("metadata")?.get("name")?.as_str()?.into(),
            policy: text(spec, "policyName").into(),
            params: spec.get("paramRef").and_then(Value::as_object).map(ParamRef::read),
            actions: actions.collect(),
            constraints: spec.get("matchResources").and_then(Value::as_object).map(Constraints::read),
        })
    }

    /// Whether it is in force for `request`.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub fn matches(
        &self,
        request: &PolicyRequest<'_>,
        labels: &dyn Fn() -> Result<Arc<Value>, String>,
    ) -> Result<bool, String> {
        match &self.constraints {
            Some(constraints) => Ok(constraints.matches(request, labels)? != Matched::No),
            None => Ok(true),
        }
    }
}

impl ParamRef {
    fn read(of: &Map<String, Value>) -> ParamRef {
        ParamRef {
            name: text(of, "name").into(),
            namespace: text(of, "namespace").into(),
            selector: of.get("selector").map(LabelSelector::from_value),
            not_found: match text(of, "parameterNotFoundAction") {
                "Deny" => NotFound::Deny,
                _ => NotFound::Allow,
            },
        }
    }
}
