//! The defaults that a schema itself holds: are they valid, and without unknown fields?
//!
//! In: a schema. Out: all violations by its defaults, as they are judged when a CRD is written
//! (`violations`), and the schema with its defaults pruned, as it is served (`pruned`). A default inside of
//! metadata is judged as part of the resource around it, because metadata is more than its schema says; rules
//! in CEL hold for defaults, too. Never: a rule's text, which is compiled elsewhere.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/schema/defaulting`.

use std::cell::Cell;

use serde_json::{Value, json};

use super::embedded;
use super::field::{self, BadValue, Faults, FieldError, Path};
use super::limits::{DEFAULT_PATHS_BYTES_MAX, OBJECT_RULES_COST_MAX, VISITS_MAX};
use super::object_meta::MalformedFields;
use super::props::Props;
use super::prune::{self, Meta};
use super::schema::{Flags, Node, Schema};
use super::validate;
use super::validations::{Compiling, Validator};

/// One step from a resource to a value inside of it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Name(&'a str),
    Item,
}

impl Step<'_> {
    fn bytes(self) -> usize {
        match self {
            Step::Name(name) => name.len() + 1,
            Step::Item => 1,
        }
    }
}

/// The steps from a resource to a value, the last one first.
#[derive(Clone, Copy, Default)]
struct Steps<'a> {
    last: Option<(&'a Steps<'a>, Step<'a>)>,
    bytes: usize,
}

impl<'a> Steps<'a> {
    fn then<'b>(&'b self, step: Step<'b>) -> Steps<'b>
    where
        'a: 'b,
    {
        Steps { last: Some((self, step)), bytes: self.bytes + step.bytes() }
    }
}

/// Returns all violations by the defaults of the structural schema at `path`.
///
/// - `require_pruned`: defaults must have no unknown fields; false where a stored CRD already has such
///   defaults.
pub(crate) fn violations(schema: &Value, require_pruned: bool, path: &Path<'_>) -> Vec<FieldError> {
    let written = schema;
    let schema = Schema::as_written(schema);
    let root = schema.root();
    let asks = root.has(Flags::DEFAULT_BELOW) && root.has(Flags::RULES_BELOW);
    let rules = asks.then(|| Validator::of(Props::of(written), root, true, &Compiling::new())).flatten();
    let mut judge = Judge {
        require_pruned,
        errors: Faults::default(),
        path_bytes_left: DEFAULT_PATHS_BYTES_MAX,
        visits_left: Cell::new(VISITS_MAX),
        rules_left: OBJECT_RULES_COST_MAX,
    };
    let top = Resource { root: schema.root(), steps: Steps::default() };
    let at = Schemas { node: schema.root(), rules: rules.as_ref() };
    judge.visit(at, Meta::Root, top, false, path);
    judge.errors.into_vec()
}

/// Whether a default of the schema has unknown fields.
pub(crate) fn are_unpruned(schema: &Value) -> bool {
    pruned(schema, Schema::as_written(schema).root()).is_some()
}

struct Judge {
    require_pruned: bool,
    errors: Faults,
    /// Of the steps to all defaults together.
    path_bytes_left: usize,
    /// For all defaults together.
    visits_left: Cell<u32>,
    /// What their rules may still cost; below nothing when no default is looked at any more.
    rules_left: i64,
}

/// A schema, and the rules in it and below.
#[derive(Clone, Copy)]
struct Schemas<'a> {
    node: &'a Node,
    rules: Option<&'a Validator>,
}

/// The resource around a value.
#[derive(Clone, Copy)]
struct Resource<'a> {
    root: &'a Node,
    steps: Steps<'a>,
}

impl<'a> Resource<'a> {
    fn then<'b>(&'b self, step: Step<'b>) -> Resource<'b>
    where
        'a: 'b,
    {
        Resource { root: self.root, steps: self.steps.then(step) }
    }
}

