//! What a write does to who owns which fields.
//!
//! In: the object as it is and as it is to be, in the version of the request. Out: `managedFields` as they
//! are to be, and of an apply the object. Never: fails a write because of who owns what, but an apply, which
//! is about that.
//!
//! Upstream does this in a row of managers around the merge: who applied is one that is noted in an
//! annotation ([`last_applied`]); who wrote before the first apply is one; who updated long ago is one
//! ([`cap`]); what only the server writes is nobody's.
//!
//! Source: apimachinery v0.36.3 `managedfields/internal/fieldmanager.go` and what it is made of.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::OnceLock;

use forebay_apimachinery::json::weight;
use forebay_apimachinery::resource::shown_kind;
use forebay_apimachinery::{Exhausted, Lease, Reason, Status};
use forebay_merge::{
    Conflicts, ConvertError, Duplicates, Element, Error, Managers, Owned, Set, TypedValue, Updater,
};
use serde_json::{Map, Value, json};

use crate::cap::cap_update_managers;
use crate::conflict;
use crate::entry::{Managed, Manager, entries_of};
use crate::field_type::FieldType;
use crate::last_applied::{self, KUBECTL};
use crate::limits::STORED_TIMES;
use crate::reset_fields::Filters;
use crate::versions::{Conversion, Versions};

/// Who changes something in an update, until it is known whether anything changed.
const CURRENT: &str = "current-operation";
/// Who wrote what an object had when it was first applied.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Keeps who owns which fields of objects of a kind, for one request.
pub struct FieldManager<'m, 's> {
    updater: Updater<'m, Conversion<'m, 's>>,
    ty: FieldType<'s>,
    /// `apps/v1`, which all objects are in.
    api_version: &'m str,
    kind: &'m str,
    /// Empty for the object itself.
    subresource: &'m str,
    /// In RFC 3339 with seconds, in UTC.
    now: &'m str,
    has_stamped: Cell<bool>,
}

/// What a client said of `managedFields` in an object that it sent, before anything made that canonical.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Those of the object count, or, if there are none, those of what is there.
    AsTheyAre,
    /// All are to be forgotten.
    Reset,
}

/// The entries of a new object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Created {
    Whole(Vec<Value>),
    /// The only one, whose `fieldsV1` is empty, and what that is to be, as JSON.
    Apart {
        entry: Value,
        fields: Vec<u8>,
    },
}

impl Sent {
    /// Of an object as it was sent.
    ///
    /// - `is_custom`: upstream makes the metadata of a custom resource canonical before it looks, and an
    ///   empty list is none then.
    pub fn of(object: &Value, is_custom: bool) -> Sent {
        let is_empty = |entry: &Value| entry.as_object().is_some_and(Map::is_empty);
        match object["metadata"]["managedFields"].as_array().map(Vec::as_slice) {
            Some([]) if !is_custom => Sent::Reset,
            Some([only]) if is_empty(only) => Sent::Reset,
            _ => Sent::AsTheyAre,
        }
    }
}

impl<'m, 's> FieldManager<'m, 's> {
    /// - `api_version`, `kind`: of the request, which both objects have.
    /// - `subresource`: what is written to; empty for the object itself.
    /// - `filters`: see [`crate::reset_fields`].
    /// - `now`: in RFC 3339 with seconds, in UTC.
    ///
    /// # Errors
    /// The kind has no such version.
    pub fn new(
        versions: &'m dyn Versions<'s>,
        api_version: &'m str,
        kind: &'m str,
        subresource: &'m str,
        filters: Filters,
        now: &'m str,
        lease: &'m Lease,
    ) -> Result<FieldManager<'m, 's>, ConvertError> {
        let ty = versions.type_in(api_version)?;
        let updater = Updater { converter: Conversion(versions), filters, lease };
        let has_stamped = Cell::new(false);
        Ok(FieldManager { updater, ty, api_version, kind, subresource, now, has_stamped })
    }

    /// Whether an entry has the time of this request: upstream's is finer than a second until it is written.
    pub fn has_stamped(&self) -> bool {
        self.has_stamped.get()
    }

