//! What an evaluation of rules of real definitions takes, here and in cel-go.
//!
//! In: rules in the forms that operators write. Out: that both sides say the same of them; with
//! `FOREBAY_RULE_TIMES`, which `cargo xtask rules --times` sets, nanoseconds an evaluation on both. Never: a
//! judgement by time.
#![allow(clippy::disallowed_methods, reason = "it measures when it is asked to, and then on the real clock")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use forebay_cel::{Activation, Env, Value};
use serde_json::{Value as Json, json};

use crate::{difference, program, schemas};

/// How long a rule is evaluated again and again.
const MEASURED: Duration = Duration::from_millis(200);

fn text() -> Json {
    json!({ "type": "string", "maxLength": 253 })
}

fn object(properties: Json) -> Json {
    json!({ "type": "object", "properties": properties })
}

fn list(items: Json) -> Json {
    json!({ "type": "array", "maxItems": 64, "items": items })
}

fn case(name: &str, expr: &str, schema: Json, value: Json) -> Json {
    json!({ "file": name, "expr": expr, "schema": schema, "self": value })
}

fn cases() -> Vec<Json> {
    let requirement = object(json!({ "key": text(), "operator": text(), "values": list(text()) }));
    let requirements: Vec<Json> =
        (0..8).map(|at| json!({ "key": format!("k{at}"), "operator": "In", "values": ["a", "b"] })).collect();
    let parents: Vec<Json> =
        (0..8).map(|at| json!({ "name": format!("gateway-{at}"), "sectionName": "http" })).collect();
    vec![
        case(
            "gateway-api: a path",
            "(self.type in ['Exact', 'PathPrefix']) ? self.value.startsWith('/') && !self.value.contains('//') : true",
            object(json!({ "type": text(), "value": text() })),
            json!({ "type": "PathPrefix", "value": "/some/path" }),
        ),
        case(
            "gateway-api: parents are distinct",
            "self.all(p1, self.exists_one(p2, p1.name == p2.name && (has(p1.sectionName) ? has(p2.sectionName) && \
             p1.sectionName == p2.sectionName : !has(p2.sectionName))))",
            list(object(json!({ "name": text(), "sectionName": text() }))),
            json!(parents),
        ),
        case(
            "gateway-api: timeouts",
            "!(has(self.request) && has(self.backendRequest) && duration(self.request) != duration('0s') && \
             duration(self.backendRequest) > duration(self.request))",
            object(json!({ "request": text(), "backendRequest": text() })),
            json!({ "request": "10s", "backendRequest": "500ms" }),
        ),
        case(
            "karpenter: requirements",
            "self.all(x, x.operator == 'In' ? x.values.size() != 0 : true)",
            list(requirement),
            json!(requirements),
        ),
        case(
            "kueue: a name",
            "self.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",
            object(json!({ "name": text() })),
            json!({ "name": "default-local-queue" }),
        ),
        case(
            "istio: addresses",
            "!((has(self.addresses) ? self.addresses : []).exists(k, k.contains('/')) && !((has(self.resolution) ? \
             self.resolution : 'NONE') in ['STATIC', 'NONE']))",
            object(json!({ "addresses": list(text()), "resolution": text() })),
            json!({ "addresses": ["10.0.0.0", "10.0.0.0/8"], "resolution": "STATIC" }),
        ),
        case(
            "istio: one of",
            "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) + (has(self.c) ? 1 : 0) <= 1",
            object(json!({ "a": text(), "b": text(), "c": text() })),
            json!({ "b": "x" }),
        ),
        case(
            "envoy-gateway: a URL",
            "isURL(self.uri) && url(self.uri).getScheme() in ['http', 'https']",
            object(json!({ "uri": text() })),
            json!({ "uri": "https://example.com:8443/.well-known/jwks.json" }),
        ),
        case(
            "prometheus-operator: a quantity",
            "isQuantity(self.limit) && quantity(self.limit).isGreaterThan(quantity('1Mi'))",
            object(json!({ "limit": text() })),
            json!({ "limit": "2Gi" }),
        ),
    ]
}

/// Nanoseconds an evaluation, here.
fn ours(case: &Json) -> u128 {
    let decl = Arc::new(schemas::decl(&case["schema"]));
    let env = Env::new(36).with_declared("self", decl.checked("selfType"), decl.clone());
    let compiled = env.compile(case["expr"].as_str().expect("a text")).expect("a rule");
    let program = compiled.program().expect("a program");
    let variables = [Some(Value::from_declared(&case["self"], &decl).expect("it is of its schema"))];
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < MEASURED {
        for _ in 0..100 {
            let with = Activation { variables: &variables, ..Activation::default() };
            std::hint::black_box(program.eval(with, 1_000_000));
        }
        count += 100;
    }
    begun.elapsed().as_nanos() / count
}

#[test]
fn rules_of_operators_come_out_as_upstream_has_them_and_times_are_told() {
    let Some(()) = program::or_skip() else { return };
    let cases = cases();
    let answers = program::answers("evaluate", &cases).expect("the program answers");
    for (case, theirs) in cases.iter().zip(&answers) {
        assert_eq!(theirs["result"], "true", "{case}: {theirs}");
        let different = difference::of(case, theirs);
        assert!(different.is_none(), "{}", different.map(|it| it.to_string()).unwrap_or_default());
    }
    if std::env::var_os("FOREBAY_RULE_TIMES").is_none() {
        return;
    }
    let theirs = program::answers("time", &cases).expect("the program answers");
    println!("{:40} {:>10} {:>10}", "ns an evaluation", "ours", "cel-go");
    for (case, theirs) in cases.iter().zip(&theirs) {
        let name = case["file"].as_str().unwrap_or("");
        println!("{name:40} {:>10} {:>10}", ours(case), theirs["ns"].as_str().unwrap_or("?"));
    }
}
