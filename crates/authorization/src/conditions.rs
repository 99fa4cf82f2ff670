//! Conditions by which a webhook is asked or passed over.
//!
//! In: expressions, the spec of a review. Out: whether all hold, or what is wrong with them. Never: more cost
//! than an evaluation may have.
//!
//! Source: apiserver v0.36.3 `pkg/authorization/cel`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use forebay_apimachinery::json::go_quote;
use forebay_cel::limits::PER_CALL_COST_MAX;
use forebay_cel::{Activation, Env, Fields, Program, StructType, Type, Value};
use serde_json::Value as Json;

use crate::limits::CONDITIONS_MAX;
use crate::validation::{invalid, required, told};

/// See the module's doc.
#[derive(Default)]
pub struct MatchConditions(Vec<Condition>);

struct Condition {
    text: Box<str>,
    program: Program,
}

/// What expressions may name: `request`, the spec of a review.
static ENV: LazyLock<Env> = LazyLock::new(|| Env::new(u32::MAX).with("request", spec()));

impl MatchConditions {
    /// - `way`: to where they are, with a dot behind it, or nothing.
    ///
    /// # Errors
    /// What is wrong with each, in upstream's words.
    pub fn of(texts: &[String], way: &str) -> Result<MatchConditions, Vec<String>> {
        if texts.len() > CONDITIONS_MAX {
            let count = texts.len();
            let most = format!("must have at most {CONDITIONS_MAX} items");
            return Err(vec![format!("{way}matchConditions: Too many: {count}: {most}")]);
        }
        let (mut compiled, mut faults, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        for (at, text) in texts.iter().enumerate() {
            let way = format!("{way}matchConditions[{at}].expression");
            if text.trim().is_empty() {
                faults.push(required(&way, ""));
            } else if !seen.insert(text) {
                faults.push(format!("{way}: Duplicate value: {}", go_quote(text)));
            } else {
                match compile(text) {
                    Ok(program) => compiled.push(Condition { text: text.as_str().into(), program }),
                    Err(why) => faults.push(invalid(&way, &go_quote(text), &why)),
                }
            }
        }
        if faults.is_empty() { Ok(MatchConditions(compiled)) } else { Err(faults) }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all hold.
    ///
    /// - `request`: the spec as conditions see it, see [`crate::SubjectReview::seen`].
    ///
    /// # Errors
    /// What could not be evaluated, where none is false before it is known.
    pub fn hold(&self, request: &Json) -> Result<bool, String> {
        let mut errors = Vec::new();
        for condition in &self.0 {
            let slots = [Some(Value::from_tree(request))];
            let with = Activation { variables: &slots, ..Activation::default() };
            match condition.program.eval(with, PER_CALL_COST_MAX).result {
                Ok(Value::Bool(true)) => {}
                Ok(Value::Bool(false)) => return Ok(false),
                Ok(_) => errors.push(format!(
                    "cel evaluation error: expression '{}' eval result type should be bool",
                    condition.text
                )),
                Err(why) => errors.push(format!(
                    "cel evaluation error: expression '{}' resulted in error: {why}",
                    condition.text
                )),
            }
        }
        if errors.is_empty() { Ok(true) } else { Err(told(errors)) }
    }
}

impl std::fmt::Debug for MatchConditions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|condition| &condition.text)).finish()
    }
}

fn compile(text: &str) -> Result<Program, String> {
    let compiled = ENV.compile(text).map_err(|issues| format!("compilation failed: {issues}"))?;
    let output = compiled.output();
    if *output != Type::Bool {
        return Err(format!("must evaluate to bool but got {output}"));
    }
    compiled.program().map_err(|why| format!("program instantiation failed: {why}"))
}

fn fields<const N: usize>(name: &str, fields: [(&str, Type); N]) -> Type {
    let known: BTreeMap<Arc<str>, Type> = fields.into_iter().map(|(name, of)| (name.into(), of)).collect();
    Type::Struct(Arc::new(StructType { name: name.into(), fields: Fields::Known(known) }))
}

fn spec() -> Type {
    let texts = || Type::list(Type::String);
    let requirement = || {
        fields(
            "kubernetes.SelectorRequirement",
            [("key", Type::String), ("operator", Type::String), ("values", texts())],
        )
    };
    let selector = |name: &str| {
        fields(name, [("rawSelector", Type::String), ("requirements", Type::list(requirement()))])
    };
    let resource = fields(
        "kubernetes.ResourceAttributes",
        [
            ("namespace", Type::String),
            ("verb", Type::String),
            ("group", Type::String),
            ("version", Type::String),
            ("resource", Type::String),
            ("subresource", Type::String),
            ("name", Type::String),
            ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
        ],
    );
    let path = fields("kubernetes.NonResourceAttributes", [("path", Type::String), ("verb", Type::String)]);
    fields(
        "kubernetes.SubjectAccessReviewSpec",
        [
            ("resourceAttributes", resource),
            ("nonResourceAttributes", path),
            ("user", Type::String),
            ("groups", texts()),
            ("extra", Type::map(Type::String, texts())),
            ("uid", Type::String),
        ],
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hold(texts: &[&str], request: &Json) -> Result<bool, String> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        MatchConditions::of(&texts, "").expect("conditions").hold(request)
    }

    #[test]
    fn a_webhook_is_asked_where_all_conditions_hold() {
        let request = json!({
            "user": "bob", "groups": ["dev"], "uid": "", "extra": {},
            "resourceAttributes": { "namespace": "n", "verb": "get", "group": "", "version": "v1", "resource": "pods",
                                    "subresource": "", "name": "p" },
        });
        let system = "!('system:serviceaccounts:kube-system' in request.groups)";
        assert_eq!(hold(&[system, "has(request.resourceAttributes)"], &request), Ok(true));
        assert_eq!(hold(&[system, "request.user == 'eve'"], &request), Ok(false));
        let fails = "request.nonResourceAttributes.path == '/'";
        let why = "cel evaluation error: expression 'request.nonResourceAttributes.path == '/'' resulted in error: no such key: \
                   nonResourceAttributes";
        assert_eq!(hold(&[fails], &request), Err(why.to_owned()));
        // One that is false is enough, be it behind one that cannot be evaluated.
        assert_eq!(hold(&[fails, "request.user == 'eve'"], &request), Ok(false));
    }

    #[test]
    fn what_is_no_condition_is_told_with_its_place() {
        let faults = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
            MatchConditions::of(&texts, "authorizers[0].").map(|_| ()).expect_err("refused")
        };
        let all = faults(&[" ", "true", "true", "request.user", "request.nobody == ''"]);
        let at = |at: usize| format!("authorizers[0].matchConditions[{at}].expression: ");
        assert_eq!(all[0], format!("{}Required value", at(0)));
        assert_eq!(all[1], format!("{}Duplicate value: \"true\"", at(2)));
        assert_eq!(
            all[2],
            format!("{}Invalid value: \"request.user\": must evaluate to bool but got string", at(3))
        );
        assert!(
            all[3].contains("compilation failed: ERROR: <input>:1:8: undefined field 'nobody'"),
            "{}",
            all[3]
        );
        let many: Vec<String> = (0..65).map(|at| format!("{at} == 1")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(
            faults(&many),
            ["authorizers[0].matchConditions: Too many: 65: must have at most 64 items"]
        );
    }
}