    /// The entries of `new`, which `name` writes over `live`; none if nobody owns anything, or upstream would
    /// not say.
    ///
    /// - `live`: what is there; `None` for a new object.
    /// - `new`: canonical, with the entries that were sent.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn update(
        &self,
        live: Option<&Value>,
        new: &Value,
        sent: Sent,
        name: &str,
    ) -> Result<Vec<Value>, Exhausted> {
        if live.is_none()
            && let Some(created) = self.created(new, sent, name)?
        {
            return self.entries(&created);
        }
        let scope = self.updater.lease.scope();
        self.charge_entries([live, Some(new)])?;
        let mut managed = self.known(live, new, sent);
        let uid = live.and_then(|live| live["metadata"]["uid"].as_str()).unwrap_or_default();
        // Nobody is known of an object that is there: upstream does not begin before somebody applies.
        if !managed.is_empty() || uid.is_empty() {
            let (live, new) = self.compared(live, new, &managed)?;
            managed = match self.updated(&live, &new, managed, name) {
                Ok(managed) => managed,
                Err(Failure::Exhausted(why)) => return Err(why),
                // Also what an object takes in another version may be too much.
                Err(_) => self.updater.lease.exhausted().map_or_else(|| Ok(Managed::default()), Err)?,
            };
        }
        drop(scope);
        self.entries(&managed)
    }

    /// The same of a new object, without the tree of what is owned where one manager owns all.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub fn create(&self, new: &Value, sent: Sent, name: &str) -> Result<Created, Exhausted> {
        if let Some(created) = self.created(new, sent, name)?
            && let Some((entry, fields)) = created.to_only_entry(self.updater.lease)?
        {
            return Ok(Created::Apart { entry, fields });
        }
        self.update(None, new, sent, name).map(Created::Whole)
    }

    /// What sets of fields take, from above: less than the trees that they are read from.
    fn charge_entries<const N: usize>(&self, objects: [Option<&Value>; N]) -> Result<(), Exhausted> {
        let entries = objects.into_iter().flatten().flat_map(entries_of);
        self.updater.lease.charge(entries.map(weight::of).sum())
    }

    /// Whose entries count: those that were sent with the object itself, or those of what is there.
    fn known(&self, live: Option<&Value>, new: &Value, sent: Sent) -> Managed {
        let of_live = || live.and_then(|live| Managed::of_object(live).ok()).unwrap_or_default();
        if !self.subresource.is_empty() {
            return of_live();
        }
        match (sent, Managed::of_object(new)) {
            (Sent::Reset, _) => Managed::default(),
            (Sent::AsTheyAre, Ok(managed)) if !managed.is_empty() => managed,
            _ => of_live(),
        }
    }

    /// `live` once `name` has applied `config`, with its entries. It says all that Go would write, and is
    /// canonical no more.
    ///
    /// - `live`: what is there; `None` for a new object. One that is given away is not copied, and its
    ///   entries are let go of once they are read.
    /// - `config`: as it was sent.
    /// - `bytes_max`: of an object in the store; what is longer for sure is refused before trees of who owns
    ///   what are made, which take ten times as much.
    ///
    /// # Errors
    /// It is not what may be applied, fields are somebody else's, or there is no room.
    pub fn apply(
        &self,
        live: Option<Cow<'_, Value>>,
        config: &Value,
        name: &str,
        force: bool,
        bytes_max: usize,
    ) -> Result<Value, Status> {
        self.check_config(config)?;
        self.charge_entries([live.as_deref()])?;
        let managed = live.as_deref().map_or_else(|| Ok(Managed::default()), Managed::of_object);
        let managed = managed.map_err(|why| unknown(format!("failed to decode managed fields: {why}")))?;
        let whole = match live {
            Some(Cow::Owned(live)) => self.completed(without_entries(live)),
            live => self.whole(live.as_deref())?,
        };
        let (object, managed) = match self.applied(&whole, config, managed.clone(), name, force) {
            Err(Failure::Conflicts(conflicts)) if name == KUBECTL => {
                self.take_over(&whole, config, managed, conflicts)?
            }
            done => done?,
        };
        let mut object = object.unwrap_or(whole);
        if name == KUBECTL {
            last_applied::note(&mut object, config, self.updater.lease)?;
        }
        fits(&object, &managed, bytes_max)?;
        let entries = self.entries(&managed)?;
        if let Some(members) = object.as_object_mut().filter(|_| !entries.is_empty())
            && let Some(metadata) = members.entry("metadata").or_insert_with(|| json!({})).as_object_mut()
        {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
        Ok(object)
    }

    /// What may be applied is of the request's kind and version, and says nothing of managers.
    fn check_config(&self, config: &Value) -> Result<(), Status> {
        let version = config["apiVersion"].as_str().unwrap_or_default();
        let kind = config["kind"].as_str().unwrap_or_default();
        if version != self.api_version || kind != self.kind {
            let what = shown_kind(version, kind);
            return Err(Status::bad_request(format!("invalid object type: {what}")));
        }
        let managed_fields = config["metadata"]["managedFields"].as_array();
        if managed_fields.is_some_and(|entries| entries.iter().all(Value::is_object)) {
            return Err(Status::bad_request("metadata.managedFields must be nil"));
        }
        Ok(())
    }

    /// Takes what kubectl applied before by itself, as far as it is as it was.
    fn take_over(
        &self,
        live: &Value,
        config: &Value,
        managed: Managed,
        conflicts: Conflicts,
    ) -> Result<(Option<Value>, Managed), Failure> {
        let Some(own) = last_applied::fields(live, self.ty, self.updater.lease) else {
            return Err(Failure::Conflicts(conflicts));
        };
        let conflicts = conflicts.without(&own, self.updater.lease)?;
        if conflicts.0.is_empty() {
            return self.applied(live, config, managed, KUBECTL, true);
        }
        Err(Failure::Conflicts(conflicts))
    }

    /// The object, if it changes, and who owns what.
    fn applied(
        &self,
        live: &Value,
        config: &Value,
        mut managed: Managed,
        name: &str,
        force: bool,
    ) -> Result<(Option<Value>, Managed), Failure> {
        if managed.is_empty() {
            let before = self.updated(&self.whole(None)?, live, managed, BEFORE_FIRST_APPLY);
            managed = before.map_err(within("failed to create manager for existing fields"))?;
        }
        let identifier = self.manager(name, true).identifier();
        let typed = |what, object, duplicates| {
            TypedValue::new(object, self.ty, duplicates).map_err(|faults| {
                Failure::Other(format!(
                    "failed to create typed {what} object ({}): {faults}",
                    self.names(object)
                ))
            })
        };
        let patch = typed("patch", config, Duplicates::Refused)?;
        let live = typed("live", live, Duplicates::Allowed)?;
        let owners = managed.owners;
        let applied = self.updater.apply(&live, &patch, self.api_version, owners, &identifier, force)?;
        managed.owners = applied.managers;
        strip(&mut managed.owners, &identifier);
        let object = applied.object.map(|object| object.value.into_owned());
        if object.is_some() {
            self.has_stamped.set(self.has_stamped() || managed.owners.contains_key(&identifier));
            managed.times.insert(identifier, self.now.to_owned());
        }
        Ok((object, managed))
    }

    /// Who owns what of a new object; `None` if it says who, or if it takes a comparison.
    fn created(&self, new: &Value, sent: Sent, name: &str) -> Result<Option<Managed>, Exhausted> {
        if sent == Sent::AsTheyAre && !entries_of(new).is_empty() {
            return Ok(None);
        }
        let typed = TypedValue::known(new, self.ty);
        let Some(fields) = self.updater.created(&typed, self.api_version)? else { return Ok(None) };
        let (mut managed, fields) = (Managed::default(), fields.difference(servers_own()));
        if !fields.is_empty() {
            let owned = Owned { fields, version: self.api_version.to_owned(), applied: false };
            self.note(&mut managed, name, owned);
        }
        Ok(Some(managed))
    }

    /// Who owns what once `name` has updated `live` to `new`.
    fn updated(
        &self,
        live: &Value,
        new: &Value,
        mut managed: Managed,
        name: &str,
    ) -> Result<Managed, Failure> {
        let typed = |what, object| {
            let why = |faults| {
                format!("failed to convert {what} object ({}) to smd typed: {faults}", self.names(object))
            };
            TypedValue::new(object, self.ty, Duplicates::Allowed)
                .map_err(|faults| Failure::Other(why(faults)))
        };
        let (typed_new, typed_live) = (typed("new", new)?, typed("live", live)?);
        let owners = std::mem::take(&mut managed.owners);
        let updated = self.updater.update(&typed_live, &typed_new, self.api_version, owners, CURRENT);
        managed.owners = updated.map_err(|error| match error {
            Error::Exhausted(why) => Failure::Exhausted(why),
            why => Failure::Other(format!("failed to update ManagedFields ({}): {why}", self.names(new))),
        })?;
        strip(&mut managed.owners, CURRENT);
        if let Some(owned) = managed.owners.remove(CURRENT) {
            self.note(&mut managed, name, owned);
        }
        cap_update_managers(&mut managed);
        Ok(managed)
    }

    /// Notes what `name` has updated now, besides what it had before.
    fn note(&self, managed: &mut Managed, name: &str, owned: Owned) {
        let identifier = self.manager(name, false).identifier();
        let owned = match managed.owners.remove(&identifier) {
            Some(before) => Owned { fields: owned.fields.union(&before.fields), ..owned },
            None => owned,
        };
        managed.owners.insert(identifier.clone(), owned);
        managed.times.insert(identifier, self.now.to_owned());
        self.has_stamped.set(true);
    }

    fn manager(&self, name: &str, applied: bool) -> Manager {
        let name = if name.is_empty() { "unknown" } else { name };
        Manager {
            name: name.to_owned(),
            applied,
            version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
        }
    }

    /// Two objects as they are compared: with all that Go has of them, but for what is the same in both.
    fn compared<'v>(
        &self,
        live: Option<&'v Value>,
        new: &'v Value,
        managed: &Managed,
    ) -> Result<(Cow<'v, Value>, Cow<'v, Value>), Exhausted> {
        let Some(live) = live else {
            return Ok((Cow::Owned(self.whole(None)?), Cow::Owned(self.whole(Some(new))?)));
        };
        // A custom resource may not be of its type any more, which is seen of the whole. Entries among the
        // fields do no harm: no manager owns them.
        if !matches!(self.ty, FieldType::BuiltIn(..)) {
            return Ok((Cow::Borrowed(live), Cow::Borrowed(new)));
        }
        let is_one_version = managed.owners.values().all(|owned| owned.version == self.api_version);
        let is_left_out = |name: &str| {
            is_one_version && !matches!(name, "apiVersion" | "kind") && live.get(name) == new.get(name)
        };
        let part = |object| {
            let mut part = copy_without(object, is_left_out, self.updater.lease)?;
            self.updater.converter.0.complete(&mut part, self.ty);
            Ok(Cow::Owned(part))
        };
        Ok((part(live)?, part(new)?))
    }

    /// An object with all that Go has of it, without its entries; what there is before a new one if there is
    /// none.
    fn whole(&self, object: Option<&Value>) -> Result<Value, Exhausted> {
        Ok(self.completed(match object {
            Some(object) => copy_without(object, |_| false, self.updater.lease)?,
            None => json!({"apiVersion": self.api_version, "kind": self.kind}),
        }))
    }

    /// An object with all that Go has of it.
    fn completed(&self, mut object: Value) -> Value {
        self.updater.converter.0.complete(&mut object, self.ty);
        object
    }

    /// What is written of who owns what; nothing if it could not be read again.
    fn entries(&self, managed: &Managed) -> Result<Vec<Value>, Exhausted> {
        let lease = self.updater.lease;
        match (managed.to_entries(lease), lease.exhausted()) {
            (Ok(entries), _) => Ok(entries),
            (Err(_), Some(why)) => Err(why),
            (Err(_), None) => Ok(Vec::new()),
        }
    }

    /// An object as upstream names it in an error.
    fn names(&self, object: &Value) -> String {
        let text = |at: &Value| at.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let what = shown_kind(&text(&object["apiVersion"]), &text(&object["kind"]));
        format!("{}/{}; {what}", text(&metadata["namespace"]), text(&metadata["name"]))
    }
}

