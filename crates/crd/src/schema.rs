//! The compiled schema of one CRD version: what serving needs of it, small and shared.
//!
//! In: a schema as written. Out: a tree of [`Node`]s behind `Arc`s. Equal subtrees are one node (CRDs repeat
//! large parts: a pod template holds the same selector dozens of times), also across the versions of a CRD
//! when one [`Compiler`] makes them. Descriptions are not in the tree; the export reads them from the
//! original text. Immutable once made. Never validates that the schema is structural: that is decided before.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use forebay_apimachinery::{Seen, steps};
use forebay_cel::decl::Decl;
use forebay_re2::Pattern;
use serde_json::{Map, Value};

use super::choices::Choices;
use super::props::{Props, SchemaOrBool};
use super::validations::Declarations;

/// A compiled schema; cloning it copies a pointer.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(super) root: Arc<Node>,
    /// The schema as written, for export.
    pub(super) source: Arc<str>,
}

impl Schema {
    /// Compiles a schema with its defaults as written, unknown fields and all: to judge them, not to serve.
    pub(crate) fn as_written(schema: &Value) -> Schema {
        Schema { root: Compiler::default().node(Props::of(schema)), source: "".into() }
    }

    /// What it declares to expressions over whole objects; `None` for what they do not see.
    pub fn declared(&self) -> Option<Arc<Decl>> {
        let schema: Value = serde_json::from_str(&self.source).ok()?;
        Declarations::default().of(Props::of(&schema), true)
    }

    pub(crate) fn root(&self) -> &Node {
        &self.root
    }

    /// The schema as the CRD has it, in JSON, for those who describe it.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The schema of `.status`, which alone judges a write to the status subresource.
    pub(crate) fn status(&self) -> Option<&Node> {
        self.root.property("status")
    }
}

/// The type of a value; `None` is a schema without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    None,
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
    /// A name that is no type of OpenAPI v3; nothing satisfies it.
    Unknown,
}

impl Kind {
    fn of(name: &str) -> Kind {
        match name {
            "" => Kind::None,
            "object" => Kind::Object,
            "array" => Kind::Array,
            "string" => Kind::String,
            "number" => Kind::Number,
            "integer" => Kind::Integer,
            "boolean" => Kind::Boolean,
            _ => Kind::Unknown,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::None => "",
            Kind::Object => "object",
            Kind::Array => "array",
            Kind::String => "string",
            Kind::Number => "number",
            Kind::Integer => "integer",
            Kind::Boolean => "boolean",
            Kind::Unknown => "unknown",
        }
    }
}

/// One-bit facts of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    pub(crate) const NULLABLE: Flags = Flags(1);
    pub(crate) const PRESERVE_UNKNOWN: Flags = Flags(1 << 1);
    pub(crate) const EMBEDDED: Flags = Flags(1 << 2);
    pub(crate) const INT_OR_STRING: Flags = Flags(1 << 3);
    pub(crate) const LIST_SET: Flags = Flags(1 << 4);
    pub(crate) const LIST_MAP: Flags = Flags(1 << 5);
    pub(crate) const EXCLUSIVE_MAXIMUM: Flags = Flags(1 << 6);
    pub(crate) const EXCLUSIVE_MINIMUM: Flags = Flags(1 << 7);
    pub(crate) const UNIQUE_ITEMS: Flags = Flags(1 << 8);
    /// Here or below there is a default, an embedded resource, a list that is a set or map, a rule.
    pub(crate) const DEFAULT_BELOW: Flags = Flags(1 << 9);
    pub(crate) const EMBEDDED_BELOW: Flags = Flags(1 << 10);
    pub(crate) const KEYED_LIST_BELOW: Flags = Flags(1 << 11);
    pub(crate) const RULES_BELOW: Flags = Flags(1 << 12);
    pub(crate) const MAP_ATOMIC: Flags = Flags(1 << 13);

    const BELOW: u16 = (1 << 9) | (1 << 10) | (1 << 11) | (1 << 12);

    fn set(&mut self, flag: Flags, on: bool) {
        if on {
            self.0 |= flag.0;
        }
    }

    fn inherit(&mut self, child: &Node) {
        self.0 |= child.flags.0 & Flags::BELOW;
    }
}

/// `additionalProperties`.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    Unset,
    Allow,
    Deny,
    Schema(Arc<Node>),
}

/// One schema.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) kind: Kind,
    flags: Flags,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Arc<Node>>,
    /// name -> schema, in order of name.
    properties: Box<[(Arc<str>, Arc<Node>)]>,
    /// Which of them have a default.
    defaulted: Box<[u32]>,
    /// What most schemas have nothing of.
    pub(crate) rules: Option<Box<Rules>>,
}

