//! What a definition and its objects cost is n·log n in their items: steps are counted, never time.
//!
//! In: definitions and objects of as many items as the table asks for. Out: nothing. Never: what is wrong
//! with them.
//!
//! The bound is the law's, `docs/robustness.md`: at most 32 steps an item and level of a tree of them, and of
//! four times as many items at most five times the steps.

use std::cell::Cell;
use std::rc::Rc;

use forebay_apimachinery::steps;
use serde_json::{Value, json};

use super::field::{self, FieldError, Path};
use super::limits::VISITS_MAX;
use super::object_meta::MalformedFields;
use super::schema::Schema;
use super::{check, conditions, validate};

const STEPS_MAX: f64 = 32.0;
const FEW: usize = 500;
const MANY: usize = 4 * FEW;

/// Calls, each of which is bounded, of so and so many items.
type Work = Box<dyn Fn(usize) -> Vec<Box<dyn FnOnce()>>>;

fn check_all(rows: Vec<(&str, Work)>) {
    let max = STEPS_MAX * MANY as f64 * (MANY as f64).log2();
    let mut verdicts = Vec::new();
    for (what, work) in rows {
        for (few, many) in work(FEW).into_iter().zip(work(MANY)) {
            let (few, many) = (steps::counted(few), steps::counted(many));
            if many > 5 * few.max(100) || many as f64 > max {
                verdicts.push(format!("{what}: {few} steps for {FEW}, {many} for {MANY}"));
            }
        }
    }
    assert!(verdicts.is_empty(), "{verdicts:#?}");
}

fn list(count: usize, make: impl Fn(usize) -> Value) -> Value {
    (0..count).map(|index| make(count - index)).collect()
}

fn names(count: usize, prefix: &str) -> Value {
    list(count, |index| format!("{prefix}{index}").into())
}

fn members(count: usize, make: impl Fn(usize) -> Value) -> Value {
    Value::Object((0..count).map(|index| (format!("m{index}"), make(index))).collect())
}

fn crd(spec: Value) -> Value {
    let mut crd = json!({
        "metadata": { "name": "things.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList" },
            "versions": [version("v1", json!({}))],
        },
        "status": { "storedVersions": ["v1"] },
    });
    for (name, member) in spec.as_object().expect("members") {
        crd["spec"][name] = member.clone();
    }
    crd
}

fn version(name: &str, more: Value) -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "properties": { "a": { "type": "string" } } } });
    let mut version = json!({ "name": name, "served": true, "storage": name == "v1", "schema": schema });
    for (name, member) in more.as_object().expect("members") {
        version[name] = member.clone();
    }
    version
}

fn with_schema(schema: Value) -> Value {
    crd(json!({ "versions": [version("v1", json!({ "schema": { "openAPIV3Schema": schema } }))] }))
}

/// A definition as it is created, and as an update of itself.
fn judged(make: impl Fn(usize) -> Value + 'static) -> Work {
    Box::new(move |count| {
        let crd = Rc::new(make(count));
        let call = |of: fn(&Value)| -> Box<dyn FnOnce()> {
            let crd = crd.clone();
            Box::new(move || of(&crd))
        };
        vec![
            call(|crd| drop(check::validate_create(crd))),
            call(|crd| drop(check::validate_update(crd, crd))),
            call(|crd| drop(check::warnings(crd, Some(crd)))),
        ]
    })
}

