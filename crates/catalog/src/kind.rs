//! The kind of a resource's objects: what is known of their fields, how they are kept, shown and selected.
//!
//! Two things implement it, [`BuiltIn`](crate::BuiltIn) and [`Custom`](crate::Custom); nothing else knows
//! which is which but by what the trait says. In: objects and values. Out: values, bytes, causes. Never: a
//! store; who asks.

use bytes::Bytes;
use forebay_apimachinery::{Cause, GroupVersionKind, Lease, Revision, Status, json};
use forebay_crd::{CustomRules, Schema, Violations};
use forebay_fieldmanager::{ConvertError, FieldType, Filters, ReplicasPaths};
use forebay_object::{Form, Object};
use forebay_schema::builtin::TypeId;
use jiff::Timestamp;
use serde_json::Value;

use crate::ending::Ending;

/// Whether an object is written with its kind and version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typed {
    Yes,
    No,
}

/// See the module's doc. "This version" is the one that is served.
pub trait Kind: Send + Sync {
    /// How the objects are kept.
    fn form(&self) -> Form;

    /// Its type in the built-in table, if it is there: then its objects have protobuf messages and merge
    /// keys.
    fn ty(&self) -> Option<TypeId>;

    /// What a definition says for strategy, if one defines it.
    fn custom_rules(&self) -> Option<&CustomRules>;

    /// Its schema, if a definition has one.
    fn schema(&self) -> Option<&Schema>;

    /// Whether new objects are refused, as what defines it is being deleted.
    fn is_terminating(&self) -> bool;

    /// What ends watches when it becomes another; `None` where it never does.
    fn ending(&self) -> Option<&Ending>;

    /// Where its objects are, below what all keys begin with; `None` for what is not stored.
    fn storage_path(&self) -> Option<String>;

    /// What its objects are stored as.
    fn stored_kind(&self) -> GroupVersionKind;

    /// Whether every object is stored as another kind than this version has.
    fn is_converted(&self) -> bool;

    /// Brings what a client sent into this version's form; what is unknown is dropped and named. What is lost
    /// only when it is stored, an empty list, is kept for whose it is.
    ///
    /// - `lease`: what is added is charged to it.
    ///
    /// # Errors
    /// What cannot be of this kind.
    fn normalize(&self, value: &mut Value, lease: &Lease) -> Result<Vec<String>, String>;

    /// The same of what an apply made of an object: what it holds beyond its schema is judged with it.
    ///
    /// # Errors
    /// As [`Kind::normalize`].
    fn normalize_applied(&self, value: &mut Value, lease: &Lease) -> Result<(), String> {
        self.normalize(value, lease).map(drop)
    }

    /// Drops from what was judged as it was applied what is not stored.
    fn settle(&self, _value: &mut Value) {}

    /// Fills in what its schema does once strategy has done its part.
    fn set_defaults(&self, value: &mut Value);

    /// How much work a write is whose body has so many bytes, in such bytes.
    fn work(&self, bytes: usize) -> usize {
        bytes
    }

    /// What its schema has against `value` in the place of `old`.
    ///
    /// - `subresource`: the one that is written.
    /// - `before`: what else is wrong with it.
    fn validate(
        &self,
        value: &Value,
        old: Option<&Value>,
        subresource: Option<&str>,
        before: &[Cause],
    ) -> Violations;

    /// What a client is told of what its schema takes as it is.
    fn warnings(&self, value: &Value, old: Option<&Value>) -> Vec<String>;

    /// What a client of this version is told, if it is deprecated.
    fn deprecation_warning(&self) -> Option<&str>;

    /// The bytes that are stored for `value`, which has no resourceVersion and is in this version or as
    /// [`Kind::to_judged`] left it.
    ///
    /// # Errors
    /// A value that [`Kind::normalize`] would have refused.
    fn encode(&self, value: Value) -> Result<Bytes, Status>;

    /// The same of a new object.
    ///
    /// - `fields`: see [`forebay_schema::builtin::codec::encode_new`]; only a built-in kind is given any.
    ///
    /// # Errors
    /// As [`Kind::encode`].
    fn encode_new(&self, value: Value, fields: Option<&[u8]>) -> Result<Bytes, Status> {
        assert!(fields.is_none(), "fields apart from an object of no built-in kind");
        self.encode(value)
    }

    /// Whether what is stored is not what would be stored now, though the object itself is the same.
    fn is_stale(&self, object: &Object) -> bool;

    /// Whether [`Kind::write`] writes the object's bytes as they are, after a brace or the type.
    fn is_as_stored(&self, object: &Object) -> bool;

    /// Writes the object in this version.
    ///
    /// - `revision`: replaces the object's own.
    /// - `typed`: what is kept with its type is written with it in any case.
    fn write(&self, object: &Object, revision: Option<Revision>, typed: Typed, out: &mut Vec<u8>);

    /// Writes `value`, which is in this version, as JSON.
    ///
    /// # Errors
    /// A value that [`Kind::normalize`] would have refused.
    fn write_value(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), Status>;

    /// Makes `value`, which is in this version, what the rules know: it is as if it had been stored.
    fn to_judged(&self, value: &mut Value);

    /// The object as the rules know it. Not by way of this version, which may not tell all that is stored.
    ///
    /// # Errors
    /// JSON of ours that is none.
    fn to_judged_value(&self, object: &Object) -> Result<Value, Status> {
        self.to_value(object)
    }

    /// The object in this version as a tree.
    ///
    /// # Errors
    /// JSON of ours that is none.
    fn to_value(&self, object: &Object) -> Result<Value, Status> {
        let mut bytes = Vec::with_capacity(object.body_len() + 64);
        self.write(object, None, Typed::Yes, &mut bytes);
        json::read(&bytes).map_err(Status::internal)
    }

    /// The type of its objects in a version that it has, `apps/v1`, as a merge asks for it.
    ///
    /// # Errors
    /// It has no such version.
    fn field_type(&self, api_version: &str) -> Result<FieldType<'_>, ConvertError>;

    /// An object in another version that it has.
    ///
    /// # Errors
    /// There is no way to that version.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;

    /// What a write does not set, which so is nobody's by it.
    ///
    /// - `subresource`: what is written to; empty for the object itself.
    fn reset_fields(&self, subresource: &str) -> Filters;

    /// Where the replicas are that its Scale has; nowhere if it has none.
    fn replicas_paths(&self) -> ReplicasPaths;

    /// Whether a field selector may name the namespace.
    fn selects_by_namespace(&self) -> bool;

    /// What a client is told that selects by `label`, which it cannot.
    fn unsupported_field(&self, label: &str) -> String;

    /// As much of an object in this version as [`Kind::cells`] needs; `None` where `text` is no JSON.
    fn read_shown(&self, text: &[u8]) -> Option<Value>;

    /// A Table's cells for an object in this version, and the conditions of its row.
    fn cells(&self, value: &Value, now: Timestamp) -> (Vec<Value>, Vec<Value>);

    /// The same for an object as it is stored, where another version of it is shown there than this one: what
    /// that has no fields for would be lost, or in another order. None where it is this one.
    fn stored_cells(&self, _: &Object, _: Timestamp) -> Option<(Vec<Value>, Vec<Value>)> {
        None
    }

    /// A Table's columns.
    fn columns(&self) -> Value;
}
