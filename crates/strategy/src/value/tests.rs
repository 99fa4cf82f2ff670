//! Reading members, and what counts as their absence.
//!
//! In: JSON. Out: members. Never: a kind.

use serde_json::json;

use super::*;

#[test]
fn maps_are_sorted_for_the_search() {
    assert!(MAPS.is_sorted());
}

#[test]
fn absent_equals_zero_where_absence_means_nothing_else() {
    let rows = [
        (json!({}), json!({"hostNetwork": false}), true),
        (json!({"a": {"b": 0}}), json!({"a": {}}), true),
        (json!({"list": []}), json!({}), true),
        (json!({"resources": {}}), json!({}), true),
        (json!({"emptyDir": {}}), json!({}), false),
        (json!({"automountServiceAccountToken": false}), json!({}), false),
        (json!({"replicas": 0}), json!({}), false),
        (json!({"storageClassName": ""}), json!({}), false),
        (json!({"exactly": {"adminAccess": false}}), json!({"exactly": {}}), false),
        (json!({"borrowingLimitPercent": 0}), json!({}), false),
        (json!({"a": [1, 2]}), json!({"a": [2, 1]}), false),
        (json!({"a": [{"b": ""}]}), json!({"a": [{}]}), true),
        (json!({"a": 1}), json!({"a": "1"}), false),
        (json!({"labels": {"a": ""}}), json!({"labels": {}}), false),
        (json!({"data": {"a": "", "b": "1"}}), json!({"data": {"b": "1"}}), false),
        (json!({"selector": {"matchExpressions": []}}), json!({"selector": {}}), true),
    ];
    for (a, b, equal) in rows {
        assert_eq!(same("", Some(&a), Some(&b)), equal, "{a} {b}");
        assert_eq!(same("", Some(&b), Some(&a)), equal, "{b} {a}");
    }
}

#[test]
fn a_member_of_another_type_is_replaced_when_an_object_is_needed() {
    let mut value = json!({"a": 1});
    let object = value.as_object_mut().expect("an object");
    child_made(object, "a").insert("b".into(), json!(2));
    child_made(object, "c");
    assert_eq!(value, json!({"a": {"b": 2}, "c": {}}));
}
