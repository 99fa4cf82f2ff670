//! Policies as whoever asks them meets them: what they match, what they decide, what bounds them.
//!
//! In: policies as they are stored, requests. Out: decisions as text. Never: a server.

use std::fmt::Write as _;
use std::sync::Arc;

use forebay_apimachinery::{Caller, GroupVersionKind, GroupVersionResource};
use forebay_cel::authorizer::{Authorizer, Check, CheckDecision, ResourceCheck};
use forebay_policy::limits::{EVALUATION_COST_MAX, WRITE_COST_MAX};
use forebay_policy::{
    AdmissionOperation, Compiler, Declared, Inputs, Made, Matched, Policy, PolicyRequest, RequestedResource,
    Returns, Since, request_json,
};
use serde_json::{Value, json};

struct Nobody;

impl Authorizer for Nobody {
    fn check(&self, _: &Check, _: &str) -> CheckDecision {
        CheckDecision { allowed: false, reason: "".into(), error: None }
    }
}

fn resource(group: &str, version: &str, name: &str, kind: &str) -> RequestedResource {
    RequestedResource {
        resource: GroupVersionResource::new(group, version, name),
        kind: GroupVersionKind::new(group, version, kind),
    }
}

fn policy(spec: Value) -> Policy {
    Policy::read(&json!({ "metadata": { "name": "p" }, "spec": spec })).expect("a policy")
}

