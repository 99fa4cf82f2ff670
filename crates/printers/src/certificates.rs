//! Certificate requests and trust bundles.
//!
//! In: v1 CertificateSigningRequests, v1beta1 of the others. Out: their cells. Never: a certificate is
//! decoded.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::duration;
use crate::labels::format_labels;
use crate::member::Member;
use crate::table::{AGE, NAME, Printer, cells, string};

pub(crate) static CERTIFICATE_SIGNING_REQUEST: Printer = Printer::new(
    &[
        NAME,
        AGE,
        string("SignerName", "Signer that is asked."),
        string("Requestor", "User who asks."),
        string("RequestedDuration", "How long it shall be good."),
        string("Condition", "Whether it is approved, denied, failed, issued."),
    ],
    signing_request_cells,
);

pub(crate) static CLUSTER_TRUST_BUNDLE: Printer =
    Printer::new(&[NAME, string("SignerName", "Signer the bundle belongs to.")], |bundle, _now| {
        cells![bundle.name(), bundle.get("spec").get("signerName").text_or("<none>")]
    });

pub(crate) static POD_CERTIFICATE_REQUEST: Printer = Printer::new(
    &[
        NAME,
        string("PodName", "Pod the certificate is for."),
        string("ServiceAccountName", "Service account of the pod."),
        string("NodeName", "Node of the pod."),
        string("SignerName", "Signer that is asked."),
        string("State", "Pending, Issued, Denied or Failed."),
        string("UnverifiedUserAnnotations", "What the author of the pod adds for the signer."),
    ],
    pod_certificate_request_cells,
);

fn signing_request_cells(request: Member<'_>, now: Timestamp) -> Vec<Value> {
    let spec = request.get("spec");
    let duration = spec.get("expirationSeconds").int_if_set();
    let duration = duration.map(|seconds| duration::human(SignedDuration::from_secs(seconds)));
    cells![
        request.name(),
        request.age(now),
        spec.get("signerName").text_or("<none>"),
        spec.get("username").text(),
        duration.unwrap_or_else(|| "<none>".to_owned()),
        signing_request_condition(request),
    ]
}

/// `Approved,Issued`; the status of a condition does not matter, its being there does.
fn signing_request_condition(request: Member<'_>) -> String {
    let has = |type_: &str| request.condition(type_).is_set();
    let is_issued = !request.get("status").get("certificate").text().is_empty();
    let decision = match () {
        () if has("Denied") => "Denied",
        () if has("Approved") => "Approved",
        () => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = if is_issued { ",Issued" } else { "" };
    format!("{decision}{failed}{issued}")
}

fn pod_certificate_request_cells(request: Member<'_>, _now: Timestamp) -> Vec<Value> {
    let spec = request.get("spec");
    let conditions =
        request.get("status").get("conditions").items().map(|condition| condition.get("type").text());
    let state = conditions.rev().find(|type_| ["Issued", "Denied", "Failed"].contains(type_));
    cells![
        request.name(),
        spec.get("podName").text(),
        spec.get("serviceAccountName").text(),
        spec.get("nodeName").text(),
        spec.get("signerName").text(),
        state.unwrap_or("Pending"),
        format_labels(spec.get("unverifiedUserAnnotations").value()),
    ]
}
