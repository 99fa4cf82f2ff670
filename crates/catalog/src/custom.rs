//! Custom resources: what a CRD's version says of its objects.
//!
//! In: a CRD that is established. Out: its served versions, each of which normalizes, judges and prints its
//! objects. The schema itself is understood by crate `crd`; this file fits it to the verbs.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::resource::{api_version, split_api_version};
use forebay_apimachinery::{Cause, GroupVersionKind, GroupVersionResource, Lease, Revision, Status, json};
use forebay_crd::{CustomRules, Definition, Schema, Version, Violations};
use forebay_fieldmanager::{
    ConvertError, FieldType, Filters, ReplicasPaths, custom_replicas_paths, custom_reset_fields,
};
use forebay_object::{Form, Object};
use forebay_printers::duration;
use forebay_schema::builtin::TypeId;
use jiff::Timestamp;
use serde_json::Value;

use crate::converted::{Converted, WebhookConversion};
use crate::ending::Ending;
use crate::kind::{Kind, Typed};
use crate::limits::RULE_COST_BYTES;
use crate::selectable::SelectableField;
use crate::served::{Served, SubresourceInfo};
use crate::store::Store;

/// As discovery lists them.
const VERBS: [&str; 8] = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: [&str; 3] = ["get", "patch", "update"];

/// One version of a CRD.
pub struct Custom {
    definition: Arc<Definition>,
    version: usize,
    rules: CustomRules,
    /// The CRD is being deleted: nothing new is taken.
    terminating: bool,
    /// What was stored before it may lack defaults that the schema has now, and hold fields that it has no
    /// more.
    since: Revision,
    /// Ends its watches.
    ending: Ending,
    columns: Value,
    /// A webhook converts: what is stored in another version never comes here, but in this one.
    by_webhook: bool,
}

/// The versions of `crd` that are served, on `store`, whose layout keeps `fields`.
///
/// - `fields`: sorted.
/// - `since`: the revision at which the CRD became what it is.
/// - `conversion`: who asks the webhook, if there is one. Without, objects that only a webhook can convert
///   are served in the version that they are stored in.
pub fn served(
    crd: &Value,
    (store, fields): (&Arc<Store>, &[String]),
    since: Revision,
    conversion: Option<&WebhookConversion>,
) -> Vec<Arc<Served>> {
    let definition = Arc::new(Definition::compile(crd));
    let terminating = crd["metadata"]["deletionTimestamp"].is_string();
    let conversion = conversion.filter(|_| definition.webhook_conversion);
    let is_convertible = conversion.is_some() || !definition.webhook_conversion;
    let of = |(index, version): (usize, &Version), unserved: &Arc<[Arc<Served>]>| {
        let converted = conversion.map(|of| Arc::new(Converted::new(&definition, index, since, store, of)));
        let version = (&definition, index, version);
        let mut made = one(version, terminating, (store, fields), since, converted);
        made.unserved = unserved.clone();
        Arc::new(made)
    };
    let versions = || {
        let all = definition.versions.iter().enumerate();
        all.filter(|(_, version)| version.storage || is_convertible)
    };
    let none = Arc::default();
    let unserved = versions().filter(|(_, version)| !version.served).map(|version| of(version, &none));
    let unserved: Arc<[Arc<Served>]> = unserved.collect();
    versions().filter(|(_, version)| version.served).map(|version| of(version, &unserved)).collect()
}

fn one(
    (definition, index, version): (&Arc<Definition>, usize, &Version),
    terminating: bool,
    (store, fields): (&Arc<Store>, &[String]),
    since: Revision,
    converted: Option<Arc<Converted>>,
) -> Served {
    let rules = CustomRules::of(version, definition.namespaced);
    let gvk = GroupVersionKind::new(&definition.group, &version.name, &definition.kind);
    let selectable = version.selectable_fields.iter().filter_map(|path| {
        let place = fields.binary_search(path).ok()?;
        Some(SelectableField { label: path.clone(), fields: Box::new([place]), absent: "" })
    });
    Served {
        gvr: GroupVersionResource::new(&definition.group, &version.name, &definition.plural),
        list_kind: definition.list_kind.clone(),
        singular: definition.singular.clone(),
        namespaced: definition.namespaced,
        short_names: definition.short_names.clone(),
        categories: definition.categories.clone(),
        verbs: VERBS.to_vec(),
        subresources: subresources(version, &gvk),
        gvk,
        selectable: selectable.collect(),
        kind: Box::new(Custom {
            columns: version.column_definitions(),
            definition: definition.clone(),
            version: index,
            rules,
            terminating,
            since,
            ending: Ending::new(),
            by_webhook: converted.is_some(),
        }),
        store: Some(store.clone()),
        converted,
        unserved: Arc::default(),
    }
}

