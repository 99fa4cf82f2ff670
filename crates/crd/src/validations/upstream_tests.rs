//! What upstream's own tests ask of its validator, asked here: the same errors, and the same of the budget
//! left.
//!
//! In: calls, recorded while the tests of upstream's package run. Out: the differences that have no reason.
//! Never: upstream's words here.

use forebay_golden::Recorded;
use serde_json::Value;

use super::compile::Compiling;
use super::validator::Validator;
use crate::field::{FieldError, Path};
use crate::props::Props;
use crate::schema::Schema;

const OBJECTS: Recorded<'_> = Recorded {
    module: "k8s.io/apiextensions-apiserver",
    package: "pkg/apiserver/schema/cel",
    file: "validation.go",
    renamed: &[
        ("func NewValidator(", "func newValidator("),
        ("func (s *Validator) Validate(", "func (s *Validator) validateAll("),
    ],
    recorder: include_str!("../../../golden/go/rules.go"),
    host: "crates/cel/go",
};

/// Errors as upstream prints them, in any order: members of an object come in any there.
pub(crate) fn said<'e>(errors: impl Iterator<Item = &'e FieldError>) -> Vec<String> {
    let mut texts: Vec<String> =
        errors.map(|error| unnumbered(&format!("{} {error}", error.reason.as_str()))).collect();
    texts.sort();
    texts
}

/// What upstream said.
pub(crate) fn texts(value: &Value) -> Vec<String> {
    let texts = value.as_array().into_iter().flatten();
    let mut texts: Vec<String> = texts.map(|it| unnumbered(it.as_str().expect("a text"))).collect();
    texts.sort();
    texts
}

/// Without the number that upstream puts behind the name of a rule's type, and without what a generated
/// parser says.
fn unnumbered(text: &str) -> String {
    let text = text.split("<input>:").take(if text.contains("Syntax error: ") { 1 } else { usize::MAX });
    let text = text.collect::<Vec<_>>().join("<input>:");
    let mut parts = text.split("selfType");
    let mut out = parts.next().unwrap_or("").to_owned();
    for part in parts {
        out.push_str("selfType");
        out.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    out
}

/// Why an answer may be another than upstream's, if it may.
fn reason(schema: &Value, ours: &[String], theirs: &[String]) -> Option<&'static str> {
    let text = schema.to_string();
    if text.contains(r#""allOf""#) && theirs.iter().any(|text| text.contains("key"))
        || text.contains(r#""allOf":[{"items"#)
    {
        return Some("rules below allOf, which no CRD may have");
    }
    if text.contains(r#""format":"float""#) && theirs.is_empty() {
        return Some("a number of half the width, which JSON does not have");
    }
    let ends_early = text.contains(r#""additionalProperties""#) && text.contains("exists(");
    if ends_early && ours.is_empty() && theirs.is_empty() {
        return Some("members come in any order there, and cost by it");
    }
    None
}

#[test]
fn objects_break_the_rules_that_they_break_upstream() {
    let Some(calls) = forebay_golden::recorded(&OBJECTS) else { return };
    let mut differences = Vec::new();
    for call in &calls {
        let schema = Schema::as_written(&call["schema"]);
        let is_root = call["isRoot"] == true;
        let rules = Validator::of(Props::of(&call["schema"]), schema.root(), is_root, &Compiling::new());
        let old = Some(&call["old"]).filter(|old| !old.is_null());
        let path = call["path"].as_str().expect("a path");
        let path = if path == "<nil>" { Path::NIL } else { Path::root(path) };
        let budget = call["budget"].as_i64().expect("a budget");
        let ratchets = call["ratchets"] == true;
        let (ours, left) = match &rules {
            Some(rules) => {
                let judged = rules.judge(schema.root(), &path, (&call["object"], old), ratchets, budget);
                (said(judged.errors.into_vec().iter()), judged.left)
            }
            None => (Vec::new(), budget),
        };
        let theirs = texts(&call["errors"]);
        let is_same = ours == theirs && Some(left) == call["left"].as_i64();
        if !is_same && reason(&call["schema"], &ours, &theirs).is_none() {
            let object = &call["object"];
            differences.push(format!(
                "{}\n  {object}\n  ours {left}: {ours:#?}\n  theirs {}: {theirs:#?}",
                call["schema"], call["left"]
            ));
        }
    }
    println!("{} of {} calls as upstream", calls.len() - differences.len(), calls.len());
    assert!(calls.len() > 400, "{}", calls.len());
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
