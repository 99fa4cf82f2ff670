//! From a body to a value of a kind, and from a value to the bytes that are stored and sent.
//!
//! The two sources of kinds, the built-in table and CRDs, differ only here.

use std::borrow::Cow;

use bytes::Bytes;
use forebay_apimachinery::resource::{api_version, cannot_be_handled, not_registered, split_api_version};
use forebay_apimachinery::selector::{FieldOperator, FieldRequirement, FieldSelector};
use forebay_apimachinery::{Cause, GroupVersionKind, Revision, Status, json};
use forebay_object::{Form, Object};
use forebay_schema::builtin::{TypeId, codec};
use forebay_watchcache::{FieldSource, FieldTerm, Interest};
use serde_json::Value;

use crate::catalog::{Served, Source, StoredAs};
use crate::crd;
use crate::store::SelectableField;
use forebay_strategy as strategy;
use forebay_strategy::convert::Judged;

impl Served {
    /// How the resource's objects are kept.
    pub fn form(&self) -> Form {
        match self.source {
            Source::BuiltIn { .. } => Form::Typed,
            Source::Custom(_) => Form::Whole,
        }
    }

    /// The type of a built-in kind.
    pub fn ty(&self) -> Option<TypeId> {
        match self.source {
            Source::BuiltIn { ty, .. } => Some(ty),
            Source::Custom(_) => None,
        }
    }

    /// The bytes that are stored for `value`, which is in this version or as [`Served::to_judged`] left it: without its
    /// resourceVersion, in the storage version.
    ///
    /// # Errors
    /// A value that does not fit its kind, which `normalize` would have refused.
    pub fn encode(&self, mut value: Value) -> Result<Bytes, Status> {
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let mut out = Vec::with_capacity(1024);
        match &self.source {
            Source::BuiltIn { ty, stored_as: None, .. } => {
                write_type_head(&self.gvk, &mut out);
                codec::encode(*ty, &value, &mut out).map_err(Status::internal)?;
            }
            Source::BuiltIn { stored_as: Some(stored), .. } => {
                self.make_stored(stored, &mut value);
                write_type_head(&stored.gvk(), &mut out);
                codec::encode(stored.ty, &value, &mut out).map_err(Status::internal)?;
            }
            Source::Custom(custom) => {
                value["apiVersion"] = Value::from(api_version(self.group(), custom.storage_version()));
                json::write_sorted(&value, &mut out);
            }
        }
        Ok(Bytes::from(out))
    }

    /// The whole object in this version, as a GET answers it. `revision` replaces the object's own: a DELETED
    /// event's.
    pub fn write_object(&self, object: &Object, revision: Option<Revision>, out: &mut Vec<u8>) {
        match self.form() {
            Form::Typed if self.is_converted() => self.write_converted(object, revision, Typed::Yes, out),
            Form::Typed => {
                write_type_head(&self.gvk, out);
                object.write_body(revision, None, out);
            }
            Form::Whole if self.needs_renewal(object) => self.write_renewed(object, revision, out),
            Form::Whole => object.write_body(revision, self.other_version(object), out),
        }
    }

    /// The same of one that [is as it is stored](Served::is_as_stored), with its own revision.
    ///
    /// - `body`: its bytes.
    pub fn write_stored(&self, body: &[u8], out: &mut Vec<u8>) {
        if self.form() == Form::Typed {
            write_type_head(&self.gvk, out);
        }
        out.extend_from_slice(body);
    }

    /// Whether `object` was stored under another schema than there is now, or in another version.
    fn needs_renewal(&self, object: &Object) -> bool {
        match &self.source {
            Source::BuiltIn { .. } => false,
            Source::Custom(custom) => custom.is_older(object) || self.other_version(object).is_some(),
        }
    }

    /// Whether objects are stored in this version, so that reading and writing them in it drops nothing.
    pub fn is_storage_version(&self) -> bool {
        match &self.source {
            Source::BuiltIn { stored_as, .. } => stored_as.is_none(),
            Source::Custom(custom) => custom.storage_version() == &*self.gvr.version,
        }
    }

