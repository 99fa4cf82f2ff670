//! JSONPath as printer columns and subresource paths write it.
//!
//! In: the text of a path, `.status.conditions[?(@.type=="Ready")].status`. Out: the values it finds in an
//! object. Never: fails on an object; what is missing is not found.
//!
//! Source: client-go v0.36.3 `util/jsonpath`, with `AllowMissingKeys`.

use std::cell::Cell;

use forebay_apimachinery::steps;
use serde_json::Value;

/// A path, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath(pub(super) Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    Member(String),
    // A negative index counts from the end.
    Index(i64),
    Slice { from: Option<i64>, to: Option<i64>, step: i64 },
    Every,
    // `..name`: every member of that name below.
    Below(String),
    Any(Vec<Step>),
    Where(Filter),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub(super) left: Term,
    pub(super) compared: Option<(Comparison, Term)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Term {
    Path(Vec<Step>),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Steps in one path, and paths in each other; longer ones are refused.
const STEPS_MAX: usize = 256;
const FILTER_DEPTH_MAX: usize = 8;
/// Values that a path may pass through on one object: a path with `..` and `[*]` cannot multiply beyond it.
const VALUES_MAX: usize = 10_000;
/// Values that a path may look at on one object to find those: `..` looks at all below, from each value that
/// it starts at.
const LOOKS_MAX: usize = 1 << 20;
/// How deep `..` looks.
const BELOW_DEPTH_MAX: usize = 512;

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JsonPathError(String);

impl JsonPath {
    /// Parses `text`, which begins with `.` or `[`.
    ///
    /// # Errors
    /// What is not understood.
    pub fn parse(text: &str) -> Result<JsonPath, JsonPathError> {
        let mut parser = Parser { rest: text, depth: 0 };
        let steps = parser.steps()?;
        if !parser.rest.is_empty() {
            return fail(format!("unexpected {:?} in {text:?}", parser.rest));
        }
        Ok(JsonPath(steps))
    }

    /// The names of the path when it is nothing but members: `.spec.replicas`.
    pub fn members(&self) -> Option<Vec<&str>> {
        let name = |step: &Step| matches!(step, Step::Member(_));
        if !self.0.iter().all(name) {
            return None;
        }
        Some(
            self.0
                .iter()
                .filter_map(|step| if let Step::Member(name) = step { Some(&**name) } else { None })
                .collect(),
        )
    }

    /// Everything that the path finds in `object`, in order.
    pub fn find<'v>(&self, object: &'v Value) -> Vec<&'v Value> {
        walk(&self.0, object, &Cell::new(LOOKS_MAX))
    }
}

fn walk<'v>(steps: &[Step], root: &'v Value, looks_left: &Cell<usize>) -> Vec<&'v Value> {
    let mut found = vec![root];
    for step in steps {
        let mut next = Vec::new();
        for value in found {
            take(step, value, looks_left, &mut next);
            if next.len() > VALUES_MAX {
                break;
            }
        }
        next.truncate(VALUES_MAX);
        found = next;
    }
    found
}

/// Takes note of a look; says whether there may be one.
fn looks(looks_left: &Cell<usize>) -> bool {
    steps::add(1);
    let left = looks_left.get().checked_sub(1);
    looks_left.set(left.unwrap_or_default());
    left.is_some()
}

fn take<'v>(step: &Step, value: &'v Value, looks_left: &Cell<usize>, out: &mut Vec<&'v Value>) {
    if !looks(looks_left) {
        return;
    }
    match step {
        Step::Member(name) => out.extend(value.get(name.as_str())),
        Step::Index(index) => {
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            out.extend(at(list.len(), *index).and_then(|index| list.get(index)));
        }
        Step::Slice { from, to, step } => slice(value, *from, *to, *step, out),
        Step::Every => match value {
            Value::Array(list) => out.extend(list.iter().take(room(out))),
            Value::Object(members) => out.extend(members.values().take(room(out))),
            _ => {}
        },
        Step::Below(name) => below(name, value, 0, looks_left, out),
        Step::Any(steps) => steps.iter().for_each(|step| take(step, value, looks_left, out)),
        Step::Where(filter) => {
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            out.extend(list.iter().filter(|item| looks(looks_left) && filter.holds(item, looks_left)));
        }
    }
}

/// How many more are looked at; one too many tells that there are more.
fn room(out: &[&Value]) -> usize {
    (VALUES_MAX + 1).saturating_sub(out.len())
}

fn at(length: usize, index: i64) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(length).ok()?)? } else { index };
    usize::try_from(index).ok()
}

