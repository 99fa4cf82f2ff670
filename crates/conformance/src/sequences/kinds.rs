//! The kinds whose objects are written, and the fields that a step may set.
//!
//! In: the files in `sequences/`, embedded. A block is
//!
//! ```text
//! kind apps/v1 deployments Deployment namespaced status scale
//! version autoscaling/v1                       (optional: another version that is served)
//! schema v1 {"type":"object",...}              (of a custom kind: a version's; the first is the stored one)
//! becomes v1 {"type":"object",...}             (in `redefined.txt`: what its schemas are later)
//! base {"spec":{...}}                          what every object needs
//! spec.replicas = 1 | 2                        a field and its values
//! with pod spec.template.spec                  the fields of the block `fields pod`, below that path
//! ```
//!
//! and the fields of `every.txt` go for every kind. Out: [`WrittenKind`]s, and the CRDs of those that have
//! schemas. Never: a request.

use serde_json::{Value, json};

use super::path::{self, Part};

const BUILT_IN: &str = include_str!("../../sequences/kinds.txt");
const CUSTOM: &str = include_str!("../../sequences/crds.txt");
const REDEFINED: &str = include_str!("../../sequences/redefined.txt");
const EVERY: &str = include_str!("../../sequences/every.txt");
/// A field of the later schemas, by whose default it is seen that they are in force.
pub(super) const IN_FORCE: &str = "inforce";

/// A kind, and what is written of it.
#[derive(Debug)]
pub struct WrittenKind {
    /// `v1`, `apps/v1`: those that steps name, the stored one first.
    pub(super) versions: Vec<String>,
    pub plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) has_status: bool,
    pub(super) has_scale: bool,
    // version, schema
    schemas: Vec<(String, Value)>,
    // the same, of what it becomes
    becomes: Vec<(String, Value)>,
    pub(super) base: Value,
    pub(super) fields: Vec<Field>,
}

/// A field, and the values that it may be given.
#[derive(Debug)]
pub(super) struct Field {
    pub text: String,
    pub path: Vec<Part>,
    pub values: Vec<Value>,
}

impl Field {
    pub(super) fn is_status(&self) -> bool {
        self.path.first() == Some(&Part::Member("status".to_owned()))
    }
}

impl WrittenKind {
    /// The CRD that defines it, unless it is built in.
    pub(super) fn definition(&self) -> Option<Value> {
        self.definition_by(&self.schemas)
    }

    /// The CRD that defines it later, if it changes.
    pub(super) fn redefinition(&self) -> Option<Value> {
        self.definition_by(&self.becomes)
    }

    fn definition_by(&self, schemas: &[(String, Value)]) -> Option<Value> {
        let (group, _) = self.versions[0].split_once('/').filter(|_| !schemas.is_empty())?;
        let versions = schemas.iter().enumerate().map(|(at, (name, schema))| {
            let mut subresources = json!({});
            if self.has_status {
                subresources["status"] = json!({});
            }
            if self.has_scale {
                subresources["scale"] = json!({
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector"
                });
            }
            let schema = json!({ "openAPIV3Schema": schema });
            json!({ "name": name, "served": true, "storage": at == 0, "schema": schema, "subresources": subresources })
        });
        let scope = if self.namespaced { "Namespaced" } else { "Cluster" };
        let name = format!("{}.{group}", self.plural);
        let singular = self.kind.to_lowercase();
        let names = json!({ "plural": self.plural, "singular": singular, "kind": self.kind });
        let versions: Vec<Value> = versions.collect();
        Some(json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": { "name": name },
            "spec": { "group": group, "scope": scope, "names": names, "versions": versions }
        }))
    }

    /// The namespace of its objects.
    pub(super) fn namespace(&self) -> Option<String> {
        self.namespaced.then(|| format!("seq-{}", self.plural))
    }

    /// Where its objects are, in the version of that number.
    pub(super) fn collection(&self, version: usize) -> String {
        let version = &self.versions[version];
        let root = if version.contains('/') { "apis" } else { "api" };
        match self.namespace() {
            Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{}", self.plural),
            None => format!("/{root}/{version}/{}", self.plural),
        }
    }

    /// `base` with its type, name and namespace.
    pub(super) fn named(&self, base: &Value, version: usize, name: &str) -> Value {
        let mut object = base.clone();
        object["apiVersion"] = self.versions[version].clone().into();
        object["kind"] = self.kind.clone().into();
        object["metadata"]["name"] = name.into();
        if let Some(namespace) = self.namespace() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object
    }
}

/// All of them, the built-in ones first.
///
/// # Errors
/// What is wrong with a line, and with which.
pub fn kinds() -> Result<Vec<WrittenKind>, String> {
    read(&[BUILT_IN, CUSTOM])
}

/// Custom kinds whose schemas change while they are written, each with one that changes the other way.
///
/// # Errors
/// As of [`kinds`].
pub fn redefined_kinds() -> Result<Vec<WrittenKind>, String> {
    let (mut there, back) = (read(&[REDEFINED])?, read(&[REDEFINED])?);
    there.extend(back.into_iter().map(|mut kind| {
        std::mem::swap(&mut kind.schemas, &mut kind.becomes);
        kind.plural += "back";
        kind.kind += "Back";
        kind
    }));
    for schema in there.iter_mut().flat_map(|kind| &mut kind.becomes).map(|(_, schema)| schema) {
        schema["properties"][IN_FORCE] = json!({ "type": "string", "default": "yes" });
    }
    Ok(there)
}

