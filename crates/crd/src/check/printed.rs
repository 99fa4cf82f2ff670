//! Parts of a CRD as they are printed in messages.
//!
//! In: views. Out: the JSON that Go makes of Kubernetes' internal types, which have no JSON names: every
//! field, under its Go name, in the order of the type.

use serde_json::Value;

use crate::limits::PRINTED_BYTES_MAX;
use crate::props::{Items, Props, SchemaOrBool};
use crate::spec::{Spec, Version};
use forebay_apimachinery::go_format as go;

/// `spec.versions`, without what moved to the top.
pub(super) fn versions(spec: &Spec<'_>) -> String {
    match spec.spec.get("versions") {
        None => "null".to_owned(),
        Some(_) => {
            let mut p = Printer::default();
            p.list(spec.versions.iter(), |p, version| p.version(version));
            p.out
        }
    }
}

pub(super) fn schema(schema: Props<'_>) -> String {
    let mut p = Printer::default();
    p.schema(schema);
    p.out
}

/// A rule in CEL.
pub(super) fn rule(rule: Props<'_>) -> String {
    let mut p = Printer::default();
    p.rule(rule);
    p.out
}

/// `items` of a schema.
pub(super) fn items(schema: Props<'_>) -> String {
    let mut p = Printer::default();
    p.items(schema);
    p.out
}

/// A list of strings; absent prints as null.
pub(super) fn strings(object: Props<'_>, key: &str) -> String {
    object.get(key).map_or_else(|| "null".to_owned(), go::to_json)
}

#[derive(Default)]
struct Printer {
    out: String,
}

impl Printer {
    /// Writes `{…}` around fields.
    fn object(&mut self, fields: impl FnOnce(&mut Self)) {
        self.out.push('{');
        fields(self);
        self.out.push('}');
    }

