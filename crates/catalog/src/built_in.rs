//! The kinds of the built-in table.
//!
//! In: a resource of the table, and how kinds that are stored as another version become that. Out: its
//! [`Kind`].

use bytes::Bytes;
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Cause, GroupVersionKind, Lease, Revision, Status, json};
use forebay_crd::{CustomRules, Schema, Violations};
use forebay_fieldmanager::{ConvertError, FieldType, Filters, ReplicasPaths, replicas_paths, reset_fields};
use forebay_object::{Form, Object};
use forebay_schema::builtin::codec::{FieldProblem, UnmarshalError};
use forebay_schema::builtin::{self, Conversion, Judged, StoredAs, TypeId, codec, forget_empty_lists};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::crd;
use crate::ending::Ending;
use crate::kind::{Kind, Typed};
use crate::limits::DEFINITION_BYTE_BYTES;

/// How the objects of a kind become what they are stored as, for each kind that is stored as another:
/// strategy knows.
pub type Conversions = fn(&StoredAs) -> Option<&'static Conversion>;

/// A kind of the table, in one version.
pub struct BuiltIn {
    resource: &'static builtin::Resource,
    gvk: GroupVersionKind,
    ty: TypeId,
    /// Stored as another version: `events.k8s.io` Events, `autoscaling/v1` HorizontalPodAutoscalers.
    stored: Option<Stored>,
    conversions: Conversions,
}

struct Stored {
    gvk: GroupVersionKind,
    ty: TypeId,
    conversion: &'static Conversion,
}

impl BuiltIn {
    /// The kind of `resource`; `None` where the table has no such type.
    pub fn new(resource: &'static builtin::Resource, conversions: Conversions) -> Option<BuiltIn> {
        let (group, version, kind) = (resource.group, resource.version, resource.kind);
        let ty = builtin::table().kind(group, version, kind)?.ty;
        let stored = StoredAs::of(resource).and_then(|stored| {
            Some(Stored { gvk: stored.gvk(), ty: stored.ty()?, conversion: conversions(stored)? })
        });
        Some(BuiltIn { resource, gvk: GroupVersionKind::new(group, version, kind), ty, stored, conversions })
    }

    /// Whether its objects say what else is served.
    fn is_crd(&self) -> bool {
        crd::is(self.resource.group, self.resource.plural)
    }

    /// A Table's cells for an object as printers know it, and the conditions of its row.
    fn row(&self, value: &Value, now: Timestamp) -> (Vec<Value>, Vec<Value>) {
        let row = forebay_printers::row(self.resource.group, self.resource.kind, value, now);
        (row.cells, row.conditions.iter().map(condition_value).collect())
    }

    /// The conversion of what the rules know the stored version alone of.
    fn judged_as_stored(&self) -> Option<&Stored> {
        self.stored.as_ref().filter(|stored| stored.conversion.judged == Judged::Stored)
    }

    /// The object as another kind than it is stored as. Decodes it: a rare kind, and never the hot one of the
    /// two.
    fn write_converted(
        &self,
        stored: &Stored,
        object: &Object,
        revision: Option<Revision>,
        typed: Typed,
        out: &mut Vec<u8>,
    ) {
        let mut text = vec![b'{'];
        object.write_body(revision, None, &mut text);
        let mut value: Value = json::read(&text).unwrap_or(Value::Null);
        (stored.conversion.from_stored)(&mut value);
        match (typed, value.as_object_mut()) {
            (Typed::Yes, _) => value["kind"] = Value::from(&*self.gvk.kind),
            (Typed::No, Some(members)) => {
                members.remove("kind");
                members.remove("apiVersion");
            }
            (Typed::No, None) => {}
        }
        codec::write_json(self.ty, &value, out).unwrap_or_else(
            |error| tracing::error!(%error, "a stored object cannot be shown in another version"),
        );
    }
}

impl Stored {
    /// Converts what is not converted yet.
    fn convert(&self, value: &mut Value) {
        if value["apiVersion"].as_str() != Some(self.gvk.api_version().as_str()) {
            (self.conversion.to_stored)(value);
        }
    }
}

