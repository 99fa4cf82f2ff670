//! Who owns which fields, asked of one kind.
//!
//! In: what is served, an object as it is and as it is to be. Out: entries of its `managedFields`. Never:
//! knows a write; who asks for one is `write/own.rs`.

use forebay_apimachinery::{Lease, Status};
use forebay_catalog::{Served, Versioned, WantedConversions};
use forebay_fieldmanager::{FieldManager, Sent};
use serde_json::{Value, json};

use crate::context::Context;

/// What writes where the server does so by itself and says nothing else.
pub(crate) const SERVER: &str = "kube-apiserver";

/// Notes in `new`, which the server makes of `live` by itself, what it changes.
///
/// - `manager`: as what it does.
/// - `subresource`: what it means to write; empty for the object itself.
///
/// # Errors
/// 500.
pub(crate) fn by_server(
    context: &Context,
    served: &Served,
    (manager, subresource): (&str, &str),
    live: Option<&Value>,
    new: &mut Value,
) -> Result<(), Status> {
    let lease = Lease::of_server();
    let entries = of_served(served, subresource, context, &lease, |fields| {
        fields.update(live, new, Sent::AsTheyAre, manager)
    })??;
    set_entries(new, entries);
    Ok(())
}

/// Notes in a new object of the server's that `manager` says its status.
///
/// # Errors
/// 500.
pub(crate) fn status_by_server(
    context: &Context,
    served: &Served,
    manager: &str,
    object: &mut Value,
) -> Result<(), Status> {
    let mut config = json!({ "metadata": { "name": object["metadata"]["name"] } });
    for member in ["apiVersion", "kind", "status"] {
        config[member] = object[member].clone();
    }
    // It says so now.
    let mut live = object.clone();
    live["status"] = Value::Null;
    let lease = Lease::of_server();
    let applied = of_served(served, "status", context, &lease, |fields| {
        fields.apply(Some(std::borrow::Cow::Owned(live)), &config, manager, true, usize::MAX)
    })??;
    set_entries(object, entries_of(&applied).to_vec());
    Ok(())
}

/// Asks who keeps the owners of an object of `served`.
pub(crate) fn of_served<T>(
    served: &Served,
    subresource: &str,
    context: &Context,
    lease: &Lease,
    ask: impl FnOnce(&FieldManager<'_, '_>) -> T,
) -> Result<T, Status> {
    of_converted((served, None), subresource, context, lease, ask)
}

/// The same of an object that a webhook may have converted: what it made is known, or wanted.
pub(crate) fn of_converted<T>(
    (served, made): (&Served, Option<&WantedConversions>),
    subresource: &str,
    context: &Context,
    lease: &Lease,
    ask: impl FnOnce(&FieldManager<'_, '_>) -> T,
) -> Result<T, Status> {
    let (gvk, kind) = (&served.gvk, &*served.kind);
    let (filters, now) = (kind.reset_fields(subresource), context.now_rfc3339());
    let (versions, api_version) = (Versioned { kind, lease, made }, gvk.api_version());
    let fields = FieldManager::new(&versions, &api_version, &gvk.kind, subresource, filters, &now, lease);
    Ok(ask(&fields.map_err(Status::internal)?))
}

/// The entries of an object as they are.
pub(crate) fn entries_of(object: &Value) -> &[Value] {
    object["metadata"]["managedFields"].as_array().map_or(&[], Vec::as_slice)
}

/// Puts entries in the place of those that `object` has.
pub(crate) fn set_entries(object: &mut Value, entries: Vec<Value>) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if entries.is_empty() {
        metadata.remove("managedFields");
    } else {
        metadata.insert("managedFields".to_owned(), Value::Array(entries));
    }
}

/// Takes its entries from `object`.
pub(crate) fn take_entries(object: &mut Value) -> Vec<Value> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    match metadata.and_then(|metadata| metadata.remove("managedFields")) {
        Some(Value::Array(entries)) => entries,
        _ => Vec::new(),
    }
}
