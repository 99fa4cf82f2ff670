//! GET, LIST and WATCH of a target: options to plan, plan to body.

use std::sync::Arc;

use forebay_apimachinery::options::ListOptions;
use forebay_apimachinery::{Key, Status};
use forebay_object::Object;
use forebay_watchcache::{Interest, Reach, ReadError};

use crate::delete::Selection;
use crate::errors;
use crate::list::{self, ListBody};
use crate::plan::{self, Freshness};
use crate::present::Shown;
use crate::registry::Registry;
use crate::request::Target;
use crate::store::Store;
use crate::update::not_found;
use crate::watch::{self, WatchBody};

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
        let (plan, interest) = plan::list(target, &store, options)?;
        list::list(&target.served, &store, plan, interest, shown.into(), &self.clock).await
    }

    /// The object as it is cached, however old that is; nothing while the state is being read.
    pub fn cached(&self, target: &Target) -> Option<Arc<Object>> {
        let store = self.store_of(&target.served).ok()?;
        let key = store.key(target.namespace(), target.name());
        store.cacher.snapshot().ok()?.get(&key).cloned()
    }

    /// What a list may come to: objects and their bytes, from above. Nothing while the state is being read, or of options
    /// that will be refused.
    pub fn list_weight(&self, target: &Target, options: &ListOptions) -> (usize, usize) {
        let Ok(store) = self.store_of(&target.served) else { return (0, 0) };
        let Ok((plan, interest)) = plan::list(target, &store, options) else { return (0, 0) };
        let (objects, bytes) = weight(&store, &interest);
        match plan.limit {
            Some(page) if page < objects => (page, bytes / objects * page),
            _ => (objects, bytes),
        }
    }

    /// The same of the initial state of a watch, which knows no limit.
    pub fn state_weight(&self, target: &Target, options: &ListOptions) -> (usize, usize) {
        let Ok(store) = self.store_of(&target.served) else { return (0, 0) };
        let Ok(interest) = plan::interest(target, &store, options) else { return (0, 0) };
        weight(&store, &interest)
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
        let (draw, timeout_min) = (|bound| self.random.below(bound), self.config.min_request_timeout);
        let (plan, interest) = plan::watch(target, &store, options, timeout_min, draw, path_form)?;
        watch::watch(&target.served, &store, plan, interest, shown.into(), &self.frames, &self.clock).await
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

/// The objects within reach and their bytes, whether they are selected or not.
fn weight(store: &Store, interest: &Interest) -> (usize, usize) {
    let Ok(state) = store.cacher.snapshot() else { return (0, 0) };
    match &interest.reach {
        Reach::One(key) => (1, state.get(key).map_or(0, |object| object.body_len())),
        reach => (state.range(reach, None).len(), state.plain_bytes(reach, None)),
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::{CreateOptions, Query};

    use super::*;
    use crate::present::As;
    use crate::request::Body;
    use crate::tests::config_maps;

    #[tokio::test]
    async fn a_limit_makes_a_request_lighter_only_where_it_counts() {
        let (registry, target) = config_maps(Some("default")).await;
        for name in ["a", "b", "c", "d"] {
            let json = format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}}}}"#);
            let body = Body::Json(json.into());
            registry.create(&target, &body, &CreateOptions::default()).await.expect("creates");
        }
        // Then the cache has them.
        registry.list(&target, &ListOptions::default(), As::Object).await.expect("lists");
        let options = |query: &str| ListOptions::from_query(&Query::parse(query)).expect("options");
        let listed = |query: &str| registry.list_weight(&target, &options(query));
        let (objects, bytes) = listed("");
        assert!(objects == 4 && bytes > 4 * 50, "{objects} of {bytes} B");
        assert_eq!(listed("limit=1"), (1, bytes / 4));
        assert_eq!(listed("limit=9"), (4, bytes));
        assert_eq!(listed("limit=1&resourceVersion=0"), (4, bytes), "it is answered whole");
        assert_eq!(listed("resourceVersionMatch=Exact"), (0, 0), "it is refused");
        assert_eq!(registry.state_weight(&target, &options("watch=1&limit=1")), (4, bytes));
    }
}
