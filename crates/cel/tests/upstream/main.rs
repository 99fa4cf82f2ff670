//! What this crate makes of an expression, held against upstream's own environment: errors of checking word
//! by word, estimated costs, results, errors, and what was paid.
//!
//! In: the program `go/` beside this crate, built from Go's module cache; the expressions of upstream's own
//! tests; every overload with arguments of every kind. Out: the differences that are not allowed. Without Go
//! a skip that is loud and, under `CI=true`, a failure.

mod difference;
mod generated;
mod overloads;
mod patterns;
mod program;
mod schemas;
mod times;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use difference::Difference;

/// Cases of one kind: how many of each file, and what is different.
fn compare(cases: &[Json]) -> (BTreeMap<String, [usize; 2]>, Vec<Difference>) {
    let answers = program::answers("evaluate", cases).expect("the program answers");
    assert_eq!(answers.len(), cases.len());
    let mut files: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut differences = Vec::new();
    for (case, theirs) in cases.iter().zip(&answers) {
        let found = difference::of(case, theirs);
        let file = files.entry(case["file"].as_str().unwrap_or("").to_owned()).or_default();
        file[1] += 1;
        file[0] += usize::from(found.is_none());
        differences.extend(found);
    }
    (files, differences)
}

/// Fails with every difference that has no reason.
fn check(cases: &[Json]) -> BTreeMap<String, [usize; 2]> {
    let (files, differences) = compare(cases);
    for (file, [same, all]) in &files {
        println!("{file}: {same} of {all} as upstream");
    }
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for reason in differences.iter().filter_map(Difference::reason) {
        *reasons.entry(reason).or_default() += 1;
    }
    for (reason, count) in reasons {
        println!("  {count} for: {reason}");
    }
    let unexplained: Vec<_> =
        differences.iter().filter(|it| it.reason().is_none()).map(ToString::to_string).collect();
    assert!(unexplained.is_empty(), "{} differences:\n{}", unexplained.len(), unexplained.join("\n"));
    files
}

#[test]
fn functions_are_those_that_upstream_declares() {
    let Some(()) = program::or_skip() else { return };
    let written = program::output(&["declarations"], "").expect("it prints");
    assert_eq!(written, include_str!("../../data/functions.txt"), "write data/functions.txt again");
}

#[test]
fn conformance_cases_come_out_as_upstream_has_them() {
    let Some(()) = program::or_skip() else { return };
    let files = check(&program::cases("cel.dev/expr", "tests/simple/testdata"));
    assert!(files.len() >= 20, "{files:?}");
}

#[test]
fn cases_of_the_libraries_come_out_as_upstream_has_them() {
    let Some(()) = program::or_skip() else { return };
    let mut cases = program::cases("k8s.io/apiserver", "pkg/cel/library");
    for of_cel_go in ["ext", "interpreter", "checker"] {
        cases.extend(program::cases("github.com/google/cel-go", of_cel_go));
    }
    assert!(cases.len() > 1000, "{}", cases.len());
    check(&cases);
}

