//! Values and types that are small as they are kept and large as they are walked, what each function makes,
//! and how deep it all is: every evaluation ends by what it spends, and none by its stack.

use std::sync::Arc;

use forebay_cel::decl::{Decl, DeclField, DeclKind};
use forebay_cel::json::Numbers;
use forebay_cel::limits::{ENTRY_BYTES, HEIGHT_MAX, MADE_BYTES_MAX, TYPE_HEIGHT_MAX, VALUE_HEIGHT_MAX};
use forebay_cel::value::Value;
use forebay_cel::{Activation, Env, Error, Spent, Type};
use serde_json::{Value as Json, json};

const BUDGET: u64 = 1_000_000;
/// Fewer than an evaluation may take, so that the end of them comes soon.
const STEPS: u64 = 1_000_000;

fn env() -> Env {
    Env::new(36).with("self", Type::Dyn).with_bindings()
}

struct Done {
    result: Result<String, Error>,
    cost: u64,
    steps: u64,
    made: u64,
}

fn eval(expr: &str, object: &Json) -> Done {
    let compiled = env().compile(expr);
    let program = compiled
        .unwrap_or_else(|why| panic!("{expr:.200}: {:?}", why.iter().next().map(|it| &it.message)))
        .program()
        .expect("a program");
    let (variables, spent) = ([Some(Value::from_tree(object))], Spent::of_steps(STEPS));
    let with = Activation { variables: &variables, spent: Some(&spent), ..Activation::default() };
    let done = program.eval(with, BUDGET);
    let result = done.result.map(|value| value.type_name().to_owned());
    Done { result, cost: done.cost, steps: spent.steps(), made: spent.made() }
}

/// Ends as if its budget were spent, which it is not, and not long after a limit.
#[track_caller]
fn ends(expr: &str, object: &Json) {
    let done = eval(expr, object);
    assert_eq!(done.result, Err(Error::CostExceeded), "{expr}");
    assert!(done.cost < BUDGET, "{expr}: its budget is not what ended it: {}", done.cost);
    assert!(done.steps > STEPS || done.made > MADE_BYTES_MAX, "{expr}: {} {}", done.steps, done.made);
    assert!(done.steps < STEPS + (1 << 18), "{expr}: {} steps", done.steps);
}

fn first_issue(env: &Env, expr: &str) -> Option<String> {
    let issues = env.compile(expr).err()?;
    issues.iter().next().map(|issue| issue.message.clone())
}

fn on_a_small_stack(what: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(what).expect("a thread");
    thread.join().expect("its stack is enough");
}

/// A list of lists of lists, each a thousand times in the one around it: a billion when it is walked.
const CUBE: &str =
    "[lists.range(1000)].map(a, lists.range(1000).map(i, a)).map(b, lists.range(1000).map(i, b))";

#[test]
fn types_that_double_are_refused_before_they_are_walked() {
    let maps = format!("[1]{}.size() == 0", ".map(a, {a: a})".repeat(30));
    let bound = (1..30).rev().fold("x29.size() == 0".to_owned(), |inner, at| {
        let before = at - 1;
        format!("cel.bind(x{at}, {{x{before}: x{before}}}, {inner})")
    });
    let bound = format!("cel.bind(x0, 1, {bound})");
    let nested = (0..12).fold("[]".to_owned(), |inner, _| format!("{inner}.map(a, {{a: a}})"));
    for expr in [&maps, &bound, &nested] {
        let found = first_issue(&env(), expr).unwrap_or_default();
        assert!(found.starts_with("its type has more than"), "{expr}: {found}");
    }
    // As large as it may be, and no larger.
    assert!(env().compile(&format!("[1]{}.size() == 0", ".map(a, {a: a})".repeat(5))).is_ok());
    assert!(env().compile(&format!("{}1{}", "[".repeat(249), "]".repeat(249))).is_ok());
}