    /// Whether what is stored is not what would be stored now, though the object itself is the same.
    pub fn is_stale(&self, object: &Object) -> bool {
        match &self.source {
            Source::BuiltIn { .. } => false,
            Source::Custom(custom) => {
                custom.is_older(object) || object.stored_version() != custom.storage_version()
            }
        }
    }

    /// An object that was stored under another schema or version, as it would be stored and shown now. Decodes it: the hot
    /// path is what was written since the CRD changed, in the version that is stored.
    fn write_renewed(&self, object: &Object, revision: Option<Revision>, out: &mut Vec<u8>) {
        let start = out.len();
        object.write_body(revision, self.other_version(object), out);
        let value = json::read(&out[start..]).ok();
        if let (Some(mut value), Source::Custom(custom)) = (value, &self.source)
            && custom.renew(&mut value).is_ok()
        {
            out.truncate(start);
            json::write_sorted(&value, out);
        }
    }

    /// The whole object as the answer to a create that was not carried out: it has no resourceVersion.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn without_revision(&self, object: &Object) -> Result<Bytes, Status> {
        let mut value = self.to_value(object)?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let mut out = Vec::with_capacity(object.body_len() + 64);
        match self.ty() {
            Some(ty) => codec::write_json(ty, &value, &mut out).map_err(Status::internal)?,
            None => json::write_sorted(&value, &mut out),
        }
        out.push(b'\n');
        Ok(Bytes::from(out))
    }

    /// The object as an item of a LIST: a built-in kind's goes without its type.
    pub fn write_item(&self, object: &Object, out: &mut Vec<u8>) {
        match self.form() {
            Form::Typed if self.is_converted() => self.write_converted(object, None, Typed::No, out),
            Form::Typed => {
                out.push(b'{');
                object.write_body(None, None, out);
            }
            Form::Whole if self.needs_renewal(object) => self.write_renewed(object, None, out),
            Form::Whole => object.write_body(None, self.other_version(object), out),
        }
    }

    /// The same of one that [is as it is stored](Served::is_as_stored).
    ///
    /// - `body`: its bytes.
    pub fn write_stored_item(&self, body: &[u8], out: &mut Vec<u8>) {
        if self.form() == Form::Typed {
            out.push(b'{');
        }
        out.extend_from_slice(body);
    }

    /// Whether the items of a LIST are the bytes of its objects, so long as [`Served::is_as_stored`] says so of each.
    pub fn has_items_as_stored(&self) -> bool {
        !self.is_converted()
    }

    /// Whether [`Served::write_item`] writes the object's bytes as they are, after a built-in kind's brace.
    pub fn is_as_stored(&self, object: &Object) -> bool {
        !self.is_converted() && !self.needs_renewal(object)
    }

    /// The object as a tree, for the few who need one: writes, Tables, YAML.
    pub fn to_value(&self, object: &Object) -> Result<Value, Status> {
        let mut bytes = Vec::with_capacity(object.body_len() + 64);
        self.write_object(object, None, &mut bytes);
        json::read(&bytes).map_err(Status::internal)
    }

    /// Makes `value`, which is in this version, what the rules of its kind know.
    pub fn to_judged(&self, value: &mut Value) {
        if let Source::BuiltIn { stored_as: Some(stored), .. } = &self.source
            && stored.conversion.judged == Judged::Stored
        {
            self.make_stored(stored, value);
        }
    }

    /// The object as its rules know it, as a tree. Not by way of this version, which may not tell all that is stored.
    pub fn to_judged_value(&self, object: &Object) -> Result<Value, Status> {
        match &self.source {
            Source::BuiltIn { stored_as: Some(stored), .. } if stored.conversion.judged == Judged::Stored => {
                let mut bytes = Vec::with_capacity(object.body_len() + 64);
                write_type_head(&stored.gvk(), &mut bytes);
                object.write_body(None, None, &mut bytes);
                json::read(&bytes).map_err(Status::internal)
            }
            _ => self.to_value(object),
        }
    }

    /// `value`, which is in this version, as its rules and its columns know it.
    pub fn judged<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        if !self.is_converted() {
            return Cow::Borrowed(value);
        }
        let mut value = value.clone();
        self.to_judged(&mut value);
        Cow::Owned(value)
    }

    /// Converts what is not converted yet.
    fn make_stored(&self, stored: &StoredAs, value: &mut Value) {
        if value["apiVersion"].as_str() != Some(stored.gvk().api_version().as_str()) {
            (stored.conversion.to_stored)(value);
        }
    }

    fn is_converted(&self) -> bool {
        matches!(self.source, Source::BuiltIn { stored_as: Some(_), .. })
    }

    /// The object as another kind than it is stored as. Decodes it: a rare kind, and never the hot one of the two.
    fn write_converted(&self, object: &Object, revision: Option<Revision>, typed: Typed, out: &mut Vec<u8>) {
        let mut stored = vec![b'{'];
        object.write_body(revision, None, &mut stored);
        let mut value: Value = json::read(&stored).unwrap_or(Value::Null);
        let Source::BuiltIn { ty, stored_as: Some(stored), .. } = &self.source else { return };
        (stored.conversion.from_stored)(&mut value);
        match (typed, value.as_object_mut()) {
            (Typed::Yes, _) => value["kind"] = Value::from(&*self.gvk.kind),
            (Typed::No, Some(members)) => {
                members.remove("kind");
                members.remove("apiVersion");
            }
            (Typed::No, None) => {}
        }
        codec::write_json(*ty, &value, out).unwrap_or_else(
            |error| tracing::error!(%error, "a stored object cannot be shown in another version"),
        );
    }

    /// A field selector, resolved to places in an object's header.
    ///
    /// # Errors
    /// A label that cannot be selected by, in kube-apiserver's words.
    pub fn field_terms(&self, selector: &FieldSelector) -> Result<Vec<FieldTerm>, String> {
        selector.requirements().iter().map(|requirement| self.field_term(requirement)).collect()
    }

    /// Which of its selectable fields `interest` selects by.
    pub(crate) fn selected_fields(&self, interest: &Interest) -> Vec<usize> {
        let selects = |field: &SelectableField| {
            let by = |term: &FieldTerm| matches!(&term.field, FieldSource::Indexed { fields, .. } if *fields == field.fields);
            interest.fields.iter().any(by)
        };
        let selected = self.selectable.iter().enumerate().filter(|(_, field)| selects(field));
        selected.map(|(index, _)| index).collect()
    }

    fn field_term(&self, requirement: &FieldRequirement) -> Result<FieldTerm, String> {
        let path = &*requirement.path;
        let field = match (path, self.selectable.iter().find(|field| field.label == path)) {
            (_, Some(known)) => FieldSource::Indexed { fields: known.fields.clone(), absent: known.absent },
            ("metadata.name", None) => FieldSource::Name,
            ("metadata.namespace", None) if self.selects_by_namespace() => FieldSource::Namespace,
            _ => return Err(self.unsupported_field(path)),
        };
        Ok(FieldTerm {
            field,
            equal: requirement.operator == FieldOperator::Equals,
            value: requirement.value.to_string(),
        })
    }

    fn selects_by_namespace(&self) -> bool {
        match &self.source {
            Source::BuiltIn { resource, .. } => resource.field("metadata.namespace").is_some(),
            Source::Custom(_) => self.namespaced,
        }
    }

    fn unsupported_field(&self, label: &str) -> String {
        match &self.source {
            Source::BuiltIn { resource, .. } => resource.unsupported_field(label),
            Source::Custom(_) => format!("field label not supported: {label}"),
        }
    }

    fn other_version(&self, object: &Object) -> Option<&str> {
        Some(&*self.gvk.version).filter(|version| *version != object.stored_version())
    }

    /// Checks that a body is of the kind that was asked for, filling in what it leaves out.
    ///
    /// # Errors
    /// 400 in kube-apiserver's words.
    pub fn check_type(&self, value: &mut Value, expected: &GroupVersionKind) -> Result<(), Status> {
        let Some(object) = value.as_object_mut() else {
            return Err(Status::bad_request(
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
            ));
        };
        let text = |member: &str| object.get(member).and_then(Value::as_str).unwrap_or("").to_string();
        let (found_version, found_kind) = (text("apiVersion"), text("kind"));
        let wanted_version = expected.api_version();
        if self.form() == Form::Whole && expected == &self.gvk {
            for (member, found) in [("Kind", &found_kind), ("apiVersion", &found_version)] {
                if found.is_empty() {
                    let body = compact(&Value::Object(object.clone()));
                    return Err(Status::bad_request(format!("Object '{member}' is missing in '{body}'")));
                }
            }
        }
        let (group, version) = split_api_version(&found_version);
        let kind_differs = !found_kind.is_empty() && found_kind != *expected.kind;
        let version_differs =
            !found_version.is_empty() && (group, version) != (&*expected.group, &*expected.version);
        if kind_differs || version_differs {
            let named = if found_kind.is_empty() { &*expected.kind } else { &found_kind };
            let why = not_registered(&found_kind, &found_version);
            let why = cannot_be_handled(named, &found_version, &expected.kind, why);
            return Err(Status::bad_request(why));
        }
        object.insert("apiVersion".into(), Value::from(wanted_version));
        object.insert("kind".into(), Value::from(&*expected.kind));
        Ok(())
    }
}

