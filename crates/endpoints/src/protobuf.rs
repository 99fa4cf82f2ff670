//! Documents and answers that are at hand as JSON, in protobuf.
//!
//! In: JSON of ours, whose kind says which message it is. Out: a body. Objects from the cache do not come
//! this way: they have messages of their own, which are shared. Never: JSON of a client.

use forebay_apimachinery::resource::split_api_version;
use forebay_schema::builtin::protobuf::{self, Envelope, ListForm};
use forebay_schema::builtin::{TypeId, table};
use serde_json::Value;

/// Why JSON of ours has no protobuf form.
#[derive(Debug, thiserror::Error)]
pub enum FormError {
    #[error("an answer is no JSON")]
    Json(#[from] serde_json::Error),
    #[error("no message for kind {kind:?} of {api_version:?}")]
    Kind { api_version: String, kind: String },
    #[error("an answer does not fit its kind")]
    Encode(#[from] protobuf::EncodeError),
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
        _ => protobuf::encode(message_type(api_version, kind)?, &value, &mut message)?,
    }
    let mut out = Vec::new();
    Envelope::new(api_version, kind).write(&message, &mut out);
    Ok(out)
}

/// The one list that has its metadata behind its items.
fn items_first(list: &Value, out: &mut Vec<u8>) -> Result<(), FormError> {
    let message = |kind: &str, value: &Value| -> Result<Vec<u8>, FormError> {
        let mut message = Vec::new();
        protobuf::encode(message_type("meta.k8s.io/v1", kind)?, value, &mut message)?;
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
    let found = found.filter(|ty| protobuf::is_message(*ty));
    found.ok_or_else(|| FormError::Kind { api_version: api_version.to_owned(), kind: kind.to_owned() })
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::Status;
    use forebay_reads::{As, EventForm, PROTOBUF};

    use super::*;
    use crate::status::Failure;
    use crate::watch_body::testing::served;

    fn check(json: &str, want: &[u8]) {
        let got = from_json(json.as_bytes()).map_err(|error| error.to_string());
        assert_eq!(
            got.as_deref().map(<[u8]>::escape_ascii).map(|text| text.to_string()),
            Ok(want.escape_ascii().to_string()),
            "{json}"
        );
    }

    // Bodies that kube-apiserver 1.36.3 sent.
    #[test]
    fn documents_are_written_as_kube_apiserver_writes_them() {
        check(
            r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","serverAddress":"192.0.2.2:36443"}]}"#,
            b"k8s\x00\n\x0f\n\x00\x12\x0bAPIVersions\x12\"\n\x02v1\x12\x1c\n\t0.0.0.0/0\x12\x0f192.0.2.2:36443\x1a\x00\"\x00",
        );
        check(
            r#"{"kind":"APIGroup","apiVersion":"v1","name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}"#,
            b"k8s\x00\n\x0e\n\x02v1\x12\x08APIGroup\x12$\n\x04apps\x12\r\n\x07apps/v1\x12\x02v1\x1a\r\n\x07apps/v1\x12\x02v1\x1a\x00\"\x00",
        );
        check(
            r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1beta1","metadata":{"resourceVersion":"327"},"items":[]}"#,
            b"k8s\x00\n0\n\x13meta.k8s.io/v1beta1\x12\x19PartialObjectMetadataList\x12\x0b\x12\t\n\x00\x12\x03327\x1a\x00\x1a\x00\"\x00",
        );
    }

    #[test]
    fn a_status_is_written_as_kube_apiserver_writes_it() {
        for (failure, want) in [
            (
                Failure::unauthorized(),
                &b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x120\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x0cUnauthorized\"\x0cUnauthorized0\x91\x03\x1a\x00\"\x00"[..],
            ),
            (
                Status::not_found("", "configmaps", "none").into(),
                b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12U\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a\x1bconfigmaps \"none\" not found\"\x08NotFound*\x18\n\x04none\x12\x00\x1a\nconfigmaps(\x002\x000\x94\x03\x1a\x00\"\x00",
            ),
            (
                Failure::not_acceptable(&["application/json"]),
                b"k8s\x00\n\x0c\n\x02v1\x12\x06Status\x12q\n\x06\n\x00\x12\x00\x1a\x00\x12\x07Failure\x1a@406: Not Acceptable\n\nAvailable representations: application/json\"\rNotAcceptable*\n\n\x00\x12\x00\x1a\x00(\x002\x000\x96\x03\x1a\x00\"\x00",
            ),
        ] {
            check(&String::from_utf8_lossy(&failure.to_json()), want);
        }
    }

    #[tokio::test]
    async fn an_error_is_a_frame() {
        let mut out = Vec::new();
        let mut events = (PROTOBUF.writer)(
            served("configmaps").await,
            EventForm { format: &PROTOBUF, ..EventForm::from(As::Object) },
        );
        events.error(&Failure::unauthorized().to_json(), &mut out);
        let (len, event) = out.split_first_chunk().expect("a length");
        assert_eq!(u32::from_be_bytes(*len) as usize, event.len());
        let event = protobuf::decode_watch_event(event).expect("an event");
        let status = from_json(&Failure::unauthorized().to_json()).expect("a body");
        assert_eq!((&*event.kind, event.object), ("ERROR", &status[..]));
    }

    #[test]
    fn what_has_no_message_is_an_error() {
        for json in [
            "{",
            "{}",
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1"}"#,
            r#"{"kind":"Widget","apiVersion":"example.com/v1"}"#,
            r#"{"kind":"Status","apiVersion":"v1","code":"x"}"#,
        ] {
            assert!(from_json(json.as_bytes()).is_err(), "{json}");
        }
    }
}
