//! Objects that a rule passes and objects that it fails, found by drawing.
//!
//! In: a definition, a [`Site`], a seed. Out: [`Case`]s, each a write of an object with what was there
//! before. What an object breaks is asked of our own rules, which only chooses what is sent: the servers
//! judge it. Never: a request.

use forebay_apimachinery::{Cause, Lease};
use forebay_crd::{Definition, Version};
use forebay_rt::Random;
use serde_json::Value;

use super::draw::Draw;
use super::site::{Descent, Site, shown};
use super::words::Words;

/// Objects drawn for a rule at most.
const DRAWN_MAX: usize = 300;
/// Objects kept that a changed one may take the place of.
const STORED_MAX: usize = 6;
/// Objects in a row that are made out of each other, each with less that is wrong.
const CLIMB_MAX: usize = 40;

/// What our rules say of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Nothing is wrong, and the rule is asked.
    Passes,
    /// The rule is broken.
    Fails,
    /// Something else is wrong.
    Other,
}

/// A write that a rule is asked about.
#[derive(Debug)]
pub struct Case {
    pub expected: Expected,
    /// What is there before, without which the object is created.
    pub stored: Option<Value>,
    /// Whether the write is one of the status.
    pub status: bool,
    pub object: Value,
}

/// A definition, and what our side makes of it.
pub struct Searched<'a> {
    definition: &'a Value,
    compiled: Definition,
}

impl<'a> Searched<'a> {
    pub fn new(definition: &'a Value) -> Searched<'a> {
        Searched { definition, compiled: Definition::compile(definition) }
    }

    /// A case of each outcome that was found.
    pub fn cases(&self, site: &Site, seed: u64) -> Vec<Case> {
        let version = &self.compiled.versions[site.version];
        let written = &self.definition["spec"]["versions"][site.version];
        let first = site.path.first();
        let is_of_status = first == Some(&Descent::Property("status".to_owned()));
        // Rules of the whole object may be about the status, too, which only a write of it sets.
        let is_status = version.status && (is_of_status || first.is_none() && site.text().contains("status"));
        let random = Random::seeded(seed);
        let words = Words::of(site.text());
        let search = Search {
            site,
            version,
            schema: &written["schema"]["openAPIV3Schema"],
            draw: Draw { random: &random, words: &words },
            is_status,
            api_version: format!("{}/{}", self.compiled.group, version.name),
            kind: self.compiled.kind.to_string(),
        };
        search.cases()
    }
}

struct Search<'a> {
    site: &'a Site,
    version: &'a Version,
    schema: &'a Value,
    draw: Draw<'a>,
    is_status: bool,
    api_version: String,
    kind: String,
}

