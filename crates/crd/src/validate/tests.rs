//! One row a rule; the rows were compared with kube-apiserver's own validation.

use serde_json::{Value, json};

use super::*;

fn check(schema: Value, object: Value, want: &[&str]) {
    let found: Vec<String> =
        Schema::compile(&schema).validate(&object).iter().map(FieldError::to_string).collect();
    assert_eq!(found, want, "{schema} {object}");
}

/// Checks the field `spec.a`.
fn check_a(schema: Value, value: Value, want: &[&str]) {
    let spec =
        json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": schema}}}});
    check(spec, json!({"spec": {"a": value}}), want);
}

fn check_update(schema: Value, old: Value, object: Value, want: &[&str]) {
    let found: Vec<String> =
        Schema::compile(&schema).validate_update(&object, &old).iter().map(FieldError::to_string).collect();
    assert_eq!(found, want, "{schema} {old} {object}");
}

#[test]
fn types_are_judged() {
    let rows = [
        ("integer", json!(1), None),
        ("integer", json!(1.0), None),
        ("integer", json!(true), Some("boolean")),
        ("integer", json!("x"), Some("string")),
        ("number", json!(1), None),
        ("number", json!(true), Some("boolean")),
        ("string", json!([]), Some("array")),
        ("boolean", json!({}), Some("object")),
        ("object", json!(1), Some("integer")),
        ("array", json!({}), Some("object")),
        ("string", json!(null), Some("null")),
    ];
    for (kind, value, actual) in rows {
        let want: Vec<String> = actual
            .map(|actual| {
                format!(
                    "spec.a: Invalid value: \"{actual}\": spec.a in body must be of type {kind}: \"{actual}\""
                )
            })
            .into_iter()
            .collect();
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        check_a(json!({"type": kind}), value, &want);
    }
    check_a(json!({"type": "string", "nullable": true}), json!(null), &[]);
    check_a(json!({"x-kubernetes-int-or-string": true}), json!("x"), &[]);
    check_a(
        json!({"x-kubernetes-int-or-string": true}),
        json!(true),
        &["spec.a: Invalid value: \"boolean\": spec.a in body must be of type integer,string: \"boolean\""],
    );
}

#[test]
fn texts_are_judged() {
    check_a(json!({"type": "string", "maxLength": 2}), json!("éé"), &[]);
    check_a(
        json!({"type": "string", "maxLength": 2}),
        json!("abc"),
        &["spec.a: Too long: may not be more than 2 bytes"],
    );
    check_a(
        json!({"type": "string", "minLength": 2}),
        json!("é"),
        &["spec.a: Invalid value: \"é\": spec.a in body should be at least 2 chars long"],
    );
    check_a(
        json!({"type": "string", "pattern": "^a$"}),
        json!("b"),
        &["spec.a: Invalid value: \"b\": spec.a in body should match '^a$'"],
    );
    check_a(
        json!({"type": "string", "enum": ["a", "b"]}),
        json!("x"),
        &["spec.a: Unsupported value: \"x\": supported values: \"a\", \"b\""],
    );
    check_a(
        json!({"type": "string", "format": "date"}),
        json!("x"),
        &["spec.a: Invalid value: \"x\": spec.a in body must be of type date: \"x\""],
    );
    check_a(
        json!({"type": "string", "format": "date"}),
        json!(5),
        &["spec.a: Invalid value: \"int64\": spec.a in body must be of type date: \"int64\""],
    );
    check_a(json!({"type": "string", "format": "no-such"}), json!("x"), &[]);
}

#[test]
fn enums_convert_between_numbers_and_never_hold_null() {
    check_a(json!({"type": "number", "enum": [1, 2.5]}), json!(1.0), &[]);
    check_a(
        json!({"type": "number", "enum": [1, 2.5]}),
        json!(3),
        &["spec.a: Unsupported value: 3: supported values: \"1\", \"2.5\""],
    );
    check_a(
        json!({"type": "string", "nullable": true, "enum": ["a", null]}),
        json!(null),
        &["spec.a: Unsupported value: null: supported values: \"a\", \"null\""],
    );
}

#[test]
fn numbers_are_judged() {
    let body = |text: &str| format!("spec.a: Invalid value: 3: spec.a in body should be {text}");
    let rows = [
        (json!({"minimum": 4}), Some("greater than or equal to 4")),
        (json!({"minimum": 3}), None),
        (json!({"minimum": 3, "exclusiveMinimum": true}), Some("greater than 3")),
        (json!({"maximum": 2}), Some("less than or equal to 2")),
        (json!({"maximum": 3, "exclusiveMaximum": true}), Some("less than 3")),
        (json!({"multipleOf": 2}), Some("a multiple of 2")),
        (json!({"multipleOf": 3}), None),
    ];
    for (rules, want) in rows {
        let want: Vec<String> = want.map(body).into_iter().collect();
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        for kind in ["integer", "number"] {
            let mut schema = rules.clone();
            schema["type"] = kind.into();
            check_a(schema, json!(3), &want);
        }
    }
    check_a(
        json!({"type": "number", "maximum": 1.5}),
        json!(2.5),
        &["spec.a: Invalid value: 2.5: spec.a in body should be less than or equal to 1.5"],
    );
}

