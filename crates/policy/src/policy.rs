//! A policy, compiled.
//!
//! In: a policy as it is stored. Out: the same as it is asked; what does not compile fails when it is asked.
//! Never: a request.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/{validating/plugin,mutating/compilation}.go`.

use std::fmt;
use std::sync::Arc;

use forebay_apimachinery::Reason;
use forebay_apimachinery::resource::{api_version, split_api_version};
use serde_json::{Map, Value};

use crate::compile::{Compiler, Returns, Since};
use crate::composition::Variables;
use crate::environment::Declared;
use crate::evaluation::Expression;
use crate::matching::{Constraints, Matched, objects, text};
use crate::mutating::{Mutation, PatchKind};
use crate::request::PolicyRequest;

/// See the module's doc.
pub struct Policy {
    pub name: Arc<str>,
    pub param_kind: Option<ParamKind>,
    pub failure: FailurePolicy,
    constraints: Option<Constraints>,
    pub(crate) conditions: Vec<Expression>,
    pub(crate) variables: Variables,
    pub(crate) validations: Vec<Validation>,
    // By key.
    pub(crate) annotations: Vec<(Box<str>, Expression)>,
    pub(crate) mutations: Vec<Mutation>,
    pub reinvocation: Reinvocation,
}

/// Whether a mutating policy is asked again when others have changed the object after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reinvocation {
    Never,
    IfNeeded,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamKind {
    pub group: Box<str>,
    pub version: Box<str>,
    pub kind: Box<str>,
}

/// What comes of what is wrong with a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    Fail,
    Ignore,
}

pub(crate) struct Validation {
    pub expression: Expression,
    pub message: Box<str>,
    pub message_expression: Option<Expression>,
    pub reason: Reason,
}

impl Policy {
    /// - `policy`: a ValidatingAdmissionPolicy or a MutatingAdmissionPolicy.
    pub fn read(policy: &Value) -> Option<Policy> {
        let spec = policy.get("spec")?.as_object()?;
        let has_params = spec.get("paramKind").is_some_and(Value::is_object);
        let all = Declared { params: has_params, authorizer: true, variables: true, mutations: false };
        let mut compiler = Compiler::new(all);
        let variables = objects(spec, "variables")
            .map(|variable| {
                let name = text(variable, "name");
                (name.into(), compiler.variable(name, text(variable, "expression"), Since::Stored))
            })
            .collect();
        let mut compile = |text: &str, returns, declared| Expression {
            compiled: compiler.compile(text, returns, Since::Stored, declared),
            text: text.into(),
        };
        let conditions = objects(spec, "matchConditions")
            .map(|condition| compile(text(condition, "expression"), Returns::Bool, all))
            .collect();
        let validations = objects(spec, "validations")
            .map(|validation| Validation {
                expression: compile(text(validation, "expression"), Returns::Bool, all),
                message: text(validation, "message").trim().into(),
                message_expression: match text(validation, "messageExpression") {
                    "" => None,
                    text => Some(compile(text, Returns::Text, Declared { authorizer: false, ..all })),
                },
                reason: reason(validation),
            })
            .collect();
        let annotations = objects(spec, "auditAnnotations")
            .map(|annotation| {
                let expression = compile(text(annotation, "valueExpression"), Returns::TextOrNull, all);
                (text(annotation, "key").into(), expression)
            })
            .collect();
        let mutations = objects(spec, "mutations")
            .filter_map(|mutation| {
                let (kind, member, returns) = match text(mutation, "patchType") {
                    "ApplyConfiguration" => (PatchKind::Apply, "applyConfiguration", Returns::Object),
                    "JSONPatch" => (PatchKind::Json, "jsonPatch", Returns::Patches),
                    _ => return None,
                };
                let expression = text(mutation.get(member)?.as_object()?, "expression");
                let expression = compile(expression, returns, Declared { mutations: true, ..all });
                Some(Mutation { expression, kind })
            })
            .collect();
        Some(Policy {
            name: policy.get("metadata")?.get("name")?.as_str()?.into(),
            param_kind: spec.get("paramKind").and_then(Value::as_object).map(ParamKind::read),
            failure: FailurePolicy::read(spec),
            constraints: spec.get("matchConstraints").and_then(Value::as_object).map(Constraints::read),
            conditions,
            variables,
            validations,
            annotations,
            mutations,
            reinvocation: Reinvocation::read(spec),
        })
    }

    /// What `request` matches it as.
    ///
    /// # Errors
    /// Why that cannot be said.
    pub fn matches(
        &self,
        request: &PolicyRequest<'_>,
        labels: &dyn Fn() -> Result<Arc<Value>, String>,
    ) -> Result<Matched, String> {
        match &self.constraints {
            Some(constraints) => constraints.matches(request, labels),
            None => Err("policy contained no match constraints, a required field".into()),
        }
    }
}

impl FailurePolicy {
    pub(crate) fn read(of: &Map<String, Value>) -> FailurePolicy {
        match text(of, "failurePolicy") {
            "Ignore" => FailurePolicy::Ignore,
            _ => FailurePolicy::Fail,
        }
    }
}

impl Reinvocation {
    /// - `of`: the spec of a policy, or a webhook.
    pub fn read(of: &Map<String, Value>) -> Reinvocation {
        match text(of, "reinvocationPolicy") {
            "IfNeeded" => Reinvocation::IfNeeded,
            _ => Reinvocation::Never,
        }
    }
}

fn reason(validation: &Map<String, Value>) -> Reason {
    match text(validation, "reason") {
        "Forbidden" => Reason::Forbidden,
        "Unauthorized" => Reason::Unauthorized,
        "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
        _ => Reason::Invalid,
    }
}

impl ParamKind {
    fn read(of: &Map<String, Value>) -> ParamKind {
        let (group, version) = split_api_version(text(of, "apiVersion"));
        ParamKind { group: group.into(), version: version.into(), kind: text(of, "kind").into() }
    }

    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

/// As Go prints a kind.
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}
