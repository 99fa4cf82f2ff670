//! The functions that Kubernetes' environments have, by version: `data/functions.txt`, which `go/` beside
//! this crate writes from upstream's.
//!
//! In: a version. Out: overloads by function, in upstream's order. Never: what a function does.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::messages;
use crate::types::Type;

/// Signatures that a function may be called with.
#[derive(Debug)]
pub(crate) struct Overload {
    pub id: Arc<str>,
    pub is_member: bool,
    pub args: Vec<Type>,
    pub result: Type,
    /// The minor version of Kubernetes that it is there from.
    pub since: u32,
    /// Whether only mutating policies have it.
    pub is_of_mutations: bool,
}

/// What apiserver adds for mutating policies, in the table's form: `pkg/cel/library/jsonpatch.go`.
const OF_MUTATIONS: &str = "jsonpatch.escapeKey\n 0 jsonpatch_escapeKey_string f (string) string";

pub(crate) static FUNCTIONS: LazyLock<HashMap<&'static str, Vec<Overload>>> = LazyLock::new(|| {
    let mut functions = read(include_str!("../data/functions.txt"), false);
    functions.extend(read(OF_MUTATIONS, true));
    functions
});

fn read(text: &'static str, is_of_mutations: bool) -> HashMap<&'static str, Vec<Overload>> {
    let mut functions = HashMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix(' ') {
            None => name = line,
            Some(overload) => {
                let overload = read_overload(overload, is_of_mutations).expect("the table is of one form");
                functions.entry(name).or_insert_with(Vec::new).push(overload);
            }
        }
    }
    functions
}

fn read_overload(line: &str, is_of_mutations: bool) -> Option<Overload> {
    let mut words = line.split(' ');
    let since = words.next()?.parse().ok()?;
    let id = words.next()?.into();
    let is_member = words.next()? == "m";
    let args = words.next()?.strip_prefix('(')?.strip_suffix(')')?;
    let (args, result) = (read_types(args), words.next()?);
    Some(Overload { id, is_member, args, result: read_type(result), since, is_of_mutations })
}

/// Types between commas that are in no parentheses.
fn read_types(text: &str) -> Vec<Type> {
    let (mut depth, mut from, mut types) = (0, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                types.push(read_type(&text[from..at]));
                from = at + 1;
            }
            _ => {}
        }
    }
    if from < text.len() {
        types.push(read_type(&text[from..]));
    }
    types
}

fn read_type(text: &str) -> Type {
    if let Some((name, params)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut params = read_types(params);
        return match (name, params.len()) {
            ("list", 1) => Type::list(params.remove(0)),
            ("map", 2) => Type::map(params.remove(0), params.remove(0)),
            ("type", 1) => Type::Type(Some(Arc::new(params.remove(0)))),
            _ => Type::Opaque(name.into(), params.into()),
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "null_type" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "google.protobuf.Duration" => Type::Duration,
        "google.protobuf.Timestamp" => Type::Timestamp,
        "type" => Type::Type(None),
        _ => match (text.strip_prefix('$'), text.strip_prefix('@')) {
            (Some(param), _) => Type::Param(param.into()),
            (_, Some(name)) => Type::named(name),
            _ => Type::Opaque(text.into(), Arc::new([])),
        },
    }
}

/// Names that are types, as values.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    let dynamic = || Type::Param("A".into());
    Some(match name {
        "bool" => Type::Bool,
        "bytes" => Type::Bytes,
        "double" => Type::Double,
        "int" => Type::Int,
        "list" => Type::list(dynamic()),
        "map" => Type::map(dynamic(), Type::Param("B".into())),
        "null_type" => Type::Null,
        "string" => Type::String,
        "type" => Type::Type(None),
        "uint" => Type::Uint,
        "optional_type" => Type::optional(Type::Param("V".into())),
        "net.IP" | "net.CIDR" => Type::Opaque(name.into(), Arc::new([])),
        _ => return messages::well_known(name),
    })
}
