//! Values of a schema, drawn.
//!
//! In: a schema, the way to what is to be there, the words of a rule, randomness. Out: a value that the
//! schema mostly takes: what it says in `allOf` and the like is not followed but for what must be there.
//! Never: a judgement.

use forebay_rt::Random;
use serde_json::{Map, Value, json};

use super::pattern::matching;
use super::site::Descent;
use super::words::Words;

/// Texts that mean something somewhere.
const TEXTS: [&str; 24] = [
    "a",
    "b",
    "web",
    "*",
    "",
    "/",
    "/a/../b",
    "//",
    "http",
    "HTTP",
    "example.com",
    "*.example.com",
    "10Mi",
    "100m",
    "1h",
    "90s",
    "-1s",
    "10.0.0.0/8",
    "10.0.0.1",
    "fd00::1",
    "https://example.com/a?b=c",
    "50%",
    "Ready",
    "v1",
];
const NUMBERS: [i64; 9] = [0, 1, 2, 3, 10, 80, 443, -1, 65_536];
/// Steps below which nothing is drawn that need not be there.
const OPTIONAL_DEPTH_MAX: usize = 7;
/// Items of a list that need not have so many.
const ITEMS_MORE_MAX: u64 = 2;
/// What is drawn for an item that has to be another than those before it.
const TRIES_MAX: usize = 8;

pub(super) struct Draw<'a> {
    pub random: &'a Random,
    pub words: &'a Words,
}