/// Asks with `inputs` over `object`.
fn with_inputs<R>(object: &Value, ask: impl FnOnce(&Inputs<'_>) -> R) -> R {
    let own = resource("", "v1", "configmaps", "ConfigMap");
    let (caller, options) = (Caller::anonymous(), Value::Null);
    let request = PolicyRequest {
        operation: AdmissionOperation::Create,
        own: &own,
        equivalents: &[],
        subresource: "",
        name: "n",
        namespace: "ns",
        caller: &caller,
        dry_run: false,
        options: &options,
        object: Some(object),
        old_object: None,
    };
    let tree = request_json(&request, &own.resource, &own.kind);
    ask(&Inputs {
        object: Some(object),
        old_object: None,
        params: None,
        namespace: None,
        request: &tree,
        authorizer: &Nobody,
        request_resource: &ResourceCheck::default(),
    })
}

/// What a policy has against `object`.
fn decided(policy: &Policy, object: &Value, left: &mut u64) -> String {
    let outcome = with_inputs(object, |inputs| policy.validate(inputs, inputs, left, |_| ()));
    let mut text = String::new();
    for decision in &outcome.failed {
        let _ = writeln!(text, "{}: {}", decision.reason.as_str(), decision.message);
    }
    for decision in &outcome.denied {
        let _ = writeln!(text, "denied: {}", decision.message);
    }
    text
}

fn check(spec: Value, object: Value, want: &str) {
    assert_eq!(decided(&policy(spec), &object, &mut { WRITE_COST_MAX }), want);
}

#[test]
fn an_audit_log_is_told_what_annotations_say() {
    let spec = json!({ "validations": [{ "expression": "true" }], "auditAnnotations": [
        { "key": "a", "valueExpression": "' says ' + object.data.k" },
        { "key": "b", "valueExpression": "null" },
        { "key": "c", "valueExpression": "'  '" },
        { "key": "d", "valueExpression": "object.data.none" },
    ] });
    let object = json!({ "data": { "k": "v" } });
    let policy = policy(spec);
    let outcome =
        with_inputs(&object, |inputs| policy.validate(inputs, inputs, &mut { WRITE_COST_MAX }, |_| ()));
    assert_eq!(outcome.noted, [("a".to_owned(), "says v".to_owned())]);
    let denied: Vec<_> = outcome.denied.iter().map(|finding| (finding.at, &*finding.message)).collect();
    assert_eq!(denied.len(), 1, "{denied:?}");
    assert_eq!(denied[0].0, 3);
}

#[test]
fn annotations_know_nothing_of_who_may_what_and_fail_as_upstream_s_do() {
    let spec = |failure: &str| {
        json!({ "failurePolicy": failure, "validations": [{ "expression": "true" }], "auditAnnotations": [
            { "key": "a", "valueExpression": "string(authorizer.path('/a').check('get').allowed())" },
        ] })
    };
    let expression = "string(authorizer.path('/a').check('get').allowed())";
    let why = format!("expression '{expression}' resulted in error: no such attribute(s): authorizer");
    check(spec("Fail"), json!({}), &format!("denied: {why}\n"));
    check(spec("Ignore"), json!({}), "");
}

#[test]
fn what_cannot_be_evaluated_and_does_not_count_is_told_apart() {
    let spec = json!({ "failurePolicy": "Ignore", "validations": [{ "expression": "object.data.none == 'x'" }],
        "matchConditions": [{ "name": "has", "expression": "has(object.data)" }] });
    let (policy, object, mut errors) = (policy(spec), json!({ "data": {} }), None);
    let outcome = with_inputs(&object, |inputs| {
        policy.validate(inputs, inputs, &mut { WRITE_COST_MAX }, |of_conditions| errors = Some(of_conditions))
    });
    assert!(outcome.failed.is_empty() && outcome.ignored.len() == 1, "{outcome:?}");
    assert_eq!(errors, Some(0), "its conditions were looked at");
}

#[test]
fn a_failed_validation_says_its_message_or_what_its_expression_makes() {
    let object = json!({ "data": { "k": "v" } });
    let spec = json!({ "validations": [
        { "expression": "object.data.k == 'v'" },
        { "expression": "object.data.k == 'w'", "message": " say this " },
        { "expression": "false", "messageExpression": "'made of ' + object.data.k", "reason": "Forbidden" },
        { "expression": "false", "messageExpression": "string(object.data.none)", "message": "instead" },
        { "expression": "has(object.none)" },
    ] });
    check(
        spec,
        object,
        "Invalid: say this\nForbidden: made of v\nInvalid: instead\nInvalid: failed expression: has(object.none)\n",
    );
}

#[test]
fn what_does_not_compile_fails_by_the_failure_policy() {
    let spec = |failure: &str| json!({ "failurePolicy": failure, "validations": [{ "expression": "1" }] });
    let why = "Invalid: compilation error: must evaluate to bool but got int\n";
    check(spec("Fail"), json!({}), why);
    check(spec("Ignore"), json!({}), "");
}

#[test]
fn variables_are_made_once_and_only_if_they_are_asked_for() {
    let spec = json!({
        "variables": [
            { "name": "fails", "expression": "object.none" },
            { "name": "size", "expression": "size(object.data)" },
            { "name": "twice", "expression": "variables.size + variables.size" },
        ],
        "validations": [
            { "expression": "variables.twice == 4" },
            { "expression": "variables.fails == 1" },
        ],
    });
    let why = "Invalid: expression 'variables.fails == 1' resulted in error: composited variable \"fails\" fails to \
               evaluate: no such key: none\n";
    check(spec, json!({ "data": { "a": "1", "b": "2" } }), why);
}

#[test]
fn variables_within_each_other_go_as_deep_as_one_expression_may() {
    let chain = |length: usize| {
        let variables = (0..length).map(|at| {
            let expression = if at == 0 { "1".to_owned() } else { format!("variables.v{} + 1", at - 1) };
            json!({ "name": format!("v{at}"), "expression": expression })
        });
        let variables: Vec<Value> = variables.collect();
        let expression = format!("variables.v{} == {length}", length - 1);
        json!({ "variables": variables, "validations": [{ "expression": expression }] })
    };
    check(chain(30), json!({}), "");
    let too_deep = decided(&policy(chain(5000)), &json!({}), &mut { WRITE_COST_MAX });
    assert!(too_deep.contains("it is too deep in others"), "{}", &too_deep[..too_deep.len().min(200)]);
    let itself = json!({
        "variables": [{ "name": "a", "expression": "1" }, { "name": "a", "expression": "variables.a + 1" }],
        "validations": [{ "expression": "variables.a == 2" }],
    });
    let said = decided(&policy(itself), &json!({}), &mut { WRITE_COST_MAX });
    assert!(said.contains("it names itself"), "{said}");
}

#[test]
fn a_write_pays_for_all_policies_out_of_one_budget() {
    let letters: Vec<String> = (0..30).map(|at| at.to_string()).collect();
    let object = json!({ "list": letters });
    let expression = "object.list.all(a, object.list.all(b, object.list.all(c, a != 'x' || b != c)))";
    let costly = policy(json!({ "validations": [{ "expression": expression }] }));
    let mut left = WRITE_COST_MAX;
    assert_eq!(decided(&costly, &object, &mut left), "");
    let cost = WRITE_COST_MAX - left;
    assert!(cost > 50_000 && cost < EVALUATION_COST_MAX, "{cost}");
    let mut less = cost - 1;
    let out = "Invalid: validation failed due to running out of cost budget, no further validation rules will be run\n";
    assert_eq!(decided(&costly, &object, &mut less), out);
    assert_eq!(less, 0);
    assert_eq!(decided(&costly, &object, &mut less), out, "what is asked then fails as well");
}

#[test]
fn conditions_say_whether_a_policy_has_anything_to_say() {
    let spec = |conditions: Value| json!({ "matchConditions": conditions, "validations": [{ "expression": "false", "message": "m" }] });
    let one = |expression: &str| json!([{ "name": "c", "expression": expression }]);
    check(spec(one("has(object.data)")), json!({}), "");
    check(spec(one("has(object.data)")), json!({ "data": {} }), "Invalid: m\n");
    check(
        spec(one("object.data")),
        json!({}),
        "Invalid: compilation error: must evaluate to bool but got dyn\n",
    );
    let both = json!([
        { "name": "a", "expression": "object.none == 1" },
        { "name": "b", "expression": "false" },
    ]);
    check(spec(both), json!({}), "");
}

#[test]
fn a_mutation_makes_no_more_than_it_may() {
    let doubled = (1..28).map(|at| {
        let before = format!("variables.v{}", at - 1);
        json!({ "name": format!("v{at}"), "expression": format!("[{before}, {before}]") })
    });
    let mut variables = vec![json!({ "name": "v0", "expression": "['x']" })];
    variables.extend(doubled);
    let mutations = json!([{ "patchType": "ApplyConfiguration",
        "applyConfiguration": { "expression": "Object{data: variables.v27}" } }]);
    let policy = policy(json!({ "variables": variables, "mutations": mutations }));
    let made = with_inputs(&json!({}), |inputs| policy.make(0, inputs, &mut { WRITE_COST_MAX }));
    assert_eq!(made, Err("operation cancelled: actual cost limit exceeded".to_owned()));
}

#[test]
fn a_mutation_makes_an_object_or_operations() {
    let mutations = json!([
        { "patchType": "ApplyConfiguration", "applyConfiguration":
            { "expression": "Object{metadata: Object.metadata{labels: {'a': string(1 + 1)}}, n: 1.0, i: 3}" } },
        { "patchType": "JSONPatch", "jsonPatch": { "expression":
            "[JSONPatch{op: 'add', path: '/x/' + jsonpatch.escapeKey('a/~b'), value: [1, 2]}]" } },
        { "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": "Object{a: Object.b{}}" } },
    ]);
    let policy = policy(json!({ "mutations": mutations }));
    let make = |at| with_inputs(&json!({}), |inputs| policy.make(at, inputs, &mut { WRITE_COST_MAX }));
    let object = json!({ "metadata": { "labels": { "a": "2" } }, "n": 1, "i": 3 });
    assert_eq!(make(0), Ok(Made::Applied(object)));
    let operation = json!({ "op": "add", "path": "/x/a~1~0b", "value": [1, 2] });
    assert_eq!(make(1), Ok(Made::Operations(vec![operation])));
    let why = "type mismatch: unexpected type name \"Object.b\", expected \"Object.a\", which matches field name path \
               from root Object type";
    assert_eq!(make(2), Err(why.to_owned()));
}