/// Why an apply is not done.
enum Failure {
    Conflicts(Conflicts),
    Exhausted(Exhausted),
    Other(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::Conflicts(conflicts) => Failure::Conflicts(conflicts),
            Error::Exhausted(why) => Failure::Exhausted(why),
            other => Failure::Other(other.to_string()),
        }
    }
}

impl From<Exhausted> for Failure {
    fn from(why: Exhausted) -> Failure {
        Failure::Exhausted(why)
    }
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Status {
        match failure {
            Failure::Conflicts(conflicts) => conflict::status_of(&conflicts),
            Failure::Exhausted(why) => why.into(),
            Failure::Other(why) => unknown(why),
        }
    }
}

fn within(doing: &'static str) -> impl Fn(Failure) -> Failure {
    move |failure| match failure {
        Failure::Other(why) => Failure::Other(format!("{doing}: {why}")),
        other => other,
    }
}

/// A failure for which upstream has no reason.
fn unknown(message: String) -> Status {
    Status::new(Reason::Unknown, message)
}

/// Takes from a manager what only the server writes.
fn strip(owners: &mut Managers, identifier: &str) {
    let Some(owned) = owners.remove(identifier) else { return };
    let fields = owned.fields.difference(servers_own());
    if !fields.is_empty() {
        owners.insert(identifier.to_owned(), Owned { fields, ..owned });
    }
}

