//! What another server says of a version in OpenAPI v2, as far as clients of this one are told it.
//!
//! In: its document. Out: the paths of that version, and the definitions and parameters that they need, as
//! texts; under which names those go beside others. Never: a tree that is kept, a document that is longer
//! than its limit says.
//!
//! Source: kube-aggregator v0.36.3 `controllers/openapi/aggregator`, kube-openapi `pkg/aggregator`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use forebay_apimachinery::json::weight;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::limits::{PART_BYTES_MAX, PART_PASSES_MAX, PART_VARIANTS_MAX, PART_WEIGHT_MAX};

const DEFINITION: &str = "\"#/definitions/";
const PARAMETER: &str = "\"#/parameters/";
/// What a definition says of kinds is of where it stands.
const KINDS: &str = "x-kubernetes-group-version-kind";

/// A digest.
type Mark = [u8; 32];

/// name -> text
type Texts = BTreeMap<Box<str>, Box<str>>;

/// See the module's doc.
#[derive(Debug)]
pub struct OpenApiPart {
    pub paths: Texts,
    definitions: Texts,
    pub parameters: Texts,
    digest: Mark,
    bytes: usize,
}

impl PartialEq for OpenApiPart {
    fn eq(&self, other: &OpenApiPart) -> bool {
        self.digest == other.digest
    }
}

impl Eq for OpenApiPart {}

impl OpenApiPart {
    /// What `document` says of a version; nothing where it says nothing of it.
    ///
    /// # Errors
    /// It is no such document, or too long.
    pub fn read(document: &[u8], group: &str, version: &str) -> Result<Option<OpenApiPart>, String> {
        if weight::of_text(document) > PART_WEIGHT_MAX {
            return Err("it has too many values for its length".to_owned());
        }
        let whole: Value = serde_json::from_slice(document).map_err(|why| why.to_string())?;
        let texts = |member: &str, is_kept: &dyn Fn(&str) -> bool| -> Texts {
            let all = whole[member].as_object().into_iter().flatten();
            let kept = all.filter(|(name, _)| is_kept(name));
            kept.map(|(name, value)| (name.as_str().into(), value.to_string().into())).collect()
        };
        let own = format!("/apis/{group}/{version}/");
        let paths = texts("paths", &|path| path.starts_with(&own));
        if paths.is_empty() {
            return Ok(None);
        }
        let mut wanted = BTreeSet::new();
        let mut open: Vec<Cow<'_, str>> = paths.values().map(|text| Cow::Borrowed(&**text)).collect();
        let named = &whole["definitions"];
        let shared = &whole["parameters"];
        while let Some(text) = open.pop() {
            for name in names(&text, DEFINITION) {
                if wanted.insert(name.to_owned())
                    && let Some(value) = named.get(name)
                {
                    open.push(Cow::Owned(value.to_string()));
                }
            }
            for name in names(&text, PARAMETER) {
                // A parameter may refer to a definition.
                if wanted.insert(format!("#{name}"))
                    && let Some(value) = shared.get(name)
                {
                    open.push(Cow::Owned(value.to_string()));
                }
            }
        }
        drop(open);
        let definitions = texts("definitions", &|name| wanted.contains(name));
        let parameters = texts("parameters", &|name| wanted.contains(&format!("#{name}")));
        let mut digest = Sha256::new();
        let mut bytes = 0;
        for (name, text) in paths.iter().chain(&definitions).chain(&parameters) {
            bytes += name.len() + text.len();
            for part in [name, text] {
                digest.update((part.len() as u64).to_be_bytes());
                digest.update(&**part);
            }
        }
        match bytes <= PART_BYTES_MAX {
            true => {
                let digest = digest.finalize().into();
                Ok(Some(OpenApiPart { paths, definitions, parameters, digest, bytes }))
            }
            false => Err(format!("what it says of {own} takes {bytes} bytes")),
        }
    }

    /// What it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// What tells these from others.
    pub fn fingerprint(parts: &[Arc<OpenApiPart>]) -> Mark {
        let mut digest = Sha256::new();
        parts.iter().for_each(|part| digest.update(part.digest));
        digest.finalize().into()
    }
}

/// The definitions of several parts beside this server's: those that are alike are one.
#[derive(Default)]
pub struct Merged {
    /// name -> text, as it is told
    pub definitions: BTreeMap<String, String>,
    // Of each part: name there -> name here, where they differ.
    renamed: Vec<Renamed>,
}

type Renamed = HashMap<Box<str>, String>;

impl Merged {
    /// - `own`: this server's definition of that name.
    pub fn of(parts: &[Arc<OpenApiPart>], own: &impl Fn(&str) -> Option<Value>) -> Merged {
        let mut merged = Merged::default();
        for part in parts {
            let renamed = merged.renames(part, own);
            for (name, text) in &part.definitions {
                let chosen = renamed.get(name).cloned().unwrap_or_else(|| name.to_string());
                if own(&chosen).is_none() {
                    let told = told(text, &renamed).into_owned();
                    merged.definitions.entry(chosen).or_insert(told);
                }
            }
            merged.renamed.push(renamed);
        }
        merged
    }

