//! Every parser of the vocabulary withstands any input, and what it read it can say again.

use std::fmt::{Debug, Display};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use forebay_apimachinery::accept::{ContentType, parse_accept};
use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::options::{
    CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, Query, TableOptions, UpdateOptions,
};
use forebay_apimachinery::selector::{FieldSelector, LabelSelector};
use forebay_apimachinery::{Lease, Revision, Status, json};
use forebay_fuzz::{Corpus, gist, paid, peak_of, run};
use serde_json::Value;

const JSON_WORDS: &[&str] = &[
    "{}",
    "[]",
    "null",
    "true",
    "\"",
    "\"a\":",
    "1e5",
    "-0",
    "\\u0000",
    "\\ud800",
    "é",
    "{\"a\":1,\"a\":2}",
];

fn text(input: &[u8]) -> String {
    String::from_utf8_lossy(input).into_owned()
}

/// What was read says itself as a text that is read as the same; which marks that text has.
fn says_itself<T: Display + PartialEq + Debug, E: Display>(
    input: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<String, String> {
    let read = parse(input).map_err(gist)?;
    let said = read.to_string();
    match parse(&said) {
        Ok(again) => assert_eq!(again, read, "{said:?}"),
        Err(error) => panic!("{said:?}: {error}"),
    }
    let mut marks: Vec<char> = said.chars().filter(|c| !c.is_alphanumeric()).collect();
    marks.dedup();
    marks.truncate(6);
    Ok(marks.into_iter().collect())
}

#[test]
fn fuzz_json() {
    let inputs: &[&[u8]] = &[
        br#"{"apiVersion":"v1","metadata":{"name":"a","labels":{"x":"y"}},"spec":[1,2.5,-3,1e9,true,null,"\u00e9\n"]}"#,
        b"[[[[]]]]",
        b" \"text\" ",
        b"-9223372036854775808",
        b"92236553636854775807",
    ];
    run("json", &Corpus { inputs, words: JSON_WORDS, ..Corpus::default() }, |input| {
        let lease = Lease::of_one_tree();
        let (read, peak) = peak_of(|| json::parse(input, &lease));
        paid(input.len(), peak, lease.peak(), 16 << 10);
        let read = read.map_err(gist)?;
        let said = read.value.to_string();
        let again =
            json::parse(said.as_bytes(), &Lease::of_server()).expect("what serde_json writes is JSON");
        assert_eq!(again.value, read.value, "{said}");
        assert!(again.duplicates.is_empty(), "{said}");
        assert_eq!(serde_json::from_str::<Value>(&said).ok(), Some(read.value.clone()), "{said}");
        // Where Go's rules and serde_json's agree that it is JSON, they read the same sort of thing.
        if let Ok(theirs) = serde_json::from_slice::<Value>(input) {
            let sort =
                |value: &Value| (value.is_object(), value.is_array(), value.is_string(), value.is_number());
            assert_eq!(sort(&theirs), sort(&read.value));
        }
        Ok::<_, String>((read.duplicates.len().min(3), said.len().ilog2()))
    });
}

#[test]
fn fuzz_label_selector() {
    let inputs: &[&[u8]] =
        &[b"a=b,c!=d", b"x in (a,b),!y,z notin (c)", b"example.com/name==v", b"n>1,m<2", b"", b"a in ()"];
    let words = &["in", "notin", "!=", "==", "=", "(", ")", ",", "!", " ", "exists", "example.com/"];
    run("label selector", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let input = text(input);
        if let Ok(selector) = LabelSelector::parse(&input) {
            let matched = selector.matches(|label| (label == "a").then_some("b"));
            assert!(!selector.is_everything() || matched);
        }
        says_itself(&input, LabelSelector::parse)
    });
}

#[test]
fn fuzz_field_selector() {
    let inputs: &[&[u8]] =
        &[b"metadata.name=a", b"spec.nodeName!=b,status.phase==Running", b"a=b\\,c\\=d\\\\", b""];
    let words = &["=", "!=", "==", ",", "\\,", "\\\\", "\\=", "metadata.namespace"];
    run("field selector", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let read = FieldSelector::parse(&text(input)).map_err(gist)?;
        let said = read.to_string();
        let again = FieldSelector::parse(&said).unwrap_or_else(|error| panic!("{said:?}: {error}"));
        // As upstream, they are sorted by how they were written.
        let sorted = |selector: &FieldSelector| {
            let mut all: Vec<String> = selector.requirements().iter().map(ToString::to_string).collect();
            all.sort();
            all
        };
        assert_eq!(sorted(&again), sorted(&read), "{said:?}");
        Ok::<_, String>((read.requirements().len(), said.contains('\\'), said.contains("!=")))
    });
}

