//! Expressions, mutated: none panics, none costs more than its budget, and each that compiles has the same
//! errors and costs again.

use forebay_cel::{Activation, Env, Type, Value};
use forebay_fuzz::{Corpus, charged, run};
use serde_json::json;

const EXPRESSIONS: [&str; 12] = [
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
    "format.named('dns1123Label').value().validate('A.b').hasValue() && 'ab'.findAll('[a-c]{1,2}?', 3) != []",
];
const WORDS: [&str; 24] = [
    "(", ")", "[", "]", "{", "}", ".", ".?", "[?", "?", ":", "&&", "||", "in", "!", "-", "'", "\"\"\"", "r'",
    "b\"", "0x", "e9", "self", "x",
];
const BUDGET: u64 = 20_000;

#[test]
fn fuzz_expressions() {
    let inputs = EXPRESSIONS.map(str::as_bytes);
    let corpus = Corpus { inputs: &inputs, words: &WORDS, ..Corpus::default() };
    let object = json!([{"name": "ab", "port": 80}, {"name": "c"}]);
    let env = Env::new(36).with("self", Type::Dyn);
    run("expressions", &corpus, |input| {
        let text = String::from_utf8_lossy(input);
        let compiled =
            env.compile(&text).map_err(|issues| issues.iter().next().map(|it| gist(&it.message)))?;
        charged(512 * compiled.nodes());
        let estimate = compiled.estimate();
        assert!(estimate.min <= estimate.max);
        let program = compiled.program().map_err(|error| Some(gist(&error.to_string())))?;
        let variables = [Some(Value::from_tree(&object))];
        let eval = || program.eval(Activation { variables: &variables, ..Activation::default() }, BUDGET);
        let (one, two) = (eval(), eval());
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
