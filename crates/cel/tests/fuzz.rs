//! Expressions, mutated: none panics, none costs more than its budget, and each that compiles has the same
//! errors and costs again; what it makes is what it was charged for.

use forebay_cel::{Activation, Env, Spent, Type, Value};
use forebay_fuzz::{Corpus, charged, run};
use serde_json::json;

const EXPRESSIONS: [&str; 18] = [
    "self.all(x, x.name.startsWith('a') && has(x.port)) || self[0].port in [1, 2u, 3.0]",
    "self.map(x, x.port > 1, x.port * 2).sum() / -3 % 7",
    "self[?5].?name.optMap(n, n + 'x').orValue(\"\\u00e4\\n\")",
    "{'a': 1, 'b': [1, ?optional.of(2)]}.transformMap(k, v, string(k) + '1')",
    "timestamp('2024-02-29T23:59:59.5+02:00').getDayOfYear('Europe/Berlin') == 59",
    "duration('1h2m3.5s') - duration('-1ns') > duration('0s') ? b'\\377'.size() : 1",
    "'%s %d %.3f %e %x %b %o'.format([self, 1, 1.5, 2.5, 'ab', true, 8])",
    "quantity('1.5Gi').add(quantity('100m')).compareTo(quantity('-1e3')) + semver('v1.2', true).major()",
    "cidr('10.0.0.0/8').containsIP(ip('10.1.2.3')) && !isIP('::ffff:1.2.3.4') && url('https://[::1]:80/a?b=c').getPort() == '80'",
    "'aXbXc'.split('X', 2).join('-').replace('', 'é').substring(1, 3).lastIndexOf('b', 1)",
    "[3, 1, 2].sortBy(x, -x).distinct().flatten().slice(0, 2).reverse() == [1].filter(x, x > 0)",
    // Shared and within each other.
    "[lists.range(9)].map(a, lists.range(9).map(i, a)).map(b, lists.range(9).map(i, b)).all(c, c.indexOf([]) == -1)",
    "cel.bind(a, [self, self], cel.bind(b, [a, a], cel.bind(c, dyn({'b': b, 'a': a}), c == c && '%s'.format([c]) != '')))",
    "[1].map(a, {a: a}).map(a, {'b': [a, a]}).transformList(i, v, [v]).flatten().distinct().size() == {'x': [1]}.size()",
    "google.protobuf.ListValue{values: lists.range(5).map(i, self)} == google.protobuf.Value{list_value: [1]}",
    "[dyn(1)].map(x, dyn([[x]])).map(x, optional.of(optional.of(x))).map(x, optional.unwrap([x])).flatten(9).sort()",
    "{'b': 1}[{'b': 1}[string(self.size())] == 1 || true ? 'a' : 'c'] == 1 || self.transformMap(i, v, [v, v]).exists(k, true)",
    "format.named('dns1123Label').value().validate('A.b').hasValue() && 'ab'.findAll('[a-c]{1,2}?', 3) != []",
];
const WORDS: [&str; 32] = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ".?",
    "[?",
    "?",
    ":",
    "&&",
    "||",
    "in",
    "!",
    "-",
    "'",
    "\"\"\"",
    "r'",
    "b\"",
    "0x",
    "e9",
    "self",
    "x",
    ".map(x, [x, x])",
    ".map(x, {x: x})",
    "cel.bind(x, [x, x], ",
    ".flatten()",
    "dyn(",
    "lists.range(99)",
    "optional.of(",
    ".transformMap(k, v, [v])",
];
const BUDGET: u64 = 20_000;
const STEPS: u64 = 200_000;

#[test]
fn fuzz_expressions() {
    let inputs = EXPRESSIONS.map(str::as_bytes);
    let corpus = Corpus { inputs: &inputs, words: &WORDS, ..Corpus::default() };
    let object = json!([{"name": "ab", "port": 80}, {"name": "c"}]);
    let env = Env::new(36).with("self", Type::Dyn).with_bindings();
    run("expressions", &corpus, |input| {
        let text = String::from_utf8_lossy(input);
        let compiled =
            env.compile(&text).map_err(|issues| issues.iter().next().map(|it| gist(&it.message)))?;
        charged(512 * compiled.nodes());
        let estimate = compiled.estimate();
        assert!(estimate.min <= estimate.max);
        let program = compiled.program().map_err(|error| Some(gist(&error.to_string())))?;
        let variables = [Some(Value::from_tree(&object))];
        let spent = [Spent::of_steps(STEPS), Spent::of_steps(STEPS)];
        let eval = |spent| {
            let with = Activation { variables: &variables, spent: Some(spent), ..Activation::default() };
            program.eval(with, BUDGET)
        };
        let (one, two) = (eval(&spent[0]), eval(&spent[1]));
        charged(spent[0].made().max(spent[1].made()) as usize);
        assert_eq!((spent[0].made(), spent[0].steps()), (spent[1].made(), spent[1].steps()));
        assert!(spent[0].steps() < 2 * STEPS, "{} steps", spent[0].steps());
        let answer =
            one.result.map(|value| value.type_name().to_owned()).map_err(|error| gist(&error.to_string()));
        let again =
            two.result.map(|value| value.type_name().to_owned()).map_err(|error| gist(&error.to_string()));
        assert_eq!((&answer, one.cost), (&again, two.cost));
        answer.map_err(Some)
    });
}

/// An error without what is quoted in it.
fn gist(message: &str) -> String {
    message.chars().take(24).filter(char::is_ascii_alphabetic).collect()
}