#[test]
fn types_are_no_higher_than_they_may_be_however_they_are_put_in_each_other() {
    let wrapped = |of: &str| format!("{}{of}{}", "[".repeat(200), "]".repeat(200));
    let high = (0..2).fold(Type::Int, |of, _| (0..100).fold(of, |of, _| Type::list(of)));
    let env = Env::new(36).with("high", high);
    let found = first_issue(&env, &wrapped("high")).expect("it is refused");
    assert!(found.contains(&TYPE_HEIGHT_MAX.to_string()), "{found}");
    on_a_small_stack(move || {
        let higher = (0..TYPE_HEIGHT_MAX).fold(Type::Int, |of, _| Type::list(of));
        let env = Env::new(36).with("high", higher);
        assert!(env.compile("high == high && high.map(x, x) == high").is_ok());
        assert!(env.compile("high == [high]").is_err());
    });
}

#[test]
fn a_check_looks_at_no_more_parts_of_types_than_it_may() {
    let large = format!("[1]{}", ".map(a, {a: a})".repeat(8));
    let compared = |times: usize| format!("cel.bind(x, {large}, {})", vec!["x == x"; times].join(" && "));
    assert_eq!(first_issue(&env(), &compared(10)), None);
    let found = first_issue(&env(), &compared(6_000)).expect("it is refused");
    assert!(found.starts_with("its type has more than"), "{found}");
}

#[test]
fn a_way_through_variables_of_comprehensions_is_no_longer_than_a_schema_is_deep() {
    on_a_small_stack(|| {
        let selected = ".x".repeat(180);
        let nested = (0..60).rev().fold("true".to_owned(), |inner, at| {
            let of = if at == 0 { "self".to_owned() } else { format!("v{}", at - 1) };
            format!("{of}{selected}.all(v{at}, {inner})")
        });
        let compiled = env().compile(&nested);
        assert!(compiled.is_ok(), "it compiles");
        compiled.map(|compiled| compiled.estimate()).ok();
    });
}

#[test]
fn values_are_no_higher_than_they_may_be_whoever_puts_them_in_each_other() {
    let deep = "dyn([".repeat(100) + "x" + &"])".repeat(100);
    let maps = "dyn({'a': ".repeat(100) + "x" + &"})".repeat(100);
    let optionals = "dyn(optional.of(".repeat(100) + "x" + &"))".repeat(100);
    for wrap in [deep, maps, optionals] {
        let expr = format!("[dyn(1)].map(x, {wrap}).map(x, {wrap}).map(x, {wrap}).size()");
        match eval(&expr, &Json::Null).result {
            Err(Error::Failed(why)) => assert!(why.contains(&VALUE_HEIGHT_MAX.to_string()), "{why}"),
            other => panic!("{other:?}"),
        }
    }
    let fits = "dyn([".repeat(100) + "x" + &"])".repeat(100);
    assert!(eval(&format!("[dyn(1)].map(x, {fits}).map(x, {fits}).size()"), &Json::Null).result.is_ok());
}

#[test]
fn values_as_high_as_they_may_be_fit_the_stack_of_a_thread() {
    on_a_small_stack(|| {
        let tree = format!("{}1{}", "[".repeat(500), "]".repeat(500));
        let object: Json = forebay_apimachinery::json::read(tree.as_bytes()).expect("JSON");
        let wrap = "dyn([".repeat(120) + "x" + &"])".repeat(120);
        let high = format!("[dyn(self)].map(x, {wrap}).map(x, {wrap})");
        let levels = (HEIGHT_MAX as usize - 260) / 2;
        for asked in [
            "x == x ? 1 : 2",
            "[x].indexOf(x)",
            "'%s'.format([x]).size()",
            "[x].flatten(1000).size()",
            "google.protobuf.ListValue{values: x}.size()",
            "sets.contains([x], [x]) ? 1 : 2",
        ] {
            let expr = format!("{high}.map(x, {}{asked}{})", "size([".repeat(levels), "])".repeat(levels));
            let done = eval(&expr, &object);
            assert!(!matches!(done.result, Err(Error::CostExceeded)), "{expr}");
        }
        let program = env().compile(&high).expect("it compiles").program().expect("a program");
        let variables = [Some(Value::from_tree(&object))];
        let with = Activation { variables: &variables, ..Activation::default() };
        let made = program.eval(with, BUDGET).result.expect("a value");
        let why = made.to_json(Numbers::Native, 16 << 20).expect_err("deeper than JSON may be");
        assert!(why.to_string().contains("deeper"), "{why}");
    });
}