fn subresources(version: &Version, gvk: &GroupVersionKind) -> Vec<SubresourceInfo> {
    let subresource = |name: &str, gvk| SubresourceInfo {
        name: name.into(),
        gvk,
        verbs: SUBRESOURCE_VERBS.to_vec(),
        connect: false,
    };
    let status = version.status.then(|| subresource("status", gvk.clone()));
    let scale = version.scale.as_ref();
    let scale = scale.map(|_| subresource("scale", GroupVersionKind::new("autoscaling", "v1", "Scale")));
    status.into_iter().chain(scale).collect()
}

impl Custom {
    fn version(&self) -> &Version {
        &self.definition.versions[self.version]
    }

    /// Whether `object` was stored before the CRD became what it is.
    fn is_older(&self, object: &Object) -> bool {
        object.revision() < self.since
    }

    /// Whether `object` is in this version because a webhook made it so, from what the CRD is now.
    fn is_made(&self, object: &Object) -> bool {
        self.by_webhook
            && self.other_version(object).is_none()
            && self.definition.storage_version().name != self.version().name
    }

    /// This version, where `object` is stored in another.
    fn other_version(&self, object: &Object) -> Option<&str> {
        Some(&*self.version().name).filter(|version| *version != object.stored_version())
    }

    /// Brings what is stored into this version: the defaults are those of the version that it is stored in,
    /// and what this one does not know is dropped.
    ///
    /// # Errors
    /// Metadata of the wrong type; and defaults that take more than one tree may, as the schema may have got
    /// since: whoever asks shows what is stored.
    fn renew(&self, value: &mut Value) -> Result<(), String> {
        let (stored, shown) = (self.definition.storage_version(), self.version());
        stored.normalize(value, &Lease::of_one_tree())?;
        if stored.name != shown.name {
            shown.prune(value);
        }
        Ok(())
    }
}

impl Kind for Custom {
    fn form(&self) -> Form {
        Form::Whole
    }

    fn ty(&self) -> Option<TypeId> {
        None
    }

    fn custom_rules(&self) -> Option<&CustomRules> {
        Some(&self.rules)
    }

    fn schema(&self) -> Option<&Schema> {
        self.version().schema.as_ref()
    }

    fn is_terminating(&self) -> bool {
        self.terminating
    }

    fn ending(&self) -> Option<&Ending> {
        Some(&self.ending)
    }

    fn storage_path(&self) -> Option<String> {
        Some(format!("{}/{}", self.definition.group, self.definition.plural))
    }

    fn stored_kind(&self) -> GroupVersionKind {
        let Definition { group, kind, .. } = &*self.definition;
        GroupVersionKind::new(group, &self.definition.storage_version().name, kind)
    }

    fn is_converted(&self) -> bool {
        false
    }

    fn normalize(&self, value: &mut Value, lease: &Lease) -> Result<Vec<String>, String> {
        self.version().normalize(value, lease)
    }

    fn normalize_applied(&self, value: &mut Value, lease: &Lease) -> Result<(), String> {
        self.version().normalize_applied(value, lease)
    }

    fn settle(&self, value: &mut Value) {
        self.version().prune(value);
    }

    /// Its schema has filled in what there is when the object was decoded.
    fn set_defaults(&self, _: &mut Value) {}

    fn work(&self, bytes: usize) -> usize {
        let rules = self.version().rules_cost_max().saturating_mul(RULE_COST_BYTES);
        bytes.max(usize::try_from(rules).unwrap_or(usize::MAX))
    }

    fn validate(
        &self,
        value: &Value,
        old: Option<&Value>,
        subresource: Option<&str>,
        before: &[Cause],
    ) -> Violations {
        match (old, subresource) {
            (Some(old), Some("status")) => self.version().validate_status(value, old, before),
            _ => self.version().validate(value, old, before),
        }
    }

    fn warnings(&self, _: &Value, _: Option<&Value>) -> Vec<String> {
        Vec::new()
    }

