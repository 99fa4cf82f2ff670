//! One resource in one version, as data, and what its objects are by its [`Kind`].
//!
//! In: objects, values, selectors. Out: bytes, values, a `Status`. Never: knows a built-in resource from
//! another but by its kind.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::resource::{cannot_be_handled, not_registered, split_api_version};
use forebay_apimachinery::selector::{FieldOperator, FieldRequirement, FieldSelector};
use forebay_apimachinery::{
    Cause, Exhausted, GroupVersionKind, GroupVersionResource, Lease, Revision, Status, json,
};
use forebay_crd::Violations;
use forebay_object::{Form, Object};
use forebay_schema::builtin::{TypeId, codec, table};
use forebay_watchcache::{FieldSource, FieldTerm, Interest};
use serde_json::Value;

use crate::built_in::write_type_head;
use crate::converted::Converted;
use crate::crd;
use crate::kind::{Kind, Typed};
use crate::selectable::SelectableField;
use crate::store::Store;

/// One resource in one version.
pub struct Served {
    pub gvr: GroupVersionResource,
    pub gvk: GroupVersionKind,
    pub list_kind: Arc<str>,
    pub singular: Arc<str>,
    pub namespaced: bool,
    pub short_names: Vec<Arc<str>>,
    pub categories: Vec<Arc<str>>,
    pub verbs: Vec<&'static str>,
    pub subresources: Vec<SubresourceInfo>,
    /// What is known of its objects.
    pub kind: Box<dyn Kind>,
    /// Field selectors beyond metadata.name and metadata.namespace, and where their values are kept.
    pub selectable: Vec<SelectableField>,
    /// The versions of one resource share it. `None` for what has no storage (bindings, componentstatuses).
    pub store: Option<Arc<Store>>,
    /// How its objects come into this version, where only a webhook can say.
    pub converted: Option<Arc<Converted>>,
    /// The versions of the same definition that nobody is served. Whoever judges writes may be asked in them.
    pub unserved: Arc<[Arc<Served>]>,
}

/// A subresource as discovery lists it.
#[derive(Clone, Debug)]
pub struct SubresourceInfo {
    pub name: Arc<str>,
    /// Kind of its body.
    pub gvk: GroupVersionKind,
    pub verbs: Vec<&'static str>,
    /// Answered by a kubelet (log, exec, proxy, ...), which there is none of.
    pub connect: bool,
}

impl Served {
    pub fn subresource(&self, name: &str) -> Option<&SubresourceInfo> {
        self.subresources.iter().find(|subresource| &*subresource.name == name)
    }

    /// Group of the resource; empty for core.
    pub fn group(&self) -> &str {
        &self.gvr.group
    }

    /// Plural name of the resource.
    pub fn resource(&self) -> &str {
        &self.gvr.resource
    }

    pub fn is(&self, group: &str, resource: &str) -> bool {
        self.group() == group && self.resource() == resource
    }

    /// Whether its objects say what else is served. Those of a CRD never do, whatever it is called.
    pub fn is_crd(&self) -> bool {
        crd::is(self.group(), self.resource()) && !self.is_custom()
    }

    /// Whether a CRD defines it.
    pub fn is_custom(&self) -> bool {
        self.kind.custom_rules().is_some()
    }

    /// How the resource's objects are kept.
    pub fn form(&self) -> Form {
        self.kind.form()
    }

    /// The type of a built-in kind.
    pub fn ty(&self) -> Option<TypeId> {
        self.kind.ty()
    }

    /// The bytes that are stored for `value`, which is in this version or as [`Served::to_judged`] left it:
    /// without its resourceVersion, in the storage version.
    ///
    /// # Errors
    /// A value that does not fit its kind, which `normalize` would have refused.
    pub fn encode(&self, mut value: Value) -> Result<Bytes, Status> {
        forget_revision(&mut value);
        self.kind.encode(value)
    }

    /// The same of a new object.
    ///
    /// - `fields`: see [`Kind::encode_new`](crate::kind::Kind::encode_new).
    ///
    /// # Errors
    /// As [`Served::encode`].
    pub fn encode_new(&self, mut value: Value, fields: Option<&[u8]>) -> Result<Bytes, Status> {
        forget_revision(&mut value);
        self.kind.encode_new(value, fields)
    }

    /// The JSON of what was sent as an audit log has it: with defaults, as upstream's decoder leaves it. It
    /// is of `gvk`: this kind, or that of a subresource; nothing where it is neither. It is charged before it
    /// is made, and stays so; the copy that it takes is given back.
    ///
    /// - `set_defaults`: of this kind.
    ///
    /// # Errors
    /// [`Exhausted`]: what was sent cannot be noted, and so nothing is to be made of it.
    pub fn noted(
        &self,
        gvk: &GroupVersionKind,
        sent: &Value,
        lease: &Lease,
        set_defaults: impl FnOnce(&mut Value),
    ) -> Result<Option<Bytes>, Exhausted> {
        let scope = lease.scope();
        let mut sent = json::copy(sent, lease)?;
        if *gvk == self.gvk {
            set_defaults(&mut sent);
        }
        let foreseen = json::written_len_max(&sent);
        lease.charge(foreseen)?;
        let mut out = Vec::with_capacity(foreseen);
        let written = match table().kind(&gvk.group, &gvk.version, &gvk.kind) {
            _ if *gvk == self.gvk => self.kind.write_value(&sent, &mut out).is_ok(),
            Some(kind) => codec::write_json(kind.ty, &sent, &mut out).is_ok(),
            None => false,
        };
        out.shrink_to_fit();
        drop((sent, scope));
        // What a kind writes beside what was sent is a little for each part of it.
        lease.charge(out.capacity())?;
        Ok(written.then(|| out.into()))
    }

