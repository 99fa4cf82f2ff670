//! A CustomResourceDefinition, compiled for serving.
//!
//! In: a CRD that has passed validation. Out: a [`Definition`], shared and immutable: names, versions, and
//! for each version its schema, subresources, columns and selectable fields. Never: judges whether the CRD is
//! right.

use std::sync::Arc;

use forebay_apimachinery::json::{self, ParseError};
use forebay_apimachinery::version_order::kube_aware;
use forebay_apimachinery::{Cause, CauseReason, Exhausted, Lease};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::field::{BadValue, FieldError, Path, causes};
use super::jsonpath::JsonPath;
use super::limits::OBJECT_RULES_COST_MAX;
use super::needed::Needed;
use super::object_meta::{self, MalformedFields};
use super::props::Props;
use super::schema::{Compiler, Schema};
use super::validations::{Compiling, Validator};

/// What a CRD says, compiled.
#[derive(Debug)]
pub struct Definition {
    pub group: Arc<str>,
    pub plural: Arc<str>,
    pub singular: Arc<str>,
    pub kind: Arc<str>,
    pub list_kind: Arc<str>,
    pub short_names: Vec<Arc<str>>,
    pub categories: Vec<Arc<str>>,
    pub namespaced: bool,
    pub versions: Vec<Version>,
    /// Only a webhook can convert objects between versions.
    pub webhook_conversion: bool,
}

/// One version of a CRD.
#[derive(Debug)]
pub struct Version {
    pub name: Arc<str>,
    pub served: bool,
    pub storage: bool,
    /// What clients of a deprecated version are told.
    pub deprecation_warning: Option<String>,
    pub schema: Option<Schema>,
    /// Its rules in CEL, shared with the versions that have the same schema.
    validator: Option<Arc<Validator>>,
    pub status: bool,
    pub scale: Option<Scale>,
    pub columns: Vec<Column>,
    // What its cells are made of.
    shown: Needed,
    /// Dotted paths, as field selectors name them.
    pub selectable_fields: Vec<String>,
}

/// What a version says of an object.
#[derive(Debug, Default)]
pub struct Violations {
    pub causes: Vec<Cause>,
    /// What is wrong and was so before.
    pub warnings: Vec<String>,
    /// How many of the causes, from the first, are those of the schema alone.
    of_schema: usize,
}

impl Violations {
    /// Those causes, without warnings.
    pub fn of_causes(causes: Vec<Cause>) -> Violations {
        Violations { causes, ..Violations::default() }
    }

    /// Takes the causes, with those of the object's scale where they are told: after the schema's own, before
    /// what is said of lists, of objects within it, and by rules.
    pub fn take_causes(&mut self, of_scale: Vec<Cause>) -> Vec<Cause> {
        let mut causes = std::mem::take(&mut self.causes);
        causes.splice(self.of_schema..self.of_schema, of_scale);
        causes
    }
}

/// Where a scale subresource finds its numbers, as dotted paths without the first dot.
#[derive(Clone, Debug)]
pub struct Scale {
    pub spec_replicas: String,
    pub status_replicas: String,
    pub label_selector: Option<String>,
}

/// One printer column.
#[derive(Debug)]
pub struct Column {
    pub name: String,
    pub type_: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    path: Option<JsonPath>,
}