impl Judge {
    fn visit(
        &mut self,
        schemas: Schemas<'_>,
        meta: Meta,
        resource: Resource<'_>,
        inside_meta: bool,
        path: &Path<'_>,
    ) {
        let Schemas { node, rules } = schemas;
        if !node.has(Flags::DEFAULT_BELOW) || self.errors.is_full() || self.rules_left < 0 {
            return;
        }
        let is_resource = meta == Meta::Root || node.has(Flags::EMBEDDED);
        let own = Resource { root: node, steps: Steps::default() };
        let (resource, inside_meta) = if is_resource { (own, false) } else { (resource, inside_meta) };
        if let Some(default) = node.default_value() {
            let at = path.child("default");
            // The object around a default is made of the names to it: for this, and when the schema is
            // served.
            let Some(left) = self.path_bytes_left.checked_sub(resource.steps.bytes) else {
                let detail = format!(
                    "must have shorter names around it: to all defaults together they are more than \
                     {DEFAULT_PATHS_BYTES_MAX} bytes"
                );
                return self.errors.push(FieldError::forbidden(&at, detail));
            };
            self.path_bytes_left = left;
            let errors = match inside_meta {
                true => self.inside_metadata(default, schemas, resource, &at),
                false => self.outside_metadata(default, schemas, is_resource, &at),
            };
            self.errors.extend(errors);
        }
        if let Some(item) = node.item() {
            let resource = resource.then(Step::Item);
            let item = Schemas { node: item, rules: rules.and_then(Validator::items) };
            self.visit(item, Meta::AsSchema, resource, inside_meta, &path.child("items"));
        }
        for (name, property) in node.properties() {
            let resource = resource.then(Step::Name(name));
            let inside_meta =
                inside_meta || (is_resource && matches!(name, "metadata" | "apiVersion" | "kind"));
            let property = Schemas { node: property, rules: rules.and_then(|rules| rules.property(name)) };
            self.visit(property, Meta::AsSchema, resource, inside_meta, &path.child("properties").key(name));
        }
    }

    fn outside_metadata(
        &mut self,
        default: &Value,
        schemas: Schemas<'_>,
        is_resource: bool,
        path: &Path<'_>,
    ) -> Vec<FieldError> {
        let node = schemas.node;
        let meta = if is_resource { Meta::Root } else { Meta::AsSchema };
        let mut errors = Vec::new();
        let mut pruned = default.clone();
        prune::prune(&mut pruned, node, meta);
        let mut coerced = default.clone();
        let failed = embedded::coerce(&mut coerced, node, meta, MalformedFields::Refuse, path);
        // Upstream shows the default as it is after that.
        if self.require_pruned && pruned != *default {
            errors.push(FieldError::invalid(path, BadValue::Json(&coerced), "must not have unknown fields"));
        }
        if let Err(error) = failed {
            errors.push(error);
            return errors;
        }
        let more = embedded::validate(&coerced, node, meta, path);
        errors.extend(match more.is_empty() {
            false => more,
            true => self.fits(&coerced, schemas, path),
        });
        errors
    }

    fn inside_metadata(
        &mut self,
        default: &Value,
        schemas: Schemas<'_>,
        resource: Resource<'_>,
        path: &Path<'_>,
    ) -> Vec<FieldError> {
        let mut object = surround(default.clone(), resource.steps);
        if let Some(map) = object.as_object_mut() {
            map.entry("kind").or_insert_with(|| "Validation".into());
            map.entry("apiVersion").or_insert_with(|| "validation/v1".into());
        }
        let invalid = |cause: String| {
            vec![FieldError::invalid(
                path,
                BadValue::Json(default),
                format!("must result in valid metadata: {cause}"),
            )]
        };
        if let Err(error) =
            embedded::coerce(&mut object, resource.root, Meta::Root, MalformedFields::Refuse, &Path::NIL)
        {
            return invalid(error.to_string());
        }
        let errors = embedded::validate(&object, resource.root, Meta::Root, &Path::NIL);
        match errors.is_empty() {
            false => invalid(field::aggregate(&errors)),
            true => self.fits(default, schemas, path),
        }
    }

    /// What a schema and its rules have against a default, as an update of itself and as what was not there
    /// before.
    fn fits(&mut self, default: &Value, schemas: Schemas<'_>, path: &Path<'_>) -> Vec<FieldError> {
        let errors = validate::check_default(schemas.node, default, path, &self.visits_left);
        let Some(rules) = schemas.rules.filter(|_| errors.is_empty()) else { return errors };
        let mut left = i64::MAX;
        for old in [Some(default), None] {
            let judged = rules.judge(schemas.node, path, (default, old), false, self.rules_left);
            left = left.min(judged.left);
            if !judged.errors.is_empty() {
                self.rules_left = left;
                return judged.errors.into_vec();
            }
        }
        self.rules_left = left;
        Vec::new()
    }
}

/// Returns the schema with pruned defaults, if any of them has something to prune.
pub(crate) fn pruned(schema: &Value, root: &Node) -> Option<Value> {
    if !root.has(Flags::DEFAULT_BELOW) {
        return None;
    }
    let mut pruned = schema.clone();
    prune_below(&mut pruned, Steps::default(), root).then_some(pruned)
}

