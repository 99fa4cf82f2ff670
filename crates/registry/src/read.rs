//! GET, LIST and WATCH of a target: options to plan, plan to body.

use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Object, Status};

use crate::delete::Selection;
use crate::errors;
use crate::list::{self, ListBody};
use crate::plan::{self, Freshness};
use crate::present::Shown;
use crate::registry::Registry;
use crate::request::Target;
use crate::watch::{self, WatchBody};

impl Registry {
    /// One object.
    ///
    /// # Errors
    /// 404, and 429 or 504 when the cache cannot answer.
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Arc<Object>, Status> {
        let store = self.store_of(&target.served)?;
        let key = store.key(target.namespace(), target.name());
        let deadline = self.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
        let cacher = &store.cacher;
        let snapshot = match plan::get(resource_version)? {
            Freshness::Any => cacher.snapshot(),
            Freshness::AtLeast(revision) => cacher.at_least(revision, deadline).await,
            Freshness::Latest | Freshness::Exact(_) => match cacher.fresh(deadline).await {
                Ok(snapshot) => Ok(snapshot),
                // Leases must renew: one key is read from the store, and nothing more.
                Err(_) => {
                    let found = store.live(&key).await?;
                    return found.map(|found| found.object).ok_or_else(|| crate::update::not_found(target));
                }
            },
        };
        let snapshot = snapshot.map_err(|error| errors::cache(&error))?;
        snapshot.get(&key).cloned().ok_or_else(|| crate::update::not_found(target))
    }

    /// A list, whose body is made as it is read.
    ///
    /// # Errors
    /// 400, 410, 422, 429 and 504 of reference §1.
    pub async fn list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<Shown>,
    ) -> Result<ListBody, Status> {
        let store = self.store_of(&target.served)?;
        let interest = plan::interest(target, &store, options)?;
        list::list(&target.served, &store, plan::list(options)?, interest, shown.into(), &self.clock).await
    }

    /// A watch, whose body is made as it is read.
    ///
    /// # Errors
    /// As [`Registry::list`]; a 410 comes inside the stream, as kube-apiserver has it.
    pub async fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<Shown>,
        path_form: bool,
    ) -> Result<WatchBody, Status> {
        let store = self.store_of(&target.served)?;
        let interest = plan::interest(target, &store, options)?;
        let draw = |bound| self.random.below(bound);
        let plan = plan::watch(options, self.config.min_request_timeout, draw, path_form)?;
        watch::watch(&target.served, &store, plan, interest, shown.into(), &self.clock).await
    }

    /// What a DELETE of a collection is about.
    ///
    /// # Errors
    /// 400 for a field that cannot be selected by.
    pub fn selection(&self, target: &Target, options: &ListOptions) -> Result<Selection, Status> {
        let store = self.store_of(&target.served)?;
        Ok(Selection { interest: plan::interest(target, &store, options)?, limit: plan::limit(options) })
    }
}