impl Draw<'_> {
    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn percent(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn one<'b, T>(&self, all: &'b [T]) -> Option<&'b T> {
        all.get(self.below(all.len()))
    }

    /// An object of `schema` in which `path` leads somewhere.
    pub fn object(&self, schema: &Value, path: &[Descent]) -> Value {
        let mut value = self.value(schema, path, 0);
        let name = self.one(&self.words.texts).filter(|text| self.percent(20) && is_name(text));
        let name = name.map_or("rule", String::as_str);
        let labels = self.percent(20).then(|| json!({ "app": "web" }));
        value["metadata"] = json!({ "name": name });
        if let Some(labels) = labels {
            value["metadata"]["labels"] = labels;
        }
        value
    }

    /// `value` with something else at one place of what `path` leads to, or nothing.
    pub fn changed(&self, value: &mut Value, schema: &Value, path: &[Descent]) {
        let Some((step, rest)) = path.split_first() else {
            *value = match value.as_object_mut() {
                Some(members) if self.percent(50) => self.member_changed(std::mem::take(members), schema),
                _ => self.value(schema, &[], 1),
            };
            return;
        };
        match (step, value) {
            (Descent::Property(name), Value::Object(members)) => {
                let inner = &schema["properties"][name];
                if rest.is_empty() && self.percent(25) {
                    members.remove(name);
                } else if let Some(member) = members.get_mut(name).filter(|_| self.percent(90)) {
                    self.changed(member, inner, rest);
                } else {
                    members.insert(name.clone(), self.value(inner, rest, 1));
                }
            }
            (Descent::Items, Value::Array(items)) if !items.is_empty() => {
                let at = self.below(items.len());
                self.changed(&mut items[at], &schema["items"], rest);
            }
            (Descent::Values, Value::Object(members)) if !members.is_empty() => {
                let at = self.below(members.len());
                if let Some(member) = members.values_mut().nth(at) {
                    self.changed(member, &schema["additionalProperties"], rest);
                }
            }
            (_, value) => *value = self.value(schema, path, 1),
        }
    }

    fn member_changed(&self, mut members: Map<String, Value>, schema: &Value) -> Value {
        let properties: Vec<(&String, &Value)> =
            schema["properties"].as_object().into_iter().flatten().collect();
        let named: Vec<_> =
            properties.iter().filter(|(name, _)| self.words.names.contains(*name)).copied().collect();
        let all = if named.is_empty() || self.percent(20) { &properties } else { &named };
        if let Some((name, inner)) = self.one(all).copied()
            && (members.remove(name).is_none() || self.percent(60))
        {
            members.insert(name.clone(), self.value(inner, &[], 1));
        }
        Value::Object(members)
    }

    fn value(&self, schema: &Value, path: &[Descent], depth: usize) -> Value {
        if let Some(values) = schema["enum"].as_array() {
            let mentioned: Vec<_> = values
                .iter()
                .filter(|value| {
                    value.as_str().is_some_and(|text| self.words.texts.iter().any(|it| it == text))
                })
                .collect();
            return match self.one(&mentioned).filter(|_| self.percent(60)) {
                Some(value) => (*value).clone(),
                None => self.one(values).cloned().unwrap_or(Value::Null),
            };
        }
        if schema["x-kubernetes-int-or-string"] == true {
            return if self.percent(50) { self.number(schema).into() } else { self.text(schema).into() };
        }
        match schema["type"].as_str().unwrap_or("") {
            "array" => self.array(schema, path, depth),
            "string" => self.text(schema).into(),
            "integer" => self.number(schema).into(),
            "number" => match self.percent(50) {
                true => self.number(schema).into(),
                false => json!(self.number(schema) as f64 + 0.5),
            },
            "boolean" => self.percent(50).into(),
            "object" => self.members(schema, path, depth),
            _ => json!({}),
        }
    }

    fn members(&self, schema: &Value, path: &[Descent], depth: usize) -> Value {
        let mut members = Map::new();
        let required = self.required(schema);
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            let is_next = matches!(path.first(), Some(Descent::Property(next)) if next == name);
            let is_named = depth < OPTIONAL_DEPTH_MAX + 3 && self.words.names.contains(name);
            let wanted = is_next
                || required.contains(&name.as_str())
                || is_named && self.percent(40)
                || depth < OPTIONAL_DEPTH_MAX && self.percent(4);
            if wanted {
                let rest = if is_next { &path[1..] } else { &[] };
                members.insert(name.clone(), self.value(inner, rest, depth + 1));
            }
        }
        if schema["additionalProperties"].is_object() {
            let is_next = path.first() == Some(&Descent::Values);
            let rest = if is_next { &path[1..] } else { &[] };
            let least = schema["minProperties"].as_u64().unwrap_or(0).max(u64::from(is_next));
            let most = schema["maxProperties"].as_u64().unwrap_or(u64::MAX).min(least + ITEMS_MORE_MAX);
            for at in 0..least + self.random.below(most.saturating_sub(least) + 1) {
                let text = self.one(&self.words.texts).filter(|_| self.percent(50));
                let key = text.cloned().unwrap_or_else(|| format!("k{at}"));
                members.insert(key, self.value(&schema["additionalProperties"], rest, depth + 1));
            }
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            members.insert("apiVersion".to_owned(), "v1".into());
            members.insert("kind".to_owned(), "ConfigMap".into());
            members.insert("metadata".to_owned(), json!({ "name": "inner" }));
        }
        Value::Object(members)
    }

    /// What must be there, by one branch of what there is a choice of.
    fn required<'b>(&self, schema: &'b Value) -> Vec<&'b str> {
        let own = schema["required"].as_array().into_iter().flatten();
        let branches = ["oneOf", "anyOf"].into_iter().filter_map(|kind| schema[kind].as_array());
        let branches = branches.filter_map(|branches| self.one(branches));
        let more = branches.flat_map(|branch| branch["required"].as_array().into_iter().flatten());
        let all = schema["allOf"].as_array().into_iter().flatten().flat_map(|part| self.required(part));
        own.chain(more).filter_map(Value::as_str).chain(all.collect::<Vec<_>>()).collect()
    }

    fn array(&self, schema: &Value, path: &[Descent], depth: usize) -> Value {
        let is_next = path.first() == Some(&Descent::Items);
        let rest = if is_next { &path[1..] } else { &[] };
        let least = schema["minItems"].as_u64().unwrap_or(0).max(u64::from(is_next));
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX).min(least + ITEMS_MORE_MAX).max(least);
        let keys: Vec<&str> = schema["x-kubernetes-list-map-keys"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let is_set = schema["x-kubernetes-list-type"] == "set" || schema["uniqueItems"] == true;
        let mut items: Vec<Value> = Vec::new();
        for _ in 0..least + self.random.below(most - least + 1) {
            let clashes = |item: &Value| {
                items.iter().any(|other| match keys.is_empty() {
                    true => is_set && other == item,
                    false => keys.iter().all(|key| other.get(*key) == item.get(*key)),
                })
            };
            let mut drawn = (0..TRIES_MAX).map(|_| self.value(&schema["items"], rest, depth + 1));
            let found = drawn.find(|item| !clashes(item));
            items.extend(found);
        }
        Value::Array(items)
    }

    fn number(&self, schema: &Value) -> i64 {
        let bound = |name: &str| schema[name].as_f64().map(|bound| bound as i64);
        let of_rule = self.one(&self.words.numbers).filter(|_| self.percent(50));
        let number = of_rule.or(self.one(&NUMBERS)).copied().unwrap_or(0);
        let number = bound("minimum").map_or(number, |least| number.max(least));
        bound("maximum").map_or(number, |most| number.min(most))
    }

    fn text(&self, schema: &Value) -> String {
        let of_rule = || {
            let text = self.one(&self.words.texts).filter(|_| self.percent(60))?;
            // What is a pattern is mostly followed.
            let is_pattern = text.contains(['^', '\\', '[', '$']);
            if is_pattern && self.percent(80) { matching(text, self.random) } else { Some(text.clone()) }
        };
        let of_schema = || {
            let pattern = schema["pattern"].as_str().filter(|_| self.percent(85))?;
            matching(pattern, self.random)
        };
        let of_format = || self.formatted(schema["format"].as_str()?);
        let plain = || self.one(&TEXTS).map(|text| (*text).to_owned());
        let mut text = of_format().or_else(of_schema).or_else(of_rule).or_else(plain).unwrap_or_default();
        if let Some(most) = schema["maxLength"].as_u64() {
            text = text.chars().take(most as usize).collect();
        }
        let least = schema["minLength"].as_u64().unwrap_or(0);
        while (text.chars().count() as u64) < least {
            text.push('a');
        }
        text
    }

    fn formatted(&self, format: &str) -> Option<String> {
        let texts: &[&str] = match format {
            "date-time" => &["2024-02-29T00:00:00Z", "2025-01-01T00:00:00Z"],
            "date" => &["2024-02-29"],
            "duration" => &["1h", "90s", "0s"],
            "ipv4" => &["10.0.0.1"],
            "ipv6" => &["fd00::1"],
            "cidr" => &["10.0.0.0/8", "fd00::/8"],
            "uri" => &["https://example.com"],
            "hostname" => &["example.com"],
            "byte" => &["YQ==", "aGVsbG8="],
            "email" => &["a@example.com"],
            "uuid" => &["123e4567-e89b-12d3-a456-426614174000"],
            _ => return None,
        };
        self.one(texts).map(|text| (*text).to_owned())
    }
}

/// Whether objects may be called so.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty()
        && text.len() <= 60
        && text.chars().all(is_part)
        && !text.starts_with('-')
        && !text.ends_with('-')
}