#[test]
fn rules_match_by_what_is_asked_for_and_by_what_is_the_same() {
    let spec = |policy: &str, rule: Value| {
        json!({ "matchConstraints": { "matchPolicy": policy, "namespaceSelector": {}, "objectSelector": {},
            "resourceRules": [rule] } })
    };
    let rule = |group: &str, version: &str, name: &str, operation: &str| {
        json!({ "apiGroups": [group], "apiVersions": [version], "resources": [name], "operations": [operation],
            "scope": "*" })
    };
    let own = resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler");
    let same = [resource("autoscaling", "v1", "horizontalpodautoscalers", "HorizontalPodAutoscaler")];
    let (caller, options) = (Caller::anonymous(), Value::Null);
    let request = |subresource| PolicyRequest {
        operation: AdmissionOperation::Update,
        own: &own,
        equivalents: &same,
        subresource,
        name: "n",
        namespace: "ns",
        caller: &caller,
        dry_run: false,
        options: &options,
        object: None,
        old_object: None,
    };
    let rows = [
        ("Exact", rule("autoscaling", "v2", "horizontalpodautoscalers", "UPDATE"), "", Matched::Itself),
        ("Exact", rule("autoscaling", "v1", "horizontalpodautoscalers", "UPDATE"), "", Matched::No),
        (
            "Equivalent",
            rule("autoscaling", "v1", "horizontalpodautoscalers", "UPDATE"),
            "",
            Matched::Equivalent(0),
        ),
        ("Exact", rule("*", "*", "*", "*"), "", Matched::Itself),
        ("Exact", rule("*", "*", "*", "*"), "status", Matched::No),
        ("Exact", rule("*", "*", "*/*", "*"), "status", Matched::Itself),
        ("Exact", rule("*", "*", "*/status", "CREATE"), "status", Matched::No),
    ];
    for (equivalence, rule, subresource, want) in rows {
        let policy = policy(spec(equivalence, rule.clone()));
        let matched = policy.matches(&request(subresource), &|| Ok(Arc::new(json!({}))));
        assert_eq!(matched, Ok(want), "{rule} {subresource}");
    }
    let mut selective = spec("Exact", rule("*", "*", "*", "*"));
    selective["matchConstraints"]["namespaceSelector"] = json!({ "matchLabels": { "env": "test" } });
    let selective = policy(selective);
    for (env, want) in [("test", Matched::Itself), ("prod", Matched::No)] {
        let labels = || Ok(Arc::new(json!({ "metadata": { "labels": { "env": env } } })));
        assert_eq!(selective.matches(&request(""), &labels), Ok(want), "{env}");
    }
}

#[test]
fn a_new_expression_may_use_what_the_release_before_has() {
    let all = Declared { params: false, authorizer: true, variables: true, mutations: false };
    let mut compiler = Compiler::new(all);
    assert_eq!(compiler.check_variable("y", "1", Since::New), Ok(()));
    let bad = compiler.check("variables.y == 'a'", Returns::Bool, Since::New, all);
    assert!(bad.is_err_and(|why| why.contains("no matching overload for '_==_' applied to '(int, string)'")));
    let hidden = compiler.check("params == null", Returns::Bool, Since::New, all);
    assert!(hidden.is_err_and(|why| why.contains("undeclared reference to 'params'")));
    let doubled = format!("optional.of(1){}.hasValue()", ".optMap(a, a + 1)".repeat(6));
    let refusals = (0..100).filter_map(|_| compiler.check(&doubled, Returns::Bool, Since::New, all).err());
    let last = refusals.last().unwrap_or_default();
    assert_eq!(last, "the expressions of the policy are too many, compiled");
}