/// Prunes the defaults of a schema at `steps` of the root; returns whether anything went.
fn prune_below(schema: &mut Value, steps: Steps<'_>, root: &Node) -> bool {
    let Some(keywords) = schema.as_object_mut() else { return false };
    let mut changed = false;
    if let Some(default) = keywords.get("default").filter(|default| !default.is_null()) {
        let kept = prune_one(default, steps, root);
        if kept.as_ref() != Some(default) {
            changed = true;
            keywords.insert("default".to_owned(), kept.unwrap_or_default());
        }
    }
    if let Some(additional) = keywords.get_mut("additionalProperties") {
        changed |= prune_below(additional, steps.then(Step::Name("*")), root);
    }
    if let Some(items) = keywords.get_mut("items") {
        changed |= prune_below(items, steps.then(Step::Item), root);
    }
    if let Some(Value::Object(properties)) = keywords.get_mut("properties") {
        for (name, property) in properties {
            changed |= prune_below(property, steps.then(Step::Name(name)), root);
        }
    }
    changed
}

/// Prunes a default as part of a whole object; none when nothing is left of it.
fn prune_one(default: &Value, steps: Steps<'_>, root: &Node) -> Option<Value> {
    let mut object = surround(default.clone(), steps);
    // Malformed fields are dropped, so nothing is refused.
    let _ = embedded::coerce(&mut object, root, Meta::Root, MalformedFields::Drop, &Path::NIL);
    prune::prune(&mut object, root, Meta::Root);
    extract(object, steps)
}

/// Builds the object in which `value` stands at `steps`.
fn surround(mut value: Value, mut steps: Steps<'_>) -> Value {
    while let Some((before, step)) = steps.last {
        value = match step {
            Step::Name(name) => Value::Object([(name.to_owned(), value)].into_iter().collect()),
            Step::Item => json!([value]),
        };
        steps = *before;
    }
    value
}

fn extract(object: Value, steps: Steps<'_>) -> Option<Value> {
    let Some((before, step)) = steps.last else { return Some(object) };
    match (step, extract(object, *before)?) {
        (Step::Name(name), Value::Object(mut map)) => map.remove(name),
        (Step::Item, Value::Array(items)) => items.into_iter().next(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Lease;

    use super::*;

    fn check(properties: Value, want: &[&str]) {
        let schema = json!({"type": "object", "properties": properties});
        let found: Vec<String> =
            violations(&schema, true, &Path::root("s")).iter().map(FieldError::to_string).collect();
        assert_eq!(found, want, "{schema}");
    }

    fn served(properties: Value) -> Value {
        let schema = Schema::compile(&json!({"type": "object", "properties": properties}));
        let mut object = json!({});
        schema.default(&mut object, &mut Lease::of_server().meter()).expect("bounded");
        object
    }

    #[test]
    fn defaults_must_fit_their_schema() {
        check(json!({"a": {"type": "string", "default": "x", "maxLength": 1}}), &[]);
        check(
            json!({"a": {"type": "integer", "default": "x"}}),
            &[
                "s.properties[a].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
            ],
        );
        check(
            json!({"l": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "default": 0, "minimum": 1}}}}}),
            &[
                "s.properties[l].items.properties[a].default: Invalid value: 0:  in body should be greater than or equal to 1",
            ],
        );
    }

    #[test]
    fn defaults_must_have_no_unknown_fields_and_are_served_without() {
        let properties = json!({"o": {"type": "object", "default": {"a": 1, "z": 2}, "properties": {"a": {"type": "integer"}}}});
        assert_eq!(served(properties.clone()), json!({"o": {"a": 1}}));
        check(
            properties.clone(),
            &["s.properties[o].default: Invalid value: {\"a\":1,\"z\":2}: must not have unknown fields"],
        );
        let schema = json!({"type": "object", "properties": properties});
        assert!(are_unpruned(&schema));
        assert!(violations(&schema, false, &Path::root("s")).is_empty());
    }

    #[test]
    fn defaults_of_embedded_metadata_must_make_a_valid_resource() {
        let embedded = |metadata: Value| {
            json!({"e": {"type": "object", "x-kubernetes-embedded-resource": true,
                "properties": {"metadata": {"type": "object", "properties": {"name": metadata}}}}})
        };
        check(embedded(json!({"type": "string", "default": "x"})), &[]);
        check(
            embedded(json!({"type": "string", "default": "/"})),
            &[
                "s.properties[e].properties[metadata].properties[name].default: Invalid value: \"/\": must result in valid metadata: metadata.name: Invalid value: \"/\": may not contain '/'",
            ],
        );
        check(
            embedded(json!({"type": "integer", "default": 5})),
            &[
                "s.properties[e].properties[metadata].properties[name].default: Invalid value: 5: must result in valid metadata: metadata: Invalid value: {\"name\":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            ],
        );
    }
}
