//! Every overload that there is, with arguments that it is for, and with others.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

const FUNCTIONS: &str = include_str!("../../data/functions.txt");
/// Combinations of right arguments that are tried of one overload.
const COMBINATIONS_MAX: usize = 40;
const WRONG: [&str; 6] = ["dyn(null)", "dyn({})", "dyn('zz')", "dyn(7)", "dyn([1])", "dyn(2.5)"];

pub fn cases() -> Vec<Json> {
    let (mut seen, mut cases, mut name) = (BTreeSet::new(), Vec::new(), "");
    for line in FUNCTIONS.lines().filter(|line| !line.starts_with('#')) {
        let Some(overload) = line.strip_prefix(' ') else {
            name = line;
            continue;
        };
        let words: Vec<_> = overload.split(' ').collect();
        let is_member = words[2] == "m";
        let args = split(words[3].trim_start_matches('(').strip_suffix(')').expect("parentheses"));
        let samples: Vec<_> = args.iter().map(|arg| samples(arg)).collect();
        // An `authorizer` and what comes of one have no literals.
        if samples.iter().any(Vec::is_empty) {
            continue;
        }
        for args in right(&samples).into_iter().chain(wrong(&samples)) {
            // A range of that many elements is made by upstream, and refused here.
            let is_huge = name == "lists.range" && args[0].contains("9007");
            if let Some(expr) = render(name, is_member, &args).filter(|_| !is_huge)
                && seen.insert(expr.clone())
            {
                cases.push(json!({"file": name, "expr": expr}));
            }
        }
    }
    cases
}

fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut parts) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < text.len() {
        parts.push(&text[from..]);
    }
    parts
}

fn samples(of: &str) -> Vec<String> {
    let (base, inner) =
        of.split_once('(').map_or((of, ""), |(base, inner)| (base, inner.trim_end_matches(')')));
    if of.starts_with('$') {
        return ["1", "'x'", "[1]", "null"].map(String::from).to_vec();
    }
    let of_inner = literals(inner);
    if base == "list" && !of_inner.is_empty() && inner != "dyn" {
        let backwards: Vec<_> = of_inner.iter().rev().copied().collect();
        let all = |items: &[&str]| format!("[{}]", items.join(","));
        return vec![all(of_inner), all(&of_inner[..1]), "[]".to_owned(), all(&backwards)];
    }
    literals(base).iter().map(|literal| (*literal).to_owned()).collect()
}

fn literals(of: &str) -> &'static [&'static str] {
    match of {
        "int" => &["1", "-3", "0", "9007199254740993"],
        "uint" => &["1u", "0u", "18446744073709551615u"],
        "double" => &["1.5", "-0.0", "1e300", "0.1"],
        "bool" => &["true", "false"],
        "string" => &["'a'", "''", "'aXbä€c'", "'2'", "'1.2.3'", "'10.0.0.1'"],
        "bytes" => &["b'a'", "b''"],
        "google.protobuf.Duration" => &["duration('90m')", "duration('-1.5s')"],
        "google.protobuf.Timestamp" => {
            &["timestamp('2024-02-29T23:59:59.123Z')", "timestamp('0001-01-01T00:00:00Z')"]
        }
        "list" => &[
            "[3,1,2]",
            "[]",
            "['b','a']",
            "[[1],[2,[3]]]",
            "[1.5,2.5]",
            "[1u]",
            "[true]",
            "[duration('1s')]",
            "[timestamp(0)]",
            "[b'a']",
            "[optional.of(1),optional.none()]",
        ],
        "map" => &["{'a':1}", "{}", "{1:2}"],
        "dyn" => &["1", "'x'", "[1]"],
        "@kubernetes.Quantity" => &["quantity('1.5Gi')", "quantity('-100m')", "quantity('3')"],
        "net.IP" => &["ip('10.1.2.3')", "ip('fe80::1')"],
        "net.CIDR" => &["cidr('10.0.0.0/8')", "cidr('2001:db8::/33')", "cidr('10.1.2.3/24')"],
        "@kubernetes.URL" => &["url('https://u@ex.com:80/a%20b?x=1&x=2&y')", "url('/p/q')"],
        "@kubernetes.Semver" => &["semver('1.2.3')", "semver('1.2.3-rc.1+b')"],
        "@kubernetes.NamedFormat" => {
            &["format.dns1123Label()", "format.uri()", "format.byte()", "format.datetime()"]
        }
        "optional_type" => {
            &["optional.of(1)", "optional.none()", "optional.of([1,2])", "optional.of({'a':1})"]
        }
        _ => &[],
    }
}

fn right(samples: &[Vec<String>]) -> Vec<Vec<String>> {
    let count: usize = samples.iter().map(Vec::len).product();
    let step = (count / COMBINATIONS_MAX).max(1);
    let combination = |mut number: usize| {
        let pick = |of: &Vec<String>| {
            let at = number % of.len();
            number /= of.len();
            of[at].clone()
        };
        samples.iter().map(pick).collect()
    };
    (0..count).step_by(step).map(combination).collect()
}

fn wrong(samples: &[Vec<String>]) -> Vec<Vec<String>> {
    let first: Vec<String> = samples.iter().map(|of| of[0].clone()).collect();
    let mut all = Vec::new();
    for at in 0..first.len() {
        for wrong in WRONG {
            let mut args = first.clone();
            args[at] = wrong.to_owned();
            all.push(args);
        }
    }
    if !first.is_empty() {
        let mut unset = first.clone();
        unset[0] = "self".to_owned();
        all.push(unset);
        all.push(first.iter().map(|arg| format!("dyn({arg})")).collect());
    }
    all
}

fn render(name: &str, is_member: bool, args: &[String]) -> Option<String> {
    let binary = name.strip_prefix('_').and_then(|name| name.strip_suffix('_'));
    Some(match (name, binary) {
        ("_[_]", _) => format!("({})[{}]", args[0], args[1]),
        ("_[?_]", _) => format!("({})[?{}]", args[0], args[1]),
        ("_?_:_", _) => format!("({}) ? ({}) : ({})", args[0], args[1], args[2]),
        ("!_", _) => format!("!({})", args[0]),
        ("-_", _) => format!("-({})", args[0]),
        ("@in", _) => format!("({}) in ({})", args[0], args[1]),
        (_, Some(sign)) if !sign.starts_with(|c: char| c == '_' || c == '?' || c.is_alphanumeric()) => {
            format!("({}) {sign} ({})", args[0], args[1])
        }
        _ if name == "in" || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'.') => return None,
        _ if is_member => format!("({}).{name}({})", args[0], args[1..].join(", ")),
        _ => format!("{name}({})", args.join(", ")),
    })
}