fn read(texts: &[&str]) -> Result<Vec<WrittenKind>, String> {
    let mut blocks = Blocks::default();
    let lines = texts.iter().flat_map(|text| text.lines());
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        blocks.add(line).map_err(|why| format!("{line}: {why}"))?;
    }
    for line in EVERY.lines().filter(|line| !line.starts_with('#')) {
        for kind in &mut blocks.kinds {
            kind.fields.push(field(line, "").map_err(|why| format!("{line}: {why}"))?);
        }
    }
    Ok(blocks.kinds)
}

#[derive(Default)]
struct Blocks {
    kinds: Vec<WrittenKind>,
    // name, lines
    groups: Vec<(String, Vec<String>)>,
    in_group: bool,
}

impl Blocks {
    fn add(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').ok_or("one word")?;
        match word {
            "kind" => self.kinds.push(begin(rest)?),
            "fields" => self.groups.push((rest.to_owned(), Vec::new())),
            _ if self.in_group => {
                self.groups.last_mut().ok_or("no group above")?.1.push(line.to_owned());
                return Ok(());
            }
            _ => return self.of_kind(word, line, rest),
        }
        self.in_group = word == "fields";
        Ok(())
    }

    fn of_kind(&mut self, word: &str, line: &str, rest: &str) -> Result<(), String> {
        let json = |text: &str| serde_json::from_str(text).map_err(|e| e.to_string());
        let mut fields = Vec::new();
        self.fields(line, "", &mut fields)?;
        let kind = self.kinds.last_mut().ok_or("no kind above")?;
        match word {
            "version" => kind.versions.push(rest.to_owned()),
            "base" => kind.base = json(rest)?,
            "schema" | "becomes" => {
                let (version, schema) = rest.split_once(' ').ok_or("a version and a schema")?;
                let schemas = if word == "schema" { &mut kind.schemas } else { &mut kind.becomes };
                schemas.push((version.to_owned(), json(schema)?));
            }
            _ => kind.fields.extend(fields),
        }
        Ok(())
    }

    /// Adds the field of a line, or those of the group that it names, below `path`.
    fn fields(&self, line: &str, path: &str, fields: &mut Vec<Field>) -> Result<(), String> {
        if ["version ", "base ", "schema ", "becomes "].iter().any(|word| line.starts_with(word)) {
            return Ok(());
        }
        let Some(rest) = line.strip_prefix("with ") else {
            fields.push(field(line, path)?);
            return Ok(());
        };
        let (name, below) = rest.split_once(' ').unwrap_or((rest, ""));
        let (_, lines) = self.groups.iter().find(|(group, _)| group == name).ok_or("no such group")?;
        lines.iter().try_for_each(|line| self.fields(line, below, fields))
    }
}

fn begin(line: &str) -> Result<WrittenKind, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [version, plural, kind, scope, has @ ..] = &words[..] else { return Err("too short".into()) };
    Ok(WrittenKind {
        versions: vec![(*version).to_owned()],
        plural: (*plural).to_owned(),
        kind: (*kind).to_owned(),
        namespaced: *scope == "namespaced",
        has_status: has.contains(&"status"),
        has_scale: has.contains(&"scale"),
        schemas: Vec::new(),
        becomes: Vec::new(),
        base: json!({}),
        fields: Vec::new(),
    })
}

fn field(line: &str, above: &str) -> Result<Field, String> {
    let (text, values) = line.split_once(" = ").ok_or("no value")?;
    let text = if above.is_empty() { text.to_owned() } else { format!("{above}.{text}") };
    let values = values.split(" | ").map(|value| serde_json::from_str(value).map_err(|e| e.to_string()));
    let values = values.collect::<Result<_, _>>()?;
    Ok(Field { path: path::parse(&text)?, text, values })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_25_kinds_and_10_custom_ones() {
        let kinds = kinds().expect("the files can be read");
        let custom = kinds.iter().filter(|kind| kind.definition().is_some()).count();
        assert_eq!((kinds.len() - custom, custom), (25, 10));
        for kind in &kinds {
            assert!(kind.fields.len() > 10, "{} has few fields", kind.plural);
        }
    }

    #[test]
    fn each_kind_that_is_redefined_is_so_both_ways() {
        let kinds = redefined_kinds().expect("the file can be read");
        let (there, back) = kinds.split_at(kinds.len() / 2);
        assert!(!there.is_empty());
        for (there, back) in there.iter().zip(back) {
            let schema = |definition: Option<Value>| {
                let mut definition = definition.expect("it is defined");
                let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                if let Some(properties) = schema["properties"].as_object_mut() {
                    properties.remove(IN_FORCE);
                }
                schema.take()
            };
            assert_eq!(back.plural, format!("{}back", there.plural));
            assert_eq!(schema(there.definition()), schema(back.redefinition()));
            assert_eq!(schema(there.redefinition()), schema(back.definition()));
            assert_ne!(schema(there.redefinition()), schema(there.definition()));
        }
    }
}
