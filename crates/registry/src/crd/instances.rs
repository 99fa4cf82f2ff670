//! The objects of a CRD that is on its way out.
//!
//! In: where they are. Out: each of them gone, or on its way out while finalizers hold it; what the CRD is to
//! say where that failed. Never: asks plugins, policies or webhooks, which may have gone before their CRD;
//! stores less of an object than there was: what only a webhook converts stays in the version that it is
//! stored in.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/controller/finalizer/crd_finalizer.go`.

use std::sync::Arc;

use bytes::Bytes;
use forebay_api::told_together;
use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{GroupResource, Key, Reason, Revision, Status, json};
use forebay_catalog::store::{Current, Decision, Mode, Store};
use forebay_catalog::{Served, custom_served, errors};
use forebay_crd::check::has_webhook_conversion;
use forebay_crd::conditions::Termination;
use forebay_object::Object;
use forebay_watchcache::Snapshot;
use serde_json::Value;

use super::READY_WAIT;
use crate::context::Context;
use crate::limits::{COLLECTION_PAGE, INSTANCES_PERIOD, INSTANCES_WAIT, UNDELETED_TOLD_MAX};
use crate::write::deletion::{self, Then};

/// What upstream says when objects were waited for in vain.
const TOO_LATE: &str = "context deadline exceeded";

/// See the module's doc.
pub(super) struct Instances {
    pub(super) store: Arc<Store>,
    /// The paths that their layout keeps, sorted.
    pub(super) fields: Vec<String>,
}

/// How they are deleted, by what their CRD is now.
struct Deleting<'a> {
    context: &'a Context,
    store: &'a Store,
    /// In the version that is stored, whether or not that is served.
    served: Arc<Served>,
    /// Whether only a webhook can say what those of other versions are in that one.
    by_webhook: bool,
}

impl Instances {
    /// Deletes all of them, or begins to.
    ///
    /// - `crd`: as it is now, at `revision`: it may change while it waits.
    ///
    /// # Errors
    /// What the CRD is to say.
    pub(super) async fn delete(
        &self,
        context: &Context,
        mut crd: Value,
        revision: Revision,
    ) -> Result<(), Termination> {
        let by_webhook = has_webhook_conversion(&crd);
        for version in crd["spec"]["versions"].as_array_mut().into_iter().flatten() {
            version["served"] = version["storage"].clone();
        }
        let served = custom_served(&crd, (&self.store, &self.fields), revision, None).pop();
        let served = served.ok_or_else(|| Termination::NotListed("no version is stored".to_owned()))?;
        let deleting = Deleting { context, store: &self.store, served, by_webhook };
        let snapshot = self.snapshot(context).await.map_err(Termination::NotListed)?;
        let failed = deleting.delete_each(&snapshot).await;
        if !failed.is_empty() {
            return Err(Termination::Failed(told_together(&failed)));
        }
        self.all_are_read(&snapshot).map_err(Termination::NotListed)
    }

    /// Waits until none is left, for as long as upstream does before it says that some are.
    ///
    /// # Errors
    /// What the CRD is to say.
    pub(super) async fn wait_until_gone(&self, context: &Context) -> Result<(), Termination> {
        let deadline = context.clock.now() + INSTANCES_WAIT;
        loop {
            let snapshot = self.snapshot(context).await.map_err(Termination::NotConfirmed)?;
            self.all_are_read(&snapshot).map_err(Termination::NotConfirmed)?;
            if snapshot.is_empty() {
                return Ok(());
            }
            if context.clock.now() >= deadline {
                return Err(Termination::NotConfirmed(TOO_LATE.to_owned()));
            }
            context.clock.sleep(INSTANCES_PERIOD).await;
        }
    }

    /// What there is now; or why that is not known.
    async fn snapshot(&self, context: &Context) -> Result<Arc<Snapshot>, String> {
        let deadline = context.clock.now() + READY_WAIT;
        let read = self.store.cacher.fresh(deadline).await;
        read.map_err(|error| errors::cache(&error).message)
    }

    /// What cannot be read is not nothing: whoever knows better deletes it explicitly.
    fn all_are_read(&self, snapshot: &Snapshot) -> Result<(), String> {
        match snapshot.may_have_unreadable(&self.store.reach(None, None)) {
            true => {
                let Store { group, resource, .. } = &*self.store;
                let resource = GroupResource { group: group.clone(), resource: resource.clone() };
                Err(errors::unreadable(&resource).message)
            }
            false => Ok(()),
        }
    }
}

impl Deleting<'_> {
    /// Why some were not deleted. A namespace is left at the first that was not.
    async fn delete_each(&self, snapshot: &Snapshot) -> Vec<String> {
        let reach = self.store.reach(None, None);
        let mut after: Option<Key> = None;
        let mut failed: Option<String> = None;
        let mut told = Vec::new();
        loop {
            let page: Vec<_> =
                snapshot.range(&reach, after.as_ref()).take(COLLECTION_PAGE).cloned().collect();
            let Some(last) = page.last() else { return told };
            after = Some(last.key().clone());
            for object in &page {
                if failed.as_deref() == Some(object.namespace()) {
                    continue;
                }
                if let Err(status) = self.delete_one(object).await {
                    failed = Some(object.namespace().to_owned());
                    if told.len() < UNDELETED_TOLD_MAX {
                        told.push(status.message);
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Deletes one, or says in its metadata that it is on its way out.
    async fn delete_one(&self, object: &Object) -> Result<(), Status> {
        let (now, options) = (self.context.now_rfc3339(), DeleteOptions::default());
        let judge = |current: Option<&Current>| {
            let Some(current) = current else { return Err(Status::new(Reason::NotFound, "gone")) };
            let is_kept = self.is_kept_as_stored(&current.object);
            let mut value = match is_kept {
                true => as_stored(&current.object)?,
                false => self.served.to_value(&current.object)?,
            };
            match deletion::begin(&self.served, &mut value, &options, &now) {
                Then::Wait | Then::RemoveAfter if is_kept => {
                    Ok(Decision::Put { value: bytes_of(&value), ttl: None })
                }
                then => then.decision(&self.served, value, None),
            }
        };
        match self.store.guarded_update(object.key(), Mode::Commit, judge).await {
            Err(status) if status.reason != Reason::NotFound => Err(status),
            _ => Ok(()),
        }
    }

    /// Whether nobody but the webhook can say what the object is in the version that is stored now.
    fn is_kept_as_stored(&self, object: &Object) -> bool {
        self.by_webhook && object.stored_version() != &*self.served.gvr.version
    }
}

/// The object in the version that it is stored in, with all that is stored of it.
fn as_stored(object: &Object) -> Result<Value, Status> {
    let mut value: Value = json::read(&object.body()).map_err(Status::internal)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    Ok(value)
}

fn bytes_of(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    json::write_sorted(value, &mut out);
    Bytes::from(out)
}
