//! Documents and answers that are at hand as JSON, in protobuf.
//!
//! In: JSON of ours, whose kind says which message it is. Out: a body. Objects from the cache do not come
//! this way: they have messages of their own, which are shared. Never: JSON of a client.

use forebay_apimachinery::resource::split_api_version;
use serde_json::Value;

use super::{EncodeError, Envelope, ListForm, encode, is_message};
use crate::builtin::{TypeId, table};

/// Why JSON of ours has no protobuf form.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    #[error("an answer is no JSON")]
    Json(#[from] serde_json::Error),
    #[error("no message for kind {kind:?} of {api_version:?}")]
    Kind { api_version: String, kind: String },
    #[error("an answer does not fit its kind")]
    Encode(#[from] EncodeError),
}

/// `json` as a body of `application/vnd.kubernetes.protobuf`.
///
/// # Errors
/// [`FormError`], each of which is a fault of ours.
pub fn from_json(json: &[u8]) -> Result<Vec<u8>, FormError> {
    let value: Value = serde_json::from_slice(json)?;
    let text = |member: &str| value[member].as_str().unwrap_or("");
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let mut message = Vec::with_capacity(json.len());
    match (api_version, kind) {
        ("meta.k8s.io/v1beta1", "PartialObjectMetadataList") => items_first(&value, &mut message)?,
        _ => encode(message_type(api_version, kind)?, &value, &mut message)?,
    }
    let mut out = Vec::new();
    Envelope::new(api_version, kind).write(&message, &mut out);
    Ok(out)
}

/// The one list that has its metadata behind its items.
fn items_first(list: &Value, out: &mut Vec<u8>) -> Result<(), FormError> {
    let message = |kind: &str, value: &Value| -> Result<Vec<u8>, FormError> {
        let mut message = Vec::new();
        encode(message_type("meta.k8s.io/v1", kind)?, value, &mut message)?;
        Ok(message)
    };
    for item in list["items"].as_array().into_iter().flatten() {
        let item = message("PartialObjectMetadata", item)?;
        ListForm::ItemsFirst.open_item(item.len(), out);
        out.extend_from_slice(&item);
    }
    let metadata = message("ListMeta", &list["metadata"])?;
    out.extend_from_slice(&ListForm::ItemsFirst.metadata_field(&metadata));
    Ok(())
}

/// The older discovery documents of the core group say no version.
fn message_type(api_version: &str, kind: &str) -> Result<TypeId, FormError> {
    let (group, version) = split_api_version(if api_version.is_empty() { "v1" } else { api_version });
    let found = match group {
        "meta.k8s.io" => table().type_named("meta/v1", kind),
        _ => table().kind(group, version, kind).map(|kind| kind.ty),
    };
    let found = found.filter(|ty| is_message(*ty));
    found.ok_or_else(|| FormError::Kind { api_version: api_version.to_owned(), kind: kind.to_owned() })
}
