//! What a CRD's schema may say beyond being structural.
//!
//! In: a schema as written. Out: violations: forbidden keywords, list and map types that contradict the
//! schema, defaults where they are ambiguous, rules (CEL) that are not well formed. What compiles is said by
//! `expressions`.
//!
//! Source: apiextensions-apiserver v0.36.3 `ValidateCustomResourceDefinitionOpenAPISchema`.

use std::collections::HashMap;

use forebay_apimachinery::Seen;
use serde_json::Value;

use super::expressions::{Expressions, Place};
use super::field_path::{self, Brackets};
use super::leniency::Leniency;
use super::printed;
use crate::default_check;
use crate::field::{BadValue, Faults, FieldError, Path};
use crate::props::{Items, Props};
use crate::spec::Version;
use crate::structural;
use crate::validations::{Compiling, count_below};

/// What a schema is judged by besides itself.
#[derive(Clone, Copy)]
pub(super) struct Around<'a> {
    pub(super) has_status: bool,
    /// Of the version.
    pub(super) name: &'a str,
    pub(super) compiling: &'a Compiling,
    pub(super) leniency: &'a Leniency<'a>,
}

/// Judges the schema of a version (or the shared one); `path` is where its `openAPIV3Schema` stands.
pub(super) fn validate(version: Version<'_>, around: Around<'_>, path: &Path<'_>) -> Faults {
    let Around { has_status, name, compiling, leniency } = around;
    let mut errors = Faults::default();
    let Some(schema) = version.schema() else { return errors };
    let at = path.child("openAPIV3Schema");
    if has_status {
        errors.extend(root_with_status(schema, path));
    }
    if schema.nullable() {
        let at = path.child("openAPIV3Schema.nullable");
        errors.push(FieldError::forbidden(&at, "nullable cannot be true at the root"));
    }
    let (mut unreadable, mut expressions) = (None, None);
    if leniency.require_structural {
        unreadable = structural::unreadable(schema);
        if unreadable.is_none() {
            let violations = structural::violations(&at, schema);
            let violations = match (violations.is_empty(), version.schema_value()) {
                (true, Some(value)) => {
                    default_check::violations(value, leniency.require_pruned_defaults, &at)
                }
                _ => violations,
            };
            // Rules are only compiled where everything else is right.
            if violations.is_empty() {
                let is_unchanged = leniency.stored.is_unchanged(name);
                expressions = Some(Expressions::new(&leniency.stored, compiling, is_unchanged));
            }
            errors.extend(violations);
        }
    }
    let mut walker = Walker { leniency, errors: &mut errors, readable: Readable::default(), expressions };
    let context = Context { values: Some(Some(1)), ..Context::default() };
    walker.visit(schema, context, true, &at);
    if let Some(mut expressions) = walker.expressions {
        errors.extend(std::mem::take(&mut expressions.errors));
        errors.extend(expressions.total(&at));
    }
    if let Some(reason) = unreadable.filter(|_| errors.is_empty()) {
        errors.push(FieldError::invalid(&at, BadValue::Text(""), reason));
    }
    errors
}

/// With a status subresource, the root may only say what does not reach into the status.
fn root_with_status(schema: Props<'_>, path: &Path<'_>) -> Option<FieldError> {
    const ALLOWED: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                           MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties \
                           ExternalDocs Example XPreserveUnknownFields XValidations]";
    // In the order of Kubernetes' type: the first that is set is reported.
    const BEFORE_TYPE: [&str; 3] = ["id", "$schema", "$ref"];
    const AFTER_TYPE: [&str; 19] = [
        "nullable",
        "default",
        "enum",
        "maxProperties",
        "minProperties",
        "allOf",
        "oneOf",
        "anyOf",
        "not",
        "additionalProperties",
        "patternProperties",
        "dependencies",
        "additionalItems",
        "definitions",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-list-type",
        "x-kubernetes-map-type",
    ];
    let is_set =
        |key: &str| schema.get(key).is_some_and(|v| v != &Value::Bool(false) && v.as_str() != Some(""));
    let refuse = || {
        let detail = format!(
            "only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled"
        );
        FieldError::invalid(&path.child("openAPIV3Schema"), BadValue::shown(printed::schema(schema)), detail)
    };
    if BEFORE_TYPE.into_iter().any(is_set) {
        return Some(refuse());
    }
    let kind = schema.kind();
    if !kind.is_empty() && kind != "object" {
        let at = path.child("openAPIV3Schema.type");
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(FieldError::invalid(&at, BadValue::Text(kind), detail));
    }
    AFTER_TYPE.into_iter().any(is_set).then(refuse)
}

