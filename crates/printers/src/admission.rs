//! Admission webhooks and policies, and the bindings of policies.
//!
//! In: admissionregistration.k8s.io/v1 values. Out: their cells. Never: an expression is evaluated.

use jiff::Timestamp;
use serde_json::Value;

use crate::labels;
use crate::member::Member;
use crate::table::{AGE, Column, NAME, Printer, cells, integer, string};

/// Both kinds of webhook configuration.
pub(crate) static WEBHOOK_CONFIGURATION: Printer =
    Printer::new(&[NAME, integer("Webhooks", "Number of webhooks."), AGE], |configuration, now| {
        cells![configuration.name(), configuration.get("webhooks").count(), configuration.age(now)]
    });

const PARAM_KIND: Column = string("ParamKind", "Kind of the parameters.");

pub(crate) static VALIDATING_ADMISSION_POLICY: Printer = Printer::new(
    &[NAME, integer("Validations", "Number of validation rules."), PARAM_KIND, AGE],
    |policy, now| policy_cells(policy, "validations", now),
);

pub(crate) static MUTATING_ADMISSION_POLICY: Printer = Printer::new(
    &[NAME, integer("Mutations", "Number of mutation rules."), PARAM_KIND, AGE],
    |policy, now| policy_cells(policy, "mutations", now),
);

/// Both kinds of policy binding.
pub(crate) static ADMISSION_POLICY_BINDING: Printer = Printer::new(
    &[
        NAME,
        string("PolicyName", "Policy that is bound."),
        string("ParamRef", "Parameters it is bound with."),
        AGE,
    ],
    binding_cells,
);

fn policy_cells(policy: Member<'_>, rules: &str, now: Timestamp) -> Vec<Value> {
    let spec = policy.get("spec");
    let kind = spec.get("paramKind");
    let kind = match kind.is_set() {
        true => format!("{}/{}", kind.get("apiVersion").text(), kind.get("kind").text()),
        false => "<unset>".to_owned(),
    };
    cells![policy.name(), spec.get(rules).count(), kind, policy.age(now)]
}

fn binding_cells(binding: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = binding.get("spec");
    cells![binding.name(), spec.get("policyName").text(), parameters(spec.get("paramRef")), binding.age(now)]
}

/// `namespace/name`, or the selector in the form Go gives it.
fn parameters(reference: Member<'_>) -> String {
    match (reference.get("name").text(), reference.get("namespace").text()) {
        ("", _) if reference.get("selector").is_set() => labels::go_string(reference.get("selector")),
        ("", _) => "<unset>".to_owned(),
        // Whether the parameters have a namespace cannot be known here.
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}