impl Definition {
    /// Compiles `crd`.
    pub fn compile(crd: &Value) -> Definition {
        let spec = &crd["spec"];
        // Status holds what was accepted; a CRD that is served has its names accepted.
        let names = crd["status"]["acceptedNames"]
            .as_object()
            .map_or(&spec["names"], |_| &crd["status"]["acceptedNames"]);
        let text = |value: &Value| Arc::<str>::from(value.as_str().unwrap_or(""));
        let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
        let mut compiler = Compiler::default();
        let versions = || spec["versions"].as_array().into_iter().flatten();
        let mut compiled: Vec<Version> =
            versions().map(|version| Version::compile(spec, version, &mut compiler)).collect();
        let schemas = versions().map(|version| &version["schema"]["openAPIV3Schema"]);
        let compiling = Compiling::new();
        for (at, schema) in schemas.enumerate() {
            let (before, rest) = compiled.split_at_mut(at);
            rest[0].validator = rest[0].rules(schema, before, &compiling);
        }
        Definition {
            group: text(&spec["group"]),
            plural: text(&spec["names"]["plural"]),
            singular: text(&names["singular"]),
            kind: text(&names["kind"]),
            list_kind: text(&names["listKind"]),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            versions: compiled,
            webhook_conversion: spec["conversion"]["strategy"] == "Webhook",
        }
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> &Version {
        // Once: for the whole definition.
        let storage = self.versions.iter().find(|version| version.storage);
        storage.or(self.versions.first()).expect("a CRD has a version")
    }
}

impl Version {
    fn compile(spec: &Value, version: &Value, compiler: &mut Compiler) -> Version {
        let name = version["name"].as_str().unwrap_or("");
        let deprecation_warning = (version["deprecated"] == true).then(|| {
            let given = version["deprecationWarning"].as_str().map(String::from);
            given.unwrap_or_else(|| deprecated(spec, name))
        });
        let schema = version["schema"].get("openAPIV3Schema").filter(|schema| schema.is_object());
        let scale = version["subresources"].get("scale").filter(|scale| scale.is_object());
        let dotted = |path: &Value| path.as_str().unwrap_or("").trim_start_matches('.').to_string();
        let columns = columns(version);
        let selectable = version["selectableFields"].as_array().into_iter().flatten();
        Version {
            name: name.into(),
            served: version["served"] == true,
            storage: version["storage"] == true,
            deprecation_warning,
            schema: schema.map(|schema| compiler.compile(schema)),
            validator: None,
            status: version["subresources"].get("status").is_some_and(Value::is_object),
            scale: scale.map(|scale| Scale {
                spec_replicas: dotted(&scale["specReplicasPath"]),
                status_replicas: dotted(&scale["statusReplicasPath"]),
                label_selector: scale.get("labelSelectorPath").map(dotted).filter(|path| !path.is_empty()),
            }),
            shown: shown(&columns),
            columns,
            selectable_fields: selectable.map(|field| dotted(&field["jsonPath"])).collect(),
        }
    }

    /// What its rules may cost for one object, by estimate.
    pub fn rules_cost_max(&self) -> u64 {
        self.validator.as_ref().map_or(0, |validator| validator.cost_max())
    }

    /// The rules of the version's schema, which one of those `before` may have compiled.
    fn rules(&self, schema: &Value, before: &[Version], compiling: &Compiling) -> Option<Arc<Validator>> {
        let own = self.schema.as_ref()?;
        let is_same = |other: &&Version| {
            other.schema.as_ref().is_some_and(|other| std::ptr::eq(other.root(), own.root()))
        };
        // Once: for the definition.
        if let Some(same) = before.iter().find(is_same) {
            return same.validator.clone();
        }
        Validator::of(Props::of(schema), own.root(), true, compiling).map(Arc::new)
    }

    /// Brings an object into the form of this version: metadata as Kubernetes decodes it, unknown fields
    /// dropped, defaults set. The problems are `unknown field "spec.x"`.
    ///
    /// - `lease`: what the defaults take is charged to it.
    ///
    /// # Errors
    /// A metadata field of the wrong type, and defaults that take more than there may be.
    pub fn normalize(&self, object: &mut Value, lease: &Lease) -> Result<Vec<String>, String> {
        let Some(members) = object.as_object_mut() else {
            return Err("the object is not a JSON object".into());
        };
        let mut unknown = object_meta::coerce(members, &Path::NIL, MalformedFields::Refuse)?;
        if let Some(schema) = &self.schema {
            unknown.extend(
                schema.coerce_embedded(object, MalformedFields::Refuse).map_err(|error| error.to_string())?,
            );
            unknown.extend(schema.prune(object));
            schema.prune_nulls(object);
            schema.default(object, &mut lease.meter()).map_err(|exhausted| exhausted.to_string())?;
        }
        Ok(unknown.iter().map(|path| format!("unknown field {path:?}")).collect())
    }

    /// As [`Version::normalize`] of what was applied: what the schema does not know, and nulls, are judged
    /// with it, and [dropped](Version::prune) when it is stored.
    ///
    /// # Errors
    /// As [`Version::normalize`].
    pub fn normalize_applied(&self, object: &mut Value, lease: &Lease) -> Result<(), String> {
        let Some(members) = object.as_object_mut() else {
            return Err("the object is not a JSON object".into());
        };
        object_meta::coerce(members, &Path::NIL, MalformedFields::Refuse)?;
        let Some(schema) = &self.schema else { return Ok(()) };
        schema.coerce_embedded(object, MalformedFields::Refuse).map_err(|error| error.to_string())?;
        schema.default(object, &mut lease.meter()).map_err(|exhausted| exhausted.to_string())
    }

