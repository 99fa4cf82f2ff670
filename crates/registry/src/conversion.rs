//! Asks the webhook of a CRD for its objects in another version.
//!
//! In: objects in one version. Out: the same in another, or what is wrong, in upstream's words. Never: waits
//! longer than [`CONVERSION_WAIT`]; keeps an object.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{Lease, Reason, Status};
use forebay_catalog::crd::text;
use forebay_catalog::{Converting, Converts, WebhookConversion, errors};
use forebay_webhooks::conversion::{AskedToConvert, ConversionWebhook, conversion_review, converted};
use forebay_webhooks::{CROWDED, Calling, Destination, too_late};
use serde_json::Value;

use crate::context::Context;
use crate::limits::CONVERSION_WAIT;
use crate::write;

/// What the versions of `crd` are converted with, if that takes a webhook.
pub(crate) fn of(context: &Arc<Context>, crd: &Value) -> Option<WebhookConversion> {
    let webhook = ConversionWebhook::read(crd)?;
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    let storage = versions.filter(|version| version["storage"] == true).map(|version| text(version, "/name"));
    let stored = crd["status"]["storedVersions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    Some(WebhookConversion {
        is_mixed: !stored.eq(storage),
        converts: Arc::new(Webhook { context: Arc::downgrade(context), webhook }),
        opener: context.opener.clone(),
    })
}

struct Webhook {
    // It is part of what is served, which the context has.
    context: Weak<Context>,
    webhook: ConversionWebhook,
}

impl Converts for Webhook {
    fn convert<'a>(&'a self, objects: Vec<Value>, to: &'a str, lease: &'a Lease) -> Converting<'a> {
        Box::pin(async move {
            let context = self.context.upgrade().ok_or_else(errors::shutting_down)?;
            self.ask(&context, objects, to, lease).await
        })
    }
}

impl Webhook {
    async fn ask(
        &self,
        context: &Context,
        objects: Vec<Value>,
        to: &str,
        lease: &Lease,
    ) -> Result<Vec<Value>, Status> {
        let Some(first) = objects.first() else { return Ok(objects) };
        let from = text(first, "/apiVersion").to_owned();
        let Some(version) = self.webhook.review else {
            return Err(Status::new(Reason::Unknown, "no supported conversion review versions"));
        };
        if self.webhook.client.destination == Destination::Nowhere {
            return Err(Status::internal("webhook configuration must have either service or URL"));
        }
        let texts: Vec<Bytes> = objects.iter().map(|object| Bytes::from(object.to_string())).collect();
        let holds: usize = texts.iter().map(Bytes::len).sum();
        // Once more as they are sent.
        lease.charge(2 * holds)?;
        let Some(_waits) = lease.waits_for(&self.webhook.crd) else {
            return Err(crowded(&self.webhook.crd, context));
        };
        let (uid, url) = (context.random.uuid(), self.webhook.client.target());
        let calling = Calling {
            client: self.webhook.client.clone(),
            sort: None,
            url: url.clone(),
            address: None,
            has_others: false,
            parts: conversion_review(version, &uid, to, texts),
            lease: lease.clone(),
            holds,
            begun: Arc::default(),
        };
        let begun = calling.begun.clone();
        let began = context.clock.now();
        let answered = tokio::select! {
            answered = write::reach(context, calling) => answered,
            () = context.clock.sleep(CONVERSION_WAIT) => Err(too_late(&begun)),
        };
        let asked = AskedToConvert { version, uid: &uid, to, objects: &objects };
        let made = converted(&asked, (&url, answered), lease, || context.busy_retry_seconds());
        let of_versions = (split_api_version(&from).1, split_api_version(to).1);
        let (took, failure) = (context.clock.now() - began, made.as_ref().err().map(|failure| failure.sort));
        let metrics = &context.config.webhook_metrics.conversions;
        metrics.called(&self.webhook.crd, of_versions, took, failure);
        made.map_err(|failure| failure.status)
    }
}

/// There is no room for one more that waits for the webhook of `crd`.
fn crowded(crd: &str, context: &Context) -> Status {
    let why = format!("conversion webhook for {crd} failed: {CROWDED}");
    Status::new(Reason::TooManyRequests, why).retry_after(context.busy_retry_seconds())
}
