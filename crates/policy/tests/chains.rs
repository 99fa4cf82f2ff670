//! Variables that name each other: how deep their types and values are, and what all of them spend.

use forebay_apimachinery::{Caller, GroupVersionKind, GroupVersionResource};
use forebay_cel::authorizer::{Authorizer, Check, CheckDecision, ResourceCheck};
use forebay_policy::limits::{EVALUATION_COST_MAX, WRITE_COST_MAX};
use forebay_policy::{
    AdmissionOperation, Compiler, Declared, Findings, Inputs, Policy, PolicyRequest, RequestedResource,
    Since, request_json,
};
use serde_json::{Value, json};

struct Nobody;

impl Authorizer for Nobody {
    fn check(&self, _: &Check, _: &str) -> CheckDecision {
        CheckDecision { allowed: false, reason: "".into(), error: None }
    }
}

fn policy(variables: &[String], validations: &[&str]) -> Policy {
    let variables: Vec<Value> = variables
        .iter()
        .enumerate()
        .map(|(at, text)| json!({ "name": format!("v{at}"), "expression": text }))
        .collect();
    let validations: Vec<Value> = validations.iter().map(|text| json!({ "expression": text })).collect();
    let spec = json!({ "variables": variables, "validations": validations });
    Policy::read(&json!({ "metadata": { "name": "p" }, "spec": spec })).expect("a policy")
}

fn decided(policy: &Policy, object: &Value, left: &mut u64) -> Findings {
    let own = RequestedResource {
        resource: GroupVersionResource::new("", "v1", "configmaps"),
        kind: GroupVersionKind::new("", "v1", "ConfigMap"),
    };
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
    let inputs = Inputs {
        object: Some(object),
        old_object: None,
        params: None,
        namespace: None,
        request: &tree,
        authorizer: &Nobody,
        request_resource: &ResourceCheck::default(),
    };
    policy.validate(&inputs, &inputs, left, |_| ())
}

fn messages(findings: &Findings) -> Vec<&str> {
    findings.failed.iter().map(|finding| &*finding.message).collect()
}

/// Each around the one before it, some levels.
fn chain(count: usize, levels: usize, first: &str, open: &str, close: &str) -> Vec<String> {
    let around = |inner: String| format!("{}{inner}{}", open.repeat(levels), close.repeat(levels));
    (0..count)
        .map(|at| around(if at == 0 { first.to_owned() } else { format!("variables.v{}", at - 1) }))
        .collect()
}

fn on_a_small_stack(what: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(what).expect("a thread");
    thread.join().expect("its stack is enough");
}

#[test]
fn a_chain_of_variables_has_no_type_higher_than_one_may_be() {
    on_a_small_stack(|| {
        let chain = chain(400, 240, "1", "[", "]");
        let mut compiler = Compiler::new(Declared { variables: true, ..Declared::default() });
        let found: Vec<_> = chain
            .iter()
            .enumerate()
            .map(|(at, text)| compiler.check_variable(&format!("v{at}"), text, Since::New))
            .collect();
        assert!(found[0].is_ok(), "{:?}", found[0]);
        let why = found[1].clone().expect_err("it is too high");
        assert!(why.starts_with("compilation failed: ERROR:"), "{why}");
        // One that a store has already fails when it is asked, and no start ends by it.
        let policy = policy(&chain, &["variables.v399.size() > 0"]);
        let findings = decided(&policy, &json!({}), &mut { WRITE_COST_MAX });
        assert_eq!(findings.failed.len(), 1);
    });
}

#[test]
fn a_chain_of_variables_has_no_value_higher_than_one_may_be() {
    on_a_small_stack(|| {
        let chain = chain(400, 60, "1", "dyn([", "])");
        let all: Vec<_> = (0..400).map(|at| format!("(variables.v{at} == 1 || true)")).collect();
        // In several expressions, as one has its limits.
        let all: Vec<_> = all.chunks(100).map(|some| some.join(" && ")).collect();
        let all: Vec<_> = all.iter().map(|text| &**text).collect();
        let policy = policy(&chain, &all);
        let findings = decided(&policy, &json!({}), &mut { WRITE_COST_MAX });
        assert!(findings.failed.is_empty(), "{findings:?}");
    });
}

#[test]
fn what_went_wrong_is_told_in_few_words_however_many_variables_it_went_through() {
    let chain: Vec<_> = (0..400)
        .map(|at| if at == 0 { "object.none".to_owned() } else { format!("variables.v{} + 1", at - 1) })
        .collect();
    let texts: Vec<_> = (0..400).map(|at| format!("variables.v{at} == 1")).collect();
    let texts: Vec<_> = texts.iter().map(|text| &**text).collect();
    let findings = decided(&policy(&chain, &texts), &json!({}), &mut { WRITE_COST_MAX });
    let longest = messages(&findings).into_iter().map(str::len).max();
    assert_eq!(findings.failed.len(), 400);
    assert!(longest < Some(5 << 10), "{longest:?}");
}

#[test]
fn variables_and_who_names_them_make_no_more_than_one_evaluation_may() {
    let object = json!({ "a": "a".repeat(6_000), "b": "b".repeat(5_000) });
    let variables = vec!["object.a.replace('a', object.b)".to_owned(); 100];
    // 30 MB each: three of them are too many, and one after the other that nobody keeps is not.
    let named: Vec<_> = (0..5).map(|at| format!("variables.v{at}.size() > 0")).collect();
    let named: Vec<_> = named.iter().map(|text| &**text).collect();
    let findings = decided(&policy(&variables, &named), &object, &mut { WRITE_COST_MAX });
    assert_eq!(findings.failed.len(), 3, "{:?}", messages(&findings));
    let alone = vec!["object.a.replace('a', object.b).size() > 0"; 5];
    let findings = decided(&policy(&variables, &alone), &object, &mut { WRITE_COST_MAX });
    assert!(findings.failed.is_empty(), "{:?}", messages(&findings));
}

#[test]
fn a_write_pays_for_steps_that_no_cost_pays_for() {
    let cube = "[lists.range(200)].map(a, lists.range(200).map(i, a)).map(b, lists.range(200).map(i, b))";
    let paid = |asked: &str| {
        let policy = policy(&[], &[&format!("{cube}.all(c, {asked})")]);
        let mut left = WRITE_COST_MAX;
        let findings = decided(&policy, &json!({}), &mut left);
        assert!(findings.failed.is_empty(), "{findings:?}");
        WRITE_COST_MAX - left
    };
    let (flat, shared) = (paid("c.size() == c.size()"), paid("c == c"));
    // 8 million steps, of which three are a unit.
    assert!(flat < 20_000 && shared > 750_000 && shared < EVALUATION_COST_MAX, "{flat} {shared}");
}

#[test]
fn what_the_budget_allows_is_not_refused_for_its_steps() {
    let cube = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != '')))";
    let data: serde_json::Map<_, _> = (0..45).map(|at| (format!("k{at:02}"), json!("v"))).collect();
    let object = json!({ "data": data });
    let told = |count: usize| {
        let mut left = WRITE_COST_MAX;
        let findings = decided(&policy(&[], &vec![cube; count]), &object, &mut left);
        messages(&findings).join("; ")
    };
    let of_fewest = (1..).map(|count| (count, told(count))).find(|(_, told)| !told.is_empty());
    let (count, told) = of_fewest.expect("they are too many one day");
    assert!(count > 5 && told.contains("running out of cost budget"), "{count} of them: {told}");
}