/// What a schema inherits from those around it.
#[derive(Clone, Copy, Default)]
struct Context<'a> {
    /// Inside of the type or metadata of a resource.
    inside_meta: bool,
    /// Why there must be no default, if so.
    no_default: Option<NoDefault<'a>>,
    /// How many values of it an object may have, if that is known; nothing where rules are not asked.
    values: Option<Option<u64>>,
    /// The nearest to the root around it whose values do not correlate with those before them.
    uncorrelated: Option<&'a Path<'a>>,
}

#[derive(Clone, Copy)]
enum NoDefault<'a> {
    TopLevel(&'a str),
    MetadataMap,
}

struct Walker<'e, 'x> {
    leniency: &'x Leniency<'x>,
    errors: &'e mut Faults,
    readable: Readable,
    /// Rules are compiled.
    expressions: Option<Expressions<'x>>,
}

/// Which schemas can be read as structural, by where they are: each is looked at once, whatever stands around
/// it.
#[derive(Default)]
struct Readable(HashMap<usize, bool>);

impl Readable {
    fn has(&mut self, schema: Props<'_>) -> bool {
        if let Some(known) = self.0.get(&schema.address()) {
            return *known;
        }
        let mut below = |nested: Props<'_>| (!self.has(nested)).then(String::new);
        let readable = structural::unreadable_by(schema, &mut below).is_none();
        self.0.insert(schema.address(), readable);
        readable
    }
}