/// Whether an object goes with its kind and version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Typed {
    Yes,
    No,
}

/// `{"kind":"Pod","apiVersion":"v1",`
pub fn write_type_head(gvk: &GroupVersionKind, out: &mut Vec<u8>) {
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

/// A value as compact JSON text.
pub fn compact(value: &Value) -> String {
    let mut out = Vec::new();
    json::write_sorted(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

impl Served {
    /// Which strategy its objects are under.
    pub fn rules(&self) -> strategy::Kind<'_> {
        match &self.source {
            Source::BuiltIn { .. } => strategy::Kind::built_in(self.group(), &self.gvk.kind),
            Source::Custom(custom) => {
                strategy::Kind { group: self.group(), kind: &self.gvk.kind, custom: Some(custom.rules()) }
            }
        }
    }

    /// Fills in what a client may leave out. A custom resource's schema has done so when it was decoded.
    pub fn set_defaults(&self, value: &mut Value) {
        strategy::defaults(&self.rules(), value);
        if self.is_crd() {
            forebay_schema::crd::defaults::apply(value);
        }
    }

    /// What its schema has against `value` in the place of `old`.
    pub fn validate_fields(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        match &self.source {
            Source::BuiltIn { .. } if self.is_crd() => crd::validate(value, old),
            Source::BuiltIn { .. } => Vec::new(),
            Source::Custom(custom) => custom.validate(value, old),
        }
    }

    /// 422 for an object of this kind. It is called by the group that judges it, which for events is the core group.
    pub fn invalid(&self, name: &str, causes: Vec<Cause>) -> Status {
        let group = if self.is("events.k8s.io", "events") { "" } else { self.group() };
        Status::invalid(group, &self.gvk.kind, name, causes)
    }

    /// What a client is told about an object that is accepted as it is.
    ///
    /// - `update`: the subresource and the stored object, if there is one.
    pub fn warnings(&self, value: &Value, update: Option<(Option<&str>, &Value)>) -> Vec<String> {
        if self.is_crd() {
            return crd::warnings(value, update.map(|(_, old)| old));
        }
        strategy::warnings(&self.rules(), value, update)
    }

    /// What clients of this version are told, if it is deprecated.
    pub fn deprecation_warning(&self) -> Option<&str> {
        match &self.source {
            Source::BuiltIn { .. } if self.is("", "endpoints") => {
                Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
            }
            Source::BuiltIn { .. } if self.is("", "componentstatuses") => {
                Some("v1 ComponentStatus is deprecated in v1.19+")
            }
            Source::BuiltIn { .. } => None,
            Source::Custom(custom) => custom.deprecation_warning(),
        }
    }

    /// Whether its objects say what else is served.
    pub fn is_crd(&self) -> bool {
        self.is("apiextensions.k8s.io", "customresourcedefinitions")
    }
}