    /// The text of a part, with its definitions by the names that they go by here.
    pub fn told<'t>(&self, text: &'t str, part: usize) -> Cow<'t, str> {
        told(text, &self.renamed[part])
    }

    /// What of a part goes by another name. What refers to such a thing is another, too.
    fn renames(&self, part: &OpenApiPart, own: &impl Fn(&str) -> Option<Value>) -> Renamed {
        let mut renamed = Renamed::new();
        for _ in 0..PART_PASSES_MAX {
            let mut is_other = false;
            for (name, text) in &part.definitions {
                let chosen = self.name_for(name, &told(text, &renamed), own);
                let known = renamed.get(name).map_or(&**name, String::as_str);
                if chosen != known {
                    renamed.insert(name.clone(), chosen);
                    is_other = true;
                }
            }
            if !is_other {
                break;
            }
        }
        renamed
    }

    /// The name under which a definition goes: its own, or one like it if that is something else's.
    fn name_for(&self, name: &str, text: &str, own: &impl Fn(&str) -> Option<Value>) -> String {
        let mut tree = None;
        let mut is_alike = |other: Value| {
            let this = tree.get_or_insert_with(|| plain(parsed(text)));
            plain(other) == *this
        };
        let mut chosen = name.to_owned();
        for variant in 2..PART_VARIANTS_MAX {
            let there = match (own(&chosen), self.definitions.get(&chosen)) {
                (Some(value), _) => value,
                (None, Some(known)) if known == text => return chosen,
                (None, Some(known)) => parsed(known),
                (None, None) => return chosen,
            };
            if is_alike(there) {
                return chosen;
            }
            chosen = format!("{name}_v{variant}");
        }
        // So many that differ are told as the last of them.
        chosen
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn told<'t>(text: &'t str, renamed: &Renamed) -> Cow<'t, str> {
    if renamed.is_empty() || !names(text, DEFINITION).any(|name| renamed.contains_key(name)) {
        return Cow::Borrowed(text);
    }
    let mut told = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find(DEFINITION) {
        let (before, after) = rest.split_at(at + DEFINITION.len());
        told.push_str(before);
        let end = after.find('"').unwrap_or(after.len());
        let name = &after[..end];
        told.push_str(renamed.get(name).map_or(name, String::as_str));
        rest = &after[end..];
    }
    told.push_str(rest);
    Cow::Owned(told)
}

/// What a definition says but of kinds.
fn plain(mut definition: Value) -> Value {
    if let Some(members) = definition.as_object_mut() {
        members.remove(KINDS);
    }
    definition
}

/// The names that a text refers to.
fn names<'t>(text: &'t str, before: &'static str) -> impl Iterator<Item = &'t str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reference(name: &str) -> Value {
        json!({ "$ref": format!("#/definitions/{name}") })
    }

    fn document(spec: Value) -> Vec<u8> {
        let operation = |of: &str| {
            json!({ "get": {
                "parameters": [{ "$ref": "#/parameters/limit-x" }],
                "responses": { "200": { "schema": reference(of) } },
            } })
        };
        let document = json!({
            "swagger": "2.0",
            "paths": { "/apis/a.io/v1/things": operation("Thing"), "/apis/a.io/v2/things": operation("Other"),
                       "/version": operation("Other") },
            "definitions": { "Thing": { "properties": { "spec": reference("Spec") } }, "Spec": spec,
                             "Other": {}, "Meta": {} },
            "parameters": { "limit-x": { "name": "limit" }, "other-y": {} },
        });
        document.to_string().into_bytes()
    }

    fn part(spec: Value) -> Arc<OpenApiPart> {
        Arc::new(OpenApiPart::read(&document(spec), "a.io", "v1").expect("a document").expect("paths"))
    }

    #[test]
    fn of_a_document_the_paths_of_the_version_are_kept_with_what_they_need() {
        let part = part(json!({ "type": "object" }));
        let names = |texts: &Texts| texts.keys().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(&part.paths), ["/apis/a.io/v1/things"]);
        assert_eq!(names(&part.definitions), ["Spec", "Thing"]);
        assert_eq!(names(&part.parameters), ["limit-x"]);
        assert_eq!(OpenApiPart::read(&document(json!({})), "b.io", "v1"), Ok(None));
        assert!(OpenApiPart::read(b"<html>", "a.io", "v1").is_err());
        let long = json!({ "description": "x".repeat(PART_BYTES_MAX) });
        assert!(OpenApiPart::read(&document(long), "a.io", "v1").is_err());
        let many = format!("[{}0]", "0,".repeat(PART_WEIGHT_MAX / 8));
        assert!(OpenApiPart::read(many.as_bytes(), "a.io", "v1").is_err());
    }

    #[test]
    fn definitions_that_are_alike_are_one_and_others_go_by_another_name() {
        let parts = [part(json!({ "type": "object" })), part(json!({ "type": "string" }))];
        let own = |name: &str| match name {
            // Of what it says of kinds nothing is compared.
            "Spec" => Some(json!({ "type": "object", KINDS: [{ "kind": "Spec" }] })),
            _ => None,
        };
        let merged = Merged::of(&parts, &own);
        let names: Vec<&str> = merged.definitions.keys().map(String::as_str).collect();
        assert_eq!(names, ["Spec_v2", "Thing", "Thing_v2"]);
        assert!(merged.definitions["Thing"].contains("\"#/definitions/Spec\""));
        assert!(merged.definitions["Thing_v2"].contains("\"#/definitions/Spec_v2\""));
        let path = &parts[1].paths["/apis/a.io/v1/things"];
        assert!(merged.told(path, 1).contains("\"#/definitions/Thing_v2\""));
        assert_eq!(merged.told(path, 0), &**path);
        assert_ne!(OpenApiPart::fingerprint(&parts), OpenApiPart::fingerprint(&parts[..1]));
    }
}
