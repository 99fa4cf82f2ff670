//! Reviews of access that are well-formed, and that are not.
//!
//! In: reviews. Out: what is said of them. Never: who may do what.

use super::*;

fn check(kind: &str, review: Value, want: &[&str]) {
    let causes = validate_access_review(kind, &review);
    let got: Vec<String> = causes.into_iter().map(|one| format!("{}: {}", one.field, one.message)).collect();
    assert_eq!(got, want, "{kind} {review}");
}

#[test]
fn a_review_asks_one_question_about_somebody() {
    const ONE: &str = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
    let none = format!("spec.resourceAttributes: Invalid value: null: {ONE}");
    check("SelfSubjectAccessReview", json!({}), &[&none]);
    check(
        "SubjectAccessReview",
        json!({ "spec": { "nonResourceAttributes": { "path": "/x", "verb": "get" }, "resourceAttributes": {} } }),
        &[
            r#"spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: cannot be specified in combination with resourceAttributes"#,
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ],
    );
    check("SubjectAccessReview", json!({ "spec": { "groups": ["g"], "resourceAttributes": {} } }), &[]);
    check(
        "SelfSubjectAccessReview",
        json!({ "metadata": { "labels": { "a": "b" }, "name": "n" }, "spec": { "resourceAttributes": {} } }),
        &[r#"metadata: Invalid value: {"name":"n","labels":{"a":"b"}}: must be empty"#],
    );
}

#[test]
fn a_local_review_stays_in_its_namespace() {
    let spec = json!({ "user": "u", "resourceAttributes": { "namespace": "other" } });
    check(
        "LocalSubjectAccessReview",
        json!({ "metadata": { "namespace": "ns" }, "spec": spec }),
        &[r#"spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace"#],
    );
    let spec = json!({ "user": "u", "nonResourceAttributes": { "path": "/", "verb": "get" } });
    check(
        "LocalSubjectAccessReview",
        json!({ "metadata": { "namespace": "ns", "name": "n" }, "spec": spec }),
        &[
            r#"metadata: Invalid value: {"name":"n","namespace":"ns"}: must be empty except for namespace"#,
            r#"spec.nonResourceAttributes: Invalid value: {"Path":"/","Verb":"get"}: disallowed on this kind of request"#,
        ],
    );
}

#[test]
fn selectors_are_looked_at_as_far_as_they_are_known() {
    let requirements = json!([
        { "key": "", "operator": "In" }, { "key": "x", "operator": "Exists", "values": ["q"] },
        { "key": "x", "operator": "Foo", "values": ["q"] },
    ]);
    let selector = json!({ "rawSelector": "a", "requirements": requirements });
    let attributes = json!({ "fieldSelector": selector, "labelSelector": {} });
    let spec = json!({ "user": "u", "resourceAttributes": attributes });
    let at = "spec.resourceAttributes.fieldSelector";
    check(
        "SubjectAccessReview",
        json!({ "spec": spec }),
        &[
            &format!(
                "{at}.rawSelector: Invalid value: \"a\": may not specified at the same time as requirements"
            ),
            &format!("{at}.requirements[0].key: Required value: must be specified"),
            &format!(
                "{at}.requirements[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"
            ),
            &format!(
                "{at}.requirements[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
            "spec.resourceAttributes.labelSelector.requirements: Required value: when spec.resourceAttributes.labelSelector is specified, requirements or rawSelector is required",
        ],
    );
}

#[test]
fn what_is_not_understood_is_said() {
    let error =
        |attributes: Value| evaluation_error(&json!({ "spec": { "resourceAttributes": attributes } }));
    let requirements = |operators: &[&str]| {
        let each =
            operators.iter().map(|operator| json!({ "key": "a", "operator": operator, "values": ["b"] }));
        json!({ "requirements": each.collect::<Vec<_>>() })
    };
    for (attributes, want) in [
        (json!({ "fieldSelector": { "rawSelector": "a=b" }, "labelSelector": requirements(&["In"]) }), ""),
        (
            json!({ "fieldSelector": { "rawSelector": "a" }, "labelSelector": { "rawSelector": "a in in" } }),
            "spec.resourceAttributes.fieldSelector ignored due to parse error; \
             spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
        (
            json!({ "fieldSelector": requirements(&["Exists", "In"]), "labelSelector": requirements(&["Foo"]) }),
            "spec.resourceAttributes.fieldSelector partially ignored due to parse error; \
             spec.resourceAttributes.labelSelector ignored due to parse error",
        ),
    ] {
        assert_eq!(error(attributes.clone()), want, "{attributes}");
    }
}
