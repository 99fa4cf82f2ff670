//! What a policy's expressions say of fields that the kinds it is about do not have: warnings, not errors.
//!
//! In: a policy, the types of what it is about. Out: warnings by field, in upstream's words. Never: refuses.
//!
//! Source: apiserver v0.36.3 `pkg/admission/plugin/policy/validating/typechecking.go`.

use forebay_cel::Type;
use serde_json::{Map, Value, json};

use crate::compile::{Compiler, Since};
use crate::environment::{Declared, Objects};
use crate::matching::{objects, text};

/// A kind that a policy is about.
pub struct CheckedKind {
    /// As Go prints it: `apps/v1, Kind=Deployment`.
    pub name: String,
    pub object: Type,
}

/// What is wrong with the validations of `policy`, as its status has it.
///
/// - `params`: the type of its parameters; `Dyn` where that is not known.
pub fn type_warnings(policy: &Value, kinds: &[CheckedKind], params: &Type) -> Vec<Value> {
    let Some(spec) = policy.get("spec").and_then(Value::as_object) else { return Vec::new() };
    let mut warnings = Vec::new();
    let mut checks: Vec<Check<'_>> = kinds.iter().map(|kind| Check::new(spec, kind, params)).collect();
    for (at, validation) in objects(spec, "validations").enumerate() {
        for name in ["expression", "messageExpression"] {
            let expression = text(validation, name);
            if expression.is_empty() {
                continue;
            }
            let found: Vec<String> = checks.iter_mut().filter_map(|check| check.issues(expression)).collect();
            if !found.is_empty() {
                let field = format!("spec.validations[{at}].{name}");
                warnings.push(json!({ "fieldRef": field, "warning": found.join("\n") }));
            }
        }
    }
    warnings
}

/// A policy over one of its kinds.
struct Check<'a> {
    kind: &'a CheckedKind,
    compiler: Compiler,
}

impl<'a> Check<'a> {
    fn new(spec: &Map<String, Value>, kind: &'a CheckedKind, params: &Type) -> Check<'a> {
        let has_params = spec.get("paramKind").is_some_and(Value::is_object);
        let declared = Declared { params: has_params, authorizer: true, variables: true, mutations: false };
        let types = Objects { object: kind.object.clone(), params: params.clone() };
        let mut compiler = Compiler::with_types(declared, types);
        for variable in objects(spec, "variables") {
            // What is wrong with a variable is told nowhere, as upstream has it.
            compiler.type_of_variable(text(variable, "name"), text(variable, "expression"));
        }
        Check { kind, compiler }
    }

    fn issues(&mut self, expression: &str) -> Option<String> {
        let issues = self.compiler.issues(expression, Since::Stored)?;
        Some(format!("{}: {issues}\n", self.kind.name))
    }
}
