//! Operators, and the definitions in their Go modules.
//!
//! In: `rules/operators.txt`. Out: [`Operator`]s with their CustomResourceDefinitions as JSON, ready to be
//! sent. Never: a module that the file does not name with its version.

use std::fs;
use std::path::{Path, PathBuf};

use forebay_apimachinery::Lease;
use serde_json::Value;

const OPERATORS: &str = include_str!("../../rules/operators.txt");

#[derive(Debug)]
pub struct Operator {
    pub name: &'static str,
    /// Those that have rules.
    pub definitions: Vec<Value>,
}

/// All of them, in the order of the file; `None` after a skip was announced.
///
/// # Errors
/// A line or a definition that cannot be read.
pub fn operators() -> Result<Option<Vec<Operator>>, String> {
    let lines = OPERATORS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut all = Vec::new();
    for line in lines {
        let [name, module, version, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            return Err(format!("not an operator: {line}"));
        };
        let Some(dir) = forebay_golden::module_at(module, version) else { return Ok(None) };
        let mut definitions = Vec::new();
        for file in files(&dir.join(path)).map_err(|error| format!("{name}: {path}: {error}"))? {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            definitions.extend(read(&text).map_err(|why| format!("{}: {why}", file.display()))?);
        }
        all.push(Operator { name, definitions });
    }
    Ok(Some(all))
}

/// The YAML files at `path`, in order.
fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            for entry in fs::read_dir(path)? {
                open.push(entry?.path());
            }
        } else if path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// The definitions with rules among the documents of `text`.
fn read(text: &str) -> Result<Vec<Value>, String> {
    let has_rules = |document: &&str| {
        document.contains("kind: CustomResourceDefinition") && document.contains("x-kubernetes-validations")
    };
    let documents = text.split("\n---").filter(has_rules);
    let sent = documents.map(|document| {
        let document = document.trim_start_matches('-');
        let json = forebay_yaml::to_json(document.as_bytes(), &Lease::of_one_tree());
        let json = json.map_err(|error| error.to_string())?;
        let mut definition: Value = serde_json::from_slice(&json.text).map_err(|error| error.to_string())?;
        definition.as_object_mut().ok_or("no object")?.remove("status");
        // Nobody is there who converts.
        definition["spec"].as_object_mut().ok_or("no spec")?.remove("conversion");
        Ok(definition)
    });
    sent.collect()
}