#[test]
fn ranges_of_formats_are_judged_without_a_field() {
    check_a(
        json!({"type": "integer", "format": "int32"}),
        json!(3_000_000_000_u64),
        &["<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in spec.a"],
    );
    check_a(
        json!({"type": "integer"}),
        json!(1e19),
        &[
            "spec.a: Invalid value: \"number\": spec.a in body must be of type integer: \"number\"",
            "<nil>: Invalid value: \"\": Checked value must be of type integer (default format) in spec.a",
        ],
    );
    check_a(
        json!({"type": "number", "format": "float"}),
        json!(1e39),
        &["<nil>: Invalid value: \"\": Checked value must be of type number with format float in spec.a"],
    );
    check_a(
        json!({"type": "integer", "maximum": 1.5}),
        json!(1),
        &[
            "<nil>: Invalid value: \"\": Maximum boundary value must be of type integer (default format) in spec.a",
        ],
    );
}

#[test]
fn lists_and_maps_are_judged() {
    let list = json!({"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "object", "required": ["n"],
        "properties": {"n": {"type": "string"}}}});
    check_a(
        list.clone(),
        json!([]),
        &["spec.a: Invalid value: 0: spec.a in body should have at least 1 items"],
    );
    check_a(
        list,
        json!([{"n": "x"}, {}, {"n": 5}]),
        &[
            "spec.a[1].n: Required value",
            "spec.a[2].n: Invalid value: \"integer\": spec.a[2].n in body must be of type string: \"integer\"",
            "spec.a: Too many: 3: must have at most 2 items",
        ],
    );
    let map = json!({"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string"}});
    check_a(
        map.clone(),
        json!({}),
        &["spec.a: Invalid value: 0: spec.a in body should have at least 1 properties"],
    );
    check_a(
        map,
        json!({"x.y": 1, "z": "a"}),
        &[
            "spec.a: Too many: 2: must have at most 1 item",
            "spec.a.x.y: Invalid value: \"integer\": spec.a.x.y in body must be of type string: \"integer\"",
        ],
    );
    check_a(
        json!({"type": "object", "additionalProperties": false}),
        json!({"x": 1}),
        &["spec.a: Invalid value: \"x\": spec.a.x in body is a forbidden property"],
    );
    check_a(
        json!({"type": "array", "uniqueItems": true, "items": {"type": "integer"}}),
        json!([1, 2, 1]),
        &["spec.a: Invalid value: \"\": spec.a in body shouldn't contain duplicates"],
    );
    check(json!({"type": "object", "required": ["spec"]}), json!({}), &["spec: Required value"]);
}

