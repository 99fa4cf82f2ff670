//! What upstream's own tests ask of a CRD's schema, asked here: the same errors.
//!
//! In: calls, recorded while the tests of upstream's package run. Out: the differences that have no reason.
//! Never: upstream's words here.

use forebay_golden::Recorded;
use serde_json::{Value, json};

use super::leniency::Leniency;
use super::schema::{self, Around};
use crate::field::Path;
use crate::props::Props;
use crate::spec::Spec;
use crate::validations::Compiling;
use crate::validations::upstream_tests::{said, texts};

const SCHEMAS: Recorded<'_> = Recorded {
    module: "k8s.io/apiextensions-apiserver",
    package: "pkg/apis/apiextensions/validation",
    file: "validation.go",
    renamed: &[("func validateCustomResourceDefinitionValidation(", "func validateSchema(")],
    recorder: include_str!("../../../golden/go/definitions.go"),
    host: "tools/peers/kubernetes-1.36",
};

fn ours(call: &Value) -> Vec<String> {
    let flag = |name: &str| call[name] == true;
    let mut leniency = Leniency::of_create();
    leniency.require_valid_type = flag("validType");
    leniency.require_structural = flag("structural");
    leniency.require_pruned_defaults = flag("pruned");
    leniency.require_atomic_set = flag("atomicSet");
    leniency.require_list_map_keys = flag("listKeys");
    let rules = call["rules"].as_array().into_iter().flatten().map(|rule| json!({ "rule": rule }));
    let messages =
        call["messages"].as_array().into_iter().flatten().map(|text| json!({ "messageExpression": text }));
    let stored = json!({ "x-kubernetes-validations": rules.chain(messages).collect::<Vec<_>>() });
    leniency.stored.add(Props::of(&stored));
    let crd = json!({ "spec": { "versions": [{ "name": "v1", "schema": { "openAPIV3Schema": call["schema"] } }] } });
    let spec = Spec::of(&crd);
    if flag("unchanged") {
        leniency.stored.compare(&spec, &spec);
    }
    let path = call["path"].as_str().expect("a path");
    let compiling = Compiling::new();
    let around =
        Around { has_status: flag("status"), name: "v1", compiling: &compiling, leniency: &leniency };
    said(schema::validate(spec.top, around, &Path::root(path)).into_vec().iter())
}

fn without<'t>(texts: &'t [String], others: &[String]) -> Vec<&'t String> {
    texts.iter().filter(|text| !others.contains(text)).collect()
}

/// Why an answer may be another than upstream's, if it may.
fn reason(call: &Value, theirs: &[String]) -> Option<&'static str> {
    let says = |what: &str| theirs.iter().any(|text| text.contains(what));
    if call["defaults"] != true && says("default: Forbidden: must not be set") {
        return Some("no defaults, as before 1.16");
    }
    if call["schema"].to_string().contains("test()") || says("undefined field 'namespace'") {
        return Some("an environment of the test's own");
    }
    None
}

#[test]
fn schemas_are_refused_as_upstream_refuses_them() {
    let Some(calls) = forebay_golden::recorded(&SCHEMAS) else { return };
    let mut differences = Vec::new();
    for call in &calls {
        let (ours, theirs) = (ours(call), texts(&call["errors"]));
        if ours != theirs && reason(call, &theirs).is_none() {
            let (ours, theirs) = (without(&ours, &theirs), without(&theirs, &ours));
            differences.push(format!("{}\n  ours: {ours:#?}\n  theirs: {theirs:#?}", call["schema"]));
        }
    }
    println!("{} of {} calls as upstream", calls.len() - differences.len(), calls.len());
    assert!(calls.len() > 200, "{}", calls.len());
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
