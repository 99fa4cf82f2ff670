//! Values that cannot be read, encrypted or broken: one of them is told of and passed over, so that it does
//! not keep everything else from what it needs.
//!
//! In: a key, a state. Out: whether what is there cannot be read. Never: takes it for nothing, changes it, or
//! removes it.

use forebay_apimachinery::{Key, Status};
use forebay_backend::Backend as _;
use forebay_catalog::errors;
use forebay_catalog::store::Store;
use forebay_watchcache::Snapshot;

use crate::claim::typed;

/// Whether there is something at `key` now that cannot be read as an object of a built-in kind.
///
/// # Errors
/// The store's failures.
pub async fn is_in(store: &Store, key: &Key) -> Result<bool, Status> {
    let found = store.backend.get(key).await.map_err(|error| errors::read(&error))?;
    Ok(found.is_some_and(|found| {
        let object = store.decode(key.clone(), found.revision, &found.value);
        object.and_then(|object| typed(&object)).is_err()
    }))
}

/// Whether what is at `key` cannot be read; only what `state` does not show is asked of the store.
///
/// # Errors
/// The store's failures.
pub async fn is_at(key: &Key, state: &Snapshot, store: &Store) -> Result<bool, Status> {
    match state.get(key) {
        Some(object) => Ok(typed(object).is_err()),
        None => Ok(state.may_hide(key) && is_in(store, key).await?),
    }
}

/// Names what `state` cannot show.
pub fn tell_all(state: &Snapshot, store: &Store) {
    let all = store.reach(None, None);
    state.unreadable(&all).for_each(tell);
}

/// Names what is at `key`.
pub fn tell(key: &Key) {
    tracing::error!(%key, "it cannot be read: it stays as it is, and so does what it may have claimed");
}

/// Whether all of `state` can be read. It reads all of it.
pub fn is_none(state: &Snapshot, store: &Store) -> bool {
    let all = store.reach(None, None);
    !state.may_have_unreadable(&all) && state.range(&all, None).all(|object| typed(object).is_ok())
}
