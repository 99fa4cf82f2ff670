//! `componentstatuses`: what there is beside the API, as the old kind has it. Here that is the store alone.
//!
//! In: what the health checks say of the store. Out: one object, made when it is asked for. Never: stored, or
//! watched.

use forebay_apimachinery::Status;
use forebay_apimachinery::options::Query;
use forebay_catalog::Target;
use forebay_documents::health::{CheckResult, Endpoint, Reasons};
use forebay_reads::{As, Presenter};
use serde_json::{Value, json};

use crate::answer::{self, HttpResponse};
use crate::handler::{Handler, Head};
use crate::negotiate::{self, Answered};
use crate::shown::shown;
use crate::status::{self, Failure};

/// The store, as kube-apiserver names its first one; and the health check that knows how it is.
const NAME: &str = "etcd-0";
const CHECK: &str = "etcd";

/// Answers a GET or a LIST.
///
/// # Errors
/// 404 for another name, 406.
pub fn answer(handler: &Handler, head: &Head, target: &Target) -> Result<HttpResponse, Failure> {
    let answered = if target.name.is_some() { Answered::Object } else { Answered::List };
    let form = negotiate::object(&head.headers, &head.query, &target.served, answered)?;
    if target.name.as_deref().is_some_and(|name| name != NAME) {
        return Err(Status::not_found("", "componentstatuses", target.name()).into());
    }
    let mut one = component(handler);
    let shown = shown(form, &head.query)?;
    let json = match (shown.what, answered) {
        (As::Object, Answered::Object) => one.to_string().into_bytes(),
        (As::Object, Answered::List) => {
            // Items go without their type.
            if let Some(members) = one.as_object_mut() {
                members.remove("kind");
                members.remove("apiVersion");
            }
            list("ComponentStatusList", "v1", one)
        }
        (As::PartialMetadata, Answered::List) => {
            let version = shown.meta.api_version();
            let partial = json!({
                "kind": "PartialObjectMetadata", "apiVersion": version, "metadata": one["metadata"],
            });
            list("PartialObjectMetadataList", version, partial)
        }
        // The Table of one object is that of a list of one.
        _ => {
            let presenter = Presenter::new(target.served.clone(), shown);
            presenter.written(one.to_string().as_bytes(), handler.timestamp())?
        }
    };
    let json = bytes::Bytes::from(json);
    head.answers(&json);
    answer::object(status::OK, json, form, head.takes_gzip())
}

fn component(handler: &Handler) -> Value {
    let asked = handler.documents.checks.ask(Endpoint::Healthz, Some(CHECK), &Query::default());
    let (status, message) = match asked {
        CheckResult::Well(text) => ("True", text),
        CheckResult::Ill(text) => ("False", text),
        CheckResult::Failed(why) => ("False", Reasons::Told.tell(&why)),
        CheckResult::Unknown => ("Unknown", String::new()),
    };
    json!({
        "kind": "ComponentStatus", "apiVersion": "v1", "metadata": { "name": NAME },
        "conditions": [{ "type": "Healthy", "status": status, "message": message }],
    })
}

fn list(kind: &str, version: &str, item: Value) -> Vec<u8> {
    json!({ "kind": kind, "apiVersion": version, "metadata": {}, "items": [item] }).to_string().into_bytes()
}
