//! Definitions, the objects of what they define, and JSONPath withstand any input, and what was made
//! canonical stays as it is.

use forebay_apimachinery::{Lease, json, steps};
use forebay_crd::{Definition, JsonPath, check, defaults};
use forebay_fuzz::{Corpus, charged, gist, run, stepped};
use forebay_schema::builtin::{TypeId, codec, table};
use serde_json::Value;

const POD: &[u8] = br#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","creationTimestamp":null,"labels":{"a":"b"},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"100m"}},"ports":[{"containerPort":80}],"livenessProbe":{"httpGet":{"port":"http"}}}],"nodeSelector":{},"tolerations":[{"operator":"Exists"}]}}"#;
const CRD: &[u8] = br#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.e.com"},"spec":{"group":"e.com","scope":"Namespaced","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true,"selectableFields":[{"jsonPath":".spec.a"}],"additionalPrinterColumns":[{"name":"A","type":"string","jsonPath":".spec.a"}],"subresources":{"status":{},"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["a"],"properties":{"a":{"type":"string","pattern":"^a+$","maxLength":5,"default":"aa"},"n":{"type":"integer","minimum":0,"maximum":9,"multipleOf":1},"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}},"m":{"type":"object","additionalProperties":{"x-kubernetes-int-or-string":true}},"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},"o":{"type":"string","format":"date-time","nullable":true,"enum":["x",null]}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}"#;

const JSON_WORDS: &[&str] =
    &["{}", "[]", "null", "true", "\"\"", "-1", "1.5", "\"a\"", "{\"a\":", "[{", "\"1k\"", "\"0.1Ei\""];
const SCHEMA_WORDS: &[&str] = &[
    "\"object\"",
    "\"array\"",
    "\"integer\"",
    "\"anyOf\":[{}]",
    "\"not\":{}",
    "\"allOf\"",
    "\"$ref\"",
    "\"default\":{}",
    "\"x-kubernetes-preserve-unknown-fields\":true",
    "\"uniqueItems\":true",
    "\"pattern\":\"(\"",
    "\"format\":\"ipv4\"",
    "null",
    "[]",
    "{}",
    "\"set\"",
    "\"nullable\":true",
    "\"additionalProperties\":false",
    "\"x-kubernetes-validations\":[{\"rule\":\"self.a == oldSelf.a || self.l.all(x, has(x.k))\",\"optionalOldSelf\":true}]",
    "\"x-kubernetes-validations\":[{\"rule\":\"self == self\",\"messageExpression\":\"string(self)\",\"fieldPath\":\".a\"}]",
];

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// What `work` gives, its steps told to the law.
fn counting<T>(work: impl FnOnce() -> T) -> T {
    let mut given = None;
    stepped(steps::counted(|| given = Some(work())));
    given.expect("it was done")
}

/// The built-in type that a value says it is.
fn type_of(value: &Value) -> Option<TypeId> {
    let (group, version) =
        value["apiVersion"].as_str()?.rsplit_once('/').unwrap_or(("", value["apiVersion"].as_str()?));
    table().kind(group, version, value["kind"].as_str()?).map(|kind| kind.ty)
}

#[test]
fn fuzz_definitions() {
    let corpus = Corpus { inputs: &[CRD], words: SCHEMA_WORDS, one_in: 4, ..Corpus::default() };
    run("definitions", &corpus, |input| {
        counting(|| {
            let mut crd = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
            let ty = type_of(&crd).ok_or("no kind")?;
            codec::normalize(ty, &mut crd).map_err(gist)?;
            defaults::apply(&mut crd);
            check::warnings(&crd, None);
            let errors = check::validate_create(&crd);
            let errors: Vec<String> = errors.iter().take(3).map(|error| gist(error.message())).collect();
            if errors.is_empty() {
                // What is accepted can be served.
                let definition = Definition::compile(&crd);
                for version in &definition.versions {
                    let mut object = serde_json::json!({"metadata": {"name": "a"}, "spec": {"a": "b", "l": [{}], "m": {"x": 1}}});
                    if version.normalize(&mut object, &Lease::of_server()).is_ok() {
                        version.validate(&object, Some(&object), &[]);
                    }
                }
            }
            Ok::<_, String>(errors)
        })
    });
}

#[test]
fn fuzz_custom_objects() {
    let mut crd = json::parse(CRD, &Lease::of_server()).expect("JSON").value;
    defaults::apply(&mut crd);
    assert_eq!(check::validate_create(&crd), []);
    let definition = Definition::compile(&crd);
    let version = definition.storage_version();
    let inputs: &[&[u8]] = &[
        br#"{"metadata":{"name":"a"},"spec":{"a":"aaa","n":3,"l":[{"k":"x"},{"k":"y"}],"m":{"p":1,"q":"2%"},"e":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"n"}},"o":null},"status":{"any":[1]}}"#,
    ];
    run("custom objects", &Corpus { inputs, words: JSON_WORDS, ..Corpus::default() }, |input| {
        counting(|| {
            let mut object = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
            let lease = Lease::of_one_tree();
            let unknown = version.normalize(&mut object, &lease).map_err(gist)?;
            charged(lease.peak());
            let canonical = object.clone();
            assert_eq!(version.normalize(&mut object, &Lease::of_server()), Ok(Vec::new()), "{canonical}");
            assert_eq!(object, canonical);
            let errors = version.validate(&object, None, &[]).causes;
            // A change that changes nothing adds no violation (ratcheting).
            assert!(
                version.validate(&object, Some(&object), &[]).causes.len() <= errors.len(),
                "{canonical}"
            );
            let errors: Vec<String> = errors.into_iter().take(3).map(|error| gist(error.message)).collect();
            Ok::<_, String>((unknown.len().min(3), errors))
        })
    });
}

#[test]
fn fuzz_json_path() {
    let object = json::parse(POD, &Lease::of_server()).expect("JSON").value;
    let inputs: &[&[u8]] =
        &[b".spec.containers[0].name", b".a['b']..c", b".l[?(@.k==\"x\")].v", b".l[1:3:1]", b"[*].a.*"];
    let words = &["[", "]", "..", "*", "?(", "@", "==", "<=", "'", "\"", "-1", ":", ",", ")", "\\"];
    run("JSONPath", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let path = JsonPath::parse(&text(input)).map_err(gist)?;
        Ok::<_, String>((path.find(&object).len().min(20), path.members().is_some()))
    });
}