#[test]
fn literals_of_mutating_policies_are_those_of_upstream() {
    let Some(()) = program::or_skip() else { return };
    let expressions = [
        "Object{}",
        "Object{spec: Object.spec{replicas: 3}}",
        "Object{spec: Object.spec{replicas: 3}} == Object{spec: Object.spec{replicas: 3}}",
        "Object{spec: Object.spec{replicas: 3}} == Object{spec: Object.spec{replicas: 4}}",
        "Object{a: 1} == Object{b: 1}",
        "Object{a: 1} == Object.spec{a: 1}",
        "Object{a: [1, 2], b: {'c': Object.b{}}}",
        "type(Object{}) == Object",
        "Object{?a: optional.of(1), ?b: optional.none()} == Object{a: 1}",
        "Object{?a: 1}",
        "Object{a: 1}.a",
        "Object{a: 1 / 0}",
        "has(Object{}.a)",
        "Objects{}",
        "Object.metadata{labels: Object.metadata.labels{x: 'y'}}",
        "optional.ofNonZeroValue(Object{}).hasValue()",
        "JSONPatch{op: 'add', path: '/a', value: 1}",
        "JSONPatch{op: 'add', path: '/a', value: 1}.op",
        "JSONPatch{op: 'add', path: '/a', value: 1}.value + 1",
        "JSONPatch{op: 'add'}.from",
        "JSONPatch{op: 'add'} == JSONPatch{op: 'add', path: ''}",
        "has(JSONPatch{op: 'add'}.path) || has(JSONPatch{op: 'add'}.value)",
        "has(JSONPatch{op: 'add', value: 0}.value)",
        "JSONPatch{op: 1}",
        "[JSONPatch{op: 'test', path: '/spec/replicas', value: self.a}, JSONPatch{op: 'remove', path: '/b'}]",
        "JSONPatch{op: dyn('add')}.op",
        "type(JSONPatch{}) == JSONPatch",
    ];
    let case = |expr: &&str| json!({"file": "mutations", "expr": expr, "mutations": true, "self": {"a": 1}});
    check(&expressions.iter().map(case).collect::<Vec<_>>());
    let without = [
        "Object{}",
        "JSONPatch{op: 'add'}",
        "int{}",
        "bool{value: true}",
        "list{}",
        "kubernetes.Quantity{}",
        "type(quantity('1')) == kubernetes.Quantity",
        "type(ip('10.0.0.1')) == net.IP",
        "self{a: 1}",
    ];
    let of_protobuf = [
        "google.protobuf.Int32Value{value: 2147483648}",
        "google.protobuf.UInt32Value{value: 4294967296u}",
        "google.protobuf.Int32Value{value: 'a'}",
        "google.protobuf.Int32Value{other: 1}",
        "google.protobuf.Int32Value{value: 1} + 1",
        "[google.protobuf.Int32Value{value: 1}, 2]",
        "google.protobuf.Timestamp{seconds: 5, nanos: 6}",
        "google.protobuf.Duration{seconds: 5, nanos: 6}",
        "google.protobuf.Duration{}",
        "google.protobuf.Struct{fields: {'a': 9007199254740993, 'b': b'x', 'c': duration('1s'), 'd': [1u, 2]}}",
        "google.protobuf.Value{null_value: null}",
        "google.protobuf.Value{number_value: 1.0} == 1",
        ".google.protobuf.StringValue{value: 'x'}",
        "google.protobuf.Int32Value{?value: optional.none()}",
        "google.protobuf.StringValue{value: 'x'}.size()",
        "google.protobuf.Nothing{}",
    ];
    let case = |expr: &&str| json!({"file": "messages", "expr": expr});
    check(&without.iter().chain(&of_protobuf).map(case).collect::<Vec<_>>());
}

#[test]
fn every_overload_does_what_upstreams_does_with_arguments_of_every_kind() {
    let Some(()) = program::or_skip() else { return };
    let cases = overloads::cases();
    assert!(cases.len() > 5000, "{}", cases.len());
    check(&cases);
}

#[test]
fn patterns_and_numbers_are_read_as_go_reads_them() {
    let Some(()) = program::or_skip() else { return };
    check(&patterns::cases());
}

#[test]
fn older_environments_have_what_they_had() {
    let Some(()) = program::or_skip() else { return };
    let minors = [28, 29, 30, 31, 32, 33, 34];
    let expressions = [
        "optional.of(1).orValue(2)",
        "[1, 2].sortBy(x, -x)",
        "{'a': 1}.transformMap(k, v, v + 1)",
        "semver('1.2.3').major()",
        "ip('10.0.0.1').family()",
        "'%d'.format([1])",
        "format.uri().validate('a')",
        "sets.contains([1], [1])",
        "lists.range(3)",
        "1 < 2.0",
        "[1, 'a']",
        "duration('x')",
    ];
    let case = |minor: &u32, expr: &&str| json!({"file": minor.to_string(), "minor": minor, "expr": expr});
    let cases: Vec<_> =
        minors.iter().flat_map(|minor| expressions.iter().map(move |expr| case(minor, expr))).collect();
    check(&cases);
}