    /// Fills in the default of a status that is not there. A write to the object cannot set it, and yet it is
    /// read with its default.
    ///
    /// # Errors
    /// It takes more than `lease` may hold.
    pub fn default_status(&self, object: &mut Value, lease: &Lease) -> Result<(), Exhausted> {
        let Some(schema) = self.schema.as_ref().filter(|_| self.status) else { return Ok(()) };
        let has_default = schema.status().is_some_and(|status| status.default_value().is_some());
        if has_default && object.get("status").is_none() {
            schema.default(object, &mut lease.meter())?;
        }
        Ok(())
    }

    /// Drops what the schema does not know, and nulls that it does not allow.
    pub fn prune(&self, object: &mut Value) {
        if let Some(schema) = &self.schema {
            schema.prune(object);
            schema.prune_nulls(object);
        }
    }

    /// Everything that the schema and its rules have against `object`, which takes the place of `old` if
    /// there is one.
    ///
    /// - `before`: what else is wrong with it.
    pub fn validate(&self, object: &Value, old: Option<&Value>, before: &[Cause]) -> Violations {
        let Some(schema) = &self.schema else { return Violations::default() };
        let violations = match old {
            Some(old) => schema.validate_update(object, old),
            None => schema.validate(object),
        };
        let mut others = schema.validate_embedded(object);
        others.extend(list_violations(schema, object, old));
        self.with_rules(schema, [violations, others], (object, old), before)
    }

    /// The same where the status alone is written: it alone is held against the schema, and the rules are
    /// asked of the whole.
    pub fn validate_status(&self, object: &Value, old: &Value, before: &[Cause]) -> Violations {
        let Some(schema) = &self.schema else { return Violations::default() };
        let violations = schema.validate_status_update(object, old);
        let others = list_violations(schema, object, Some(old));
        self.with_rules(schema, [violations, others], (object, Some(old)), before)
    }

    /// `violations`, those of the schema alone and others, and what the rules have against an object in the
    /// place of another.
    fn with_rules(
        &self,
        schema: &Schema,
        [violations, others]: [Vec<FieldError>; 2],
        (object, old): (&Value, Option<&Value>),
        before: &[Cause],
    ) -> Violations {
        let mut found = Violations::of_causes(causes(&violations));
        found.of_schema = found.causes.len();
        found.causes.extend(causes(&others));
        let Some(validator) = &self.validator else { return found };
        // Once: for the object.
        if before.iter().chain(&found.causes).any(blocks_rules) {
            let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                          errors to complete validation";
            found.causes.extend(causes(&[FieldError::invalid(&Path::NIL, BadValue::Nil, detail)]));
            return found;
        }
        let judged = validator.judge(schema.root(), &Path::NIL, (object, old), true, OBJECT_RULES_COST_MAX);
        found.causes.extend(causes(&judged.errors.into_vec()));
        found.warnings.extend(judged.warnings.into_iter().map(|error| error.to_string()));
        found
    }

    /// A Table's columns for this version.
    pub fn column_definitions(&self) -> Value {
        let name =
            json!({ "name": "Name", "type": "string", "format": "name", "description": NAME, "priority": 0 });
        let own = self.columns.iter().map(|column| {
            json!({ "name": column.name, "type": column.type_, "format": column.format,
                "description": column.description, "priority": column.priority })
        });
        std::iter::once(name).chain(own).collect()
    }

    /// Reads as much of an object as [`Version::cells`] needs.
    ///
    /// # Errors
    /// `text` is no JSON.
    pub fn read_shown(&self, text: &[u8]) -> Result<Value, ParseError> {
        // What is nested deeper than serde_json goes is read whole.
        json::read_part(&self.shown, text).or_else(|_| json::read(text))
    }

