//! Objects looked at in each way, as servers write them and as they might.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::seal::{RecentBlocks, Sealer};
use forebay_object::{Form, Interner, Layout, Object, Scope, Text};
use k8s_openapi::api::core::v1::Pod;
use kube_core::metadata::PartialObjectMeta;
use kube_core::{DynamicObject, ResourceExt};
use serde_json::{Value, json};

use crate::limits::DEPTH_MAX;
use crate::{DecodeError, FieldError, Handle, Metadata, Scalar, TypeMeta};

const POD: &str = concat!(
    r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","generation":3,"#,
    r#""creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"a\"b","a.b/c":"d"},"annotations":{"x":"y"},"#,
    r#""ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"v","controller":true},{"apiVersion":"v1","kind":"Node","name":"n","uid":"w"}],"finalizers":["f"]},"#,
    r#""spec":{"nodeName":"n1","hostNetwork":true,"priority":-5,"containers":[{"name":"c0","image":"i\u00e9"},{"name":"c1","image":"i1","ports":[{"containerPort":80}]}]},"status":{"phase":"Running"}}"#,
);

const FOO: &str = r#"{"apiVersion":"g.io/v1","kind":"Foo","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"size":1.5,"deep":[[1],[2,3]]}}"#;

fn object(form: Form, value: &str) -> Arc<Object> {
    let layout =
        Layout { prefix_len: "/registry/pods/".len(), scope: Scope::Namespaced, form, fields: vec![] };
    let key = Key::new("/registry/pods/default/web");
    let interner = &mut Interner::default();
    let object = Object::decode(&layout, key, Revision::from_log(42), value.as_bytes(), interner);
    Arc::new(object.expect(value))
}

fn pod<K>(value: &str) -> Handle<K> {
    Handle::new(object(Form::Typed, value), Arc::new(TypeMeta::new("Pod", "v1")))
}

fn foo<K>(value: &str) -> Handle<K> {
    Handle::new(object(Form::Whole, value), Arc::new(TypeMeta::new("Foo", "g.io/v1")))
}

/// The value with its `resourceVersion`.
fn whole(value: &str) -> Value {
    let mut whole: Value = serde_json::from_str(value).expect("JSON");
    whole["metadata"]["resourceVersion"] = "42".into();
    whole
}

#[test]
fn an_object_reads_as_whatever_type_is_asked_for() {
    let handle = pod::<Pod>(POD);
    let typed = handle.typed().expect("a pod");
    assert_eq!(*typed, serde_json::from_value(whole(POD)).expect("a pod"));
    assert_eq!((typed.name_any(), typed.resource_version()), ("web".into(), Some("42".into())));

    let dynamic = handle.cast::<DynamicObject>();
    let dynamic = dynamic.typed().expect("an object");
    let types = dynamic.types.as_ref().expect("it has a type");
    assert_eq!((&*types.kind, &*types.api_version), ("Pod", "v1"));
    assert_eq!(dynamic.data["spec"]["nodeName"], "n1");

    let partial = handle.cast::<PartialObjectMeta<Pod>>();
    assert_eq!(partial.typed().expect("metadata").metadata, typed.metadata);
    assert_eq!(*handle.cast::<Value>().typed().expect("JSON"), whole(POD));
    assert_eq!(*foo::<Value>(FOO).typed().expect("JSON"), whole(FOO));
}

#[derive(serde::Deserialize)]
struct Foo {
    kind: String,
    metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    spec: FooSpec,
}

#[derive(serde::Deserialize)]
struct FooSpec {
    size: f64,
}

#[test]
fn a_checked_handle_is_its_object() {
    let checked = foo::<Foo>(FOO).check().expect("a Foo");
    let clone = checked.clone();
    assert_eq!((&*checked.kind, checked.spec.size, checked.metadata.uid.as_deref()), ("Foo", 1.5, Some("u")));
    assert_eq!(clone.handle().name(), "web");
    // Both are the one that the handle decoded.
    let kept = checked.handle().to_arc().expect("a Foo");
    assert!(Arc::ptr_eq(&kept, &clone.into_arc()));
}

