//! What a patch may be, and what it cannot do.

use forebay_api::PatchKind;
use forebay_apimachinery::Reason;
use forebay_apimachinery::options::PatchOptions;
use serde_json::json;

use crate::World;

#[tokio::test]
async fn what_a_patch_cannot_do_is_told_in_upstreams_words() {
    let world = World::new().await;
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "1" } });
    world.create("@v1/configmaps/default", map).await.expect("creates");
    let generic = "the server rejected our request due to an error in our request";
    let invalid =
        |shown: &str, why: &str| format!(r#" "" is invalid: patch: Invalid value: {shown:?}: {why}"#);
    let (json, merge, strategic) = (PatchKind::Json, PatchKind::Merge, PatchKind::StrategicMerge);
    let cases: [(PatchKind, &str, Reason, String); 34] = [
        (json, r#"[{"op":"test","path":"/data/a","value":"2"}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"remove","path":"/data/b"}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"add","path":"/b/c","value":1}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"replace","path":"/b/c","value":1}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"test","path":"/b/c","value":null}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"move","path":"/data/a"}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"frob","path":"/data/a"}]"#, Reason::Invalid, generic.into()),
        (json, r#"[{"op":"add","value":1}]"#, Reason::Invalid, generic.into()),
        (json, "[null]", Reason::Invalid, generic.into()),
        (json, "[1]", Reason::BadRequest, "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp".into()),
        (json, r#"{"a":1}"#, Reason::BadRequest, "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp".into()),
        (json, r#"[{"op":1,"path":"/a"}]"#, Reason::BadRequest, "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string".into()),
        (json, "not json", Reason::BadRequest, "error decoding patch: invalid character 'o' in literal null (expecting 'u')".into()),
        (merge, "[1]", Reason::BadRequest, "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}".into()),
        (merge, "null", Reason::BadRequest, "Invalid JSON Patch".into()),
        (merge, "", Reason::BadRequest, "error decoding patch: unexpected end of JSON input".into()),
        (strategic, "not json", Reason::BadRequest, "invalid character 'o' in literal null (expecting 'u')".into()),
        (strategic, r#""a""#, Reason::BadRequest, "json: cannot unmarshal string into Go value of type map[string]interface {}".into()),
        (strategic, r#"{"data":{"new":1}}"#, Reason::Invalid, invalid("map[data:map[new:1]]", "cannot convert int64 to string")),
        (strategic, r#"{"data":{"new":true}}"#, Reason::Invalid, invalid("map[data:map[new:true]]", "unrecognized type: string")),
        (strategic, r#"{"data":{"new":{"a":1}}}"#, Reason::Invalid, invalid("map[data:map[new:map[a:1]]]", "unrecognized type: string")),
        (strategic, r#"{"data":"x"}"#, Reason::Invalid, invalid("map[data:x]", "cannot restore map from string")),
        (strategic, r#"{"data":["x"]}"#, Reason::Invalid, invalid("map[data:[x]]", "cannot restore map from slice")),
        (strategic, r#"{"immutable":"x"}"#, Reason::Invalid, invalid("map[immutable:x]", "unrecognized type: bool")),
        (strategic, r#"{"metadata":3}"#, Reason::Invalid, invalid("map[metadata:3]", "cannot restore struct from: int64")),
        (strategic, r#"{"metadata":{"finalizers":"x"}}"#, Reason::Invalid, invalid("map[metadata:map[finalizers:x]]", "cannot restore slice from string")),
        (strategic, r#"{"metadata":{"finalizers":[1]}}"#, Reason::Invalid, invalid("map[metadata:map[finalizers:[1]]]", "cannot convert int64 to string")),
        (strategic, r#"{"metadata":{"deletionGracePeriodSeconds":"1"}}"#, Reason::Invalid, invalid("map[metadata:map[deletionGracePeriodSeconds:1]]", "unrecognized type: int64")),
        (strategic, r#"{"metadata":{"creationTimestamp":1}}"#, Reason::Invalid, invalid("map[metadata:map[creationTimestamp:1]]", "json: cannot unmarshal number into Go value of type string")),
        (strategic, r#"{"binaryData":{"x":1}}"#, Reason::Invalid, invalid("map[binaryData:map[x:1]]", "cannot restore slice from int64")),
        (strategic, r#"{"binaryData":{"x":"!"}}"#, Reason::Invalid, invalid("map[binaryData:map[x:!]]", "error decoding from json: illegal base64 data at input byte 0")),
        (strategic, r#"{"kind":1}"#, Reason::Invalid, invalid("map[kind:1]", "cannot convert int64 to string")),
        (strategic, r#"{"data":{"$patch":"frob"}}"#, Reason::Unknown, "unknown patch type: frob in map: map[$patch:frob]".into()),
        (merge, r#"{"metadata":{"resourceVersion":"x"}}"#, Reason::Unknown, r#"strconv.ParseUint: parsing "x": invalid syntax"#.into()),
    ];
    for (kind, body, reason, message) in cases {
        let target = world.target("@v1/configmaps/default/a");
        let told = world.registry.patch(&target, kind, body.as_bytes(), &PatchOptions::default()).await;
        let status = told.err().unwrap_or_else(|| panic!("{body} was taken"));
        assert_eq!((status.reason, &*status.message), (reason, &*message), "{body}");
        assert_eq!(status.causes.is_empty(), !message.contains("is invalid"), "{body}");
    }
    let merged =
        world.patch("@v1/configmaps/default/a", merge, json!({ "data": { "new": 1 } })).await.unwrap_err();
    assert_eq!(merged.reason, Reason::Invalid);
    assert_eq!((merged.causes.len(), &*merged.causes[0].field), (1, "patch"));
    let message = &merged.causes[0].message;
    assert!(
        message.starts_with(r#"Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\",\"new\":1},"#),
        "{message}"
    );
    let why = "json: cannot unmarshal number into Go struct field ConfigMap.data of type string";
    assert!(message.ends_with(why), "{message}");
}

#[tokio::test]
async fn a_patch_that_moves_long_arrays_again_and_again_is_refused() {
    let world = World::new().await;
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" } });
    world.create("@v1/configmaps/default", map).await.expect("creates");
    let first = json!({ "op": "add", "path": "/list", "value": vec![0; 20_000] });
    let front = json!({ "op": "add", "path": "/list/0", "value": 0 });
    for (times, is_taken) in [(1_000, true), (9_999, false)] {
        let patch: Vec<_> = std::iter::once(first.clone()).chain(vec![front.clone(); times]).collect();
        let taken = world.patch("@v1/configmaps/default/a", PatchKind::Json, json!(patch)).await;
        assert_eq!(taken.as_ref().map_err(|status| status.reason).is_ok(), is_taken, "{taken:?}");
    }
}

#[tokio::test]
async fn a_patch_takes_what_upstreams_libraries_take() {
    let world = World::new().await;
    let map =
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a" }, "data": { "a": "1" } });
    let made = world.create("@v1/configmaps/default", map).await.expect("creates");
    for (kind, body) in [
        (PatchKind::Json, json!(null)),
        (PatchKind::Json, json!([{ "op": "test", "path": "/data/b" }])),
        (PatchKind::StrategicMerge, json!(null)),
        (PatchKind::StrategicMerge, json!({ "kind": "Secret", "apiVersion": "v2" })),
    ] {
        let taken = world.patch("@v1/configmaps/default/a", kind, body.clone()).await;
        assert_eq!(taken.unwrap_or_else(|status| panic!("{body}: {}", status.message)), made, "{body}");
    }
    let replace = json!([{ "op": "replace", "path": "/data/b", "value": "2" }]);
    let replaced = world.patch("@v1/configmaps/default/a", PatchKind::Json, replace).await.expect("adds");
    assert_eq!(replaced["data"], json!({ "a": "1", "b": "2" }));
}
