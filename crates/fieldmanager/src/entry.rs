//! Entries of `metadata.managedFields`.
//!
//! In: entries as an object has them, canonical. Out: who owns what, by identifier, and when each wrote;
//! entries again, in upstream's order. Never: judges who may own what.
//!
//! A manager is told apart by its name, how it wrote, the subresource that it wrote to, and, if it updated,
//! the version in which: its identifier is these as JSON, whose order as text is part of what capping and
//! conflicts say.

use std::collections::BTreeMap;

use forebay_apimachinery::json::{go_quote, weight, write_string};
use forebay_apimachinery::{Exhausted, Lease};
use forebay_merge::{Managers, Owned, Set, SetError};
use serde_json::{Map, Value};

use crate::limits::FIELDS_DEPTH_MAX;

/// Who owns what of an object.
#[derive(Clone, Debug, Default)]
pub struct Managed {
    /// By identifier.
    pub(crate) owners: Managers,
    /// identifier -> when it wrote, in RFC 3339 with seconds; some never say. Those who own nothing any more
    /// may be among them.
    pub(crate) times: BTreeMap<String, String>,
}

/// Why entries are not read, or not written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    #[error("operation must be `Apply` or `Update`")]
    Operation,
    #[error("apiVersion must not be empty")]
    NoVersion,
    #[error("missing fieldsType in managed fields entry {index}")]
    NoFieldsType { index: usize },
    #[error("invalid fieldsType {} in managed fields entry {index}", go_quote(.found))]
    FieldsType { index: usize, found: String },
    #[error("error decoding versioned set: error decoding set: {0}")]
    Set(#[from] SetError),
    #[error("a set of fields cannot be kept: {0}")]
    Unkept(String),
}

/// What an entry says of a manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manager {
    pub name: String,
    pub applied: bool,
    /// Empty of one that applies: it is the same in all versions.
    pub version: String,
    pub subresource: String,
}

impl Manager {
    /// What tells it apart.
    pub fn identifier(&self) -> String {
        let operation = if self.applied { "Apply" } else { "Update" };
        let version = if self.applied { "" } else { &self.version };
        let fields = [
            ("manager", &*self.name),
            ("operation", operation),
            ("apiVersion", version),
            ("subresource", &self.subresource),
        ];
        let mut out = Vec::new();
        for (name, value) in fields.into_iter().filter(|(_, value)| !value.is_empty()) {
            out.push(if out.is_empty() { b'{' } else { b',' });
            write_string(name, &mut out);
            out.push(b':');
            write_string(value, &mut out);
        }
        out.push(b'}');
        String::from_utf8(out).expect("JSON made of strings is UTF-8")
    }

    /// Of an identifier.
    pub fn of(identifier: &str) -> Manager {
        let fields: Value = serde_json::from_str(identifier).expect("an identifier is JSON");
        let text = |name| text(&fields, name).to_owned();
        Manager {
            name: text("manager"),
            applied: fields["operation"] == "Apply",
            version: text("apiVersion"),
            subresource: text("subresource"),
        }
    }
}

impl Managed {
    /// Reads the entries of an object: none if it has none.
    ///
    /// # Errors
    /// The first that is none.
    pub fn of_object(object: &Value) -> Result<Managed, EntryError> {
        Managed::of_entries(entries_of(object))
    }