#[test]
fn fuzz_continue_token() {
    let check = |encoded: &str| {
        let read = ContinueToken::decode(encoded).map_err(gist)?;
        // `..` and a NUL is a name like any other: a list goes on behind the name before it.
        let parts = read.start.split('/');
        assert!(parts.clone().all(|part| part != ".." && part != "."), "{read:?}");
        assert_eq!(ContinueToken::decode(&read.encode()), Ok(read.clone()));
        Ok::<_, String>((read.at == ContinueAt::Latest, parts.count().min(4)))
    };
    let tokens = [
        ContinueToken::after("default/a", ContinueAt::Latest).encode(),
        ContinueToken::after("b", ContinueAt::Revision(Revision::from_log(77))).encode(),
    ];
    let inputs: Vec<&[u8]> = tokens.iter().map(|token| token.as_bytes()).collect();
    run("continue token", &Corpus { inputs: &inputs, ..Corpus::default() }, |input| check(&text(input)));
    // The same behind the base64.
    let inputs: &[&[u8]] = &[
        br#"{"v":"meta.k8s.io/v1","rv":5,"start":"ns/a\u0000"}"#,
        br#"{"v":"meta.k8s.io/v1","rv":-1,"start":"/a/b\u0000"}"#,
    ];
    let words = &["..", "../", "/", "//", "./", "\\u0000", "meta.k8s.io/v1", "rv", "start", "-1"];
    let inside = Corpus { inputs, words, ..Corpus::default() };
    run("continue token, inside", &inside, |input| check(&URL_SAFE_NO_PAD.encode(input)));
}

#[test]
fn fuzz_query() {
    let inputs: &[&[u8]] = &[
        b"watch=true&resourceVersion=5&allowWatchBookmarks=1&timeoutSeconds=30&sendInitialEvents=true",
        b"limit=500&continue=abc&labelSelector=a%3Db&fieldSelector=metadata.name%3Dx&resourceVersionMatch=Exact",
        b"dryRun=All&fieldManager=kubectl&fieldValidation=Strict&force=true",
        b"gracePeriodSeconds=0&propagationPolicy=Foreground&orphanDependents=false&includeObject=Object",
    ];
    let words = &["&", "=", "%", "%3D", "%zz", "+", ";", "true", "limit=", "watch=", "dryRun=", "force="];
    run("query", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let query = Query::parse(&text(input));
        let said = |result: Result<(), Status>| result.map_err(|status| gist(status.message));
        let patch = |form| said(PatchOptions::from_query(&query, form).map(drop));
        GetOptions::from_query(&query);
        [
            said(ListOptions::from_query(&query).map(drop)),
            said(CreateOptions::from_query(&query).map(drop)),
            said(UpdateOptions::from_query(&query).map(drop)),
            said(DeleteOptions::from_query(&query).map(drop)),
            said(TableOptions::from_query(&query).map(drop)),
            patch(ContentType::Json),
        ]
    });
}

#[test]
fn fuzz_delete_options() {
    let inputs: &[&[u8]] = &[
        br#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5,"preconditions":{"uid":"u","resourceVersion":"7"},"propagationPolicy":"Orphan","dryRun":["All"]}"#,
    ];
    let words = &["null", "\"All\"", "orphanDependents", "-1", "\"Background\"", "{}", "[]"];
    run("delete options", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let body = json::parse(input, &Lease::of_server()).map_err(gist)?.value;
        DeleteOptions::from_body(&body).map(|options| options.dry_run).map_err(|status| gist(status.message))
    });
}

#[test]
fn fuzz_media_types() {
    let inputs: &[&[u8]] = &[
        b"application/json;as=Table;v=v1;g=meta.k8s.io,application/json;q=0.5,*/*;q=0.1",
        b"application/vnd.kubernetes.protobuf;stream=watch;charset=\"utf-8\"",
        b"text/*, application/yaml",
    ];
    let words = &[";", ",", "q=0", "q=1.001", "\"", "*/*", "/", "as=Table", "application/json"];
    run("media types", &Corpus { inputs, words, ..Corpus::default() }, |input| {
        let input = text(input);
        (parse_accept(&input).len().min(8), ContentType::parse(&input))
    });
}
