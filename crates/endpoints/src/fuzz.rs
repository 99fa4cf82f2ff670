//! Every parser of the edge withstands any input, and what it read it can say again.

use forebay_apimachinery::options::Query;
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Lease, json};
use forebay_fuzz::{Corpus, gist, run};
use forebay_schema::builtin::{TypeId, codec, protobuf, table};
use forebay_yaml as yaml;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;

use crate::impersonate;
use crate::request_info::RequestInfo;

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

#[test]
fn fuzz_json_as_yaml() {
    let inputs: &[&[u8]] = &[
        br##"{"a":"yes","b":"1.0","c":"- x","d":"multi\nline\n","e":" pad ","f":"~","g":[[],{},[{"h":null}]],"2":"0x1","":"#"}"##,
    ];
    let words = &[
        "\"on\"",
        "\"null\"",
        "\"1e3\"",
        "\\n",
        "\\t",
        ": ",
        "\"2026-11-21\"",
        "\\u2028",
        "\"%\"",
        "\"!x\"",
        "\"&a\"",
    ];
    run("json as yaml", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let value: Value = serde_json::from_slice(input).map_err(gist)?;
        let Value::Object(_) = value else { return Err("no object".to_owned()) };
        let said = yaml::from_json(input).map_err(gist)?;
        let again = yaml::to_json(&said, &Lease::of_one_tree())
            .unwrap_or_else(|error| panic!("{}: {error}", text(&said)));
        let again: Value = serde_json::from_slice(&again.text).expect("JSON");
        assert_eq!(again, value, "{}", text(&said));
        // Indented and not, it is the same.
        let indented = forebay_pieces::indent(value.to_string().as_bytes());
        assert_eq!(serde_json::from_slice::<Value>(&indented).map_err(gist), Ok(value));
        Ok(said.len().ilog2())
    });
}

/// What is stored of an object of the type that `value` says it is.
fn stored(mut value: Value) -> Result<(TypeId, Value, Vec<u8>), String> {
    let api_version = value["apiVersion"].as_str().ok_or("no version")?.to_owned();
    let (group, version) = split_api_version(&api_version);
    let kind = table().kind(group, version, value["kind"].as_str().ok_or("no kind")?).ok_or("unknown")?;
    codec::normalize(kind.ty, &mut value).map_err(gist)?;
    let mut stored = Vec::new();
    codec::encode(kind.ty, &value, &mut stored).map_err(gist)?;
    Ok((kind.ty, value, stored))
}

/// An object that is sent as JSON, as YAML, as JSON that is called YAML and as protobuf is one object, or is
/// refused.
#[test]
fn fuzz_forms_of_one_object() {
    let inputs: &[&[u8]] = &[
        br##"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","labels":{"x":"yes","2":"010"},"annotations":{"a":"- x\n: #","b":"~"}},"spec":{"containers":[{"name":"a","image":"b","ports":[{"containerPort":80}],"resources":{"limits":{"cpu":"1500m","memory":"1e3"}}}],"terminationGracePeriodSeconds":30,"hostNetwork":true}}"##,
        br#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1_000","t":"2026-11-25","e":"","u":"\u00e9\n"},"binaryData":{"b":"AAEC"},"immutable":false}"#,
        br#"{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","creationTimestamp":null},"spec":{"ports":[{"port":80,"targetPort":"x"},{"port":443,"targetPort":8443}]}}"#,
        br#"{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a"},"rules":[{"verbs":["*"],"resources":[]}]}"#,
    ];
    let words = &[
        "null",
        "true",
        "1e3",
        "0x1",
        "\"on\"",
        "\"1:30\"",
        "\"\\u2028\"",
        "[]",
        "{}",
        "\"=\"",
        "\"<<\"",
        "1.0",
        "-0",
        "\t",
    ];
    run("forms of one object", &Corpus { inputs, words, one_in: 2, ..Corpus::default() }, |input| {
        let parse = |json: &[u8]| json::parse(json, &Lease::of_one_tree()).map_err(gist);
        let read = parse(input)?;
        if !read.duplicates.is_empty() {
            return Err("said twice".to_owned());
        }
        let (ty, value, want) = stored(read.value.clone())?;
        let as_yaml = |yaml: &[u8]| {
            let json = yaml::to_json(yaml, &Lease::of_one_tree()).map_err(gist)?;
            parse(&json.text).and_then(|read| stored(read.value)).map(|(_, _, stored)| stored)
        };
        // What Go's readers of JSON take, not all of it is JSON to others.
        let plain = read.value.to_string();
        let said = yaml::from_json(plain.as_bytes()).map_err(gist)?;
        assert_eq!(as_yaml(&said).map(|got| text(&got)), Ok(text(&want)), "{}", text(&said));
        let called = as_yaml(plain.as_bytes());
        if let Ok(got) = &called {
            assert_eq!(text(got), text(&want), "JSON that is called YAML: {plain}");
        }
        let mut message = Vec::new();
        protobuf::encode(ty, &value, &mut message).map_err(gist)?;
        let mut decoded = protobuf::decode(ty, &message, &Lease::of_one_tree()).map_err(gist)?;
        codec::normalize(ty, &mut decoded).map_err(gist)?;
        let mut got = Vec::new();
        codec::encode(ty, &decoded, &mut got).map_err(gist)?;
        assert_eq!(text(&got), text(&want), "as a message: {plain}");
        Ok::<_, String>((called.is_ok(), want.len().ilog2()))
    });
}