    /// A Table's cells for `object`. Dates are shown as ages at `now` by `human`.
    pub fn cells(
        &self,
        object: &Value,
        now: Timestamp,
        human: impl Fn(Timestamp, Timestamp) -> String,
    ) -> Vec<Value> {
        let name = object["metadata"]["name"].clone();
        std::iter::once(name)
            .chain(self.columns.iter().map(|column| column.cell(object, now, &human)))
            .collect()
    }
}

/// What is twice in a set or a map of `object`; what `old` has of that is forgiven with all others.
fn list_violations(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match old.is_none_or(|old| schema.validate_lists(old).is_empty()) {
        true => schema.validate_lists(object),
        false => Vec::new(),
    }
}

/// Whether rules are not asked because of it: they might read what is not there, or of another type.
fn blocks_rules(cause: &Cause) -> bool {
    matches!(
        cause.reason,
        CauseReason::FieldValueNotSupported
            | CauseReason::FieldValueRequired
            | CauseReason::FieldValueTooLong
            | CauseReason::FieldValueTooMany
            | CauseReason::FieldValueTypeInvalid
    )
}

/// What is said of a version that is deprecated without a word, and of the best of those that rank above it.
fn deprecated(spec: &Value, name: &str) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
    let said = format!("{group}/{name} {kind} is deprecated");
    let versions = spec["versions"].as_array().into_iter().flatten();
    let others = versions.filter(|other| other["served"] == true && other["deprecated"] != true);
    let better = others
        .filter_map(|other| other["name"].as_str())
        .filter(|other| kube_aware(name, other).is_lt())
        .max_by(|one, two| kube_aware(one, two));
    match better {
        Some(better) => format!("{said}; use {group}/{better} {kind}"),
        None => said,
    }
}

const NAME: &str = "Name of the object, unique within its namespace and kind.";

/// The columns of a version; without any, the age alone.
fn columns(version: &Value) -> Vec<Column> {
    let given = version["additionalPrinterColumns"].as_array().filter(|columns| !columns.is_empty());
    let Some(given) = given else {
        return vec![Column {
            name: "Age".into(),
            type_: "date".into(),
            format: String::new(),
            description: "When the object was created.".into(),
            priority: 0,
            path: JsonPath::parse(".metadata.creationTimestamp").ok(),
        }];
    };
    let text = |value: &Value| value.as_str().unwrap_or("").to_string();
    let column = |column: &Value| Column {
        name: text(&column["name"]),
        type_: text(&column["type"]),
        format: text(&column["format"]),
        description: match text(&column["description"]) {
            description if description.is_empty() => {
                format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    text(&column["jsonPath"])
                )
            }
            description => description,
        },
        priority: column["priority"].as_i64().unwrap_or(0),
        path: JsonPath::parse(column["jsonPath"].as_str().unwrap_or("")).ok(),
    };
    given.iter().map(column).collect()
}

/// What the cells of `columns` and an object's name are made of.
fn shown(columns: &[Column]) -> Needed {
    let mut shown = Needed::default();
    let paths = columns.iter().filter_map(|column| column.path.as_ref());
    let name = JsonPath::parse(".metadata.name").ok();
    paths.chain(&name).for_each(|path| shown.add(path));
    shown
}

impl Column {
    fn cell(&self, object: &Value, now: Timestamp, human: &impl Fn(Timestamp, Timestamp) -> String) -> Value {
        let found = self.path.as_ref().map_or_else(Vec::new, |path| path.find(object));
        let Some(first) = found.first() else { return Value::Null };
        match self.type_.as_str() {
            "integer" => match (first.as_i64(), first.as_f64()) {
                (Some(number), _) => json!(number),
                (None, Some(number)) => json!(number as i64),
                (None, None) => Value::Null,
            },
            "number" if first.is_number() => (*first).clone(),
            "boolean" if first.is_boolean() => (*first).clone(),
            "date" => match first.as_str() {
                Some(text) => match text.parse::<Timestamp>() {
                    Ok(then) => json!(human(then, now)),
                    Err(_) => json!("<invalid>"),
                },
                None => Value::Null,
            },
            "string" => {
                let texts: Vec<String> = found.iter().map(|value| printed(value)).collect();
                json!(texts.join(" "))
            }
            _ => Value::Null,
        }
    }
}

