//! What plugins may read, answered from the caches and the store.

use std::sync::Arc;

use forebay_admission::{Admitted, Lookup, ReadFrom};
use forebay_api::Eventual;
use forebay_apimachinery::Status;
use forebay_catalog::errors;
use forebay_object::Object;

use crate::context::Context;

impl Lookup for Context {
    fn cached(&self, (group, resource): ReadFrom, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let store = self.built_in(group, "v1", resource).ok()?;
        Some(store.cached(&store.key(namespace, name))?.object)
    }

    fn live<'a>(
        &'a self,
        (group, resource): ReadFrom,
        namespace: &'a str,
        name: &'a str,
    ) -> Eventual<'a, Result<Option<Arc<Object>>, Status>> {
        Eventual::later(async move {
            let store = self.built_in(group, "v1", resource)?;
            Ok(store.live(&store.key(namespace, name)).await?.map(|found| found.object))
        })
    }

    fn marked(&self, (group, resource): ReadFrom, mark: &str) -> Vec<Arc<Object>> {
        let Ok(store) = self.built_in(group, "v1", resource) else { return Vec::new() };
        let Ok(snapshot) = store.cacher.snapshot() else { return Vec::new() };
        let all = snapshot.range(&store.reach(None, None), None);
        all.filter(|object| holds(&object.body(), mark.as_bytes())).cloned().collect()
    }

    fn in_namespace(&self, (group, resource): ReadFrom, namespace: &str) -> Vec<Arc<Object>> {
        let Ok(store) = self.built_in(group, "v1", resource) else { return Vec::new() };
        let Ok(snapshot) = store.cacher.snapshot() else { return Vec::new() };
        snapshot.range(&store.reach(Some(namespace), None), None).cloned().collect()
    }

    fn fresh(&self, (group, resource): ReadFrom) -> Admitted<'_> {
        Eventual::later(async move {
            let deadline = self.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
            let store = self.built_in(group, "v1", resource)?;
            store.cacher.fresh(deadline).await.map(drop).map_err(|error| errors::cache(&error))
        })
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
