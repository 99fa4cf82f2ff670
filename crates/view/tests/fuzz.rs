//! Every view of an object withstands any bytes that decode as one, and says what serde_json says of them.

use std::fmt::Write;
use std::sync::Arc;

use forebay_apimachinery::{FieldPath, Key, Revision};
use forebay_fuzz::{Corpus, gist, run};
use forebay_object::{Form, Interner, Layout, Object, Scope};
use forebay_view::{Handle, Scalar, TypeMeta};
use serde_json::Value;

const WORDS: &[&str] = &[
    "{}",
    "[]",
    "null",
    "\\\"",
    "\\\\",
    "1e5",
    "-0",
    "18446744073709551616",
    ",",
    ":",
    "\"a\":1,",
    "\"\\u0061\":2,",
    "\"a\":{\"b\":[3]},",
    "\"kind\":\"Other\",",
    "\"uid\":\"x\",",
    "\"labels\":{\"a\":\"b\"},",
    "\"generation\":7,",
    "\"finalizers\":[\"a\"],",
    "\\ud800",
    "\\ud83d\\ude00",
    "é",
    "true",
];

/// Paths that are asked for besides those of the tree.
const PATHS: [&str; 8] = [
    "kind",
    "apiVersion",
    "metadata.name",
    "metadata.resourceVersion",
    "spec.a",
    "spec.a[0]",
    "spec.a.b[0]",
    "x",
];

/// Paths of a tree that are asked for.
const LEAVES_MAX: usize = 40;

#[test]
fn fuzz_views() {
    let inputs: &[&[u8]] = &[
        br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","uid":"u","generation":1,"labels":{"x.y/z":"w"}},"spec":{"a":[1,{"b":"c"}],"d":true},"x":null}"#,
        br#"{"apiVersion":"g/v1","kind":"Foo","metadata":{"name":"a","uid":"u"},"spec":{"a":1,"a":{"b":[2.5]},"\u0064":"\u00e9"}}"#,
    ];
    run("views", &Corpus { inputs, words: WORDS, ..Corpus::default() }, |input| {
        [Form::Typed, Form::Whole].map(|form| look(form, input))
    });
}

/// Looks at the object in each way; returns what makes one input unlike another.
fn look(form: Form, input: &[u8]) -> Option<(Result<usize, String>, Result<usize, String>)> {
    let layout = Layout { prefix_len: 1, scope: Scope::Cluster, form, fields: vec![] };
    let revision = Revision::from_log(42);
    let object = Object::decode(&layout, Key::new("/a"), revision, input, &mut Interner::default()).ok()?;
    let handle: Handle<Value> = Handle::new(Arc::new(object), Arc::new(TypeMeta::new("Pod", "v1")));
    let metadata = handle.metadata();
    let fields = PATHS.map(|path| handle.field(path).map(|found| found.is_some()));
    let typed = handle.typed();
    if let Ok(tree) = typed {
        assert_eq!(
            serde_json::from_slice::<Value>(&handle.to_json().expect("in memory")).ok().as_ref(),
            Some(tree)
        );
        assert!(fields.iter().all(Result::is_ok), "{fields:?}");
        for path in leaves(tree).into_iter().chain(PATHS.map(String::from)) {
            let Ok(path) = path.parse::<FieldPath>() else { continue };
            assert_eq!(
                handle.field_at(&path).expect("it is JSON").map(tree_of),
                scalar_at(tree, &path),
                "{path}"
            );
        }
        if let Ok(metadata) = &metadata {
            assert_eq!(metadata.uid, tree["metadata"]["uid"].as_str().unwrap_or_default());
            assert_eq!(metadata.generation, tree["metadata"]["generation"].as_i64().unwrap_or_default());
            assert_eq!(metadata.resource_version, "42");
        }
    }
    let found = fields.iter().filter(|found| matches!(found, Ok(true))).count();
    let metadata = metadata.map(|metadata| metadata.labels.len() + metadata.finalizers.len());
    Some((
        typed.map(|_| found).map_err(|error| gist(error.cause)),
        metadata.map_err(|error| gist(error.cause)),
    ))
}

/// Paths to what is neither an object nor an array, as many as are asked for.
fn leaves(tree: &Value) -> Vec<String> {
    let mut open = vec![(String::new(), tree)];
    let mut leaves = Vec::new();
    while let Some((path, value)) = open.pop() {
        match value {
            _ if leaves.len() == LEAVES_MAX => break,
            Value::Object(members) => open.extend(members.iter().map(|(name, value)| {
                let name = name.replace('\\', r"\\").replace('\'', r"\'");
                (format!("{path}['{name}']"), value)
            })),
            Value::Array(items) => open.extend(items.iter().enumerate().map(|(index, value)| {
                let mut path = path.clone();
                write!(path, "[{index}]").expect("a String takes every write");
                (path, value)
            })),
            _ => leaves.push(path),
        }
    }
    leaves
}

fn scalar_at(tree: &Value, path: &FieldPath) -> Option<Value> {
    use forebay_view::PathStep::{Element, Elements, Member};
    let at = path.steps().iter().try_fold(tree, |at, step| match step {
        Member(name) => at.as_object()?.get(name),
        Element(index) => at.as_array()?.get(*index),
        Elements => None,
    });
    at.filter(|value| !matches!(value, Value::Null | Value::Object(_) | Value::Array(_))).cloned()
}

fn tree_of(scalar: Scalar<'_>) -> Value {
    match scalar {
        Scalar::Text(text) => Value::String(text.into_owned()),
        Scalar::Number(number) => Value::Number(number),
        Scalar::Bool(value) => Value::Bool(value),
    }
}