/// A value as a cell of type string shows it.
fn printed(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition() -> Definition {
        Definition::compile(&json!({
            "spec": { "group": "g.io", "scope": "Namespaced", "conversion": { "strategy": "None" },
                "names": { "plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList" },
                "versions": [
                    { "name": "v1", "served": true, "storage": true,
                      "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                          "spec": { "type": "object", "properties": {
                              "size": { "type": "integer", "default": 3, "maximum": 5 }, "mode": { "type": "string" } } } } } },
                      "subresources": { "status": {}, "scale": { "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size" } },
                      "selectableFields": [{ "jsonPath": ".spec.mode" }],
                      "additionalPrinterColumns": [
                          { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
                          { "name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                          { "name": "Modes", "type": "string", "jsonPath": ".spec.modes[*]" }] },
                    { "name": "v1beta1", "served": true, "storage": false, "deprecated": true },
                ] },
        }))
    }

    #[test]
    fn an_object_is_pruned_defaulted_and_validated() {
        let definition = definition();
        let version = &definition.versions[0];
        let mut object = json!({ "apiVersion": "g.io/v1", "kind": "Foo", "metadata": { "name": "a" }, "spec": { "bogus": 1 } });
        assert_eq!(
            version.normalize(&mut object, &Lease::of_server()).expect("fits"),
            ["unknown field \"spec.bogus\""]
        );
        assert_eq!(object["spec"], json!({ "size": 3 }));
        assert!(version.validate(&object, None, &[]).causes.is_empty());
        object["spec"]["size"] = json!(9);
        let violations = version.validate(&object, None, &[]).causes;
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].field, "spec.size");
    }

    #[test]
    fn what_a_scale_lacks_is_told_behind_the_schema_and_before_all_else() {
        let cause = |field: &str| Cause::new(CauseReason::FieldValueInvalid, field, "x");
        let fields = |causes: &[Cause]| causes.iter().map(|cause| cause.field.clone()).collect::<Vec<_>>();
        let mut found = Violations { of_schema: 1, ..Violations::of_causes(vec![cause("a"), cause("c")]) };
        assert_eq!(fields(&found.take_causes(vec![cause("b")])), ["a", "b", "c"]);
        let definition = definition();
        let mut object = json!({ "apiVersion": "g.io/v1", "kind": "Foo", "metadata": { "name": "a" }, "spec": { "size": 9 } });
        let mut found = definition.versions[0].validate(&object, None, &[]);
        assert_eq!(fields(&found.take_causes(vec![cause(".spec.x")])), ["spec.size", ".spec.x"]);
        object["spec"]["size"] = json!(3);
        let mut found = definition.versions[0].validate(&object, None, &[]);
        assert_eq!(fields(&found.take_causes(vec![cause(".spec.x")])), [".spec.x"]);
    }

    #[test]
    fn columns_and_subresources_are_read() {
        let definition = definition();
        let version = &definition.versions[0];
        assert!(version.status);
        assert_eq!(version.scale.as_ref().expect("scale").spec_replicas, "spec.size");
        assert_eq!(version.selectable_fields, ["spec.mode"]);
        let object = json!({ "metadata": { "name": "a", "creationTimestamp": "2026-01-01T00:00:00Z" },
            "spec": { "size": 4, "modes": ["x", "y"] } });
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let cells = version.cells(&object, now, |then, now| format!("{}s", (now - then).get_seconds()));
        assert_eq!(cells, [json!("a"), json!(4), json!("60s"), json!("x y")]);
        assert_eq!(version.read_shown(object.to_string().as_bytes()).expect("JSON"), object);
        let mut more = object.clone();
        more["spec"]["rest"] = json!([{}]);
        assert_eq!(version.read_shown(more.to_string().as_bytes()).expect("JSON"), object);
        assert_eq!(definition.versions[1].column_definitions()[1]["name"], "Age");
        assert_eq!(
            definition.versions[1].deprecation_warning.as_deref(),
            Some("g.io/v1beta1 Foo is deprecated; use g.io/v1 Foo")
        );
    }

    #[test]
    fn a_deprecated_version_names_the_best_of_those_above_it() {
        let version = |name: &str, served: bool, deprecated: bool| json!({ "name": name, "served": served, "deprecated": deprecated });
        let versions = [
            version("v1alpha1", true, true),
            version("v1beta1", true, false),
            version("v1", true, false),
            version("v2", true, true),
            version("v3", false, false),
        ];
        let spec = json!({ "group": "g.io", "names": { "kind": "Foo" }, "versions": versions });
        assert_eq!(deprecated(&spec, "v1alpha1"), "g.io/v1alpha1 Foo is deprecated; use g.io/v1 Foo");
        assert_eq!(deprecated(&spec, "v2"), "g.io/v2 Foo is deprecated");
    }

    #[test]
    fn a_status_that_is_not_there_has_its_default_where_writes_cannot_set_it() {
        let status = json!({ "type": "object", "default": { "phase": "New" },
            "properties": { "phase": { "type": "string" } } });
        let defaulted = |subresources: Value| {
            let schema = json!({ "type": "object", "properties": { "status": status } });
            let version = json!({ "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": { "openAPIV3Schema": schema } });
            let definition = Definition::compile(&json!({ "spec": { "versions": [version] } }));
            let mut object = json!({});
            let done = definition.versions[0].default_status(&mut object, &Lease::of_one_tree());
            done.expect("room");
            object
        };
        assert_eq!(defaulted(json!({ "status": {} })), json!({ "status": { "phase": "New" } }));
        assert_eq!(defaulted(json!({})), json!({}));
    }
}