#[test]
fn what_is_shared_is_charged_each_time_that_it_is_made() {
    let object = json!({ "x": "x".repeat(1 << 20), "q": "&a".repeat(1 << 16) });
    for expr in [
        "[lists.range(5000)].map(x, lists.range(1000).map(i, x)).map(y, y.flatten()).size()",
        "'%s'.format([lists.range(5000).transformMap(i, v, self.x)]).size()",
        "lists.range(5000).map(i, '%s'.format([self.x])).size()",
        "lists.range(5000).map(i, '%x'.format([self.x])).size()",
        &format!("google.protobuf.ListValue{{values: {CUBE}}}.size()"),
        &format!("google.protobuf.Value{{list_value: {CUBE}}} == null"),
        &format!("lists.range(5000).map(i, [i{}]).size()", ", 1".repeat(20_000)),
        "lists.range(5000).map(i, lists.range(1000)).map(l, l.map(x, optional.of(x))).map(l, optional.unwrap(l)).size()",
        "lists.range(5000).map(i, url('https://a/' + self.q).getQuery()).size()",
        "cel.bind(u, url('https://a/?' + self.q), lists.range(5000).map(i, u.getQuery()).size())",
        "cel.bind(l, lists.range(1000), lists.range(5000).map(i, l.reverse()).size())",
        "cel.bind(l, lists.range(100), lists.range(50000).map(i, l.slice(0, 100).distinct().size()).size())",
    ] {
        let done = eval(expr, &object);
        assert_eq!(done.result, Err(Error::CostExceeded), "{expr}: {}", done.cost);
        assert!(
            done.made <= MADE_BYTES_MAX + (32 << 20),
            "{expr}: asked for before it is made: {}",
            done.made
        );
    }
}

#[test]
fn entries_of_maps_are_charged() {
    let entries = (0..1000).map(|at| format!("'k{at}': 1")).collect::<Vec<_>>().join(", ");
    let object = Json::Object((0..1000).map(|at| (format!("k{at}"), json!(1))).collect());
    let done = eval(&format!("lists.range(5000).map(i, {{'i': i, {entries}}}).size()"), &object);
    assert_eq!(done.result, Err(Error::CostExceeded));
    let done = eval("self.transformMap(k, v, v).size()", &object);
    assert!(done.made >= 1000 * ENTRY_BYTES as u64, "{}", done.made);
    let done = eval("lists.range(2).transformMapEntry(i, v, i == 0 ? self : {}).size()", &object);
    assert!(done.made >= 1000 * ENTRY_BYTES as u64, "{}", done.made);
}

#[test]
fn what_is_walked_is_charged_each_time_that_it_is_there() {
    let cube = |of: &str| format!("cel.bind(c, {CUBE}, {of})");
    for of in [
        "c == c",
        "[c, c].distinct().size() == 1",
        "sets.contains([c], [c])",
        "sets.intersects([c], [c])",
        "c in [c]",
        "'%s'.format([c]).size() > 0",
        "c.flatten(3).size() > 0",
    ] {
        ends(&cube(of), &Json::Null);
    }
    // What has no cost to look at.
    let nothing = cube("c.indexOf([]) == -1 || c.lastIndexOf([[]]) == 0")
        .replace("[lists.range(1000)]", "[lists.range(1000).map(i, '')]");
    ends(&nothing, &Json::Null);
    // What has a cost as upstream counts it ends by that: it is not counted to its end.
    for of in [
        "c.indexOf([]) == -1",
        "dyn(c).sum() == 0",
        "dyn(c).isSorted()",
        "dyn(c).min() == 1",
        "dyn(c).max() == 1",
    ] {
        let done = eval(&cube(of), &Json::Null);
        assert_eq!(done.result, Err(Error::CostExceeded), "{of}");
        assert!(done.steps < STEPS, "{of}: {}", done.steps);
    }
}

