//! GET, LIST and WATCH of a target: options to plan, plan to body.

use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Key, Status};
use forebay_object::Object;
use forebay_watchcache::ReadError;

use crate::delete::Selection;
use crate::errors;
use crate::frames::{EventForm, status_without_code};
use crate::list::ListBody;
use crate::plan::{self, Freshness};
use crate::present::Shown;
use crate::registry::Registry;
use crate::request::Target;
use crate::store::Store;
use crate::update::not_found;
use crate::watch::WatchBody;

impl Registry {
    /// One object.
    ///
    /// # Errors
    /// 404; 500 for a resourceVersion that is no number; 504 for one that is not reached in time.
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Arc<Object>, Status> {
        let store = self.store_of(&target.served)?;
        let key = store.key(target.namespace(), target.name());
        let deadline = self.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
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
                    self.get_from_store(target, &store, &key, Freshness::Latest).await
                }
                None => Err(not_found(target)),
            },
            // Leases must renew: one key is read from the store, and nothing more.
            (Err(_), Freshness::Latest) | (Err(ReadError::NotReady { .. }), _) => {
                self.get_from_store(target, &store, &key, freshness).await
            }
            (Err(error), _) => Err(errors::cache(&error)),
        }
    }

    /// One key, at quorum.
    async fn get_from_store(
        &self,
        target: &Target,
        store: &Store,
        key: &Key,
        freshness: Freshness,
    ) -> Result<Arc<Object>, Status> {
        if let Freshness::AtLeast(asked) = freshness {
            let current = self.backend.barrier().await.map_err(|error| errors::read(&error))?;
            if current < asked {
                return Err(errors::too_large(asked, current));
            }
        }
        let found = store.live(key).await?;
        found.map(|found| found.object).ok_or_else(|| not_found(target))
    }

    /// A list, whose body is made as it is read, for somebody in this process, who holds what they like.
    ///
    /// # Errors
    /// 400, 410, 422, 429 and 504 of reference §1.
    pub async fn list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<Shown>,
    ) -> Result<ListBody, Status> {
        Ok(self.plan_list(target, options, shown)?.run(()).await?.body)
    }

    /// The object as it is cached, however old that is; nothing while the state is being read.
    pub fn cached(&self, target: &Target) -> Option<Arc<Object>> {
        let store = self.store_of(&target.served).ok()?;
        let key = store.key(target.namespace(), target.name());
        store.cacher.snapshot().ok()?.get(&key).cloned()
    }

    /// The same of a watch.
    ///
    /// # Errors
    /// As [`Registry::list`]; a 410 comes inside the stream, as kube-apiserver has it.
    pub async fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<EventForm>,
        path_form: bool,
    ) -> Result<WatchBody, Status> {
        Ok(self.plan_watch(target, options, shown, path_form)?.run((), status_without_code).await?.body)
    }

    /// What a DELETE of a collection is about.
    ///
    /// # Errors
    /// 400 and 422 of reference §1.1.
    pub fn selection(&self, target: &Target, options: &ListOptions) -> Result<Selection, Status> {
        let store = self.store_of(&target.served)?;
        let (plan, interest) = plan::list(target, &store, options)?;
        Ok(Selection { interest, plan })
    }
}