    fn field(&mut self, name: &str, value: impl FnOnce(&mut Self)) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        go::push_json_string(&mut self.out, name);
        self.out.push(':');
        value(self);
    }

    fn list<T>(&mut self, items: impl Iterator<Item = T>, mut print: impl FnMut(&mut Self, T)) {
        self.out.push('[');
        for (i, item) in items.enumerate() {
            if i > 0 {
                self.out.push(',');
            }
            print(self, item);
        }
        self.out.push(']');
    }

    fn null(&mut self) {
        self.out.push_str("null");
    }

    fn some<T>(&mut self, value: Option<T>, print: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => print(self, value),
            None => self.null(),
        }
    }

    /// A string that prints empty when it is absent.
    fn text(&mut self, name: &str, object: Props<'_>, key: &str) {
        self.field(name, |p| go::push_json_string(&mut p.out, object.str(key)));
    }

    fn flag(&mut self, name: &str, object: Props<'_>, key: &str) {
        self.field(name, |p| p.out.push_str(if object.flag(key) { "true" } else { "false" }));
    }

    /// Anything that prints null when it is absent.
    fn value(&mut self, name: &str, object: Props<'_>, key: &str) {
        self.field(name, |p| p.some(object.get(key), |p, value| p.out.push_str(&go::to_json(value))));
    }

    fn version(&mut self, version: &Version<'_>) {
        let written = version.written;
        self.object(|p| {
            p.text("Name", written, "name");
            p.flag("Served", written, "served");
            p.flag("Storage", written, "storage");
            p.flag("Deprecated", written, "deprecated");
            p.value("DeprecationWarning", written, "deprecationWarning");
            p.field("Schema", |p| {
                p.some(version.validation, |p, validation| {
                    let schema = validation.object("openAPIV3Schema");
                    p.object(|p| p.field("OpenAPIV3Schema", |p| p.some(schema, Self::schema)));
                });
            });
            p.field("Subresources", |p| p.some(version.subresources, Self::subresources));
            p.field("AdditionalPrinterColumns", |p| match version.columns {
                [] => p.null(),
                columns => p.list(columns.iter(), |p, column| p.column(Props::of(column))),
            });
            p.field("SelectableFields", |p| match version.selectable {
                [] => p.null(),
                fields => {
                    p.list(fields.iter(), |p, field| {
                        p.object(|p| p.text("JSONPath", Props::of(field), "jsonPath"))
                    });
                }
            });
        });
    }

    fn subresources(&mut self, subresources: Props<'_>) {
        self.object(|p| {
            p.field("Status", |p| p.some(subresources.object("status"), |p, _| p.object(|_| {})));
            p.field("Scale", |p| {
                p.some(subresources.object("scale"), |p, scale| {
                    p.object(|p| {
                        p.text("SpecReplicasPath", scale, "specReplicasPath");
                        p.text("StatusReplicasPath", scale, "statusReplicasPath");
                        p.value("LabelSelectorPath", scale, "labelSelectorPath");
                    });
                });
            });
        });
    }

    fn column(&mut self, column: Props<'_>) {
        self.object(|p| {
            p.text("Name", column, "name");
            p.text("Type", column, "type");
            p.text("Format", column, "format");
            p.text("Description", column, "description");
            p.field("Priority", |p| p.out.push_str(&column.int("priority").unwrap_or(0).to_string()));
            p.text("JSONPath", column, "jsonPath");
        });
    }

    fn schema(&mut self, schema: Props<'_>) {
        if self.out.len() > PRINTED_BYTES_MAX {
            return self.null();
        }
        self.object(|p| {
            p.text("ID", schema, "id");
            p.text("Schema", schema, "$schema");
            p.value("Ref", schema, "$ref");
            p.text("Description", schema, "description");
            p.text("Type", schema, "type");
            p.flag("Nullable", schema, "nullable");
            p.text("Format", schema, "format");
            p.text("Title", schema, "title");
            p.value("Default", schema, "default");
            p.value("Maximum", schema, "maximum");
            p.flag("ExclusiveMaximum", schema, "exclusiveMaximum");
            p.value("Minimum", schema, "minimum");
            p.flag("ExclusiveMinimum", schema, "exclusiveMinimum");
            p.value("MaxLength", schema, "maxLength");
            p.value("MinLength", schema, "minLength");
            p.text("Pattern", schema, "pattern");
            p.value("MaxItems", schema, "maxItems");
            p.value("MinItems", schema, "minItems");
            p.flag("UniqueItems", schema, "uniqueItems");
            p.value("MultipleOf", schema, "multipleOf");
            p.value("Enum", schema, "enum");
            p.value("MaxProperties", schema, "maxProperties");
            p.value("MinProperties", schema, "minProperties");
            p.value("Required", schema, "required");
            p.field("Items", |p| p.items(schema));
            for (name, key) in [("AllOf", "allOf"), ("OneOf", "oneOf"), ("AnyOf", "anyOf")] {
                p.field(name, |p| p.some(schema.get(key), |p, _| p.list(schema.schemas(key), Self::schema)));
            }
            p.field("Not", |p| p.some(schema.not(), Self::schema));
            p.named("Properties", schema, "properties");
            p.schema_or_bool("AdditionalProperties", schema, "additionalProperties");
            p.named("PatternProperties", schema, "patternProperties");
            p.dependencies(schema);
            p.schema_or_bool("AdditionalItems", schema, "additionalItems");
            p.named("Definitions", schema, "definitions");
            p.field("ExternalDocs", |p| {
                p.some(schema.object("externalDocs"), |p, docs| {
                    p.object(|p| {
                        p.text("Description", docs, "description");
                        p.text("URL", docs, "url");
                    });
                });
            });
            p.value("Example", schema, "example");
            p.value("XPreserveUnknownFields", schema, "x-kubernetes-preserve-unknown-fields");
            p.flag("XEmbeddedResource", schema, "x-kubernetes-embedded-resource");
            p.flag("XIntOrString", schema, "x-kubernetes-int-or-string");
            p.value("XListMapKeys", schema, "x-kubernetes-list-map-keys");
            p.value("XListType", schema, "x-kubernetes-list-type");
            p.value("XMapType", schema, "x-kubernetes-map-type");
            p.field("XValidations", |p| {
                p.some(schema.get("x-kubernetes-validations"), |p, _| {
                    p.list(schema.rules().iter(), |p, rule| p.rule(Props::of(rule)));
                });
            });
        });
    }

    fn items(&mut self, schema: Props<'_>) {
        match schema.items() {
            None => self.null(),
            Some(Items::Schema(item)) => self.object(|p| {
                p.field("Schema", |p| p.schema(item));
                p.field("JSONSchemas", Self::null);
            }),
            Some(Items::Schemas(items)) => self.object(|p| {
                p.field("Schema", Self::null);
                p.field("JSONSchemas", |p| p.list(items.iter().map(Props::of), Self::schema));
            }),
        }
    }

    fn named(&mut self, name: &str, schema: Props<'_>, key: &str) {
        self.field(name, |p| {
            p.some(schema.get(key), |p, _| {
                p.object(|p| {
                    for (name, schema) in schema.named(key) {
                        p.field(name, |p| p.schema(schema));
                    }
                });
            });
        });
    }

    fn schema_or_bool(&mut self, name: &str, schema: Props<'_>, key: &str) {
        self.field(name, |p| {
            p.some(schema.schema_or_bool(key), |p, value: SchemaOrBool<'_>| {
                p.object(|p| {
                    p.field("Allows", |p| p.out.push_str(if value.allows() { "true" } else { "false" }));
                    p.field("Schema", |p| p.some(value.schema(), Self::schema));
                });
            });
        });
    }

    fn dependencies(&mut self, schema: Props<'_>) {
        self.field("Dependencies", |p| {
            p.some(schema.object("dependencies"), |p, dependencies| {
                p.object(|p| {
                    for (name, value) in dependencies.entries() {
                        p.field(name, |p| {
                            p.object(|p| {
                                let schema = Some(value).filter(|v| v.is_object()).map(Props::of);
                                p.field("Schema", |p| p.some(schema, Self::schema));
                                let names = Some(value).filter(|v| v.is_array());
                                p.field("Property", |p| {
                                    p.some(names, |p, v: &Value| p.out.push_str(&go::to_json(v)))
                                });
                            });
                        });
                    }
                });
            });
        });
    }

    fn rule(&mut self, rule: Props<'_>) {
        self.object(|p| {
            p.text("Rule", rule, "rule");
            p.text("Message", rule, "message");
            p.text("MessageExpression", rule, "messageExpression");
            p.value("Reason", rule, "reason");
            p.text("FieldPath", rule, "fieldPath");
            p.value("OptionalOldSelf", rule, "optionalOldSelf");
        });
    }
}