#[test]
fn texts_are_what_they_are_to_upstream() {
    let Some(()) = program::or_skip() else { return };
    let expressions = [
        "url('https://u:p@kubernetes.io:80/docs/home?k1=a&k2=b&k2=c#anchor').getQuery()",
        "url('https://kubernetes.io/docs#a/b?c=d').getEscapedPath()",
        "url('https://kubernetes.io/docs#a/b?c=d').getQuery()",
        "isURL('https://kubernetes.io/docs#%zz')",
        "isURL('https://kubernetes.io#a')",
        "string(timestamp('2011-08-18T19:03:37.01+01:00'))",
        "string(timestamp('2011-08-18T19:03:37-00:30') + duration('1h'))",
        "string(timestamp('2011-08-18T19:03:37-00:00'))",
        "timestamp('2011-08-18T19:03:37.01+01:00').getHours()",
        "timestamp('2011-08-18T19:03:37+01:00') == timestamp('2011-08-18T18:03:37Z')",
        "[duration('1s')].filter(d, d > duration('1m')).sum()",
        "[1.5].filter(d, d > 2.0).sum()",
        "[1u].filter(d, d > 2u).sum()",
        "[1].filter(d, d > 2).sum()",
    ];
    let case = |expr: &&str| json!({"file": "texts", "expr": expr});
    check(&expressions.iter().map(case).collect::<Vec<_>>());
}

#[test]
fn what_is_within_each_other_ends_where_it_does_upstream() {
    let Some(()) = program::or_skip() else { return };
    let chain = |count: usize, with: &str| vec!["1"; count].join(with);
    let expressions = [
        chain(251, " + "),
        chain(252, " + "),
        chain(251, " == "),
        chain(252, " < "),
        format!("self{}", ".a".repeat(250)),
        format!("self{}", ".a".repeat(251)),
        format!("self{}", "[0]".repeat(251)),
        format!("'a'{}", ".trim()".repeat(250)),
        format!("'a'{}", ".trim()".repeat(251)),
        format!("{} == 1", chain(250, " + ")),
        format!("{} == 1", chain(251, " + ")),
        format!("[{}]", chain(252, " - ")),
        format!("[1].all(x, {} > x)", chain(249, " + ")),
        format!("[1].all(x, {} > x)", chain(250, " + ")),
        vec!["true"; 300].join(" && "),
        format!("true ? {} : 0", chain(250, " + ")),
        format!("true ? {} : 0", chain(251, " + ")),
    ];
    let case = |expr: &String| json!({"file": "within", "expr": expr});
    check(&expressions.iter().map(case).collect::<Vec<_>>());
}

#[test]
fn values_of_schemas_are_what_they_are_to_upstream() {
    let Some(()) = program::or_skip() else { return };
    check(&schemas::cases());
}

#[test]
fn rules_of_schemas_are_checked_and_estimated_as_upstream_does() {
    let Some(()) = program::or_skip() else { return };
    let module = "k8s.io/apiextensions-apiserver";
    let cases = program::cases(module, "pkg/apiserver/schema/cel");
    assert!(cases.len() > 800, "{}", cases.len());
    check(&cases);
    let file = "test/integration/ratcheting_test_cases/crds/standard-install.yaml";
    let rules = program::rules(module, file);
    assert!(rules.len() > 100, "{}", rules.len());
    check(&rules);
}

#[test]
fn expressions_from_a_seed_come_out_as_upstream_has_them() {
    let Some(()) = program::or_skip() else { return };
    check(&generated::cases(61, 4000));
}