#[test]
fn the_lists_of_a_definition_cost_what_they_are_long() {
    let property = |schema: Value| with_schema(json!({ "type": "object", "properties": { "p": schema } }));
    check_all(vec![
        (
            "versions",
            judged(|n| crd(json!({ "versions": list(n, |i| version(&format!("v{i}"), json!({}))) }))),
        ),
        (
            "versions that differ",
            judged(|n| {
                let column =
                    |i: usize| json!([{ "name": format!("c{i}"), "type": "string", "jsonPath": ".a" }]);
                let one = |i| {
                    version(
                        &format!("v{i}"),
                        json!({ "additionalPrinterColumns": column(i), "subresources": null }),
                    )
                };
                crd(json!({ "versions": list(n, one) }))
            }),
        ),
        (
            "stored versions",
            judged(|n| {
                let mut crd = crd(json!({ "versions": list(n, |i| version(&format!("v{i}"), json!({}))) }));
                crd["status"]["storedVersions"] = names(n, "v");
                crd
            }),
        ),
        (
            "review versions",
            judged(|n| {
                crd(json!({ "conversion": { "strategy": "Webhook", "webhook": {
            "clientConfig": { "url": "https://a" }, "conversionReviewVersions": names(n, "v") } } }))
            }),
        ),
        (
            "a path of a webhook",
            judged(|n| {
                crd(json!({ "conversion": { "strategy": "Webhook", "webhook": {
            "clientConfig": { "service": { "name": "a", "namespace": "b", "path": "/".repeat(n) } },
            "conversionReviewVersions": ["v1"] } } }))
            }),
        ),
        (
            "short names and categories",
            judged(|n| {
                crd(json!({ "names": { "plural": "things", "singular": "thing",
            "kind": "Thing", "listKind": "ThingList", "shortNames": names(n, "s"), "categories": names(n, "C") } }))
            }),
        ),
        (
            "selectable fields",
            judged(|n| {
                let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": members(n, |_| json!({ "type": "string" })) } });
                let fields = list(n, |i| json!({ "jsonPath": format!(".m{i}") }));
                crd(
                    json!({ "versions": [version("v1", json!({ "schema": schema, "selectableFields": fields }))] }),
                )
            }),
        ),
        (
            "keys of a list",
            judged(move |n| {
                property(json!({ "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": names(n, "m"), "items": { "type": "object", "required": names(n + 1, "m"),
            "properties": members(n + 1, |_| json!({ "type": "string" })) } }))
            }),
        ),
        (
            "unknown keys of a list",
            judged(move |n| {
                property(json!({ "type": "array", "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": names(n, "x"), "items": { "type": "object" } }))
            }),
        ),
        (
            "properties without a type",
            judged(|n| with_schema(json!({ "type": "object", "properties": members(n, |_| json!({})) }))),
        ),
        (
            "branches",
            judged(move |n| {
                property(json!({ "type": "string", "anyOf": list(n, |i| json!({ "minLength": i })) }))
            }),
        ),
        (
            "rules with paths",
            judged(move |n| {
                property(json!({ "type": "object", "properties": members(n, |_| json!({ "type": "string" })),
            "x-kubernetes-validations": list(n, |i| json!({ "rule": "true", "fieldPath": format!(".m{i}") })) }))
            }),
        ),
        (
            "defaults",
            judged(|n| {
                with_schema(json!({ "type": "object",
            "properties": members(n, |_| json!({ "type": "string", "default": "a" })) }))
            }),
        ),
        (
            "unknown formats",
            judged(|n| {
                with_schema(json!({ "type": "object",
            "properties": members(n, |i| json!({ "type": "string", "format": format!("f{i}") })) }))
            }),
        ),
    ]);
}

#[test]
fn names_are_accepted_beside_others_at_a_look_each() {
    let status = |mine: &str| {
        let mine = mine.to_owned();
        let work: Work = Box::new(move |n| {
            let mut crd = crd(json!({ "names": { "plural": "things", "singular": "thing", "kind": "Thing",
                "listKind": "ThingList", "shortNames": names(n, &mine) } }));
            crd["status"]["acceptedNames"] = json!({ "plural": "things", "shortNames": names(n, "s") });
            let other = json!({ "spec": { "group": "example.com" }, "status": { "acceptedNames": { "shortNames": names(n, "o") } } });
            vec![Box::new(move || drop(conditions::status(&crd, &[&other], &[], "2024-01-01T00:00:00Z")))]
        });
        work
    };
    check_all(vec![("all new", status("n")), ("all taken", status("o")), ("all known", status("s"))]);
}

