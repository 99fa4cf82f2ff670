//! CustomResourceDefinitions as data: whether they are right, what they ask for, and where their objects are.
//!
//! In: a CRD. Out: causes, warnings, conditions, a store. Never: writes a CRD; what it serves is
//! [`Custom`](crate::Custom)'s.

use forebay_apimachinery::Cause;
use forebay_crd::{check, field};
use forebay_object::Form;
use forebay_schema::builtin;
use serde_json::Value;

use crate::opener::{Opener, Shape};
use crate::store::Store;

/// Whether the objects of a resource are CRDs.
pub fn is(group: &str, plural: &str) -> bool {
    (group, plural) == ("apiextensions.k8s.io", "customresourcedefinitions")
}

/// What of a CRD a built-in resource has already. Such a CRD is established like any other, as upstream has
/// it, and serves nothing: the group is the built-in resource's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltInHas {
    /// Its group and plural name.
    Name,
    /// The place of its objects, too.
    Storage,
}

impl BuiltInHas {
    /// Nothing, of most CRDs. Whatever is served now: what was stored before is there still.
    ///
    /// Source: apiextensions-apiserver v0.36.3 `pkg/controller/finalizer/crd_finalizer.go`
    /// (`OverlappingBuiltInResources`).
    pub fn of(crd: &Value) -> Option<BuiltInHas> {
        let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
        let path = storage_path(group, plural);
        let resources = builtin::table().resources().iter();
        let has = resources.filter_map(|resource| {
            let overlaps = |known: &str| is_at_or_below(&path, known) || is_at_or_below(known, &path);
            match resource.storage_prefix {
                Some(known) if overlaps(known) => Some(BuiltInHas::Storage),
                _ => ((resource.group, resource.plural) == (group, plural)).then_some(BuiltInHas::Name),
            }
        });
        has.reduce(|first, other| if first == BuiltInHas::Storage { first } else { other })
    }
}

/// Where the objects of a CRD are, below what all keys begin with.
fn storage_path(group: &str, plural: &str) -> String {
    format!("{group}/{plural}")
}

fn is_at_or_below(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
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
            path: &storage_path(group, plural),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(group: &str, plural: &str) -> Option<BuiltInHas> {
        BuiltInHas::of(&json!({ "spec": { "group": group, "names": { "plural": plural } } }))
    }

    #[test]
    fn no_crd_has_the_place_or_the_name_of_a_built_in_resource() {
        let mut places = Vec::new();
        for resource in builtin::table().resources() {
            let (group, plural) = (resource.group, resource.plural);
            let Some(found) = of(group, plural) else { panic!("{plural}.{group} is built in") };
            // A CRD's group has a dot.
            if found == BuiltInHas::Storage && group.contains('.') {
                places.push(format!("{plural}.{group}"));
            }
        }
        let upstreams =
            ["customresourcedefinitions.apiextensions.k8s.io", "apiservices.apiregistration.k8s.io"];
        assert_eq!(places, upstreams);
    }

    #[test]
    fn a_crd_beside_the_built_in_resources_is_in_nobodys_way() {
        for (group, plural) in [
            ("example.com", "customresourcedefinitions"),
            ("apiextensions.k8s.io", "customresourcedefinition"),
            ("apiextensions.k8s.io", "customresourcedefinitionss"),
            ("snapshot.storage.k8s.io", "volumesnapshots"),
            ("storage.k8s.io", "volumes"),
        ] {
            assert_eq!(of(group, plural), None, "{plural}.{group}");
        }
        // Below or above the place of one.
        assert_eq!(of("services", "specs/x"), Some(BuiltInHas::Storage));
        assert_eq!(of("events.k8s.io", "events"), Some(BuiltInHas::Name));
    }
}