impl Kind for BuiltIn {
    fn form(&self) -> Form {
        Form::Typed
    }

    fn ty(&self) -> Option<TypeId> {
        Some(self.ty)
    }

    fn custom_rules(&self) -> Option<&CustomRules> {
        None
    }

    fn schema(&self) -> Option<&Schema> {
        None
    }

    fn is_terminating(&self) -> bool {
        false
    }

    fn ending(&self) -> Option<&Ending> {
        None
    }

    fn storage_path(&self) -> Option<String> {
        self.resource.storage_prefix.map(str::to_string)
    }

    fn stored_kind(&self) -> GroupVersionKind {
        self.stored.as_ref().map_or_else(|| self.gvk.clone(), |stored| stored.gvk.clone())
    }

    fn is_converted(&self) -> bool {
        self.stored.is_some()
    }

    fn normalize(&self, value: &mut Value, _: &Lease) -> Result<Vec<String>, String> {
        named(codec::normalize_as_sent(self.ty, value))
    }

    fn set_defaults(&self, value: &mut Value) {
        if self.is_crd() {
            forebay_crd::defaults::apply(value);
        }
        // What the way into the stored version fills in has an owner in the version that was sent, too.
        if let Some(stored) = self.judged_as_stored() {
            (stored.conversion.to_stored)(value);
            (stored.conversion.from_stored)(value);
        }
    }

    fn work(&self, bytes: usize) -> usize {
        if self.is_crd() { bytes.saturating_mul(DEFINITION_BYTE_BYTES) } else { bytes }
    }

    fn validate(&self, value: &Value, old: Option<&Value>, _: Option<&str>, _: &[Cause]) -> Violations {
        let causes = if self.is_crd() { crd::validate(value, old) } else { Vec::new() };
        Violations::of_causes(causes)
    }

    fn warnings(&self, value: &Value, old: Option<&Value>) -> Vec<String> {
        if self.is_crd() { crd::warnings(value, old) } else { Vec::new() }
    }

