//! Where rules stand: every rule of a definition, with the way to it.
//!
//! In: a definition. Out: its [`Site`]s. Never: an object.

use serde_json::Value;

/// A step from a schema into one below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Descent {
    Property(String),
    Items,
    Values,
}

/// A rule, and where it stands.
#[derive(Debug)]
pub struct Site {
    /// Of the definition's versions.
    pub version: usize,
    pub path: Vec<Descent>,
    /// With its message and what else there is.
    pub rule: Value,
    /// Place among the rules of its schema.
    place: usize,
}

impl Site {
    /// Whether the rule is about what was there before.
    pub fn is_transition(&self) -> bool {
        self.text().contains("oldSelf")
    }

    pub fn text(&self) -> &str {
        self.rule["rule"].as_str().unwrap_or("")
    }

    /// `v1 spec.listeners[].tls rule 2`
    pub fn title(&self, definition: &Value) -> String {
        let version = definition["spec"]["versions"][self.version]["name"].as_str().unwrap_or("");
        format!("{version} {} rule {}", shown(&self.path), self.place)
    }

    /// The values of `object` that the rule is asked of.
    pub fn reached<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for step in &self.path {
            found = found.into_iter().flat_map(|value| below(value, step)).collect();
        }
        found
    }
}

fn below<'a>(value: &'a Value, step: &Descent) -> Vec<&'a Value> {
    match step {
        Descent::Property(name) => value.get(name).into_iter().collect(),
        Descent::Items => value.as_array().into_iter().flatten().collect(),
        Descent::Values => value.as_object().into_iter().flat_map(serde_json::Map::values).collect(),
    }
}

/// `spec.listeners[].tls`
pub fn shown(path: &[Descent]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Descent::Property(name) if text.is_empty() => text.push_str(name),
            Descent::Property(name) => {
                text.push('.');
                text.push_str(name);
            }
            Descent::Items | Descent::Values => text.push_str("[]"),
        }
    }
    text
}

/// The rules of `definition`, in the order of its versions and of their members.
pub fn sites(definition: &Value) -> Vec<Site> {
    let mut found = Vec::new();
    for (version, of) in definition["spec"]["versions"].as_array().into_iter().flatten().enumerate() {
        if of["served"] == true {
            walk(version, &of["schema"]["openAPIV3Schema"], &mut Vec::new(), &mut found);
        }
    }
    found
}

fn walk(version: usize, schema: &Value, path: &mut Vec<Descent>, found: &mut Vec<Site>) {
    for (place, rule) in schema["x-kubernetes-validations"].as_array().into_iter().flatten().enumerate() {
        found.push(Site { version, path: path.clone(), rule: rule.clone(), place });
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(name, schema)| (Descent::Property(name.clone()), schema));
    let inner = [(Descent::Items, &schema["items"]), (Descent::Values, &schema["additionalProperties"])];
    for (step, schema) in properties.chain(inner).filter(|(_, schema)| schema.is_object()) {
        path.push(step);
        walk(version, schema, path, found);
        path.pop();
    }
}