    /// Reads entries.
    ///
    /// # Errors
    /// The first that is none.
    pub fn of_entries(entries: &[Value]) -> Result<Managed, EntryError> {
        let mut managed = Managed::default();
        for (index, entry) in entries.iter().enumerate() {
            let (manager, owned) = read(index, entry)?;
            let identifier = manager.identifier();
            managed.owners.insert(identifier.clone(), owned);
            match entry["time"].as_str() {
                Some(time) => managed.times.insert(identifier, time.to_owned()),
                None => managed.times.remove(&identifier),
            };
        }
        Ok(managed)
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// When the manager wrote; before all others if it never said.
    pub(crate) fn time_of(&self, identifier: &str) -> &str {
        self.times.get(identifier).map_or("1970-01-01T00:00:00Z", String::as_str)
    }

    /// Bytes of all sets as they are encoded: as stored they take eight times as many at most.
    pub(crate) fn encoded_bytes(&self) -> usize {
        self.owners.values().map(|owned| owned.fields.bytes()).sum()
    }

    /// Bytes of all sets as they are stored. Cost: a walk over them.
    pub(crate) fn fields_bytes(&self) -> usize {
        self.owners.values().map(|owned| owned.fields.json_bytes()).sum()
    }

    /// The entry of the only one who owns anything, whose `fieldsV1` is empty, and that as JSON in upstream's
    /// order; `None` if there are more, or it is not stored as it is.
    ///
    /// # Errors
    /// [`Exhausted`].
    pub(crate) fn to_only_entry(&self, lease: &Lease) -> Result<Option<(Value, Vec<u8>)>, Exhausted> {
        let mut owners = self.owners.iter();
        let (Some((identifier, owned)), None) = (owners.next(), owners.next()) else { return Ok(None) };
        let fields = owned.fields.to_text(FIELDS_DEPTH_MAX, lease)?;
        let Some(fields) = fields.filter(|fields| !fields.iter().any(is_html)) else { return Ok(None) };
        let manager = Manager::of(identifier);
        let entry = without_fields(manager, owned, self.times.get(identifier), lease)?;
        Ok(Some((entry, fields)))
    }

    /// The entries, in upstream's order: those that apply first, then by second, name, version and
    /// subresource.
    ///
    /// # Errors
    /// A set is nested too deeply to be read again; the lease is exhausted, which it then says itself.
    pub fn to_entries(&self, lease: &Lease) -> Result<Vec<Value>, EntryError> {
        let mut managers: Vec<(&str, Manager, &String, &Owned)> = self
            .owners
            .iter()
            .map(|(identifier, owned)| (self.time_of(identifier), Manager::of(identifier), identifier, owned))
            .collect();
        managers.sort_by(|(a_time, a, _, a_owned), (b_time, b, _, b_owned)| {
            let by_operation = b_owned.applied.cmp(&a_owned.applied);
            let by_version = a_owned.version.cmp(&b_owned.version);
            by_operation
                .then(a_time.cmp(b_time))
                .then(a.name.cmp(&b.name))
                .then(by_version)
                .then(a.subresource.cmp(&b.subresource))
        });
        let entry = |(_, manager, identifier, owned): (&str, Manager, &String, &Owned)| {
            written(manager, owned, self.times.get(identifier), lease)
        };
        managers.into_iter().map(entry).collect()
    }
}

/// Whether it may begin what is escaped in an object and is not in a set of fields.
fn is_html(byte: &u8) -> bool {
    matches!(byte, b'<' | b'>' | b'&' | 0xE2)
}

/// The entries of an object as they are.
pub(crate) fn entries_of(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(of: &'v Value, name: &str) -> &'v str {
    of[name].as_str().unwrap_or_default()
}

fn read(index: usize, entry: &Value) -> Result<(Manager, Owned), EntryError> {
    let applied = match text(entry, "operation") {
        "Apply" => true,
        "Update" => false,
        _ => return Err(EntryError::Operation),
    };
    let version = text(entry, "apiVersion").to_owned();
    if version.is_empty() {
        return Err(EntryError::NoVersion);
    }
    match text(entry, "fieldsType") {
        "FieldsV1" => {}
        "" => return Err(EntryError::NoFieldsType { index }),
        found => return Err(EntryError::FieldsType { index, found: found.to_owned() }),
    }
    let fields = match &entry["fieldsV1"] {
        Value::Null => Set::default(),
        fields => Set::of_json(fields)?,
    };
    let manager = Manager {
        name: text(entry, "manager").to_owned(),
        applied,
        version: if applied { String::new() } else { version.clone() },
        subresource: text(entry, "subresource").to_owned(),
    };
    Ok((manager, Owned { fields, version, applied }))
}

fn written(
    manager: Manager,
    owned: &Owned,
    time: Option<&String>,
    lease: &Lease,
) -> Result<Value, EntryError> {
    let unkept = |why: Exhausted| EntryError::Unkept(why.to_string());
    let fields = owned.fields.to_tree(FIELDS_DEPTH_MAX, lease).map_err(unkept)?;
    let too_deep = || EntryError::Unkept(format!("it is nested deeper than {FIELDS_DEPTH_MAX} levels"));
    let fields = fields.ok_or_else(too_deep)?;
    let mut entry = without_fields(manager, owned, time, lease).map_err(unkept)?;
    entry["fieldsV1"] = fields;
    Ok(entry)
}

/// An entry of which its `fieldsV1` is empty.
fn without_fields(
    manager: Manager,
    owned: &Owned,
    time: Option<&String>,
    lease: &Lease,
) -> Result<Value, Exhausted> {
    let mut entry = Map::new();
    let mut set = |name: &str, value: &str| {
        if !value.is_empty() {
            entry.insert(name.to_owned(), Value::from(value));
        }
    };
    set("manager", &manager.name);
    set("operation", if owned.applied { "Apply" } else { "Update" });
    set("apiVersion", &owned.version);
    set("time", time.map_or("", String::as_str));
    set("fieldsType", "FieldsV1");
    set("subresource", &manager.subresource);
    entry.insert("fieldsV1".to_owned(), Value::Object(Map::new()));
    let entry = Value::Object(entry);
    lease.charge(weight::of(&entry))?;
    Ok(entry)
}