impl Walker<'_, '_> {
    fn visit(&mut self, schema: Props<'_>, context: Context<'_>, is_root: bool, path: &Path<'_>) {
        if self.errors.is_full() {
            return;
        }
        let right_before = self.errors.len();
        self.keywords(schema, context, path);
        if schema.flag("uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(path, "uniqueItems", detail);
        }
        self.below(schema, context, is_root, path);
        if schema.preserve_unknown_fields() == Some(false) {
            let at = path.child("x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(&at, BadValue::Bool(false), "must be true or undefined"));
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        if schema.list_type() == Some("map") {
            self.list_map(schema, path);
        }
        if self.leniency.require_list_map_keys {
            list_keys(schema, path, self.errors);
        }
        for (i, rule) in schema.rules().iter().enumerate() {
            if self.errors.is_full() {
                return;
            }
            let rules = path.child("x-kubernetes-validations");
            self.rule(schema, Props::of(rule), &rules.index(i));
        }
        // Here and below everything else is right.
        if self.errors.len() == right_before
            && let Some(expressions) = &mut self.expressions
            && let Some(count_max) = context.values
            && !schema.rules().is_empty()
        {
            let is_resource = is_root || schema.embedded_resource();
            expressions.judge(
                schema,
                Place { count_max, is_resource, uncorrelated: context.uncorrelated },
                path,
            );
        }
    }

    fn forbid(&mut self, path: &Path<'_>, key: &str, detail: &str) {
        self.errors.push(FieldError::forbidden(&path.child(key), detail));
    }

    /// Keywords that are not supported, and types that are none.
    fn keywords(&mut self, schema: Props<'_>, context: Context<'_>, path: &Path<'_>) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = schema.kind();
        if self.leniency.require_valid_type && !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors.push(FieldError::not_supported(&path.child("type"), BadValue::Text(kind), &TYPES));
        }
        if let Some(reason) = context.no_default.filter(|_| schema.default_value().is_some()) {
            let detail = match reason {
                NoDefault::TopLevel(name) => format!("must not be set in top-level {name}"),
                NoDefault::MetadataMap => {
                    "must not be set inside additionalProperties applying to object metadata".to_owned()
                }
            };
            self.forbid(path, "default", &detail);
        }
        let filled = |key: &str| schema.object(key).is_some_and(|map| map.entries().next().is_some());
        let set = [
            ("id", !schema.str("id").is_empty()),
            ("additionalItems", schema.schema_or_bool("additionalItems").is_some()),
            ("patternProperties", filled("patternProperties")),
            ("definitions", filled("definitions")),
            ("dependencies", schema.get("dependencies").is_some()),
            ("$ref", schema.opt_str("$ref").is_some()),
        ];
        for (key, _) in set.into_iter().filter(|(_, set)| *set) {
            self.forbid(path, key, &format!("{key} is not supported"));
        }
        if kind == "null" {
            self.forbid(path, "type", "type cannot be set to null, use nullable as an alternative");
        }
        if matches!(schema.items(), Some(Items::Schemas([_, ..]))) {
            self.forbid(path, "items", "items must be a schema object and not an array");
        }
        if context.inside_meta && schema.embedded_resource() {
            self.forbid(path, "x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
    }

    fn below(&mut self, schema: Props<'_>, context: Context<'_>, is_root: bool, path: &Path<'_>) {
        let properties = schema.named("properties");
        let values = context.values.map(|values| count_below(schema, values));
        let context = Context { values, ..context };
        if let Some(additional) = schema.schema_or_bool("additionalProperties") {
            if !properties.is_empty() && (!additional.allows() || additional.schema().is_some()) {
                self.forbid(
                    path,
                    "additionalProperties",
                    "additionalProperties and properties are mutual exclusive",
                );
            }
            if let Some(additional) = additional.schema() {
                let no_default =
                    if context.inside_meta { Some(NoDefault::MetadataMap) } else { context.no_default };
                let context = Context { no_default, ..context };
                self.visit(additional, context, false, &path.child("additionalProperties"));
            }
        }
        for (name, property) in properties {
            let mut context = context;
            if !matches!(schema.map_type(), None | Some("granular" | "atomic")) {
                context.uncorrelated = context.uncorrelated.or(Some(path));
            }
            if (is_root || schema.embedded_resource()) && matches!(name, "metadata" | "kind" | "apiVersion") {
                context.inside_meta = true;
                if is_root {
                    context.no_default = Some(NoDefault::TopLevel(name));
                }
            }
            self.visit(property, context, false, &path.child("properties").key(name));
        }
        let apart = Context { values: None, ..context };
        if let Some(not) = schema.not() {
            self.visit(not, apart, false, &path.child("not"));
        }
        for key in ["allOf", "oneOf", "anyOf"] {
            let path = path.child(key);
            for (i, nested) in schema.schemas(key).enumerate() {
                self.visit(nested, apart, false, &path.index(i));
            }
        }
        for (name, nested) in schema.named("definitions") {
            self.visit(nested, apart, false, &path.child("definitions").key(name));
        }
        let mut context = context;
        if schema.list_type() != Some("map") {
            context.uncorrelated = context.uncorrelated.or(Some(path));
        }
        match schema.items() {
            Some(Items::Schema(item)) => self.visit(item, context, false, &path.child("items")),
            Some(Items::Schemas(items)) => {
                let path = path.child("items");
                for (i, item) in items.iter().enumerate() {
                    self.visit(Props::of(item), context, false, &path.index(i));
                }
            }
            None => {}
        }
        for (name, nested) in schema.object("dependencies").into_iter().flat_map(Props::entries) {
            if nested.is_object() {
                self.visit(Props::of(nested), apart, false, &path.child("dependencies").key(name));
            }
        }
    }

    /// Requires a type beside a keyword.
    fn needs_type(&mut self, schema: Props<'_>, wanted: &str, keyword: &str, path: &Path<'_>) -> bool {
        let at = path.child("type");
        let detail = format!("must be {wanted} if {keyword} is specified");
        match schema.kind() {
            kind if kind == wanted => return true,
            "" => self.errors.push(FieldError::required(&at, detail)),
            kind => self.errors.push(FieldError::invalid(&at, BadValue::Text(kind), detail)),
        }
        false
    }

    fn map_type(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let Some(map_type) = schema.map_type() else { return };
        self.needs_type(schema, "object", "x-kubernetes-map-type", path);
        if !matches!(map_type, "atomic" | "granular") {
            let at = path.child("x-kubernetes-map-type");
            self.errors.push(FieldError::not_supported(
                &at,
                BadValue::Text(map_type),
                &["atomic", "granular"],
            ));
        }
    }

    fn list_type(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let at = path.child("x-kubernetes-list-type");
        if let Some(list_type) = schema.list_type() {
            let is_array = self.needs_type(schema, "array", "x-kubernetes-list-type", path);
            if is_array && list_type == "set" && self.leniency.require_atomic_set {
                self.errors.extend(set_item(schema, path));
            }
            if !matches!(list_type, "atomic" | "set" | "map") {
                let value = BadValue::Text(list_type);
                self.errors.push(FieldError::not_supported(&at, value, &["atomic", "set", "map"]));
            }
        }
        if schema.list_map_keys().next().is_some() {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match schema.list_type() {
                None => self.errors.push(FieldError::required(&at, detail)),
                Some("map") => {}
                Some(other) => self.errors.push(FieldError::invalid(&at, BadValue::Text(other), detail)),
            }
        }
    }

    fn list_map(&mut self, schema: Props<'_>, path: &Path<'_>) {
        let keys_at = path.child("x-kubernetes-list-map-keys");
        if schema.list_map_keys().next().is_none() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(&keys_at, detail));
        }
        let items_at = path.child("items");
        let item = match schema.items() {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                return self.errors.push(FieldError::required(&items_at, detail));
            }
            Some(Items::Schemas(_)) => {
                let (value, detail) = (
                    printed::items(schema),
                    "must only have a single schema if x-kubernetes-list-type is map",
                );
                return self.errors.push(FieldError::invalid(&items_at, BadValue::shown(&value), detail));
            }
            Some(Items::Schema(item)) => item,
        };
        if item.kind() != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            let at = items_at.child("type");
            return self.errors.push(FieldError::invalid(&at, BadValue::Text(item.kind()), detail));
        }
        let printed = printed::strings(schema, "x-kubernetes-list-map-keys");
        let mut seen = Seen::default();
        for key in schema.list_map_keys() {
            if self.errors.is_full() {
                return;
            }
            match item.property(key).map(Props::kind) {
                Some("array" | "object") => {
                    let properties = items_at.child("properties");
                    let key = properties.key(key);
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    // The value is the item's type, not the key's: so does Kubernetes.
                    self.errors.push(FieldError::invalid(
                        &key.child("type"),
                        BadValue::Text("object"),
                        detail,
                    ));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.errors.push(FieldError::invalid(&keys_at, BadValue::shown(&printed), detail));
                }
            }
            if seen.again(key) {
                let detail = "must not contain duplicate entries";
                self.errors.push(FieldError::invalid(&keys_at, BadValue::shown(&printed), detail));
            }
        }
    }

    fn rule(&mut self, schema: Props<'_>, rule: Props<'_>, path: &Path<'_>) {
        const REASONS: [&str; 4] =
            ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
        let has_newline = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.str("rule").trim(), rule.str("message"));
        let at = path.child("message");
        if text.is_empty() {
            self.errors.push(FieldError::required(&path.child("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            self.errors.push(FieldError::invalid(
                &at,
                BadValue::Text(message),
                "must be non-empty if specified",
            ));
        } else if has_newline(message.trim()) {
            self.errors.push(FieldError::invalid(
                &at,
                BadValue::Text(message),
                "must not contain line breaks",
            ));
        } else if has_newline(text) && message.trim().is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            self.errors.push(FieldError::required(&at, detail));
        }
        let expression = rule.str("messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            self.errors.push(FieldError::required(&path.child("messageExpression"), detail));
        }
        if let Some(reason) = rule.opt_str("reason").filter(|reason| !REASONS.contains(reason)) {
            self.errors.push(FieldError::not_supported(
                &path.child("reason"),
                BadValue::Text(reason),
                &REASONS,
            ));
        }
        let (field_path, at) = (rule.str("fieldPath"), path.child("fieldPath"));
        let mut invalid = |detail: &str| {
            self.errors.push(FieldError::invalid(&at, BadValue::Text(field_path), detail));
        };
        if !field_path.is_empty() && field_path.trim().is_empty() {
            invalid("must be non-empty if specified");
        }
        if has_newline(field_path) {
            invalid("must not contain line breaks");
        }
        if !field_path.is_empty()
            && self.readable.has(schema)
            && field_path::follow(field_path, schema, Brackets::Allowed).is_err()
        {
            let detail = "must be a valid path";
            self.errors.push(FieldError::invalid(&at, BadValue::Text(field_path), detail));
        }
    }
}

