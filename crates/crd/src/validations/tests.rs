//! What a CRD's rules may take, compiled.

use serde_json::{Value, json};

use super::{Compiling, Validator};
use crate::field::Path;
use crate::props::Props;
use crate::schema::Schema;

fn schema(rules: Vec<Value>) -> Value {
    json!({ "type": "object", "properties": { "a": { "type": "object", "properties": { "b": { "type": "string" } } } },
        "x-kubernetes-validations": rules })
}

fn said(schema: &Value, object: &Value) -> Vec<String> {
    let compiled = Schema::as_written(schema);
    let rules = Validator::of(Props::of(schema), compiled.root(), true, &Compiling::new());
    let rules = rules.expect("it has rules");
    let judged = rules.judge(compiled.root(), &Path::NIL, (object, None), true, 10_000_000);
    judged.errors.into_vec().iter().map(ToString::to_string).collect()
}

#[test]
fn what_a_message_says_of_the_value_before_is_about_that_value_where_a_rule_may_do_without() {
    let schema = |message: &str| {
        json!({ "type": "string", "x-kubernetes-validations": [{
            "rule": "!oldSelf.hasValue() || oldSelf.value() == self", "optionalOldSelf": true,
            "messageExpression": message, "message": "fixed",
        }] })
    };
    let said = |message: &str| {
        let schema = schema(message);
        let compiled = Schema::as_written(&schema);
        let rules = Validator::of(Props::of(&schema), compiled.root(), true, &Compiling::new());
        let (old, new) = (json!("a"), json!("b"));
        let rules = rules.expect("it has rules");
        let judged = rules.judge(compiled.root(), &Path::NIL, (&new, Some(&old)), true, 10_000_000);
        judged.errors.into_vec().iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    // It is checked as an optional, and is none.
    assert_eq!(said("'was ' + oldSelf.value()"), ["<nil>: Invalid value: \"b\": fixed"]);
    assert_eq!(said("'was ' + string(dyn(oldSelf))"), ["<nil>: Invalid value: \"b\": was a"]);
}

#[test]
fn rules_that_multiply_are_no_more_than_their_texts_and_some() {
    // Each doubles what is before it.
    let doubling = "self.?a".to_owned() + &".optMap(x, x)".repeat(6) + ".hasValue() || true";
    let object = json!({ "a": { "b": "c" } });
    assert_eq!(said(&schema(vec![json!({ "rule": doubling })]), &object), Vec::<String>::new());
    let found = said(&schema(vec![json!({ "rule": doubling }); 64]), &object);
    assert!(!found.is_empty() && found.len() < 64, "{}", found.len());
    let too_many = "<nil>: Invalid value: \"object\": rule compile error: compilation failed: the rules of the \
                    CustomResourceDefinition are too many, compiled";
    assert!(found.iter().all(|text| text == too_many), "{found:#?}");
}

#[test]
fn many_plain_rules_are_within_what_they_may_take() {
    let rules =
        (0..4000).map(|at| json!({ "rule": format!("self.a.b != 'x{at}' && self.a.b.size() < {at} + 9") }));
    assert_eq!(said(&schema(rules.collect()), &json!({ "a": { "b": "c" } })), Vec::<String>::new());
}

#[test]
fn what_rules_may_cost_is_summed_over_what_there_may_be() {
    let cost = |items_max: Option<u64>, rule: &str| {
        let mut list = json!({ "type": "array", "items": { "type": "integer", "x-kubernetes-validations": [{ "rule": rule }] } });
        if let Some(max) = items_max {
            list["maxItems"] = max.into();
        }
        let schema = json!({ "type": "object", "properties": { "l": list } });
        let compiled = Schema::as_written(&schema);
        let rules = Validator::of(Props::of(&schema), compiled.root(), true, &Compiling::new());
        rules.expect("it has rules").cost_max()
    };
    assert_eq!((cost(Some(10), "self < 5"), cost(Some(1000), "self < 5")), (20, 2000));
    // No more than all evaluations of an object may cost.
    assert_eq!(cost(None, "self < 5 && self > -7 && self != 3 && self != 4 && self != 5"), 10_000_000);
}
