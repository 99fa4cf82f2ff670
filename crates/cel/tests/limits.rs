//! What is sent by those who mean harm: depth, doubling, patterns that multiply, results far longer than what
//! they are made of.

use std::sync::{Arc, Mutex};

use expect_test::{Expect, expect};
use forebay_cel::authorizer::{Authorizer, Check, CheckDecision};
use forebay_cel::limits::{HEIGHT_MAX, NESTED_MAX, STEPS_MAX};
use forebay_cel::value::{TextValue, Value};
use forebay_cel::{Activation, Env, Error, Object, Spent, Type};
use serde_json::{Value as Json, json};

const BUDGET: u64 = 1_000_000;

/// The value or the error, and the cost.
fn eval(expr: &str, object: &Json, budget: u64) -> (Result<String, Error>, u64) {
    let env = Env::new(36).with("self", Type::Dyn);
    let program = env.compile(expr).expect("it compiles").program().expect("it has a program");
    let variables = [Some(Value::from_tree(object))];
    let done = program.eval(Activation { variables: &variables, ..Activation::default() }, budget);
    (done.result.map(|value| format!("{value:?}")), done.cost)
}

fn refused(expr: &str, expected: Expect) {
    let issues = Env::new(36).with("self", Type::Dyn).compile(expr).err().expect("it is refused");
    let first = issues.iter().next().expect("an issue");
    expected.assert_eq(&first.message);
}

#[test]
fn nesting_deeper_than_cel_go_takes_is_refused_before_it_is_read() {
    let nested =
        |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
    refused(&nested("(", ")", NESTED_MAX), expect!["expression recursion limit exceeded: 250"]);
    refused(&nested("[", "]", 45_000), expect!["expression recursion limit exceeded: 250"]);
    refused(&nested("{1:", "}", 20_000), expect!["expression recursion limit exceeded: 250"]);
    let deep = nested("(", ")", NESTED_MAX - 1);
    assert!(Env::new(36).compile(&deep).is_ok());
}

#[test]
fn a_tree_higher_than_its_bound_is_refused_and_a_text_longer() {
    refused(&vec!["1"; 500].join("+"), expect!["max recursion depth exceeded"]);
    refused(&format!("self{}", ".a".repeat(45_000)), expect!["max recursion depth exceeded"]);
    refused(
        &"1".repeat(100_001),
        expect!["expression code point size exceeds limit: size: 100001, limit 100000"],
    );
}