/// The items of a set are compared whole.
fn set_item(schema: Props<'_>, path: &Path<'_>) -> Option<FieldError> {
    let item = schema.item()?;
    let key = match item.kind() {
        "array" if item.list_type().is_some_and(|kind| kind != "atomic") => "x-kubernetes-list-type",
        "object" if item.map_type() != Some("atomic") => "x-kubernetes-map-type",
        _ => return None,
    };
    // The value is the list type in both cases: so does Kubernetes.
    let value = item.get("x-kubernetes-list-type").unwrap_or(&Value::Null);
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    Some(FieldError::invalid(&path.child("items").child(key), BadValue::Encoded(value), detail))
}

/// Whether an item of a set is not atomic.
pub(super) fn has_non_atomic_set(schema: Props<'_>) -> bool {
    schema.list_type() == Some("set") && set_item(schema, &Path::NIL).is_some()
}

/// Items of sets and maps are not null, and the keys of maps are always there.
fn list_keys(schema: Props<'_>, path: &Path<'_>, errors: &mut Faults) {
    let (Some(item), Some(list_type @ ("set" | "map"))) = (schema.item(), schema.list_type()) else { return };
    let items = path.child("items");
    if item.nullable() {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(FieldError::forbidden(&items.child("nullable"), detail));
    }
    if list_type != "map" {
        return;
    }
    let required: Seen<&str> = item.strings("required").collect();
    for key in schema.list_map_keys() {
        if errors.is_full() {
            return;
        }
        let Some(property) = item.property(key) else { continue };
        let properties = items.child("properties");
        let at = properties.key(key);
        if property.default_value().is_none() && !required.has(key) {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(FieldError::required(&at.child("default"), detail));
        }
        if property.nullable() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&at.child("nullable"), detail));
        }
    }
}

pub(super) fn has_bad_list_keys(schema: Props<'_>) -> bool {
    let mut errors = Faults::default();
    list_keys(schema, &Path::NIL, &mut errors);
    !errors.is_empty()
}