fn servers_own() -> &'static Set {
    static SET: OnceLock<Set> = OnceLock::new();
    SET.get_or_init(|| {
        let of_metadata = [
            "name",
            "namespace",
            "creationTimestamp",
            "selfLink",
            "uid",
            "clusterName",
            "generation",
            "managedFields",
            "resourceVersion",
        ];
        let tops = ["apiVersion", "kind", "metadata"].into_iter().map(|name| vec![Element::field(name)]);
        let below =
            of_metadata.into_iter().map(|name| vec![Element::field("metadata"), Element::field(name)]);
        Set::of_paths(tops.chain(below))
    })
}

/// Refuses what is longer than `bytes_max` as it is stored, for sure. What is owned of it by sets that are no
/// half of that is the store's to judge.
///
/// Cost: where the sets are long, a walk over them and the object.
fn fits(object: &Value, managed: &Managed, bytes_max: usize) -> Result<(), Status> {
    if managed.encoded_bytes() <= bytes_max / (2 * STORED_TIMES) {
        return Ok(());
    }
    let bytes = said_bytes(object).saturating_add(managed.fields_bytes());
    if bytes <= bytes_max {
        return Ok(());
    }
    let why = format!("the object has {bytes} bytes with who owns its fields, the limit is {bytes_max}");
    Err(Status::new(Reason::RequestEntityTooLarge, why))
}

