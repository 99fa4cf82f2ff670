//! Which members of an object some paths can look at.
//!
//! In: the steps of paths. Out: what to read of an object's text, and no more. Never: less than a path would
//! find.

use std::collections::BTreeMap;

use forebay_apimachinery::json::Part;

use super::jsonpath::{Filter, JsonPath, Step, Term};

/// What is needed of a value; of an array, the same of each item.
#[derive(Debug, Default)]
pub(super) struct Needed {
    // All of it, whatever `members` says.
    whole: bool,
    members: BTreeMap<String, Needed>,
}

impl Needed {
    pub(super) fn add(&mut self, path: &JsonPath) {
        self.add_steps(&path.0);
    }

    fn add_steps(&mut self, steps: &[Step]) {
        match steps {
            [Step::Member(name), rest @ ..] => self.at(name).add_steps(rest),
            // Items of an array, all of which are read.
            [Step::Index(_) | Step::Slice { .. }, rest @ ..] => self.add_steps(rest),
            [Step::Where(Filter { left, compared }), rest @ ..] => {
                let right = compared.as_ref().map(|(_, right)| right);
                for term in std::iter::once(left).chain(right) {
                    if let Term::Path(steps) = term {
                        self.add_steps(steps);
                    }
                }
                self.add_steps(rest);
            }
            // Members of any name, or what the path is there for.
            [Step::Every | Step::Below(_) | Step::Any(_), ..] | [] => self.whole = true,
        }
    }

    fn at(&mut self, name: &str) -> &mut Needed {
        self.members.entry(name.to_owned()).or_default()
    }
}

impl Part for &Needed {
    fn member(self, name: &str) -> Option<Self> {
        if self.whole { Some(self) } else { self.members.get(name) }
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::json::read_part;
    use serde_json::{Value, json};

    use super::*;

    fn object() -> Value {
        json!({
            "kind": "Widget",
            "metadata": { "name": "a", "annotations": { "x": "y" } },
            "spec": { "size": 3, "a.b": { "c": [1, 2] }, "list": [{ "n": 1, "m": 2 }, { "n": 3 }], "flat": ["x", "z"] },
            "status": { "conditions": [
                { "type": "Ready", "status": "True", "reason": "R", "weight": 2 },
                { "type": "Synced", "status": "False", "reason": "S" },
            ] },
        })
    }

    #[test]
    fn a_path_finds_in_what_it_needs_what_it_finds_in_the_whole() {
        let whole = object();
        for (path, needed) in [
            (".metadata.name", json!({ "metadata": { "name": "a" } })),
            (".spec.size.deeper", json!({ "spec": { "size": 3 } })),
            (".spec['a.b'].c[1]", json!({ "spec": { "a.b": { "c": [1, 2] } } })),
            (".spec.list[-1].n", json!({ "spec": { "list": [{ "n": 1 }, { "n": 3 }] } })),
            (".spec.list[0:1].n", json!({ "spec": { "list": [{ "n": 1 }, { "n": 3 }] } })),
            (".spec.flat[0,1]", json!({ "spec": { "flat": ["x", "z"] } })),
            (".spec.list[*].n", json!({ "spec": { "list": whole["spec"]["list"] } })),
            (
                ".status.conditions[?(@.type==\"Ready\")].status",
                json!({ "status": { "conditions": [
                    { "type": "Ready", "status": "True" }, { "type": "Synced", "status": "False" },
                ] } }),
            ),
            (
                ".status.conditions[?(@.weight)].reason",
                json!({ "status": { "conditions": [{ "reason": "R", "weight": 2 }, { "reason": "S" }] } }),
            ),
            (
                ".status.conditions[?(@.status==@.type)]",
                json!({ "status": { "conditions": whole["status"]["conditions"] } }),
            ),
            (".metadata..x", json!({ "metadata": whole["metadata"] })),
            (".metadata.*", json!({ "metadata": whole["metadata"] })),
            (".missing.at.all", json!({})),
            (".", whole.clone()),
        ] {
            let parsed = JsonPath::parse(path).expect(path);
            let mut wanted = Needed::default();
            wanted.add(&parsed);
            let part = read_part(&wanted, whole.to_string().as_bytes()).expect("JSON");
            assert_eq!(part, needed, "{path}");
            assert_eq!(parsed.find(&part), parsed.find(&whole), "{path}");
        }
    }

    #[test]
    fn several_paths_share_what_they_need() {
        let mut wanted = Needed::default();
        for path in [".spec.size", ".spec.flat", ".metadata.name", ".spec.size"] {
            wanted.add(&JsonPath::parse(path).expect(path));
        }
        let part = read_part(&wanted, object().to_string().as_bytes()).expect("JSON");
        assert_eq!(part, json!({ "metadata": { "name": "a" }, "spec": { "size": 3, "flat": ["x", "z"] } }));
    }
}
