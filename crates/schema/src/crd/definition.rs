//! A CustomResourceDefinition, compiled for serving.
//!
//! In: a CRD that has passed validation. Out: a [`Definition`], shared and immutable: names, versions, and for each
//! version its schema, subresources, columns and selectable fields. Never: judges whether the CRD is right.

use std::sync::Arc;

use forebay_apimachinery::Lease;
use forebay_apimachinery::json::{self, ParseError};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::field::{FieldError, Path};
use super::jsonpath::JsonPath;
use super::needed::Needed;
use super::object_meta::{self, Malformed};
use super::schema::{Compiler, Schema};

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
    /// Objects convert between versions by a webhook, which is not served: then only the storage version is.
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
    pub status: bool,
    pub scale: Option<Scale>,
    pub columns: Vec<Column>,
    // What its cells are made of.
    shown: Needed,
    /// Dotted paths, as field selectors name them.
    pub selectable_fields: Vec<String>,
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
        let versions = spec["versions"].as_array().into_iter().flatten();
        Definition {
            group: text(&spec["group"]),
            plural: text(&spec["names"]["plural"]),
            singular: text(&names["singular"]),
            kind: text(&names["kind"]),
            list_kind: text(&names["listKind"]),
            short_names: texts(&names["shortNames"]),
            categories: texts(&names["categories"]),
            namespaced: spec["scope"] == "Namespaced",
            versions: versions.map(|version| Version::compile(spec, version, &mut compiler)).collect(),
            webhook_conversion: spec["conversion"]["strategy"] == "Webhook",
        }
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> &Version {
        // Once: for the whole definition.
        let storage = self.versions.iter().find(|version| version.storage);
        storage.or(self.versions.first()).expect("a CRD has a version")
    }

    /// Whether any schema has rules (CEL), which are not evaluated yet.
    pub fn has_rules(&self) -> bool {
        // Once: for the whole definition.
        self.versions.iter().any(|version| version.schema.as_ref().is_some_and(Schema::has_rules))
    }
}

impl Version {
    fn compile(spec: &Value, version: &Value, compiler: &mut Compiler) -> Version {
        let name = version["name"].as_str().unwrap_or("");
        let deprecation_warning = (version["deprecated"] == true).then(|| {
            let given = version["deprecationWarning"].as_str().map(String::from);
            given.unwrap_or_else(|| {
                let (group, kind) =
                    (spec["group"].as_str().unwrap_or(""), spec["names"]["kind"].as_str().unwrap_or(""));
                format!("{group}/{name} {kind} is deprecated")
            })
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

    /// Brings an object into the form of this version: metadata as Kubernetes decodes it, unknown fields dropped,
    /// defaults set. The problems are `unknown field "spec.x"`.
    ///
    /// - `lease`: what the defaults take is charged to it.
    ///
    /// # Errors
    /// A metadata field of the wrong type, and defaults that take more than there may be.
    pub fn normalize(&self, object: &mut Value, lease: &Lease) -> Result<Vec<String>, String> {
        let Some(members) = object.as_object_mut() else {
            return Err("the object is not a JSON object".into());
        };
        let mut unknown = object_meta::coerce(members, &Path::NIL, Malformed::Refuse)?;
        if let Some(schema) = &self.schema {
            unknown.extend(
                schema.coerce_embedded(object, Malformed::Refuse).map_err(|error| error.to_string())?,
            );
            unknown.extend(schema.prune(object));
            schema.prune_nulls(object);
            schema.default(object, &mut lease.meter()).map_err(|exhausted| exhausted.to_string())?;
        }
        Ok(unknown.iter().map(|path| format!("unknown field {path:?}")).collect())
    }

    /// Drops what the schema does not know.
    pub fn prune(&self, object: &mut Value) {
        if let Some(schema) = &self.schema {
            schema.prune(object);
        }
    }

    /// Everything that the schema has against `object`, which takes the place of `old` if there is one.
    pub fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let Some(schema) = &self.schema else { return Vec::new() };
        let mut violations = match old {
            Some(old) => schema.validate_update(object, old),
            None => schema.validate(object),
        };
        violations.extend(schema.validate_lists(object));
        violations.extend(schema.validate_embedded(object));
        violations
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
        assert!(version.validate(&object, None).is_empty());
        object["spec"]["size"] = json!(9);
        let violations = version.validate(&object, None);
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].field, "spec.size");
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
            Some("g.io/v1beta1 Foo is deprecated")
        );
    }
}