    /// The whole object in this version, as a GET answers it. `revision` replaces the object's own: a DELETED
    /// event's.
    pub fn write_object(&self, object: &Object, revision: Option<Revision>, out: &mut Vec<u8>) {
        self.kind.write(object, revision, Typed::Yes, out);
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

    /// The object as an item of a LIST: a built-in kind's goes without its type.
    pub fn write_item(&self, object: &Object, out: &mut Vec<u8>) {
        self.kind.write(object, None, Typed::No, out);
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

    /// Whether objects are stored in this version, so that reading and writing them in it drops nothing.
    pub fn is_storage_version(&self) -> bool {
        self.kind.stored_kind() == self.gvk
    }

    /// Whether what is stored is not what would be stored now, though the object itself is the same.
    pub fn is_stale(&self, object: &Object) -> bool {
        self.kind.is_stale(object)
    }

    /// Whether the items of a LIST are the bytes of its objects, so long as [`Served::is_as_stored`] says so
    /// of each.
    pub fn has_items_as_stored(&self) -> bool {
        !self.kind.is_converted()
    }

    /// Whether [`Served::write_item`] writes the object's bytes as they are, after a built-in kind's brace.
    pub fn is_as_stored(&self, object: &Object) -> bool {
        self.kind.is_as_stored(object)
    }

    /// The whole object as the answer to a create that was not carried out: it has the resourceVersion that
    /// the client said, if any.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn not_carried_out(&self, object: &Object, version: Option<Value>) -> Result<Bytes, Status> {
        let mut value = self.to_value(object)?;
        forget_revision(&mut value);
        if let Some(version) = version {
            value["metadata"]["resourceVersion"] = version;
        }
        let mut out = Vec::with_capacity(object.body_len() + 64);
        self.kind.write_value(&value, &mut out)?;
        out.push(b'\n');
        Ok(Bytes::from(out))
    }

    /// The object as a tree, for the few who need one: writes, Tables, YAML.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn to_value(&self, object: &Object) -> Result<Value, Status> {
        self.kind.to_value(object)
    }

    /// Makes `value`, which is in this version, what the rules of its kind know.
    pub fn to_judged(&self, value: &mut Value) {
        self.kind.to_judged(value);
    }

    /// The object as its rules know it, as a tree. Not by way of this version, which may not tell all that is
    /// stored.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn to_judged_value(&self, object: &Object) -> Result<Value, Status> {
        self.kind.to_judged_value(object)
    }

    /// How much work a write is whose body has so many bytes, in such bytes.
    pub fn work(&self, bytes: usize) -> usize {
        self.kind.work(bytes)
    }

    /// What its schema has against `value` in the place of `old`.
    ///
    /// - `subresource`: the one that is written.
    /// - `before`: what else is wrong with it.
    pub fn validate_fields(
        &self,
        value: &Value,
        old: Option<&Value>,
        subresource: Option<&str>,
        before: &[Cause],
    ) -> Violations {
        self.kind.validate(value, old, subresource, before)
    }

    /// What clients of this version are told, if it is deprecated.
    pub fn deprecation_warning(&self) -> Option<&str> {
        self.kind.deprecation_warning()
    }

    /// 422 for an object of this kind. It is called by the group that judges it, which for events is the core
    /// group.
    pub fn invalid(&self, name: &str, causes: Vec<Cause>) -> Status {
        let group = if self.is("events.k8s.io", "events") { "" } else { self.group() };
        Status::invalid(group, &self.gvk.kind, name, causes)
    }

    /// Where its objects are.
    ///
    /// # Errors
    /// 405 for what is not stored.
    pub fn stored(&self) -> Result<Arc<Store>, Status> {
        self.store.clone().ok_or_else(|| self.method_not_supported("read"))
    }

    /// 405: the resource does not do that.
    pub fn method_not_supported(&self, verb: &str) -> Status {
        Status::method_not_supported(self.group(), self.resource(), verb)
    }

    /// A field selector, resolved to places in an object's header.
    ///
    /// # Errors
    /// A label that cannot be selected by, in kube-apiserver's words.
    pub fn field_terms(&self, selector: &FieldSelector) -> Result<Vec<FieldTerm>, String> {
        selector.requirements().iter().map(|requirement| self.field_term(requirement)).collect()
    }

    /// Which of its selectable fields `interest` selects by.
    pub fn selected_fields(&self, interest: &Interest) -> Vec<usize> {
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
            ("metadata.namespace", None) if self.kind.selects_by_namespace() => FieldSource::Namespace,
            _ => return Err(self.kind.unsupported_field(path)),
        };
        Ok(FieldTerm {
            field,
            equal: requirement.operator == FieldOperator::Equals,
            value: requirement.value.to_string(),
        })
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

fn forget_revision(value: &mut Value) {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
}

/// A value as compact JSON text.
pub fn compact(value: &Value) -> String {
    let mut out = Vec::new();
    json::write_sorted(value, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}
