//! What plugins may read, answered from the caches and the store.

use std::sync::{Arc, OnceLock};

use forebay_admission::{AdmissionStep, Admitted, KindServed, Lookup, PluginTimes, ReadFrom};
use forebay_api::Eventual;
use forebay_apimachinery::resource::split_api_version;
use forebay_apimachinery::{GroupVersionKind, Reason, Status, Verb};
use forebay_catalog::{Served, Target, errors};
use forebay_object::Object;
use forebay_rt::Duration;
use forebay_webhooks::PluginStep;
use serde_json::json;

use crate::context::Context;
use crate::write::timed::operation;

/// See the module's doc. What is made here is made by a write of its own.
pub(crate) struct Looking<'c> {
    context: &'c Context,
    home: OnceLock<Arc<Object>>,
}

impl<'c> Looking<'c> {
    pub(crate) fn of(context: &'c Context) -> Looking<'c> {
        Looking { context, home: OnceLock::new() }
    }

    pub(crate) fn context(&self) -> &'c Context {
        self.context
    }

    /// The namespace that was found to take the new object, if that was looked at.
    pub(crate) fn into_home(self) -> Option<Arc<Object>> {
        self.home.into_inner()
    }
}

impl Lookup for Looking<'_> {
    fn cached(&self, (group, resource): ReadFrom, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let store = self.context.built_in(group, "v1", resource).ok()?;
        Some(store.cached(&store.key(namespace, name))?.object)
    }

    fn is_filled(&self, (group, resource): ReadFrom) -> bool {
        self.context.built_in(group, "v1", resource).is_ok_and(|store| store.cacher.snapshot().is_ok())
    }

    fn live<'a>(
        &'a self,
        (group, resource): ReadFrom,
        namespace: &'a str,
        name: &'a str,
    ) -> Eventual<'a, Result<Option<Arc<Object>>, Status>> {
        Eventual::later(async move {
            let store = self.context.built_in(group, "v1", resource)?;
            Ok(store.live(&store.key(namespace, name)).await?.map(|found| found.object))
        })
    }

    fn marked(&self, (group, resource): ReadFrom, mark: &str) -> Result<Vec<Arc<Object>>, Status> {
        let Ok(store) = self.context.built_in(group, "v1", resource) else { return Ok(Vec::new()) };
        let snapshot = store.cacher.snapshot().map_err(|error| errors::cache(&error))?;
        let all = snapshot.range(&store.reach(None, None), None);
        Ok(all.filter(|object| holds(&object.body(), mark.as_bytes())).cloned().collect())
    }

    fn in_namespace(&self, (group, resource): ReadFrom, name: &str) -> Result<Vec<Arc<Object>>, Status> {
        let Ok(store) = self.context.built_in(group, "v1", resource) else { return Ok(Vec::new()) };
        let snapshot = store.cacher.snapshot().map_err(|error| errors::cache(&error))?;
        Ok(snapshot.range(&store.reach(Some(name), None), None).cloned().collect())
    }

    fn goes_to(&self, namespace: &Arc<Object>) {
        self.home.get_or_init(|| namespace.clone());
    }

    fn fresh(&self, (group, resource): ReadFrom) -> Admitted<'_> {
        Eventual::later(async move {
            let deadline = self.context.clock.now() + forebay_watchcache::limits::FRESH_WAIT;
            let Ok(store) = self.context.built_in(group, "v1", resource) else { return Ok(()) };
            store.cacher.fresh(deadline).await.map(drop).map_err(|error| errors::cache(&error))
        })
    }

    fn kind(&self, api_version: &str, kind: &str) -> Option<KindServed> {
        let (group, version) = split_api_version(api_version);
        let wanted = GroupVersionKind::new(group, version, kind);
        let catalog = self.context.catalog();
        let served = catalog.iter().find(|served| served.gvk == wanted && served.store.is_some());
        let shown = |of: &Served| KindServed { resource: of.resource().into(), namespaced: of.namespaced };
        let own = served.map(|served| shown(served));
        own.or_else(|| self.context.admission.kind_elsewhere(api_version, kind))
    }

    fn make_namespace<'a>(&'a self, name: &'a str) -> Admitted<'a> {
        Eventual::later(async move {
            let served = self.context.catalog().resource("", "v1", "namespaces").cloned();
            let served = served.ok_or_else(|| Status::internal("namespaces are not served"))?;
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            match self
                .context
                .own_writes
                .verbs()?
                .create(Target::of_server(served, None, None), namespace)
                .await
            {
                Err(status) if status.reason == Reason::AlreadyExists => Ok(()),
                made => made,
            }
        })
    }
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

impl PluginTimes for Looking<'_> {
    fn took(
        &self,
        place: (usize, &'static str),
        (step, verb): (AdmissionStep, &Verb),
        is_refused: bool,
        took: Duration,
    ) {
        let step = match step {
            AdmissionStep::Mutate => PluginStep::Admit,
            AdmissionStep::Validate => PluginStep::Validate,
        };
        self.context.config.webhook_metrics.plugins.took(place, (step, operation(verb)), is_refused, took);
    }
}