fn slice<'v>(value: &'v Value, from: Option<i64>, to: Option<i64>, step: i64, out: &mut Vec<&'v Value>) {
    let Some(list) = value.as_array() else { return };
    let bound = |bound: Option<i64>, absent: usize| match bound {
        Some(bound) => at(list.len(), bound).unwrap_or(0).min(list.len()),
        None => absent,
    };
    let (from, to) = (bound(from, 0), bound(to, list.len()));
    let step = usize::try_from(step).unwrap_or(1).max(1);
    out.extend(list.get(from..to).unwrap_or_default().iter().step_by(step).take(room(out)));
}

fn below<'v>(name: &str, value: &'v Value, depth: usize, looks_left: &Cell<usize>, out: &mut Vec<&'v Value>) {
    if depth > BELOW_DEPTH_MAX || out.len() > VALUES_MAX || !looks(looks_left) {
        return;
    }
    match value {
        Value::Object(members) => {
            out.extend(members.get(name));
            members.values().for_each(|member| below(name, member, depth + 1, looks_left, out));
        }
        Value::Array(list) => list.iter().for_each(|item| below(name, item, depth + 1, looks_left, out)),
        _ => {}
    }
}

impl Filter {
    fn holds(&self, item: &Value, looks_left: &Cell<usize>) -> bool {
        let left = self.left.values(item, looks_left);
        let Some((comparison, right)) = &self.compared else { return !left.is_empty() };
        let right = right.values(item, looks_left);
        match (left.as_slice(), right.as_slice()) {
            ([left], [right]) => compare(left, *comparison, right),
            _ => false,
        }
    }
}

impl Term {
    fn values<'v>(&'v self, item: &'v Value, looks_left: &Cell<usize>) -> Vec<&'v Value> {
        match self {
            Term::Path(steps) => walk(steps, item, looks_left),
            Term::Literal(value) => vec![value],
        }
    }
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> bool {
    use std::cmp::Ordering;
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => None,
    };
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

fn fail<T>(why: impl Into<String>) -> Result<T, JsonPathError> {
    Err(JsonPathError(why.into()))
}

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

impl<'t> Parser<'t> {
    /// Steps up to what cannot be one.
    fn steps(&mut self) -> Result<Vec<Step>, JsonPathError> {
        let mut steps = Vec::new();
        loop {
            if steps.len() > STEPS_MAX {
                return fail("the path is too long");
            }
            if let Some(rest) = self.rest.strip_prefix("..") {
                self.rest = rest;
                steps.push(Step::Below(self.name()?));
            } else if let Some(rest) = self.rest.strip_prefix(".[") {
                self.rest = rest;
                steps.push(self.bracket()?);
            } else if let Some(rest) = self.rest.strip_prefix(".*") {
                self.rest = rest;
                steps.push(Step::Every);
            } else if let Some(rest) = self.rest.strip_prefix('.') {
                self.rest = rest;
                // A lone dot is the object itself.
                if !rest.is_empty() || !steps.is_empty() {
                    steps.push(Step::Member(self.name()?));
                }
            } else if let Some(rest) = self.rest.strip_prefix('[') {
                self.rest = rest;
                steps.push(self.bracket()?);
            } else {
                return Ok(steps);
            }
        }
    }

