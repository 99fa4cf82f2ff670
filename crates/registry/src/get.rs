//! GET of one object: from the cache when that is fresh enough, else from the store.

use std::sync::Arc;

use forebay_apimachinery::{Key, Status};
use forebay_catalog::errors;
use forebay_catalog::store::Store;
use forebay_object::Object;
use forebay_reads::Freshness;
use forebay_watchcache::ReadError;

use crate::context::Context;
use forebay_catalog::Target;

/// One object.
///
/// # Errors
/// 404; 504 for a revision that is not reached in time.
pub(crate) async fn get(
    context: &Arc<Context>,
    target: &Target,
    freshness: Freshness,
) -> Result<Arc<Object>, Status> {
    let object = stored(context, target, freshness).await?;
    match &target.served.converted {
        Some(converted) => converted.shown(&object, target.in_its_name()).await,
        None => Ok(object),
    }
}

/// The object as it is stored.
async fn stored(
    context: &Arc<Context>,
    target: &Target,
    freshness: Freshness,
) -> Result<Arc<Object>, Status> {
    let store = target.served.stored()?;
    let key = store.key(target.namespace(), target.name());
    let deadline = context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let cacher = &store.cacher;
    let snapshot = match freshness {
        Freshness::Any => cacher.snapshot(),
        Freshness::AtLeast(revision) => cacher.at_least(revision, deadline).await,
        Freshness::Latest | Freshness::Exact(_) => cacher.fresh(deadline).await,
    };
    match (snapshot, freshness) {
        (Ok(snapshot), _) => match snapshot.get(&key).filter(|_| !snapshot.may_be_undecrypted(&key)) {
            Some(object) => Ok(object.clone()),
            // It says why.
            None if snapshot.may_hide(&key) => {
                get_from_store(context, target, &store, &key, Freshness::Latest).await
            }
            None => Err(target.not_found()),
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
    found.map(|found| found.object).ok_or_else(|| target.not_found())
}