#[test]
fn fuzz_paths() {
    let inputs: &[&[u8]] = &[
        b"/api/v1/namespaces/default/pods/a/status?watch=true",
        b"/apis/apps/v1/deployments",
        b"/api/v1/watch/namespaces/default/pods/a",
        b"/apis/a.b/v1/namespaces/x%2Fy/cs//",
        b"/api/v1/proxy/nodes/a/b/c",
        b"/healthz/etcd?verbose",
    ];
    let words = &[
        "/",
        "//",
        "..",
        "%2e",
        "%2F",
        "%",
        "namespaces",
        "watch",
        "status",
        "finalize",
        "?",
        "fieldSelector=metadata.name%3Da",
    ];
    run("paths", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let input = text(input);
        let (path, query) = input.split_once('?').unwrap_or((&input, ""));
        [Method::GET, Method::POST, Method::DELETE].map(|method| {
            let info = RequestInfo::parse(&method, path, &Query::parse(query)).map_err(gist)?;
            assert!(info.is_resource || info.resource.is_empty());
            Ok::<_, String>((
                info.verb,
                info.is_resource,
                info.is_malformed,
                info.path_form,
                info.name.is_empty(),
            ))
        })
    });
}

/// Whoever says in a header that somebody else asks is never taken for who asks.
#[test]
fn fuzz_impersonation() {
    let inputs: &[&[u8]] = &[
        "Impersonate-User: jürgen\nImpersonate-Group: a\nImpersonate-Group: b\n".as_bytes(),
        b"Impersonate-User: a\nImpersonate-Uid: 1\nImpersonate-Extra-scopes%2fa: b\nAccept: */*\n",
        b"Impersonate-Group: a\nAccept: */*\n",
    ];
    let words =
        &["Impersonate-", "Impersonate-User: ", "impersonate-uid: ", "é", "\u{fffd}", ": ", "%c3", "\n"];
    run("impersonation", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let mut headers = HeaderMap::new();
        for line in input.split(|byte| *byte == b'\n') {
            let (name, value) = line.split_at(memchr::memmem::find(line, b": ").unwrap_or(line.len()));
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_bytes(value.strip_prefix(b": ").unwrap_or(value));
            if let (Ok(name), Ok(value)) = (name, value) {
                headers.append(name, value);
            }
        }
        let is_asked = headers.keys().any(|name| name.as_str().starts_with("impersonate-"));
        let user = headers.get("impersonate-user").map(|user| String::from_utf8(user.as_bytes().to_vec()));
        match impersonate::wanted(&headers) {
            Ok(None) => assert!(!is_asked, "it would be made as who asks: {headers:?}"),
            Ok(Some(wanted)) => assert_eq!(user.and_then(Result::ok).as_deref(), Some(&*wanted.user)),
            Err(failure) => {
                assert!(is_asked, "{headers:?}");
                return Err(gist(&failure.status.message));
            }
        }
        Ok::<_, String>((is_asked, headers.len()))
    });
}