    /// A bare name; a backslash makes the next character part of it.
    fn name(&mut self) -> Result<String, JsonPathError> {
        let mut name = String::new();
        let mut chars = self.rest.char_indices();
        let mut end = self.rest.len();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => match chars.next() {
                    Some((_, escaped)) => name.push(escaped),
                    None => return fail("a path ends with a backslash"),
                },
                '.' | '[' | ']' | ' ' | '=' | '!' | '<' | '>' | ')' | '(' | ',' | '{' | '}' | '|' => {
                    end = at;
                    break;
                }
                c => name.push(c),
            }
        }
        self.rest = &self.rest[end..];
        if name.is_empty() { fail(format!("a name is missing before {:?}", self.rest)) } else { Ok(name) }
    }

    /// What stands between brackets; the opening one is passed.
    fn bracket(&mut self) -> Result<Step, JsonPathError> {
        if let Some(rest) = self.rest.strip_prefix("?(") {
            self.rest = rest;
            let filter = self.filter()?;
            return match self.rest.strip_prefix(")]") {
                Some(rest) => {
                    self.rest = rest;
                    Ok(Step::Where(filter))
                }
                None => fail("unterminated filter"),
            };
        }
        let mut options = Vec::new();
        loop {
            self.skip_spaces();
            options.push(self.option()?);
            self.skip_spaces();
            if let Some(rest) = self.rest.strip_prefix(']') {
                self.rest = rest;
                break;
            }
            match self.rest.strip_prefix(',') {
                Some(rest) if options.len() < STEPS_MAX => self.rest = rest,
                _ => return fail("unterminated array"),
            }
        }
        // Few: it is the only one.
        Ok(if options.len() == 1 { options.remove(0) } else { Step::Any(options) })
    }

    fn option(&mut self) -> Result<Step, JsonPathError> {
        if let Some(rest) = self.rest.strip_prefix('*') {
            self.rest = rest;
            return Ok(Step::Every);
        }
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted().map(Step::Member);
        }
        let end = self.rest.find([']', ',']).ok_or_else(|| JsonPathError("unterminated array".into()))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse::<i64>().map(Some).or_else(|_| fail(format!("invalid array index {text}"))),
        };
        let parts: Vec<&str> = text.split(':').collect();
        match parts.as_slice() {
            [index] => match number(index)? {
                Some(index) => Ok(Step::Index(index)),
                None => fail(format!("invalid array index {index}")),
            },
            [from, to] => Ok(Step::Slice { from: number(from)?, to: number(to)?, step: 1 }),
            [from, to, step] => {
                Ok(Step::Slice { from: number(from)?, to: number(to)?, step: number(step)?.unwrap_or(1) })
            }
            _ => fail(format!("invalid array index {text}")),
        }
    }

    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        self.depth += 1;
        if self.depth > FILTER_DEPTH_MAX {
            return fail("filters are nested too deep");
        }
        let left = self.term()?;
        self.skip_spaces();
        let operators = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        let mut compared = None;
        for (text, comparison) in operators {
            if let Some(rest) = self.rest.strip_prefix(text) {
                self.rest = rest;
                compared = Some((comparison, self.term()?));
                break;
            }
        }
        self.skip_spaces();
        self.depth -= 1;
        Ok(Filter { left, compared })
    }

    fn term(&mut self) -> Result<Term, JsonPathError> {
        self.skip_spaces();
        if let Some(rest) = self.rest.strip_prefix('@') {
            self.rest = rest;
            return self.steps().map(Term::Path);
        }
        if self.rest.starts_with(['\'', '"']) {
            return self.quoted().map(|text| Term::Literal(Value::from(text)));
        }
        let end = self.rest.find([')', ' ', '=', '!', '<', '>']).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        let literal: Result<Value, _> = serde_json::from_str(text);
        match literal {
            Ok(value @ (Value::Bool(_) | Value::Number(_))) => Ok(Term::Literal(value)),
            _ => fail(format!("unrecognized {text:?} in a filter")),
        }
    }

    fn quoted(&mut self) -> Result<String, JsonPathError> {
        let mut chars = self.rest.char_indices();
        let Some((_, quote)) = chars.next() else { return fail("unterminated quoted string") };
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => text.extend(chars.next().map(|(_, escaped)| escaped)),
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Ok(text);
                }
                c => text.push(c),
            }
        }
        fail("unterminated quoted string")
    }

    fn skip_spaces(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(path: &str) -> Vec<Value> {
        let object = json!({
            "spec": { "replicas": 3, "a.b": "dotted", "list": ["x", "y", "z"] },
            "status": { "conditions": [
                { "type": "Ready", "status": "True", "weight": 2 },
                { "type": "Synced", "status": "False" },
            ] },
            "deep": { "name": "d", "in": [{ "name": "e" }] },
        });
        JsonPath::parse(path).expect(path).find(&object).into_iter().cloned().collect()
    }

    #[test]
    fn paths_find_what_they_name() {
        for (path, expected) in [
            (".spec.replicas", json!([3])),
            (".spec.a\\.b", json!(["dotted"])),
            (".spec['a.b']", json!(["dotted"])),
            (".spec.list[0]", json!(["x"])),
            (".spec.list[-1]", json!(["z"])),
            (".spec.list[0:2]", json!(["x", "y"])),
            (".spec.list[::2]", json!(["x", "z"])),
            (".spec.list[0,2]", json!(["x", "z"])),
            (".spec.list[*]", json!(["x", "y", "z"])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type == 'Synced')].status", json!(["False"])),
            (".status.conditions[?(@.weight>1)].type", json!(["Ready"])),
            (".status.conditions[?(@.weight)].type", json!(["Ready"])),
            (".deep..name", json!(["d", "e"])),
            (".missing.at.all", json!([])),
            (".spec.replicas.deeper", json!([])),
            (".spec.list[9]", json!([])),
        ] {
            assert_eq!(Value::Array(find(path)), expected, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for path in ["spec", ".spec[", ".spec[?(@.a==]", ".spec['a", ".a.", ".a[x]", ".a\\", ".a b"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
        let nested = format!("{}@.a{}", "[?(@.a".repeat(50), ")]".repeat(50));
        assert!(JsonPath::parse(&nested).is_err());
    }

    #[test]
    fn a_path_of_members_gives_their_names() {
        assert_eq!(
            JsonPath::parse(".spec.replicas").expect("a path").members(),
            Some(vec!["spec", "replicas"])
        );
        assert_eq!(JsonPath::parse(".spec.list[0]").expect("a path").members(), None);
    }
}