/// Bytes of a value as JSON, from below: what is empty or zero may not be stored.
fn said_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 0,
        Value::Number(number) => usize::from(number.as_f64() != Some(0.0)),
        Value::String(text) => {
            if text.is_empty() {
                0
            } else {
                text.len() + 2
            }
        }
        Value::Array(items) => items.len() + items.iter().map(said_bytes).sum::<usize>(),
        Value::Object(members) => {
            let said = members.iter().map(|(name, value)| (name.len(), said_bytes(value)));
            said.filter(|(_, bytes)| *bytes > 0).map(|(name, bytes)| name + 4 + bytes).sum()
        }
    }
}

/// An object but for its entries.
fn without_entries(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// A copy of an object but for its entries and for some members, charged before it is made.
fn copy_without(
    object: &Value,
    is_left_out: impl Fn(&str) -> bool,
    lease: &Lease,
) -> Result<Value, Exhausted> {
    let copy = |(name, value): (&String, &Value)| Ok((name.clone(), weight::copy(value, lease)?));
    let mut copied = Map::new();
    for (name, value) in object.as_object().into_iter().flatten().filter(|(name, _)| !is_left_out(name)) {
        let value = match value.as_object() {
            Some(metadata) if name == "metadata" => {
                let rest = metadata.iter().filter(|(name, _)| *name != "managedFields");
                Value::Object(rest.map(copy).collect::<Result<_, Exhausted>>()?)
            }
            _ => weight::copy(value, lease)?,
        };
        copied.insert(name.clone(), value);
    }
    Ok(Value::Object(copied))
}