/// Value validation, default and list keys of one schema.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) default: Option<Value>,
    pub(crate) format: Option<Box<str>>,
    pub(crate) pattern: Option<Arc<Pattern>>,
    pub(crate) maximum: Option<f64>,
    pub(crate) minimum: Option<f64>,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) choices: Choices,
    /// Each once.
    pub(crate) required: Box<[Arc<str>]>,
    /// In order of name.
    pub(crate) list_map_keys: Box<[Arc<str>]>,
    pub(crate) all_of: Box<[Arc<Node>]>,
    pub(crate) any_of: Box<[Arc<Node>]>,
    pub(crate) one_of: Box<[Arc<Node>]>,
    pub(crate) not: Option<Arc<Node>>,
}

/// The places of those of `properties` that have a default.
fn defaulted(properties: &[(Arc<str>, Arc<Node>)]) -> Box<[u32]> {
    let places = (0..).zip(properties).filter(|(_, (_, property))| property.default_value().is_some());
    places.map(|(place, _)| place).collect()
}

impl Node {
    /// The properties that have a default, which are looked at in each object.
    pub(crate) fn defaulted(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.defaulted.iter().map(|&place| {
            let (name, property) = &self.properties[place as usize];
            (&**name, &**property)
        })
    }

    pub(crate) fn has(&self, flag: Flags) -> bool {
        self.flags.0 & flag.0 != 0
    }

    pub(crate) fn property(&self, name: &str) -> Option<&Node> {
        let at = self.properties.binary_search_by(|(key, _)| (**key).cmp(name)).ok()?;
        Some(&self.properties[at].1)
    }

    pub(crate) fn properties(&self) -> impl ExactSizeIterator<Item = (&str, &Node)> {
        self.properties.iter().map(|(name, node)| (&**name, &**node))
    }

    /// The properties that `map` has, in order of name: as many looks as the shorter of the two is long.
    pub(crate) fn properties_of<'n: 'm, 'm>(
        &'n self,
        map: &'m Map<String, Value>,
    ) -> impl Iterator<Item = (&'m str, &'n Node, &'m Value)> {
        let is_short = map.len() < self.properties.len();
        steps::add(map.len().min(self.properties.len()) as u64);
        let by_map = is_short.then(|| {
            map.iter().filter_map(|(name, value)| Some((name.as_str(), self.property(name)?, value)))
        });
        let by_schema = (!is_short).then(|| {
            self.properties().filter_map(|(name, node)| {
                let (name, value) = map.get_key_value(name)?;
                Some((name.as_str(), node, value))
            })
        });
        by_map.into_iter().flatten().chain(by_schema.into_iter().flatten())
    }

    pub(crate) fn item(&self) -> Option<&Node> {
        self.items.as_deref()
    }

    /// The schema of `additionalProperties`, when it is one.
    pub(crate) fn additional_schema(&self) -> Option<&Node> {
        match &self.additional {
            Additional::Schema(node) => Some(node),
            _ => None,
        }
    }

    pub(crate) fn default_value(&self) -> Option<&Value> {
        self.rules.as_ref()?.default.as_ref()
    }

    pub(crate) fn nullable(&self) -> bool {
        self.has(Flags::NULLABLE)
    }

    pub(crate) fn list_map_keys(&self) -> &[Arc<str>] {
        self.rules.as_ref().map_or(&[], |rules| &rules.list_map_keys)
    }
}

/// Makes schemas and remembers their parts, so that equal parts are shared. Dropped when a CRD is compiled.
#[derive(Default)]
pub(crate) struct Compiler {
    names: HashMap<Box<str>, Arc<str>>,
    patterns: HashMap<Box<str>, Arc<Pattern>>,
    /// What makes a node, its children by address -> the node.
    nodes: HashMap<Box<str>, Arc<Node>>,
}

/// Keywords that are part of a node's identity as they are written.
const SCALARS: [&str; 27] = [
    "type",
    "nullable",
    "default",
    "format",
    "pattern",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "multipleOf",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxProperties",
    "minProperties",
    "enum",
    "required",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "additionalProperties",
];

impl Compiler {
    pub(super) fn node(&mut self, schema: Props<'_>) -> Arc<Node> {
        let items = schema.item().map(|item| self.node(item));
        let properties: Box<[_]> =
            schema.named("properties").into_iter().map(|(name, p)| (self.name(name), self.node(p))).collect();
        let additional = match schema.schema_or_bool("additionalProperties") {
            None => Additional::Unset,
            Some(SchemaOrBool::Bool(true)) => Additional::Allow,
            Some(SchemaOrBool::Bool(false)) => Additional::Deny,
            Some(SchemaOrBool::Schema(schema)) => Additional::Schema(self.node(schema)),
        };
        let mut node = Node {
            kind: Kind::of(schema.kind()),
            flags: flags(schema),
            additional,
            items,
            defaulted: defaulted(&properties),
            properties,
            rules: None,
        };
        for child in node.properties.iter().map(|(_, child)| child).chain(&node.items) {
            node.flags.inherit(child);
        }
        if let Additional::Schema(child) = &node.additional {
            node.flags.inherit(child);
        }
        node.rules = self.rules(schema).map(Box::new);
        self.share(schema, node)
    }