impl Search<'_> {
    fn cases(&self) -> Vec<Case> {
        let mut found = Vec::new();
        let mut stored: Vec<Value> = Vec::new();
        let mut climb = Climb::default();
        let is_wanted =
            |found: &[Case], expected: Expected| found.iter().all(|case| case.expected != expected);
        for _ in 0..DRAWN_MAX {
            if !is_wanted(&found, Expected::Passes) && !is_wanted(&found, Expected::Fails) {
                break;
            }
            // A status is only ever updated; a transition needs what was there.
            let before = match self.draw.random.below(stored.len() as u64 + 1) as usize {
                _ if !self.site.is_transition() && !self.is_status => None,
                at if at == stored.len() => None,
                at => Some(stored[at].clone()),
            };
            let mut object = match &before {
                // Of a transition nothing may have come.
                Some(before) if self.site.is_transition() => {
                    let mut object = before.clone();
                    if self.draw.random.below(5) > 0 {
                        self.draw.changed(&mut object, self.schema, &self.site.path);
                    }
                    object
                }
                _ => match climb.next() {
                    Some((mut object, field)) => {
                        self.mend(&mut object, &field);
                        object
                    }
                    None => self.draw.object(self.schema, &self.site.path),
                },
            };
            if let Some(before) = before.as_ref().filter(|_| self.is_status) {
                let status = std::mem::take(&mut object["status"]);
                object = before.clone();
                object["status"] = status;
            }
            object["apiVersion"] = self.api_version.clone().into();
            object["kind"] = self.kind.clone().into();
            if !self.is_status
                && self.version.status
                && let Some(members) = object.as_object_mut()
            {
                members.remove("status");
            }
            let Some((expected, causes)) = self.judged(&object, before.as_ref()) else { continue };
            climb.saw(&object, &causes, self.draw.random);
            let is_kept = before.is_none() && (self.site.is_transition() || self.is_status);
            if is_kept && expected == Expected::Passes && stored.len() < STORED_MAX {
                stored.push(object.clone());
            }
            let is_case = !is_kept || expected != Expected::Passes && !self.is_status;
            if is_case && is_wanted(&found, expected) {
                found.push(Case { expected, stored: before, status: self.is_status, object });
            }
        }
        found
    }

    /// What our side says of `object` in the place of `before`; `None` where the rule is not asked.
    fn judged(&self, object: &Value, before: Option<&Value>) -> Option<(Expected, Vec<Cause>)> {
        let normal = |object: &Value| {
            let mut object = object.clone();
            self.version.normalize(&mut object, &Lease::of_one_tree()).ok().map(|_| object)
        };
        let object = normal(object)?;
        let before = match before {
            Some(before) => Some(normal(before)?),
            None => None,
        };
        let found = match &before {
            Some(before) if self.is_status => self.version.validate_status(&object, before, &[]),
            _ => self.version.validate(&object, before.as_ref(), &[]),
        };
        let causes = found.causes;
        if causes.iter().any(|cause| self.is_of_rule(cause)) {
            return Some((Expected::Fails, causes));
        }
        match causes.is_empty() {
            true => (!self.site.reached(&object).is_empty()).then_some((Expected::Passes, causes)),
            false => Some((Expected::Other, causes)),
        }
    }

    /// Changes what is wrong at `field`, by the words of the rules there.
    fn mend(&self, object: &mut Value, field: &str) {
        let mut path = Vec::new();
        let mut schema = self.schema;
        for name in steps_of(field) {
            let step = match (schema["items"].is_object(), schema["additionalProperties"].is_object()) {
                (true, _) => Descent::Items,
                (_, true) => Descent::Values,
                _ if schema["properties"][&name].is_object() => Descent::Property(name),
                _ => break,
            };
            schema = match &step {
                Descent::Items => &schema["items"],
                Descent::Values => &schema["additionalProperties"],
                Descent::Property(name) => &schema["properties"][name],
            };
            path.push(step);
        }
        let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
        let texts: Vec<&str> = rules.filter_map(|rule| rule["rule"].as_str()).collect();
        let words = Words::of(&texts.join(" "));
        Draw { random: self.draw.random, words: &words }.changed(object, self.schema, &path);
    }

    fn is_of_rule(&self, cause: &Cause) -> bool {
        let below = self.site.rule["fieldPath"].as_str();
        let message = self.site.rule["message"].as_str().map(str::trim);
        let is_said = match (message, self.site.rule["messageExpression"].is_string()) {
            (_, true) => true,
            (Some(message), _) => cause.message.contains(message.lines().next().unwrap_or("")),
            (None, _) => cause.message.contains("failed rule"),
        };
        let place = without_places(&cause.field);
        is_said && (below.is_some() || place == shown(&self.site.path) || self.site.path.is_empty())
    }
}

/// An object that is made better, step by step.
#[derive(Default)]
struct Climb {
    // What is wrong with it, by field.
    best: Option<(Value, Vec<String>)>,
    chosen: usize,
    steps: usize,
}

impl Climb {
    /// What to change, and where.
    fn next(&mut self) -> Option<(Value, String)> {
        self.steps += 1;
        if self.steps > CLIMB_MAX {
            *self = Climb::default();
        }
        let (object, fields) = self.best.as_ref()?;
        Some((object.clone(), fields.get(self.chosen)?.clone()))
    }

    fn saw(&mut self, object: &Value, causes: &[Cause], random: &Random) {
        if self.best.as_ref().is_none_or(|(_, fields)| causes.len() <= fields.len()) {
            let fields = causes.iter().map(|cause| cause.field.clone()).collect();
            self.best = Some((object.clone(), fields));
        }
        let count = self.best.as_ref().map_or(0, |(_, fields)| fields.len());
        self.chosen = random.below(count as u64) as usize;
    }
}

/// `spec`, `a`, `3`, `b` of `spec.a[3].b`.
fn steps_of(field: &str) -> Vec<String> {
    let parts = field.split(['.', '[', ']']).filter(|part| !part.is_empty() && *part != "<nil>");
    parts.map(str::to_owned).collect()
}

/// `spec.a[]` of `spec.a[3]`.
fn without_places(field: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    for c in field.chars() {
        match c {
            '[' => {
                depth += 1;
                text.push('[');
            }
            ']' => {
                depth -= 1;
                text.push(']');
            }
            _ if depth > 0 => {}
            _ => text.push(c),
        }
    }
    if text == "<nil>" { String::new() } else { text }
}