/// An object as it is created, and as an update of itself, by a schema.
fn laid(make: impl Fn(usize) -> (Value, Value) + 'static) -> Work {
    Box::new(move |count| {
        let (property, value) = make(count);
        let schema = Schema::compile(&json!({ "type": "object", "properties": { "p": property } }));
        let laid = Rc::new((schema, json!({ "p": value })));
        let call = |of: fn(&Schema, &Value)| -> Box<dyn FnOnce()> {
            let laid = laid.clone();
            Box::new(move || of(&laid.0, &laid.1))
        };
        vec![
            call(|schema, object| drop(schema.validate(object))),
            call(|schema, object| drop(schema.validate_update(object, object))),
            call(|schema, object| drop(schema.validate_lists(object))),
            call(|schema, object| drop(schema.validate_embedded(object))),
            call(|schema, object| drop(schema.coerce_embedded(&mut object.clone(), MalformedFields::Drop))),
        ]
    })
}

#[test]
fn a_schema_and_an_object_cost_their_sum_and_not_their_product() {
    let items = |item: Value| json!({ "type": "array", "items": item });
    check_all(vec![
        (
            "an enum",
            laid(move |n| (items(json!({ "type": "string", "enum": names(n, "a") })), names(n, "a"))),
        ),
        (
            "an enum of others",
            laid(move |n| (items(json!({ "type": "string", "enum": names(n, "a") })), names(n, "b"))),
        ),
        (
            "properties of empty items",
            laid(move |n| {
                (
                    items(
                        json!({ "type": "object", "properties": members(n, |_| json!({ "type": "string" })) }),
                    ),
                    list(n, |_| json!({})),
                )
            }),
        ),
        (
            "required of empty items",
            laid(move |n| {
                (items(json!({ "type": "object", "required": names(n, "m") })), list(n, |_| json!({})))
            }),
        ),
        (
            "required again and again",
            laid(move |n| {
                (
                    items(json!({ "type": "object", "required": list(n, |_| json!("a")) })),
                    list(n, |_| json!({ "a": 1 })),
                )
            }),
        ),
        (
            "keys of empty items",
            laid(|n| {
                let list_of = json!({ "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": names(n, "k"),
                "items": { "type": "object" } });
                (list_of, list(n, |_| json!({})))
            }),
        ),
        ("a set", laid(|n| (json!({ "type": "array", "x-kubernetes-list-type": "set" }), names(n, "a")))),
        (
            "embedded objects",
            laid(move |n| {
                (
                    items(json!({ "type": "object", "x-kubernetes-embedded-resource": true })),
                    list(n, |i| json!({ "metadata": { "x": i } })),
                )
            }),
        ),
    ]);
}

#[test]
fn branches_times_items_have_an_end() {
    let schema = Schema::compile(&json!({ "type": "array", "items": {
        "anyOf": list(500, |i| json!({ "required": [format!("m{i}")] })) } }));
    let items = list(500, |_| json!({}));
    let check = |visits: u32| {
        let (mut found, left) = (Vec::new(), Cell::new(visits));
        let cost = steps::counted(|| {
            found = validate::check_default(schema.root(), &items, &Path::root("s"), &left);
        });
        let has_ended =
            found.iter().any(|error| error.to_string().contains("takes more than 16777216 checks"));
        (has_ended, cost < 4 * u64::from(visits))
    };
    assert_eq!(check(20_000), (true, true));
    assert_eq!(check(VISITS_MAX), (false, true));
}

#[test]
fn faults_at_long_paths_are_as_many_as_are_told() {
    let name = "n".repeat(100_000);
    let path = Path::root(&name);
    let errors: Vec<FieldError> = (0..3).map(|index| FieldError::required(&path.index(index), "")).collect();
    assert_eq!(field::aggregate(&errors).matches("Required").count(), 3);
    let deep = |schema: Value| {
        with_schema(
            json!({ "type": "object", "properties": { name.clone(): { "type": "object", "properties": schema } } }),
        )
    };
    let bytes = |crd: Value| -> usize {
        check::validate_create(&crd).iter().map(|error| error.to_string().len()).sum()
    };
    // Neither a type missing a thousand times nor a wrong default does it.
    assert!(bytes(deep(members(1_000, |_| json!({})))) < 4 << 20);
    assert!(bytes(deep(members(1_000, |_| json!({ "type": "integer", "default": "x" })))) < 4 << 20);
    let refused =
        check::validate_create(&deep(members(1_000, |_| json!({ "type": "string", "default": "x" }))));
    assert!(refused.iter().any(|error| error.to_string().contains("must have shorter names around it")));
}