#[test]
fn an_object_is_decoded_once_and_goes_with_the_last_handle() {
    let handle = pod::<Pod>(POD);
    let clone = handle.clone();
    assert!(!clone.is_decoded(), "nobody asked");
    let first: *const Pod = clone.typed().expect("a pod");
    assert!(handle.is_decoded());
    assert!(std::ptr::eq(first, handle.typed().expect("a pod")));
    let kept = handle.to_arc().expect("a pod");
    let decoded = Arc::downgrade(&kept);
    drop((kept, handle));
    assert!(decoded.upgrade().is_some(), "a clone has it");
    drop(clone);
    assert!(decoded.upgrade().is_none());
}

#[test]
fn what_does_not_read_as_its_type_is_an_error_that_names_it() {
    let odd = POD.replace(r#""priority":-5"#, r#""priority":"high""#);
    let handle = pod::<Pod>(&odd);
    let error = handle.typed().expect_err("no number");
    assert_eq!(
        error.to_string(),
        "Pod default/web does not read as k8s_openapi::v1_36::api::core::v1::pod::Pod"
    );
    assert!(error.cause.to_string().contains("invalid type: string"), "{}", error.cause);
    let again = handle.check().map(|_| ()).expect_err("the same");
    assert!(Arc::ptr_eq(&error.cause, &again.cause), "it was not tried twice");
    // The rest of it can be looked at.
    assert_eq!(handle.metadata().map(|metadata| &*metadata.uid).ok(), Some("u"));
    assert_eq!(handle.field("spec.priority"), Ok(Some(Scalar::Text("high".into()))));
    let deep = POD.replace(r#""phase":"Running""#, &format!(r#""x":{}{}"#, "[".repeat(900), "]".repeat(900)));
    assert!(pod::<Value>(&deep).typed().is_err(), "deeper than serde_json goes");
    // Another kind is none, as k8s-openapi knows which it reads.
    assert!(pod::<k8s_openapi::api::core::v1::Node>(POD).typed().is_err());
}

#[test]
fn metadata_is_read_alone() {
    let metadata = pod::<Pod>(POD);
    let Metadata { name, namespace, uid, resource_version, generation, finalizers, .. } =
        metadata.metadata().expect("metadata");
    assert_eq!((&**name, &**namespace, &**uid, &**resource_version), ("web", "default", "u", "42"));
    assert_eq!((*generation, &finalizers[..]), (3, &["f".to_owned()][..]));
    let metadata = metadata.metadata().expect("metadata");
    assert_eq!(metadata.controller().map(|owner| &*owner.name), Some("web-1"));
    assert_eq!(metadata.creation_timestamp.as_deref(), Some("2026-01-02T03:04:05Z"));
    assert_eq!((&*metadata.labels["app"], &*metadata.annotations["x"]), ("a\"b", "y"));
    assert!(!metadata.is_deleting());
    // What is behind it need not be JSON.
    let broken = POD.replace(r#""spec":{"#, r#""spec":{5"#);
    let broken = pod::<Pod>(&broken);
    assert_eq!(broken.metadata().ok(), Some(metadata));
    assert!(broken.typed().is_err());
}

#[test]
fn of_two_members_in_metadata_the_last_one_counts_and_null_is_nothing() {
    let value = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","uid":"a","uid":"b","generation":null,"labels":null,"annotations":{"x":"1","x":"2"},"finalizers":["f"],"finalizers":null,"ownerReferences":[{"name":"a","name":"b","controller":null}],"deletionTimestamp":"2026-01-02T03:04:05Z","managedFields":[{"fieldsV1":{"f:x":{}}}]}}"#;
    let handle = pod::<Pod>(value);
    let metadata = handle.metadata().expect("metadata");
    assert_eq!((&*metadata.uid, metadata.generation, metadata.labels.len()), ("b", 0, 0));
    assert_eq!((&*metadata.annotations["x"], metadata.finalizers.len()), ("2", 0));
    assert_eq!((&*metadata.owner_references[0].name, metadata.owner_references[0].controller), ("b", None));
    assert!(metadata.is_deleting() && metadata.controller().is_none());
    for odd in [r#""generation":"x""#, r#""finalizers":{}"#, r#""annotations":{"a":5}"#] {
        let value = format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web",{odd}}}}}"#);
        let error: DecodeError = pod::<Pod>(&value).metadata().expect_err(odd).clone();
        assert!(error.to_string().ends_with("does not read as forebay_view::metadata::Metadata"), "{error}");
    }
}

#[test]
fn what_the_object_knows_is_not_read_again() {
    // The body is garbled behind what was scanned.
    let handle = pod::<Pod>(&POD.replace(r#"{"phase":"Running"}"#, "{5}"));
    assert_eq!(
        (handle.namespace(), handle.name(), handle.revision()),
        ("default", "web", Revision::from_log(42))
    );
    assert_eq!((handle.kind(), handle.api_version()), ("Pod", "v1"));
    assert_eq!((handle.label("app"), handle.label("x")), (Some("a\"b"), None));
    assert_eq!(handle.labels().collect::<Vec<_>>(), [("app", "a\"b"), ("a.b/c", "d")]);
    assert_eq!(format!("{handle:?}"), "Pod default/web @42");
}

#[test]
fn a_field_is_found_by_its_path() {
    let rows = [
        ("kind", Some("Pod")),
        ("apiVersion", Some("v1")),
        ("metadata.name", Some("web")),
        ("metadata.resourceVersion", Some("42")),
        ("metadata.labels['a.b/c']", Some("d")),
        ("metadata.labels.app", Some("a\"b")),
        ("spec.nodeName", Some("n1")),
        (".spec.hostNetwork", Some("true")),
        ("spec.priority", Some("-5")),
        ("spec.containers[0].image", Some("ié")),
        ("spec.containers[1].image", Some("i1")),
        ("spec.containers[1].ports[0].containerPort", Some("80")),
        ("status.phase", Some("Running")),
        // Nothing, or no scalar.
        ("spec", None),
        ("spec.containers", None),
        ("spec.containers[2].image", None),
        ("spec.containers.image", None),
        ("spec.containers[0][0]", None),
        ("spec[0]", None),
        ("[0]", None),
        ("spec.nodeName.x", None),
        ("spec.nodename", None),
        ("kind.x", None),
        ("nodeName", None),
    ];
    let handle = pod::<Pod>(POD);
    for (path, want) in rows {
        let found = handle.field(path).expect(path).map(|scalar| scalar.to_string());
        assert_eq!(found.as_deref(), want, "{path}");
    }
    let foo = foo::<Foo>(FOO);
    assert_eq!(foo.field("kind"), Ok(Some(Scalar::Text("Foo".into()))));
    assert_eq!(foo.field("spec.size").map(|size| size.and_then(|size| size.as_f64())), Ok(Some(1.5)));
    assert_eq!(foo.field("spec.deep[1][0]").map(|it| it.and_then(|it| it.as_i64())), Ok(Some(2)));
}

#[test]
fn the_last_of_two_members_is_the_field() {
    let spec = |spec: &str| {
        format!(r#"{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"web","uid":"u"}},{spec}}}"#)
    };
    let rows = [
        (r#""spec":{"a":1,"a":2}"#, "spec.a", Some("2")),
        (r#""spec":{"a":1},"spec":{"a":2}"#, "spec.a", Some("2")),
        (r#""spec":{"a":1},"spec":{"b":2}"#, "spec.a", None),
        (r#""spec":{"a":1},"spec":null"#, "spec.a", None),
        (r#""spec":{"a":1,"\u0061":"\u0062"}"#, "spec.a", Some("b")),
        (r#""spec":{"a":1,"a":null}"#, "spec.a", None),
        (r#""spec":{"a":1,"a":{}}"#, "spec.a", None),
        (r#""spec":{"a":[1,2],"a":[3]}"#, "spec.a[1]", None),
        (r#""spec":{"a":[1,2],"a":[3,4]}"#, "spec.a[1]", Some("4")),
        (r#""kind":"Other""#, "kind", Some("Other")),
        (r#""kind":null"#, "kind", None),
    ];
    for (text, path, want) in rows {
        let handle = pod::<Value>(&spec(text));
        let found = handle.field(path).expect(text).map(|scalar| scalar.to_string());
        assert_eq!(found.as_deref(), want, "{text}");
        let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
        let of_tree = handle.typed().expect(text).pointer(&pointer).cloned().unwrap_or_default();
        assert_eq!(scalar_of(&of_tree), want.map(String::from), "{text}");
    }
}

fn scalar_of(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[test]
fn what_is_no_path_or_too_deep_is_an_error() {
    let handle = pod::<Pod>(POD);
    assert!(matches!(handle.field("spec..x"), Err(FieldError::Path(_))));
    assert_eq!(handle.field("spec.containers[*].image"), Err(FieldError::Many));
    for path in ["spec.nodeName", "x", "x[0][1]", "x[0]"] {
        let nested = |depth: usize| {
            let nested =
                format!(r#""x":{}{},"spec":{{"nodeName":"n2"}}"#, "[".repeat(depth), "]".repeat(depth));
            pod::<Pod>(&POD.replace(r#""status":{"phase":"Running"}"#, &nested)).field(path).map(|_| ())
        };
        assert_eq!(nested(DEPTH_MAX), Ok(()), "{path}");
        assert!(matches!(nested(DEPTH_MAX + 1), Err(FieldError::Garbled(_))), "{path}");
        assert!(matches!(nested(1_000_000), Err(FieldError::Garbled(_))), "{path}");
    }
    for garbled in
        [r#"{"a"5}"#, r#"{"a":"\x"}"#, r#"{"a":1e999}"#, r#"{"a":"\ud8"}"#, r#"{"\x":1}"#, r#"{"a":-}"#]
    {
        let handle = pod::<Pod>(&POD.replace(r#"{"phase":"Running"}"#, garbled));
        assert!(matches!(handle.field("status.a"), Err(FieldError::Garbled(_))), "{garbled}");
        assert!(handle.cast::<Value>().typed().is_err(), "{garbled}");
    }
}

#[test]
fn an_object_is_written_whole() {
    assert_eq!(
        serde_json::from_slice::<Value>(&pod::<Pod>(POD).to_json().expect("in memory")).ok(),
        Some(whole(POD))
    );
    assert_eq!(
        serde_json::from_slice::<Value>(&foo::<Foo>(FOO).to_json().expect("in memory")).ok(),
        Some(whole(FOO))
    );
    let head = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u","resourceVersion":"42","#;
    assert!(pod::<Pod>(POD).to_json().expect("in memory").starts_with(head.as_bytes()));
    // A server may call its kinds what it likes.
    let odd = Handle::<Value>::new(object(Form::Typed, POD), Arc::new(TypeMeta::new("a\"\\\n", "é/\u{1}")));
    let odd: Value = serde_json::from_slice(&odd.to_json().expect("in memory")).expect("JSON");
    assert_eq!((&odd["kind"], &odd["apiVersion"]), (&json!("a\"\\\n"), &json!("é/\u{1}")));
}

#[test]
fn an_object_at_rest_says_the_same() {
    let plain: Vec<_> =
        (0..9).map(|node| object(Form::Typed, &POD.replace("n1", &format!("n{node}")))).collect();
    let sealed = Sealer::new(Arc::new(RecentBlocks::default())).seal(&plain);
    for (plain, sealed) in plain.iter().zip(&sealed) {
        let handle =
            |object: &Arc<Object>| Handle::<Pod>::new(object.clone(), Arc::new(TypeMeta::new("Pod", "v1")));
        let (plain, sealed) = (handle(plain), handle(sealed));
        assert!(matches!(sealed.body(), Ok(Text::Inflated(_))), "it is at rest");
        assert_eq!(sealed.to_json().expect("in memory"), plain.to_json().expect("in memory"));
        assert_eq!(sealed.typed().ok(), plain.typed().ok());
        assert_eq!(sealed.metadata().ok(), plain.metadata().ok());
        for path in ["spec.nodeName", "spec.containers[0].image", "kind"] {
            assert_eq!(sealed.field(path), plain.field(path));
        }
    }
}
