//! What each rule says, in the words of kube-apiserver. The cases are in `cases.txt`.

use serde_json::json;

use super::*;
use crate::defaults::apply;

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "foos.g.io" },
        "spec": {
            "group": "g.io", "scope": "Cluster",
            "names": { "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList" },
            "conversion": { "strategy": "None" },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "type": "object" } } },
            ],
        },
        "status": { "storedVersions": ["v1"] },
    })
}

/// Sets the value at a pointer, with the objects on the way; null takes it away, and one past the end
/// appends.
fn edit(mut value: &mut Value, pointer: &str, new: Value) {
    let mut steps = pointer.trim_start_matches('/').split('/').peekable();
    while let Some(step) = steps.next() {
        let is_last = steps.peek().is_none();
        value = match value {
            Value::Array(list) => {
                let i: usize = step.parse().expect("an index");
                if i == list.len() {
                    list.push(Value::Null);
                }
                &mut list[i]
            }
            Value::Object(map) if is_last && new.is_null() => return drop(map.remove(step)),
            other => &mut other[step],
        };
    }
    *value = new;
}

fn said(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::to_string).collect()
}

/// Runs one case of `cases.txt`.
fn check(case: &str) {
    let (mut new, mut old) = (crd(), crd());
    let mut lines = case.lines();
    let verb = lines.next().expect("a verb");
    let mut want = Vec::new();
    for line in lines {
        let (mark, rest) = line.split_once(' ').expect("a mark");
        let target = match mark {
            "old" => &mut old,
            "new" => &mut new,
            _ => {
                want.push(line.to_owned());
                continue;
            }
        };
        let (pointer, value) = rest.split_once(' ').expect("a pointer and a value");
        edit(target, pointer, serde_json::from_str(value).expect("JSON"));
    }
    apply(&mut new);
    apply(&mut old);
    let old = (verb == "update").then_some(&old);
    let errors = match old {
        Some(old) => validate_update(&new, old),
        None => validate_create(&new),
    };
    let mut found: Vec<String> = said(&errors).into_iter().map(|error| format!("! {error}")).collect();
    found.extend(warnings(&new, old).into_iter().map(|warning| format!("~ {warning}")));
    assert_eq!(found, want, "{case}");
}

#[test]
fn violations_are_those_of_kube_apiserver() {
    let cases = include_str!("cases.txt").split("\n\n").map(str::trim);
    let cases: Vec<&str> =
        cases.filter(|case| case.starts_with("create") || case.starts_with("update")).collect();
    assert!(cases.len() > 80, "the cases were read");
    cases.into_iter().for_each(check);
}

#[test]
fn a_status_has_the_storage_version_and_versions_that_are_there() {
    let stored = |versions: Value| {
        let mut crd = crd();
        crd["status"]["storedVersions"] = versions;
        said(&validate_create(&crd))
    };
    assert_eq!(stored(json!(["v1"])), Vec::<String>::new());
    assert_eq!(
        stored(json!([])),
        ["status.storedVersions: Invalid value: []: must have at least one stored version"]
    );
    assert_eq!(
        stored(json!(["v0", "v1", "v0"])),
        [
            "status.storedVersions[2]: Invalid value: \"v0\": missing from spec.versions; v0 was previously a storage \
             version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v0 \
             and removes v0 from status.storedVersions"
        ]
    );
    assert_eq!(
        stored(json!(["v0"]))[0],
        "status.storedVersions: Invalid value: [\"v0\"]: must have the storage version v1"
    );
}

#[test]
fn a_status_update_judges_the_accepted_names_alone() {
    let mut crd = crd();
    crd["spec"]["group"] = "".into();
    assert_eq!(said(&validate_status_update(&crd)), Vec::<String>::new());
    crd["status"]["acceptedNames"] = json!({ "kind": "K", "listKind": "K" });
    assert_eq!(
        said(&validate_status_update(&crd)),
        ["status.acceptedNames.listKind: Invalid value: \"K\": kind and listKind may not be the same"]
    );
}

#[test]
fn conversion_by_a_webhook_is_told() {
    let mut crd = crd();
    assert!(!has_webhook_conversion(&crd));
    edit(&mut crd, "/spec/conversion", json!({ "strategy": "Webhook" }));
    assert!(has_webhook_conversion(&crd));
}

#[test]
fn formats_that_are_not_known_are_warned_of_once() {
    let with = |format: &str| {
        let mut crd = crd();
        edit(
            &mut crd,
            "/spec/versions/0/schema/openAPIV3Schema/properties",
            json!({ "a": { "type": "string", "format": format } }),
        );
        crd
    };
    assert_eq!(warnings(&with("odd"), None), ["unrecognized format \"odd\""]);
    assert_eq!(warnings(&with("odd"), Some(&with("odd"))), Vec::<String>::new());
    assert_eq!(warnings(&with("date-time"), None), Vec::<String>::new());
}

#[test]
fn a_crd_that_nests_too_deep_is_refused_without_a_walk() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..DEPTH_MAX {
        schema = json!({ "type": "array", "items": schema });
    }
    let mut crd = crd();
    edit(&mut crd, "/spec/versions/0/schema/openAPIV3Schema/properties/a", schema);
    let want = [format!("spec: Invalid value: \"\": must not be nested deeper than {DEPTH_MAX} levels")];
    assert_eq!(said(&validate_create(&crd)), want);
    assert_eq!(said(&validate_update(&crd, &crd)), want);
    assert!(warnings(&crd, None).is_empty());
}

#[test]
fn what_is_no_crd_is_refused_and_nothing_breaks() {
    for value in [
        json!(null),
        json!([]),
        json!({ "spec": [1], "status": "x" }),
        json!({ "spec": { "versions": [1, null] } }),
    ] {
        assert!(!validate_create(&value).is_empty(), "{value}");
        assert!(!validate_update(&value, &value).is_empty(), "{value}");
        assert!(validate_status_update(&value).is_empty(), "{value}");
    }
}
