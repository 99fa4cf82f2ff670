//! The ConfigMaps of kube-system in which kube-apiserver tells programs beside it what they have to know.
//!
//! - `extension-apiserver-authentication`: whose client certificates are trusted (kube-controller-manager,
//!   kube-scheduler, extension servers);
//! - `kube-apiserver-legacy-service-account-token-tracking`: since when the use of tokens that are kept in
//!   Secrets is noted (kube-controller-manager).
//!
//! In: what a member has to be, given what it is. Out: the ConfigMap, made or changed where it has to be.
//! Never: other members touched; other servers and people may keep theirs there. A map that cannot be read is
//! named, and left as it is.
//!
//! Source: kube-apiserver v1.36.3 `clusterauthenticationtrust`, `legacytokentracking`.

use std::sync::Arc;

use forebay_apimachinery::options::{CreateOptions, PatchOptions};
use forebay_apimachinery::{Reason, Revision, Status};
use forebay_reads::Freshness;
use forebay_service_claims::unreadable;
use serde_json::{Value, json};

use crate::context::Context;
use crate::create;
use crate::get;
use crate::limits::PUBLISH_ATTEMPTS_MAX;
use crate::update;
use forebay_api::{Body, PatchKind};
use forebay_catalog::Target;

const NAMESPACE: &str = "kube-system";

/// What tells who asks.
const AUTHENTICATION: &str = "extension-apiserver-authentication";
const TOKENS_TRACKED: &str = "kube-apiserver-legacy-service-account-token-tracking";
const SINCE: &str = "since";

/// Publishes what tells who asks.
///
/// - `wanted`: from the published members to those that have to be.
///
/// # Errors
/// When the store cannot be written or read.
pub(crate) async fn publish_authentication(
    context: &Arc<Context>,
    wanted: impl Fn(&dyn Fn(&str) -> String) -> Members,
) -> Result<(), Status> {
    publish(context, AUTHENTICATION, wanted).await
}

/// Publishes the day since which tokens are tracked: the first day on which that was asked for.
///
/// # Errors
/// When the store cannot be written or read.
pub(crate) async fn publish_tokens_tracked(context: &Arc<Context>) -> Result<(), Status> {
    let today = context.timestamp().strftime("%Y-%m-%d").to_string();
    let first = |published: &dyn Fn(&str) -> String| {
        let since = published(SINCE);
        let is_day = since.parse::<jiff::civil::Date>().is_ok();
        vec![(SINCE, if is_day { since } else { today.clone() })]
    };
    publish(context, TOKENS_TRACKED, first).await
}

/// Members of a ConfigMap.
type Members = Vec<(&'static str, String)>;

/// Another server may do the same at the same time: who comes second looks again.
async fn publish(
    context: &Arc<Context>,
    map: &'static str,
    wanted: impl Fn(&dyn Fn(&str) -> String) -> Members,
) -> Result<(), Status> {
    let mut attempt = 1;
    loop {
        match try_publish(context, map, &wanted).await {
            Err(status)
                if attempt < PUBLISH_ATTEMPTS_MAX
                    && matches!(status.reason, Reason::AlreadyExists | Reason::Conflict) =>
            {
                attempt += 1;
            }
            done => return done,
        }
    }
}

async fn try_publish(
    context: &Arc<Context>,
    map: &'static str,
    wanted: &impl Fn(&dyn Fn(&str) -> String) -> Members,
) -> Result<(), Status> {
    let served = context.catalog().resource("", "v1", "configmaps").cloned();
    let served = served.ok_or_else(|| Status::internal("configmaps are not served"))?;
    let (namespace, name) = (Some(NAMESPACE.to_owned()), Some(map.to_owned()));
    let target = Target::of_server(served, namespace, name);
    let published = match published(context, &target).await {
        Ok(published) => published,
        Err(failure) => return pass_over(&target, failure).await,
    };
    let member = |name: &str| {
        let data = published.as_ref().map(|(data, _)| &data[name]);
        data.and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let wanted: Members = wanted(&member);
    let data = Value::Object(wanted.iter().map(|(name, text)| ((*name).into(), json!(text))).collect());
    match published {
        Some((old, _)) if wanted.iter().all(|(name, text)| old[*name] == **text) => Ok(()),
        Some((_, revision)) => {
            let metadata = json!({ "resourceVersion": revision.to_string() });
            let patch = json!({ "metadata": metadata, "data": data }).to_string();
            let options = PatchOptions::default();
            update::patch(context, &target, PatchKind::Merge, patch.as_bytes(), &options).await.map(drop)
        }
        None => {
            let object = json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": { "name": map, "namespace": NAMESPACE },
                "data": data,
            });
            let target = Target { name: None, ..target };
            create::create(context, &target, &Body::Value(object), &CreateOptions::default()).await.map(drop)
        }
    }
}

/// The members as they are, and the revision of their map; `None` where there is no map.
async fn published(context: &Arc<Context>, target: &Target) -> Result<Option<(Value, Revision)>, Status> {
    match get::get(context, target, Freshness::Latest).await {
        Ok(object) => {
            let mut value = target.served.to_value(&object)?;
            Ok(Some((value["data"].take(), object.revision())))
        }
        Err(status) if status.reason == Reason::NotFound => Ok(None),
        Err(status) => Err(status),
    }
}

/// Goes on without the map `target` if nobody can read it: that is no reason to serve nothing. Once it is
/// deleted, the next start makes it anew.
///
/// # Errors
/// `failure`, by which it could not be read, if that was not the map's fault.
async fn pass_over(target: &Target, failure: Status) -> Result<(), Status> {
    let store = target.served.stored()?;
    let key = store.key(target.namespace(), target.name());
    if !unreadable::is_in(&store, &key).await? {
        return Err(failure);
    }
    tracing::error!(%key, why = failure.message, "it cannot be read: nothing is published in it");
    Ok(())
}