#[test]
fn junctors_report_the_branch_that_came_closest() {
    let props = |j: Value| {
        let mut schema =
            json!({"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}});
        schema.as_object_mut().expect("an object").extend(j.as_object().expect("an object").clone());
        schema
    };
    check_a(
        props(json!({"anyOf": [{"required": ["x"]}, {"required": ["y"]}]})),
        json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec.a\" must validate at least one schema (anyOf)",
            "spec.a.x: Required value",
        ],
    );
    check_a(
        props(
            json!({"anyOf": [{"required": ["x"]}, {"properties": {"y": {"minimum": 5}}, "required": ["z"]}]}),
        ),
        json!({"y": 6}),
        &[
            "<nil>: Invalid value: \"\": \"spec.a\" must validate at least one schema (anyOf)",
            "spec.a.z: Required value",
        ],
    );
    check_a(
        props(json!({"oneOf": [{"required": ["x"]}, {"required": ["y"]}]})),
        json!({"x": 1, "y": 1}),
        &[
            "<nil>: Invalid value: \"\": \"spec.a\" must validate one and only one schema (oneOf). Found 2 valid alternatives",
        ],
    );
    check_a(
        props(json!({"oneOf": [{"required": ["x"]}, {"required": ["y"]}]})),
        json!({}),
        &[
            "<nil>: Invalid value: \"\": \"spec.a\" must validate one and only one schema (oneOf). Found none valid",
            "spec.a.x: Required value",
        ],
    );
    check_a(
        props(json!({"allOf": [{"required": ["x"]}, {"required": ["y"]}]})),
        json!({"x": 1}),
        &[
            "spec.a.y: Required value",
            "<nil>: Invalid value: \"\": \"spec.a\" must validate all the schemas (allOf)",
        ],
    );
    check_a(
        props(json!({"allOf": [{"required": ["x"]}]})),
        json!({}),
        &[
            "spec.a.x: Required value",
            "<nil>: Invalid value: \"\": \"spec.a\" must validate all the schemas (allOf). None validated",
        ],
    );
    check_a(
        props(json!({"not": {"required": ["x"]}})),
        json!({"x": 1}),
        &["<nil>: Invalid value: \"\": \"spec.a\" must not validate the schema (not)"],
    );
}

#[test]
fn violations_with_the_same_message_are_reported_once() {
    check_a(
        json!({"type": "string", "pattern": "^a", "allOf": [{"pattern": "^a"}]}),
        json!("b"),
        &[
            "spec.a: Invalid value: \"b\": spec.a in body should match '^a'",
            "<nil>: Invalid value: \"\": \"spec.a\" must validate all the schemas (allOf). None validated",
        ],
    );
}

#[test]
fn updates_forgive_what_is_unchanged() {
    let schema = json!({"type": "object", "properties": {"kind": {"type": "string", "maxLength": 1},
        "spec": {"type": "object", "properties": {"a": {"type": "string", "maxLength": 1}, "b": {"type": "integer"}}}}});
    let bad = json!({"kind": "XX", "spec": {"a": "long", "b": 1}});
    check_update(schema.clone(), bad.clone(), json!({"kind": "X", "spec": {"a": "long", "b": 2}}), &[]);
    check_update(
        schema.clone(),
        bad.clone(),
        json!({"kind": "X", "spec": {"a": "longer", "b": 2}}),
        &["spec.a: Too long: may not be more than 1 byte"],
    );
    check_update(
        schema,
        bad.clone(),
        json!({"kind": "XX", "spec": {"a": "x"}, "c": 1}),
        &["kind: Too long: may not be more than 1 byte"],
    );
}

#[test]
fn updates_find_items_of_keyed_lists_wherever_they_moved() {
    let item = json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "string", "maxLength": 1}}});
    let list = |kind: Value| {
        json!({"type": "object", "properties": {"l": {"type": "array", "items": item,
            "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["k"]}}})
    };
    let old = json!({"l": [{"k": "a", "v": "long"}, {"k": "b", "v": "x"}]});
    let new = json!({"l": [{"k": "b", "v": "y"}, {"k": "a", "v": "long"}]});
    check_update(list(json!("map")), old.clone(), new.clone(), &[]);
    check_update(list(json!("atomic")), old.clone(), new, &["l[1].v: Too long: may not be more than 1 byte"]);
    check_update(list(json!("atomic")), old.clone(), old, &[]);
}

#[test]
fn status_updates_are_judged_by_the_status_alone() {
    let schema = Schema::compile(&json!({"type": "object", "required": ["spec"], "properties": {
        "status": {"type": "object", "required": ["ready"], "properties": {"n": {"type": "integer"}}}}}));
    let found = schema.validate_status_update(&json!({"status": {"n": "x"}}), &json!({"status": {"n": "y"}}));
    let found: Vec<String> = found.iter().map(FieldError::to_string).collect();
    assert_eq!(
        found,
        [
            "status.n: Invalid value: \"string\": n in body must be of type integer: \"string\"",
            "status.ready: Required value",
        ]
    );
    assert!(schema.validate_status_update(&json!({}), &json!({})).is_empty());
}

#[test]
fn deep_junctors_stay_cheap_when_they_fail() {
    let mut schema = json!({"minLength": 9});
    for _ in 0..40 {
        schema = json!({"anyOf": [schema, {"maxLength": 0}]});
    }
    schema["type"] = "string".into();
    let errors = Schema::compile(&schema).validate(&json!("x"));
    assert_eq!(errors.len(), 2);
}

#[test]
fn no_more_is_told_than_a_client_reads() {
    let schema = json!({"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "integer"}}});
    let many: serde_json::Map<String, Value> =
        (0..20_000).map(|number| (format!("k{number}"), json!("x"))).collect();
    let object = json!({"k".repeat(50_000): many});
    let found = Schema::compile(&schema).validate(&object);
    assert!((1..20).contains(&found.len()), "{}", found.len());
    // What is forgiven takes nothing away from what is not.
    let mut changed = object.clone();
    changed["new"] = json!({"a": "x"});
    let found = Schema::compile(&schema).validate_update(&changed, &object);
    assert_eq!(found.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["new.a"]);
}