    fn deprecation_warning(&self) -> Option<&str> {
        match (self.resource.group, self.resource.plural) {
            ("", "endpoints") => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            }
            ("", "componentstatuses") => Some("v1 ComponentStatus is deprecated in v1.19+"),
            _ => None,
        }
    }

    fn encode(&self, value: Value) -> Result<Bytes, Status> {
        self.encode_new(value, None)
    }

    fn encode_new(&self, mut value: Value, fields: Option<&[u8]>) -> Result<Bytes, Status> {
        let mut out = Vec::with_capacity(1024);
        let (gvk, ty) = match &self.stored {
            None => (&self.gvk, self.ty),
            Some(stored) => {
                stored.convert(&mut value);
                (&stored.gvk, stored.ty)
            }
        };
        write_type_head(gvk, &mut out);
        codec::encode_new(ty, &value, fields, &mut out).map_err(Status::internal)?;
        Ok(Bytes::from(out))
    }

    fn is_stale(&self, _: &Object) -> bool {
        false
    }

    fn is_as_stored(&self, _: &Object) -> bool {
        !self.is_converted()
    }

    fn write(&self, object: &Object, revision: Option<Revision>, typed: Typed, out: &mut Vec<u8>) {
        match (&self.stored, typed) {
            (Some(stored), _) => return self.write_converted(stored, object, revision, typed, out),
            (None, Typed::Yes) => write_type_head(&self.gvk, out),
            (None, Typed::No) => out.push(b'{'),
        }
        object.write_body(revision, None, out);
    }

    fn write_value(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Status> {
        codec::write_json(self.ty, value, out).map_err(Status::internal)
    }

    fn to_judged(&self, value: &mut Value) {
        forget_empty_lists(self.ty, value);
        if let Some(stored) = self.judged_as_stored() {
            stored.convert(value);
        }
    }

    fn to_judged_value(&self, object: &Object) -> Result<Value, Status> {
        let Some(stored) = self.judged_as_stored() else { return self.to_value(object) };
        let mut bytes = Vec::with_capacity(object.body_len() + 64);
        write_type_head(&stored.gvk, &mut bytes);
        object.write_body(None, None, &mut bytes);
        json::read(&bytes).map_err(Status::internal)
    }

    fn field_type(&self, api_version: &str) -> Result<FieldType<'_>, ConvertError> {
        let (group, version) = split_api_version(api_version);
        FieldType::of_kind(group, version, &self.gvk.kind).ok_or(ConvertError::MissingVersion)
    }

    /// By way of the stored version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        let kind = &*self.gvk.kind;
        let conversion = |api_version: &str| {
            let (group, version) = split_api_version(api_version);
            StoredAs::of_kind(group, version, kind).and_then(self.conversions)
        };
        let mut object = object.clone();
        let from = object["apiVersion"].as_str().unwrap_or_default();
        let (to_stored, from_stored) = (conversion(from), conversion(api_version));
        if let Ok(FieldType::BuiltIn(ty, _)) = self.field_type(from) {
            codec::normalize(ty, &mut object).map_err(|why| ConvertError::Failed(why.to_string()))?;
        }
        if let Some(conversion) = to_stored {
            (conversion.to_stored)(&mut object);
        }
        if let Some(conversion) = from_stored {
            (conversion.from_stored)(&mut object);
        }
        if object["apiVersion"] == api_version { Ok(object) } else { Err(ConvertError::MissingVersion) }
    }

    fn reset_fields(&self, subresource: &str) -> Filters {
        reset_fields(self.resource.group, self.resource.plural, subresource)
    }

    fn replicas_paths(&self) -> ReplicasPaths {
        replicas_paths(self.resource.group, self.resource.plural)
    }

    fn selects_by_namespace(&self) -> bool {
        self.resource.field("metadata.namespace").is_some()
    }

    fn unsupported_field(&self, label: &str) -> String {
        self.resource.unsupported_field(label)
    }

    fn read_shown(&self, text: &[u8]) -> Option<Value> {
        match self.stored {
            // One that is converted may need more than what is shown.
            None => forebay_printers::printer(self.resource.group, self.resource.kind).read(text).ok(),
            Some(_) => json::read(text).ok(),
        }
    }

    fn cells(&self, value: &Value, now: Timestamp) -> (Vec<Value>, Vec<Value>) {
        let Some(stored) = self.judged_as_stored() else { return self.row(value, now) };
        let mut value = value.clone();
        stored.convert(&mut value);
        self.row(&value, now)
    }

    fn stored_cells(&self, object: &Object, now: Timestamp) -> Option<(Vec<Value>, Vec<Value>)> {
        self.judged_as_stored()?;
        Some(self.row(&self.to_judged_value(object).ok()?, now))
    }

    fn columns(&self) -> Value {
        let columns = forebay_printers::columns(self.resource.group, self.resource.kind);
        columns.iter().map(column_value).collect()
    }
}

/// Brings `value` into the form of a type of the table; what is unknown is dropped and named.
///
/// # Errors
/// A value of another type.
pub fn normalize_as(ty: TypeId, value: &mut Value) -> Result<Vec<String>, String> {
    named(codec::normalize(ty, value))
}

fn named(normalized: Result<Vec<FieldProblem>, UnmarshalError>) -> Result<Vec<String>, String> {
    let problems = normalized.map_err(|error| error.to_string())?;
    Ok(problems.iter().map(ToString::to_string).collect())
}

/// `{"kind":"Pod","apiVersion":"v1",`
pub(crate) fn write_type_head(gvk: &GroupVersionKind, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(gvk.kind.as_bytes());
    out.extend_from_slice(b"\",\"apiVersion\":\"");
    if !gvk.group.is_empty() {
        out.extend_from_slice(gvk.group.as_bytes());
        out.push(b'/');
    }
    out.extend_from_slice(gvk.version.as_bytes());
    out.extend_from_slice(b"\",");
}

fn column_value(column: &forebay_printers::Column) -> Value {
    json!({
        "name": column.name, "type": column.type_, "format": column.format,
        "description": column.description, "priority": column.priority,
    })
}

fn condition_value(condition: &forebay_printers::TableRowCondition) -> Value {
    json!({
        "type": condition.type_, "status": condition.status,
        "reason": condition.reason, "message": condition.message,
    })
}