    fn deprecation_warning(&self) -> Option<&str> {
        self.version().deprecation_warning.as_deref()
    }

    /// What only the version that was written knows is not kept. Where a webhook converts, the bytes are
    /// those of this version yet.
    fn encode(&self, mut value: Value) -> Result<Bytes, Status> {
        let mut out = Vec::with_capacity(1024);
        let (stored, written) = (self.definition.storage_version(), self.version());
        if self.by_webhook && stored.name != written.name {
            value["apiVersion"] = Value::from(api_version(&self.definition.group, &written.name));
            json::write_sorted(&value, &mut out);
            return Ok(Bytes::from(out));
        }
        value["apiVersion"] = Value::from(api_version(&self.definition.group, &stored.name));
        // It is stored as it is read.
        stored.default_status(&mut value, &Lease::of_one_tree())?;
        if stored.name != written.name {
            stored.prune(&mut value);
        }
        json::write_sorted(&value, &mut out);
        Ok(Bytes::from(out))
    }

    fn is_stale(&self, object: &Object) -> bool {
        self.is_older(object) || object.stored_version() != &*self.definition.storage_version().name
    }

    /// Not what was stored under another schema than there is now, or in another version.
    fn is_as_stored(&self, object: &Object) -> bool {
        self.is_made(object) || !self.is_older(object) && self.other_version(object).is_none()
    }

    /// Decodes what is not as it would be stored and shown now: the hot path is what was written since the
    /// CRD changed, in the version that is stored.
    fn write(&self, object: &Object, revision: Option<Revision>, _: Typed, out: &mut Vec<u8>) {
        let start = out.len();
        object.write_body(revision, self.other_version(object), out);
        if self.is_as_stored(object) {
            return;
        }
        if let Ok(mut value) = json::read(&out[start..])
            && self.renew(&mut value).is_ok()
        {
            out.truncate(start);
            json::write_sorted(&value, out);
        }
    }

    fn write_value(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Status> {
        json::write_sorted(value, out);
        Ok(())
    }

    /// They know each version.
    fn to_judged(&self, _: &mut Value) {}

    fn field_type(&self, api_version: &str) -> Result<FieldType<'_>, ConvertError> {
        let Definition { group, versions, .. } = &*self.definition;
        let (of_group, name) = split_api_version(api_version);
        // Few: a definition has few versions.
        let version = versions.iter().find(|version| of_group == &**group && *version.name == *name);
        let version = version.ok_or_else(|| no_version(api_version))?;
        Ok(version.schema.as_ref().map_or(FieldType::AnyObject, FieldType::of_schema))
    }

    /// Versions differ by their name alone. What only a webhook can convert is asked of it by whoever may
    /// wait.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError> {
        self.field_type(api_version)?;
        if self.by_webhook {
            return Err(ConvertError::Failed("only a webhook converts it".to_owned()));
        }
        let mut converted = object.clone();
        converted["apiVersion"] = Value::from(api_version);
        Ok(converted)
    }

    fn reset_fields(&self, subresource: &str) -> Filters {
        let Definition { group, versions, .. } = &*self.definition;
        let versions: Vec<(&str, bool)> =
            versions.iter().map(|version| (&*version.name, version.status)).collect();
        custom_reset_fields(group, &versions, &self.version().name, subresource)
    }

    fn replicas_paths(&self) -> ReplicasPaths {
        let Definition { group, versions, .. } = &*self.definition;
        let paths = versions.iter().map(|version| {
            let scale = version.scale.as_ref();
            (&*version.name, scale.map(|scale| &*scale.spec_replicas))
        });
        custom_replicas_paths(group, &paths.collect::<Vec<_>>())
    }

    fn selects_by_namespace(&self) -> bool {
        self.definition.namespaced
    }

    fn unsupported_field(&self, label: &str) -> String {
        format!("field label not supported: {label}")
    }

    fn read_shown(&self, text: &[u8]) -> Option<Value> {
        self.version().read_shown(text).ok()
    }

    fn cells(&self, value: &Value, now: Timestamp) -> (Vec<Value>, Vec<Value>) {
        let cells = self.version().cells(value, now, |then, now| duration::since(Some(then), now));
        (cells, Vec::new())
    }

    fn columns(&self) -> Value {
        self.columns.clone()
    }
}

fn no_version(api_version: &str) -> ConvertError {
    ConvertError::Failed(format!("request to convert CR to an invalid group/version: {api_version}"))
}
