//! `pattern`: what a CRD's schemas ask of texts.
//!
//! In: a schema as it is written. Out: its patterns, and whether those of one CRD take more together than
//! they may. Never compiles one twice: `re2` does that, for all of them.

use std::collections::HashSet;

use forebay_apimachinery::steps;
use serde_json::Value;

use crate::limits::PATTERNS_BYTES_MAX;

/// Calls `found` with each pattern of a schema as it is written, wherever it stands. Cost: a walk over the
/// schema, which is no deeper than a CRD may be.
pub(crate) fn each<'a>(schema: &'a Value, found: &mut impl FnMut(&'a str)) {
    match schema {
        Value::Array(schemas) => schemas.iter().for_each(|schema| each(schema, found)),
        Value::Object(members) => {
            steps::add(members.len() as u64);
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("pattern", Value::String(pattern)) if !pattern.is_empty() => found(pattern),
                    (
                        "properties" | "patternProperties" | "definitions" | "dependencies",
                        Value::Object(named),
                    ) => {
                        named.values().for_each(|schema| each(schema, found));
                    }
                    (
                        "items"
                        | "additionalItems"
                        | "additionalProperties"
                        | "not"
                        | "allOf"
                        | "anyOf"
                        | "oneOf",
                        _,
                    ) => {
                        each(value, found);
                    }
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Whether the valid ones of `patterns`, those of one CRD, take no more together than they may. Cost: they
/// are compiled up to there.
pub(crate) fn within_budget<'p>(patterns: impl IntoIterator<Item = &'p str>) -> bool {
    let (mut seen, mut bytes) = (HashSet::new(), 0);
    patterns.into_iter().filter(|pattern| seen.insert(*pattern)).all(|pattern| {
        bytes += forebay_re2::shared(pattern).bytes();
        bytes <= PATTERNS_BYTES_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn large(number: usize, times: usize) -> String {
        format!("^{number}{}$", "[a-z]{1000}".repeat(times))
    }

    #[test]
    fn the_patterns_of_a_schema_are_found_wherever_they_stand_and_nothing_else() {
        let schema = serde_json::json!({
            "pattern": "a", "default": {"pattern": "no"}, "enum": [{"pattern": "no"}],
            "properties": {"pattern": {"pattern": "b"}, "x": {"items": [{"pattern": "c"}], "not": {"pattern": "d"}}},
            "additionalProperties": {"anyOf": [{"pattern": "e"}, {"pattern": ""}]},
        });
        let mut found = Vec::new();
        each(&schema, &mut |pattern| found.push(pattern));
        found.sort_unstable();
        assert_eq!(found, ["a", "b", "c", "d", "e"]);
    }

    #[test]
    fn the_patterns_of_one_crd_have_a_budget() {
        let few: Vec<String> = (0..500).map(|n| format!("^a{n}[a-z0-9]([-a-z0-9]*[a-z0-9])?$")).collect();
        assert!(within_budget(few.iter().map(String::as_str)), "what people write");
        let large: Vec<String> = (0..1000).map(|number| large(number, 40)).collect();
        assert!(!within_budget(large.iter().map(String::as_str)));
        assert!(within_budget(std::iter::repeat_n(large[0].as_str(), 1000)), "one counts once");
        assert!(within_budget(["(", "["]), "others say what is wrong with these");
    }
}
