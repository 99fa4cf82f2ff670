//! GET of one object: from the cache when that is fresh enough, else from the store.

use std::sync::Arc;

use forebay_apimachinery::{Key, Lease, Status};
use forebay_catalog::errors;
use forebay_catalog::store::Store;
use forebay_object::Object;
use forebay_watchcache::ReadError;
use serde::de::DeserializeOwned;

use crate::context::Context;
use crate::plan::{self, Freshness};
use crate::request::{Target, not_found};

/// One object.
///
/// # Errors
/// 404; 500 for a resourceVersion that is no number; 504 for one that is not reached in time.
pub(crate) async fn get(
    context: &Arc<Context>,
    target: &Target,
    resource_version: &str,
) -> Result<Arc<Object>, Status> {
    let store = context.store_of(&target.served)?;
    let key = store.key(target.namespace(), target.name());
    let deadline = context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let (cacher, freshness) = (&store.cacher, plan::get(resource_version)?);
    let snapshot = match freshness {
        Freshness::Any => cacher.snapshot(),
        Freshness::AtLeast(revision) => cacher.at_least(revision, deadline).await,
        Freshness::Latest | Freshness::Exact(_) => cacher.fresh(deadline).await,
    };
    match (snapshot, freshness) {
        (Ok(snapshot), _) => match snapshot.get(&key) {
            Some(object) => Ok(object.clone()),
            // It says why.
            None if snapshot.may_hide(&key) => {
                get_from_store(context, target, &store, &key, Freshness::Latest).await
            }
            None => Err(not_found(target)),
        },
        // Leases must renew: one key is read from the store, and nothing more.
        (Err(_), Freshness::Latest) | (Err(ReadError::NotReady { .. }), _) => {
            get_from_store(context, target, &store, &key, freshness).await
        }
        (Err(error), _) => Err(errors::cache(&error)),
    }
}

/// One key, at quorum.
async fn get_from_store(
    context: &Arc<Context>,
    target: &Target,
    store: &Store,
    key: &Key,
    freshness: Freshness,
) -> Result<Arc<Object>, Status> {
    if let Freshness::AtLeast(asked) = freshness {
        let current = context.backend.barrier().await.map_err(|error| errors::read(&error))?;
        if current < asked {
            return Err(errors::too_large(asked, current));
        }
    }
    let found = store.live(key).await?;
    found.map(|found| found.object).ok_or_else(|| not_found(target))
}

/// The object as it is cached, however old that is; nothing while the state is being read.
pub(crate) fn cached(context: &Arc<Context>, target: &Target) -> Option<Arc<Object>> {
    let store = context.store_of(&target.served).ok()?;
    let key = store.key(target.namespace(), target.name());
    store.cacher.snapshot().ok()?.get(&key).cloned()
}

/// What `T` takes from an object of a core resource, as fresh as a GET of it.
///
/// # Errors
/// 404, and what keeps it from being read.
pub(crate) async fn read<T: DeserializeOwned>(
    context: &Arc<Context>,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<T, Status> {
    let served = context.catalog().resource("", "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    let namespace = served.namespaced.then(|| namespace.to_string());
    let target = Target {
        served,
        namespace,
        name: Some(name.to_string()),
        subresource: None,
        caller: None,
        lease: Lease::of_server(),
    };
    let object = get(context, &target, "").await?;
    let mut json = Vec::with_capacity(object.body_len() + 1);
    json.push(b'{');
    object.write_body(None, None, &mut json);
    serde_json::from_slice(&json).map_err(Status::internal)
}