#[test]
fn texts_that_cost_nothing_to_look_at_are_looked_at_in_steps() {
    let short = json!({ "l": (0..20_000).map(|at| format!("{at:06}")).collect::<Vec<_>>() });
    ends("self.l.all(x, self.l.indexOf('-') == -1)", &short);
    ends("self.l.all(x, self.l.isSorted())", &short);
    ends("self.l.all(x, self.l.max() != '')", &short);
    ends("self.l.all(x, self.l.map(y, '').join('') == '')", &short);
    let long = json!({ "t": "x".repeat(1 << 20), "l": (0..50_000).collect::<Vec<_>>() });
    ends("self.l.all(x, self.t.size() > 0)", &long);
    ends("self.l.all(x, self.t.charAt(1) == 'x')", &long);
    ends("self.l.all(x, [self.t, self.t].sort().size() == 2)", &long);
    let nothing = vec!["true"; 10_000].join(" && ");
    ends(&format!("self.l.all(x, {nothing})"), &long);
}

#[test]
fn a_short_text_beside_a_long_one_costs_no_count_of_the_long_one() {
    let long = json!({ "t": "x".repeat(1 << 20), "l": (0..10_000).collect::<Vec<_>>() });
    for expr in ["self.l.all(x, self.t != 'a')", "self.l.all(x, self.t > 'a')"] {
        let done = eval(expr, &long);
        assert_eq!(done.result, Ok("bool".to_owned()), "{expr}");
        assert!(done.cost < 80_000, "{expr}: {}", done.cost);
    }
}

#[test]
fn keys_of_a_map_are_listed_as_far_as_somebody_asks() {
    let field = |at: usize| {
        let decl = Decl { kind: DeclKind::Int, elements_max: 1, bytes_min: 1, nullable: false };
        (format!("f{at:04}").into(), DeclField { key: format!("f{at:04}").into(), decl: Arc::new(decl) })
    };
    let kind = DeclKind::Object((0..1000).map(field).collect());
    let decl = Arc::new(Decl { kind, elements_max: 1000, bytes_min: 1, nullable: false });
    let object = Json::Object((0..1000).map(|at| (format!("f{at:04}"), json!(at))).collect());
    let env = Env::new(36).with_declared("self", decl.checked("selfType"), decl.clone());
    let expr = "dyn(self).all(a, dyn(self).exists(b, true))";
    let program = env.compile(expr).expect("it compiles").program().expect("a program");
    let variables = [Some(Value::from_declared(&object, &decl).expect("of its schema"))];
    let spent = Spent::default();
    let with = Activation { variables: &variables, spent: Some(&spent), ..Activation::default() };
    let done = program.eval(with, BUDGET);
    assert!(matches!(done.result, Ok(Value::Bool(true))), "{done:?}");
    assert!(spent.steps() < 40_000, "{} steps for 1,000 keys", spent.steps());
}

#[test]
fn a_key_that_is_not_there_is_put_together_once() {
    let nested =
        (0..50).fold("'a'".to_owned(), |inner, _| format!("({{'b': 1}}[{inner}] == 1 || true ? 'a' : 'c')"));
    let done = eval(&nested, &Json::Null);
    assert_eq!(done.result, Ok("string".to_owned()));
    assert!(done.steps < 10_000, "{}", done.steps);
}

#[test]
fn an_error_quotes_no_more_than_anybody_reads() {
    let object = json!({ "k": "k".repeat(1 << 20) });
    match eval("{'a': 1}[self.k]", &object).result {
        Err(Error::Failed(why)) => {
            assert!(why.starts_with("no such key: kkk") && why.len() <= 4 << 10, "{}", why.len());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn evaluations_that_belong_together_have_one_purse() {
    let program = env().compile("lists.range(50000).map(x, x)").expect("it compiles").program().expect("one");
    let (variables, spent) = ([Some(Value::Null)], Spent::default());
    let with = Activation { variables: &variables, spent: Some(&spent), ..Activation::default() };
    let results: Vec<bool> = (0..10).map(|_| program.eval(with, BUDGET).result.is_ok()).collect();
    assert!(results[0] && !results[9], "{results:?}");
    spent.keep(0);
    assert!(program.eval(with, BUDGET).result.is_ok(), "what is let go may be made again");
}
