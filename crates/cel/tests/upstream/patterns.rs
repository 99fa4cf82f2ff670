//! Patterns and numbers, of which Go has its own ideas.
//!
//! In: nothing. Out: expressions with patterns that are constants, and with the same as values of the object.

use serde_json::{Value as Json, json};

/// Patterns, each with a text.
const PATTERNS: [(&str, &str); 44] = [
    (r"^\d+$", "١٢"),
    (r"^\d+$", "12"),
    (r"^\w$", "é"),
    (r"^\W$", "é"),
    (r"\s", "\u{a0}"),
    (r"\s", "\u{b}"),
    (r"\bé", "aé"),
    (r"\B", "aéb"),
    (r"\B", "é"),
    ("(?x)a b", "ab"),
    ("(a{500}){3}", "a"),
    ("(a{500}){2}", "a"),
    ("a{1001}", "a"),
    ("a{2,1}", "a"),
    ("a**", "a"),
    ("a+?", "aa"),
    ("^[^[]*$", "ab"),
    ("a{b", "a{b"),
    ("a{,2}", "a{,2}"),
    (r"\Qa.b\E", "axb"),
    (r"\Qa.b\E", "xa.bx"),
    ("[a&&b]", "b"),
    ("[+--]", ","),
    (r"\<", "a-b"),
    (r"\pL{30}", "aéxaéxaéxaéxaéxaéxaéxaéxaéxaéxaéx"),
    (r"^\w{1,253}$", "abc"),
    (r"^\pL{1,63}$", "abc"),
    (r"\p{Greek}+", "aαβ"),
    (r"\p{Alphabetic}", "a"),
    (r"\p{Letter}", "a"),
    (r"\p{Grek}", "α"),
    (r"\012", "\n"),
    ("(?i)K", "\u{212a}"),
    ("(?P<n>a)(?<m>b)", "ab"),
    ("(?P<n>a)(?P<n>b)", "ab"),
    ("(?=a)", "a"),
    ("(?i", "a"),
    ("(", "a"),
    (")", "a"),
    ("[", "a"),
    ("*", "a"),
    (r"\C", "a"),
    ("a|b|", "xb"),
    ("", "éa"),
];

pub fn cases() -> Vec<Json> {
    let text = |text: &str| serde_json::to_string(text).expect("text");
    let of_numbers = [
        "string(1000000.0)",
        "string(999999.5)",
        "string(12345678.9)",
        "string(-1e20)",
        "string(1e21)",
        "string(0.0001)",
        "string(0.00001)",
        "'%s'.format([1000000.0])",
        "'%s'.format([[1000000.0, 1.5]])",
        "string(quantity('12345678').asApproximateFloat())",
        "double('1e400')",
        "double('-1e400')",
        "double('0x1p4')",
        "double('0x1_0.8p-2')",
        "double('1_0')",
        "double('1__0')",
        "double('Infinity')",
        "double('+nan')",
        "double('0x10')",
        "double('.')",
        "double('5.')",
    ];
    let mut cases: Vec<_> = of_numbers.iter().map(|expr| json!({"file": "numbers", "expr": expr})).collect();
    for (pattern, of) in PATTERNS {
        for ask in ["matches(P)", "find(P)", "findAll(P)", "findAll(P, 1)"] {
            let constant = format!("{}.{}", text(of), ask.replace('P', &text(pattern)));
            cases.push(json!({"file": "patterns", "expr": constant}));
            let value = format!("self.of.{}", ask.replace('P', "self.by"));
            cases.push(json!({"file": "patterns", "expr": value, "self": {"of": of, "by": pattern}}));
        }
    }
    cases
}
