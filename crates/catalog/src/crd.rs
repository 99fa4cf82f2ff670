//! CustomResourceDefinitions as data: whether they are right, what they ask for, and where their objects are.
//!
//! In: a CRD. Out: causes, warnings, conditions, a store. Never: writes a CRD; what it serves is
//! [`Custom`](crate::Custom)'s.

use forebay_apimachinery::Cause;
use forebay_crd::{check, field};
use forebay_object::Form;
use serde_json::Value;

use crate::opener::{Opener, Shape};
use crate::store::Store;

/// Whether the objects of a resource are CRDs.
pub fn is(group: &str, plural: &str) -> bool {
    (group, plural) == ("apiextensions.k8s.io", "customresourcedefinitions")
}

/// What an earlier server said of a CRD that it did not serve, as conditions: type, status, reason, message.
///
/// A condition that no longer holds is set to false, not taken away.
pub fn needs(crd: &Value) -> Vec<(&'static str, &'static str, &'static str, String)> {
    let had = |kind: &str| {
        crd["status"]["conditions"]
            .as_array()
            .is_some_and(|list| list.iter().any(|condition| condition["type"] == kind))
    };
    let mut found = Vec::new();
    if had(RULES) {
        found.push((RULES, "False", "RulesEvaluated", "rules are evaluated".to_string()));
    }
    if had(CONVERSION) {
        found.push((CONVERSION, "False", "ConversionServed", "every version is served".to_string()));
    }
    found
}

/// A condition that servers gave which did not evaluate rules in CEL.
const RULES: &str = "RulesNotEvaluated";
/// A condition that servers gave which did not call webhooks.
const CONVERSION: &str = "ConversionNotServed";

/// What the writer of a CRD is told.
pub fn warnings(crd: &Value, old: Option<&Value>) -> Vec<String> {
    check::warnings(crd, old)
}

/// What is wrong with a CRD, which takes the place of `old` if there is one.
pub fn validate(crd: &Value, old: Option<&Value>) -> Vec<Cause> {
    field::causes(&match old {
        Some(old) => check::validate_update(crd, old),
        None => check::validate_create(crd),
    })
}

/// Whether a condition of `crd` is true.
pub fn is_true(crd: &Value, condition: &str) -> bool {
    let conditions = crd["status"]["conditions"].as_array();
    conditions.is_some_and(|list| list.iter().any(|c| c["type"] == condition && c["status"] == "True"))
}

/// What the store of a CRD's objects is made from; another one needs another store.
#[derive(Clone, PartialEq, Eq)]
pub struct LayoutKey {
    pub uid: String,
    namespaced: bool,
    /// Selectable paths of every version, sorted.
    pub fields: Vec<String>,
}

impl LayoutKey {
    pub fn of(crd: &Value) -> LayoutKey {
        let mut fields: Vec<String> = crd["spec"]["versions"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|version| version["selectableFields"].as_array().into_iter().flatten())
            .filter_map(|field| field["jsonPath"].as_str())
            .map(|path| path.trim_start_matches('.').to_string())
            .collect();
        fields.sort();
        fields.dedup();
        LayoutKey {
            uid: text(crd, "/metadata/uid").to_string(),
            namespaced: text(crd, "/spec/scope") == "Namespaced",
            fields,
        }
    }

    /// The store of the objects of `crd`, of which this is the key.
    pub fn open(&self, crd: &Value, opener: &Opener) -> Store {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        opener.open(Shape {
            group,
            plural,
            path: &format!("{group}/{plural}"),
            namespaced: self.namespaced,
            form: Form::Whole,
            fields: &self.fields,
            // What a definition lets clients select by, they will.
            indexed: (0..self.fields.len()).collect(),
        })
    }
}

pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or("")
}