    /// Returns the node made before from the same parts, or keeps this one.
    fn share(&mut self, schema: Props<'_>, node: Node) -> Arc<Node> {
        let key = identity(schema, &node);
        if let Some(known) = self.nodes.get(key.as_str()) {
            return known.clone();
        }
        let node = Arc::new(node);
        self.nodes.insert(key.into(), node.clone());
        node
    }

    fn rules(&mut self, schema: Props<'_>) -> Option<Rules> {
        let text = |key: &str| Some(schema.str(key)).filter(|text| !text.is_empty());
        let mut junctor =
            |key: &str| -> Box<[_]> { schema.schemas(key).map(|nested| self.node(nested)).collect() };
        let (all_of, any_of, one_of) = (junctor("allOf"), junctor("anyOf"), junctor("oneOf"));
        let mut seen = Seen::default();
        let required = schema.strings("required").filter(|name| !seen.again(*name));
        let mut list_map_keys: Vec<&str> = schema.list_map_keys().collect();
        list_map_keys.sort_unstable();
        let rules = Rules {
            default: schema.default_value().cloned(),
            format: text("format").map(Into::into),
            pattern: text("pattern").map(|source| self.pattern(source)),
            maximum: schema.float("maximum"),
            minimum: schema.float("minimum"),
            multiple_of: schema.float("multipleOf"),
            max_length: schema.int("maxLength"),
            min_length: schema.int("minLength"),
            max_items: schema.int("maxItems"),
            min_items: schema.int("minItems"),
            max_properties: schema.int("maxProperties"),
            min_properties: schema.int("minProperties"),
            choices: Choices::of(schema.list("enum")),
            required: required.map(|name| self.name(name)).collect(),
            list_map_keys: list_map_keys.into_iter().map(|name| self.name(name)).collect(),
            not: schema.not().map(|nested| self.node(nested)),
            all_of,
            any_of,
            one_of,
        };
        rules.any().then_some(rules)
    }

    fn name(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.names.get(name) {
            return known.clone();
        }
        let shared: Arc<str> = name.into();
        self.names.insert(name.into(), shared.clone());
        shared
    }

    fn pattern(&mut self, source: &str) -> Arc<Pattern> {
        if let Some(known) = self.patterns.get(source) {
            return known.clone();
        }
        let shared = Arc::new(Pattern::new(source));
        self.patterns.insert(source.into(), shared.clone());
        shared
    }
}

impl Rules {
    fn any(&self) -> bool {
        let Rules { default, format, pattern, maximum, minimum, multiple_of, max_length, min_length, .. } =
            self;
        let Rules { max_items, min_items, max_properties, min_properties, choices, required, .. } = self;
        let Rules { list_map_keys, all_of, any_of, one_of, not, .. } = self;
        default.is_some()
            || format.is_some()
            || pattern.is_some()
            || [maximum, minimum, multiple_of].iter().any(|bound| bound.is_some())
            || [max_length, min_length, max_items, min_items, max_properties, min_properties]
                .iter()
                .any(|bound| bound.is_some())
            || !choices.is_empty()
            || !required.is_empty()
            || !list_map_keys.is_empty()
            || [all_of, any_of, one_of].iter().any(|nested| !nested.is_empty())
            || not.is_some()
    }
}

fn flags(schema: Props<'_>) -> Flags {
    let mut flags = Flags::default();
    let keyed = matches!(schema.list_type(), Some("set" | "map"));
    flags.set(Flags::NULLABLE, schema.nullable());
    flags.set(Flags::PRESERVE_UNKNOWN, schema.preserve_unknown_fields() == Some(true));
    flags.set(Flags::EMBEDDED, schema.embedded_resource());
    flags.set(Flags::INT_OR_STRING, schema.int_or_string());
    flags.set(Flags::LIST_SET, schema.list_type() == Some("set"));
    flags.set(Flags::LIST_MAP, schema.list_type() == Some("map"));
    flags.set(Flags::MAP_ATOMIC, schema.map_type() == Some("atomic"));
    flags.set(Flags::EXCLUSIVE_MAXIMUM, schema.flag("exclusiveMaximum"));
    flags.set(Flags::EXCLUSIVE_MINIMUM, schema.flag("exclusiveMinimum"));
    flags.set(Flags::UNIQUE_ITEMS, schema.flag("uniqueItems"));
    flags.set(Flags::DEFAULT_BELOW, schema.default_value().is_some());
    flags.set(Flags::EMBEDDED_BELOW, schema.embedded_resource());
    flags.set(Flags::KEYED_LIST_BELOW, keyed);
    flags.set(Flags::RULES_BELOW, !schema.rules().is_empty());
    flags
}

