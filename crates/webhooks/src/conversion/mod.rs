//! Conversion of custom resources by a webhook, as data: who is asked, what it is sent, what its answer says.
//!
//! In: a CRD as it is stored, objects as text; answers. Out: the bytes of a ConversionReview, the objects in
//! the other version, what is wrong in upstream's words. Never: a call, a schema.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/conversion/webhook_converter.go`.

mod answer;
mod metrics;

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::json::write_string;
use serde_json::Value;

use crate::configuration::{ClientConfig, ReviewVersion};
pub use answer::{AskedToConvert, ConversionFailure, FailureSort, converted};
pub use metrics::{
    CRD_BOUNDS, ConversionCounted, ConversionKey, ConversionMetrics, ConversionTimes, REQUEST_BOUNDS,
};

/// The webhook of a CRD.
#[derive(Clone)]
pub struct ConversionWebhook {
    /// The name of its CRD.
    pub crd: Arc<str>,
    pub client: ClientConfig,
    /// The first of those it reads that is known.
    pub review: Option<ReviewVersion>,
}

impl ConversionWebhook {
    /// The webhook of `crd`, if it has one.
    pub fn read(crd: &Value) -> Option<ConversionWebhook> {
        let conversion = &crd["spec"]["conversion"];
        if conversion["strategy"] != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        let mut client = ClientConfig::read(&webhook["clientConfig"]);
        if client.ca_bundle.trim_ascii().is_empty() {
            client.ca_bundle = Arc::default();
        }
        let known = |version: &Value| match version.as_str()? {
            "v1" => Some(ReviewVersion::V1),
            "v1beta1" => Some(ReviewVersion::V1beta1),
            _ => None,
        };
        Some(ConversionWebhook {
            crd: crd["metadata"]["name"].as_str().unwrap_or_default().into(),
            client,
            review: webhook["conversionReviewVersions"].as_array().into_iter().flatten().find_map(known),
        })
    }
}

pub(crate) const GROUP: &str = "apiextensions.k8s.io";

/// The bytes of a ConversionReview, one after the other.
///
/// - `to`: the version that is wanted, as `apiVersion` names it.
/// - `objects`: as JSON.
pub fn conversion_review(version: ReviewVersion, uid: &str, to: &str, objects: Vec<Bytes>) -> Vec<Bytes> {
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(b"{\"kind\":\"ConversionReview\",\"apiVersion\":\"");
    head.extend_from_slice(format!("{GROUP}/{}", version.name()).as_bytes());
    head.extend_from_slice(b"\",\"request\":{\"uid\":");
    write_string(uid, &mut head);
    head.extend_from_slice(b",\"desiredAPIVersion\":");
    write_string(to, &mut head);
    head.extend_from_slice(b",\"objects\":[");
    let mut parts = Vec::with_capacity(2 * objects.len() + 2);
    parts.push(Bytes::from(head));
    for (place, object) in objects.into_iter().enumerate() {
        if place > 0 {
            parts.push(Bytes::from_static(b","));
        }
        parts.push(object);
    }
    // What a Go struct writes of a response that is not there yet.
    let tail = b"]},\"response\":{\"uid\":\"\",\"convertedObjects\":null,\"result\":{\"metadata\":{}}}}\n";
    parts.push(Bytes::from_static(tail));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn crd(conversion: Value) -> Value {
        json!({ "metadata": { "name": "tabs.g.io" }, "spec": { "conversion": conversion } })
    }

    #[test]
    fn a_webhook_is_asked_in_the_first_version_that_is_known() {
        let of = |versions: Value| {
            let webhook =
                json!({ "clientConfig": { "url": "https://h/c" }, "conversionReviewVersions": versions });
            ConversionWebhook::read(&crd(json!({ "strategy": "Webhook", "webhook": webhook })))
        };
        let known = of(json!(["v2", "v1beta1", "v1"])).expect("a webhook");
        assert_eq!((known.review, &*known.crd), (Some(ReviewVersion::V1beta1), "tabs.g.io"));
        assert_eq!(known.client.target(), "https://h/c");
        assert_eq!(of(json!(["v2"])).expect("a webhook").review, None);
        assert!(ConversionWebhook::read(&crd(json!({ "strategy": "None" }))).is_none());
    }

    #[test]
    fn a_review_has_its_objects_in_their_order() {
        let objects = vec![Bytes::from_static(b"{\"a\":1}"), Bytes::from_static(b"{\"b\":2}")];
        let review = conversion_review(ReviewVersion::V1, "u", "g.io/v2", objects).concat();
        let read: Value = serde_json::from_slice(&review).expect("JSON");
        assert_eq!(read["apiVersion"], "apiextensions.k8s.io/v1");
        let want = json!({ "uid": "u", "desiredAPIVersion": "g.io/v2", "objects": [{ "a": 1 }, { "b": 2 }] });
        assert_eq!(read["request"], want);
    }
}
