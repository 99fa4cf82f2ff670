//! One case on both sides, and what may be different.

use std::fmt;
use std::sync::Arc;

use forebay_cel::decl::Decl;
use forebay_cel::value::{Map, MapKey, Signed};
use forebay_cel::{Activation, Env, Type, Value};
use serde_json::{Value as Json, json};

use crate::schemas;

/// What is not the same.
pub struct Difference {
    expr: String,
    /// Of ours and theirs.
    members: Vec<(&'static str, Json, Json)>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.expr)?;
        for (name, ours, theirs) in &self.members {
            write!(f, "\n    {name}: {ours}\n    theirs: {theirs}")?;
        }
        Ok(())
    }
}

impl Difference {
    /// Why it may be, if it may.
    pub fn reason(&self) -> Option<&'static str> {
        let theirs =
            |text: &str| self.members.iter().any(|(.., it)| it.as_str().is_some_and(|it| it.contains(text)));
        if theirs("internal error: ") {
            return Some("upstream panics, and says of what");
        }
        None
    }
}

/// What is different between the answers to a case.
pub fn of(case: &Json, theirs: &Json) -> Option<Difference> {
    let ours = ours(case);
    let mut members = Vec::new();
    for name in ["check", "type", "estimate", "result", "error", "cost"] {
        let (our, their) = (&ours[name], &theirs[name]);
        let varies = their == "varies";
        if our != their && !varies && !both_syntax(our, their) {
            members.push((name, our.clone(), their.clone()));
        }
    }
    let expr = case["expr"].as_str().unwrap_or_default().to_owned();
    (!members.is_empty()).then_some(Difference { expr, members })
}

/// Neither side can read it: the words are those of a generated parser.
fn both_syntax(our: &Json, their: &Json) -> bool {
    [our, their].into_iter().all(|side| side.as_str().is_some_and(|text| text.contains("Syntax error: ")))
}

fn ours(case: &Json) -> Json {
    let minor = case["minor"].as_u64().map_or(36, |minor| minor as u32);
    let decl = match (case.get("decl"), case.get("schema")) {
        (Some(declared), _) => Some(Arc::new(schemas::declared(declared))),
        (None, schema) => schema.map(|schema| Arc::new(schemas::decl(schema))),
    };
    let env = match &decl {
        Some(decl) => {
            let name = case["decl"]["name"].as_str().unwrap_or("selfType");
            Env::new(minor).with_declared("self", decl.checked(name), decl.clone())
        }
        None => Env::new(minor).with("self", Type::Dyn),
    };
    let env = if case["mutations"] == true { env.with_mutations() } else { env };
    let compiled = match env.compile(case["expr"].as_str().unwrap_or_default()) {
        Ok(compiled) => compiled,
        Err(issues) => return json!({"check": issues.to_string(), "estimate": ["", ""]}),
    };
    let estimate = compiled.estimate();
    let mut answer = json!({
        "type": type_text(compiled.output()),
        "estimate": [estimate.min.to_string(), estimate.max.to_string()],
    });
    let program = match compiled.program() {
        Ok(program) => program,
        Err(error) => {
            answer["error"] = format!("program: {error}").into();
            return answer;
        }
    };
    let self_value = case.get("self").map(|json| value(json, decl.as_deref()));
    let variables = [self_value];
    let done = program.eval(Activation { variables: &variables, ..Activation::default() }, 1_000_000);
    answer["cost"] = done.cost.to_string().into();
    match done.result {
        Ok(value) => answer["result"] = shown(&value).into(),
        Err(error) => answer["error"] = error.to_string().into(),
    }
    answer
}

fn value<'a>(json: &'a Json, decl: Option<&'a Decl>) -> Value<'a> {
    match decl {
        Some(decl) => Value::from_declared(json, decl).expect("it is of its schema"),
        None => Value::from_tree(json),
    }
}

/// As Go's `String` of a type has it.
fn type_text(it: &Type) -> String {
    if let Type::Wrapper(inner) = it {
        return format!("wrapper({})", type_text(inner));
    }
    let params: Vec<_> = match it {
        Type::List(item) => vec![type_text(item)],
        Type::Map(both) => vec![type_text(&both.0), type_text(&both.1)],
        Type::Opaque(_, params) => params.iter().map(type_text).collect(),
        Type::Type(Some(inner)) => vec![type_text(inner)],
        _ => Vec::new(),
    };
    if params.is_empty() { it.name().to_owned() } else { format!("{}({})", it.name(), params.join(", ")) }
}

fn quoted(text: &str) -> String {
    let text = serde_json::to_string(text).expect("a text");
    text.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Int(it) => it.to_string(),
        Value::Uint(it) => format!("{it}u"),
        Value::Double(it) if it.is_nan() => "NaN".to_owned(),
        Value::Double(it) => format!("{:016x}d", it.to_bits()),
        Value::String(text) => quoted(text),
        Value::Bytes(bytes) => {
            format!("b{}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        Value::Duration(nanos) => format!("{nanos}ns"),
        Value::Timestamp(at) => format!("@{}.{:09}", at.seconds, at.nanos),
        Value::Type(name) => format!("type {name}"),
        Value::Composed => "variables".to_owned(),
        Value::Optional(None) => "none".to_owned(),
        Value::Optional(Some(inner)) => format!("optional({})", shown(inner)),
        Value::List(list) => {
            let items: Vec<_> = list.iter().map(|item| shown(&item.expect("it is of its format"))).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(Map::Owned(entries)) => {
            let mut entries: Vec<_> =
                entries.iter().map(|(key, value)| format!("{}: {}", shown_key(key), shown(value))).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Map(map @ Map::Tree(members, _)) => {
            let entry = |name: &String| {
                let value = map
                    .get(&MapKey::String(forebay_cel::value::TextValue::Borrowed(name)))
                    .expect("of its format");
                value.map(|value| format!("{}: {}", quoted(name), shown(&value)))
            };
            let mut entries: Vec<_> = members.keys().filter_map(entry).collect();
            entries.sort();
            format!("{{{}}}", entries.join(", "))
        }
        // What is in it the expressions themselves compare.
        Value::Struct(it) => it.name.to_string(),
        Value::Object(it) => it.to_string(),
    }
}

fn shown_key(key: &MapKey<'_>) -> String {
    match key {
        MapKey::Bool(it) => it.to_string(),
        MapKey::Number(it, Signed::Int) => it.to_string(),
        MapKey::Number(it, Signed::Uint) => format!("{it}u"),
        MapKey::String(text) => quoted(text),
    }
}