/// Text that is equal for two nodes exactly when they are: own keywords as written, children by address.
fn identity(schema: Props<'_>, node: &Node) -> String {
    let mut key = String::new();
    for name in SCALARS {
        match schema.get(name) {
            Some(value) if !value.is_object() || name == "default" => {
                let _ = write!(key, "{name}={value};");
            }
            _ => {}
        }
    }
    let mut push = |mark: char, child: &Arc<Node>| {
        let _ = write!(key, "{mark}{:p}", Arc::as_ptr(child));
    };
    if let Some(items) = &node.items {
        push('[', items);
    }
    if let Additional::Schema(schema) = &node.additional {
        push('+', schema);
    }
    if let Some(rules) = &node.rules {
        rules.all_of.iter().for_each(|child| push('&', child));
        rules.any_of.iter().for_each(|child| push('|', child));
        rules.one_of.iter().for_each(|child| push('^', child));
        rules.not.iter().for_each(|child| push('!', child));
    }
    for (name, child) in &node.properties {
        let _ = write!(key, ",{:p}:{:p}", Arc::as_ptr(name), Arc::as_ptr(child));
    }
    key
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_subtrees_are_one_node() {
        let part = json!({"type": "object", "description": "one", "properties": {"a": {"type": "string", "maxLength": 3}}});
        let other = json!({"type": "object", "description": "two", "properties": {"a": {"type": "string", "maxLength": 3}}});
        let schema =
            json!({"type": "object", "properties": {"x": part, "y": {"type": "array", "items": other}}});
        let compiled = Schema::compile(&schema);
        let x = compiled.root().property("x").expect("x");
        let y = compiled.root().property("y").and_then(Node::item).expect("y[]");
        assert!(std::ptr::eq(x, y));
    }

    #[test]
    fn nodes_that_differ_in_one_keyword_are_two() {
        let base = json!({"type": "string"});
        let rows = [
            json!({"nullable": true}),
            json!({"default": "a"}),
            json!({"default": {"a": 1}}),
            json!({"format": "date"}),
            json!({"pattern": "a"}),
            json!({"maximum": 1}),
            json!({"exclusiveMinimum": true}),
            json!({"enum": ["a"]}),
            json!({"required": ["a"]}),
            json!({"additionalProperties": true}),
            json!({"additionalProperties": false}),
            json!({"additionalProperties": {"type": "string"}}),
            json!({"items": {"type": "string"}}),
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"properties": {"b": {"type": "string"}}}),
            json!({"allOf": [{"minLength": 1}]}),
            json!({"anyOf": [{"minLength": 1}]}),
            json!({"oneOf": [{"minLength": 1}]}),
            json!({"not": {"minLength": 1}}),
            json!({"x-kubernetes-list-type": "map"}),
            json!({"x-kubernetes-list-type": "set"}),
            json!({"x-kubernetes-preserve-unknown-fields": true}),
            json!({"x-kubernetes-validations": [{"rule": "true"}]}),
        ];
        let mut compiler = Compiler::default();
        let mut seen = vec![compiler.compile(&base).root];
        for row in rows {
            let mut schema = base.clone();
            let more = row.as_object().expect("an object").clone();
            schema.as_object_mut().expect("an object").extend(more);
            let root = compiler.compile(&schema).root;
            assert!(seen.iter().all(|known| !Arc::ptr_eq(known, &root)), "{schema}");
            assert!(Arc::ptr_eq(&root, &compiler.compile(&schema).root), "{schema}");
            seen.push(root);
        }
    }

    #[test]
    fn facts_below_reach_the_root() {
        let deep = |leaf: Value| {
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object",
                "additionalProperties": leaf}}}})
        };
        let rows = [
            (json!({"type": "string"}), None),
            (json!({"default": 1}), Some(Flags::DEFAULT_BELOW)),
            (json!({"x-kubernetes-embedded-resource": true}), Some(Flags::EMBEDDED_BELOW)),
            (json!({"x-kubernetes-list-type": "set"}), Some(Flags::KEYED_LIST_BELOW)),
            (json!({"x-kubernetes-validations": [{"rule": "true"}]}), Some(Flags::RULES_BELOW)),
        ];
        let all = [Flags::DEFAULT_BELOW, Flags::EMBEDDED_BELOW, Flags::KEYED_LIST_BELOW, Flags::RULES_BELOW];
        for (leaf, want) in rows {
            let schema = Schema::compile(&deep(leaf.clone()));
            for flag in all {
                assert_eq!(schema.root().has(flag), want == Some(flag), "{leaf} {flag:?}");
            }
        }
    }
}
