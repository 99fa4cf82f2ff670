//! What a controller of this process sees of a resource: its objects, then what happens to them, without
//! frames.
//!
//! In: a target and selectors. Out: [`Notice`]s, in order, with the objects themselves; a consistent look at
//! a collection ([`Objects`]); word of every new catalog. Never: keeps an object, or shows one to a client.

use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{GroupResource, Revision, Status};
use forebay_catalog::errors;
use forebay_object::Object;
use forebay_reads::interest;
use forebay_rt::Instant;
use forebay_watchcache::{Cacher, Changed, Followed, Follower, Interest, Snapshot};
use tokio::sync::watch;

use crate::context::Context;
use forebay_catalog::Target;

/// What an informer tells.
#[derive(Clone, Debug)]
pub enum Notice {
    /// The object is there, or is there now as it is.
    Put(Arc<Object>),
    /// The object is gone; its last state.
    Deleted(Arc<Object>),
    /// Everything that was there at the beginning has been told. Once.
    Synced,
    /// The resource is no longer served. Nothing follows.
    Ended,
}

/// Follows a collection: what is there, then what happens to it. Where history is gone it goes on with what
/// differs, and nothing is told before a GET shows it: who looks at an object because of a notice sees at
/// least that state.
pub struct Informer {
    cacher: Cacher,
    follower: Follower,
    // Told next, in place of an object of the same name that is gone.
    instead: Option<Arc<Object>>,
}

/// The objects of a collection at one moment. Pins its snapshot until dropped.
pub struct Objects {
    snapshot: Arc<Snapshot>,
    interest: Interest,
    resource: GroupResource,
}

/// Word of every new catalog.
pub struct CatalogChanges(watch::Receiver<Option<Revision>>);

/// An informer of the collection that `target` names.
///
/// # Errors
/// 405 for what has no storage, 400 for a field that cannot be selected by.
pub(crate) fn informer(target: &Target, options: &ListOptions) -> Result<Informer, Status> {
    let store = target.served.stored()?;
    let interest = interest(target, &store, options)?;
    let cacher = store.cacher.clone();
    Ok(Informer { follower: cacher.follow(interest), cacher, instead: None })
}

/// The objects of a collection, with every commit that was acknowledged before the call.
///
/// # Errors
/// 429 and 504 when the cache cannot answer.
pub(crate) async fn objects(context: &Arc<Context>, target: &Target) -> Result<Objects, Status> {
    let store = target.served.stored()?;
    let interest = interest(target, &store, &ListOptions::default())?;
    let deadline = context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let snapshot = store.cacher.fresh(deadline).await.map_err(|error| errors::cache(&error))?;
    Ok(Objects { snapshot, interest, resource: target.served.gvr.group_resource() })
}

/// The revision of the store: no older than any commit acknowledged before the call.
///
/// # Errors
/// When the store cannot say.
pub(crate) async fn current_revision(context: &Arc<Context>) -> Result<Revision, Status> {
    context.backend.barrier().await.map_err(|error| errors::read(&error))
}

/// Tells of every catalog that is published from now on.
pub(crate) fn catalog_changes(context: &Arc<Context>) -> CatalogChanges {
    CatalogChanges(context.watch_catalog())
}

impl Objects {
    /// In key order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Object>> {
        let interest = &self.interest;
        self.snapshot.candidates(interest, None).filter(|object| interest.selects(object))
    }

    /// Whether these are all.
    ///
    /// # Errors
    /// There may be values among them that cannot be read, in kube-apiserver's words.
    pub fn are_all(&self) -> Result<(), Status> {
        match self.snapshot.may_have_unreadable(&self.interest.reach) {
            true => Err(errors::unreadable(&self.resource)),
            false => Ok(()),
        }
    }
}

impl CatalogChanges {
    /// Waits for the next one; for ever once the registry is gone. Cancel-safe.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Informer {
    /// The next notice if there is one now; never waits.
    pub fn try_next(&mut self) -> Option<Notice> {
        self.try_next_change().map(|(notice, _)| notice)
    }

    /// The same, with the object that is put as it was told of last, if it was.
    pub fn try_next_change(&mut self) -> Option<(Notice, Option<Arc<Object>>)> {
        if let Some(object) = self.instead.take() {
            return Some((Notice::Put(object), None));
        }
        loop {
            let notice = match self.follower.try_next()? {
                Followed::Change(Changed {
                    previous: Some(gone),
                    current: Some(object),
                    is_sum: true,
                    ..
                }) if uid(&gone) != uid(&object) => {
                    self.instead = Some(object);
                    Notice::Deleted(gone)
                }
                Followed::Change(Changed { previous, current: Some(object), .. }) => {
                    return Some((Notice::Put(object), previous));
                }
                Followed::Change(Changed { previous: Some(object), .. }) => Notice::Deleted(object),
                // Only a cache of another server lets go of what it holds.
                Followed::Change(_) | Followed::Relisted(_) | Followed::LetGo => continue,
                Followed::Synced(_) => Notice::Synced,
                Followed::Ended => Notice::Ended,
            };
            return Some((notice, None));
        }
    }

    /// Waits until [`Informer::try_next`] may have something; for ever after the end. Cancel-safe.
    pub async fn ready(&mut self) {
        if self.instead.is_none() {
            self.follower.ready().await;
        }
    }

    /// How often history was gone, and what differs was told instead: what came and went meanwhile was not
    /// told of.
    pub fn gaps(&self) -> u64 {
        self.follower.gaps()
    }

    /// Waits until everything up to `revision` can be had from [`Informer::try_next`] without waiting, at
    /// most until `deadline`. Whether it can; not while the cache is being filled. Cancel-safe.
    pub async fn reaches(&mut self, revision: Revision, deadline: Instant) -> bool {
        if self.cacher.is_stopped() {
            return true;
        }
        self.cacher.at_least(revision, deadline).await.is_ok()
    }
}

/// What tells an object from another one of the same name; nothing where that cannot be read.
pub(crate) fn uid(object: &Object) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Uid {
        uid: String,
    }
    serde_json::from_slice(&object.metadata()).ok().map(|Uid { uid }| uid)
}