#[test]
fn the_highest_tree_is_evaluated_within_the_stack_of_a_thread() {
    let height = HEIGHT_MAX as usize;
    let calls = format!("{}1{}", "size([".repeat(120), "])".repeat(120));
    let ternaries = format!("{}0", "true ? 1 : ".repeat(240));
    let comprehensions = (0..100).fold("x0".to_owned(), |inner, _| format!("[1].map(x0, {inner})"));
    let expressions = [
        format!("{}1{}", "1 + -(".repeat(height / 2 - 1), ")".repeat(height / 2 - 1)),
        vec!["1"; NESTED_MAX + 1].join("+"),
        format!("self{}", "[0]".repeat(NESTED_MAX)),
        calls,
        ternaries,
        comprehensions,
    ];
    let on_a_small_stack = move || {
        for expr in &expressions {
            let compiled = Env::new(36).with("self", Type::Dyn).compile(expr).expect("it compiles");
            compiled.estimate();
            let program = compiled.program().expect("it has a program");
            program.eval(Activation { variables: &[None], ..Activation::default() }, BUDGET);
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(on_a_small_stack).expect("a thread");
    thread.join().expect("its stack is enough");
}

#[test]
fn macros_that_double_end_at_a_number_of_nodes() {
    let nested = (0..40).fold("optional.of(1)".to_owned(), |inner, _| format!("{inner}.optMap(x, x)"));
    refused(&nested, expect!["expression has more than 1536 nodes for its length"]);
}

#[test]
fn an_evaluation_ends_at_its_budget_whatever_absorbs_errors() {
    let list = json!((0..100).collect::<Vec<_>>());
    let cubed = "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
    let (result, cost) = eval(cubed, &list, 5_000);
    assert_eq!(result, Err(Error::CostExceeded));
    assert!(cost > 5_000 && cost < 5_100, "{cost}");
    assert_eq!(eval(&format!("{cubed} || true"), &list, 5_000).0, Err(Error::CostExceeded));
    assert_eq!(eval(&format!("true || {cubed}"), &list, 5_000).0, Ok("Bool(true)".to_owned()));
}

#[test]
fn what_functions_multiply_is_bounded_apart_from_the_cost() {
    let object = json!({"a": "a".repeat(100_000), "b": "b".repeat(100_000)});
    for expr in [
        "self.a.replace('a', self.b).size()",
        "self.a.split('').map(x, self.b).join('').size()",
        "lists.range(1000000000).size()",
        "'%s%s'.format([self.a.split('').map(x, self.b), 1]).size()",
    ] {
        assert_eq!(eval(expr, &object, u64::MAX).0, Err(Error::CostExceeded), "{expr}");
    }
    let doubled = (0..40).fold("[1]".to_owned(), |inner, _| format!("[{inner}].map(l, l + l)[0]"));
    assert_eq!(eval(&doubled, &object, u64::MAX).0, Err(Error::CostExceeded));
}

#[test]
fn what_is_compared_is_bounded_apart_from_the_cost() {
    let list = json!((0..10_000).collect::<Vec<_>>());
    let hundred = |of: &str| format!("[{}]", vec![of; 200].join(","));
    let (one, two) = (hundred("self"), hundred("self"));
    let expr = format!("lists.range(100).all(x, {one} == {two})");
    let program = Env::new(36).with("self", Type::Dyn).compile(&expr).expect("it compiles");
    let program = program.program().expect("it has a program");
    // A tenth of what an evaluation has.
    let (variables, spent) = ([Some(Value::from_tree(&list))], Spent::of_steps(STEPS_MAX / 10));
    let with = Activation { variables: &variables, spent: Some(&spent), ..Activation::default() };
    let done = program.eval(with, BUDGET);
    let cost = done.cost;
    assert_eq!(done.result.err(), Some(Error::CostExceeded));
    assert!(cost < BUDGET / 20, "its budget is not what ended it: {cost}");
}

#[test]
fn patterns_that_multiply_are_refused() {
    refused("'a'.matches('((a{1000}){1000}){1000}')", expect!["invalid matches argument"]);
    let object = json!("((a{1000}){1000}){1000}");
    let (result, _) = eval("'a'.matches(self)", &object, BUDGET);
    assert!(matches!(result, Err(Error::Failed(_))), "{result:?}");
}

#[test]
fn a_pattern_that_is_a_value_is_compiled_once_and_many_are_counted() {
    // A megabyte and more, compiled.
    let large = |at: usize| format!("{at}|a|{}", "[a-z]{1000}".repeat(40));
    let object = json!({ "list": vec!["a"; 500], "pattern": large(0) });
    let (result, _) = eval("self.list.all(x, x.matches(self.pattern))", &object, u64::MAX);
    assert_eq!(result, Ok("Bool(true)".to_owned()));
    let object = json!({ "patterns": (0..100).map(large).collect::<Vec<_>>() });
    let (result, _) = eval("self.patterns.all(p, 'a'.find(p) == 'a')", &object, u64::MAX);
    assert_eq!(result, Err(Error::CostExceeded));
    let object = json!({ "patterns": (0..100).map(|at| format!("{at}|a")).collect::<Vec<_>>() });
    let (result, _) = eval("self.patterns.all(p, 'a'.matches(p))", &object, u64::MAX);
    assert_eq!(result, Ok("Bool(true)".to_owned()));
}

#[test]
fn a_text_that_is_selected_is_borrowed_from_the_tree() {
    let object = json!({"metadata": {"name": "web"}});
    let env = Env::new(36).with("self", Type::Dyn);
    let program = env.compile("self.metadata.name").expect("it compiles").program().expect("a program");
    let variables = [Some(Value::from_tree(&object))];
    let done = program.eval(Activation { variables: &variables, ..Activation::default() }, BUDGET);
    let Ok(Value::String(TextValue::Borrowed(name))) = done.result else { panic!("{done:?}") };
    let held = object["metadata"]["name"].as_str().expect("a text");
    assert!(std::ptr::eq(name, held));
}

#[test]
fn an_authorizer_is_asked_what_an_expression_put_together() {
    #[derive(Default)]
    struct Asked(Mutex<Vec<(Check, String)>>);

    impl Authorizer for Asked {
        fn check(&self, check: &Check, verb: &str) -> CheckDecision {
            self.0.lock().expect("nobody panics").push((check.clone(), verb.to_owned()));
            CheckDecision { allowed: verb == "get", reason: "because".into(), error: None }
        }
    }

    let env = Env::new(36).with("authorizer", Type::named("kubernetes.authorization.Authorizer"));
    let expr = "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').namespace('default')\
                .name('web').check('get').allowed() && authorizer.path('/healthz').check('put').reason() == 'because'";
    let compiled = env.compile(expr).expect("it compiles");
    assert!(compiled.estimate().max > 700_000);
    let asked = Asked::default();
    let variables = [Some(Value::Object(Arc::new(Object::Authorizer(Default::default()))))];
    let program = compiled.program().expect("a program");
    let done = program.eval(
        Activation { variables: &variables, authorizer: Some(&asked), ..Activation::default() },
        BUDGET,
    );
    assert!(matches!(done.result, Ok(Value::Bool(true))), "{done:?}");
    assert!(done.cost > 700_000);
    let asked = asked.0.lock().expect("nobody panics");
    expect![[r#"
        [
            (
                Resource(
                    ResourceCheck {
                        asker: ServiceAccount {
                            namespace: "ns",
                            name: "sa",
                        },
                        group: "apps",
                        resource: "deployments",
                        subresource: "",
                        namespace: "default",
                        name: "web",
                        field_selector: "",
                        label_selector: "",
                    },
                ),
                "get",
            ),
            (
                Path {
                    asker: Requester,
                    path: "/healthz",
                },
                "put",
            ),
        ]
    "#]]
    .assert_debug_eq(&*asked);
}
