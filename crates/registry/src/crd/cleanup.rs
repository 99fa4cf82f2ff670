//! The end of a CRD: its objects, then itself.
//!
//! In: a CRD that is being deleted. Out: neither it nor its objects, or it as it is when it is not in that
//! deletion any more.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::{Reason, Status};
use forebay_catalog::Served;
use forebay_catalog::crd::text;
use forebay_catalog::errors;
use forebay_catalog::store::{Decision, Mode, Store};
use forebay_crd::conditions;
use serde_json::Value;

use super::READY_WAIT;
use crate::context::Context;
use crate::delete;
use crate::owners;
use forebay_catalog::Target;
use forebay_strategy::CLEANUP_FINALIZER;

/// How often the deletion of a CRD's objects is tried again while finalizers hold some of them.
const CLEANUP_PERIOD: Duration = Duration::from_secs(1);

/// One deletion of one CRD. A store that was put back to an earlier state may have the same CRD in none, or
/// in another.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Deletion {
    uid: String,
    // Its `deletionTimestamp`.
    began: String,
}

impl Deletion {
    /// The one that `crd` is in, if it is in one.
    pub(super) fn of(crd: &Value) -> Option<Deletion> {
        let began = crd["metadata"]["deletionTimestamp"].as_str()?.to_string();
        Some(Deletion { uid: text(crd, "/metadata/uid").to_string(), began })
    }
}

/// The end of one CRD: its objects first, then itself. Given up once the CRD is gone, or not in that deletion
/// any more.
pub(super) struct Cleanup {
    pub(super) context: Arc<Context>,
    pub(super) crds: Arc<Store>,
    pub(super) served: Arc<Served>,
    pub(super) name: String,
    pub(super) deletion: Deletion,
    pub(super) objects: Option<(Arc<Store>, Arc<Served>)>,
}

impl Cleanup {
    pub(super) async fn run(self) {
        if let Err(status) = self.say(conditions::Termination::InProgress).await {
            tracing::warn!(crd = self.name, message = status.message, "its condition was not written");
        }
        if !self.delete_all().await {
            return;
        }
        while let Err(status) = self.release().await {
            tracing::warn!(
                crd = self.name,
                message = status.message,
                "its deletion was not finished, trying again"
            );
            self.context.clock.sleep(CLEANUP_PERIOD).await;
        }
    }

    /// Deletes the objects until none is left; false when it is given up.
    async fn delete_all(&self) -> bool {
        loop {
            match self.is_due().await {
                Ok(true) => {
                    if self.delete_objects().await {
                        return true;
                    }
                }
                Ok(false) => return false,
                Err(status) => {
                    tracing::warn!(
                        crd = self.name,
                        message = status.message,
                        "it cannot be read, trying again"
                    )
                }
            }
            self.context.clock.sleep(CLEANUP_PERIOD).await;
        }
    }

    /// Whether the CRD is in the store, and in that deletion.
    async fn is_due(&self) -> Result<bool, Status> {
        let key = self.crds.key("", &self.name);
        let Some(current) = self.crds.live(&key).await? else { return Ok(false) };
        Ok(self.is_of(&self.served.to_value(&current.object)?))
    }

    fn is_of(&self, crd: &Value) -> bool {
        Deletion::of(crd).as_ref() == Some(&self.deletion)
    }

    /// Says how far it is.
    async fn say(&self, termination: conditions::Termination) -> Result<(), Status> {
        let now = self.context.now_rfc3339();
        self.change(|mut value| {
            conditions::set_terminating(&mut value, &termination, &now);
            Some(value)
        })
        .await
    }

    /// Whether nothing is left.
    async fn delete_objects(&self) -> bool {
        let Some((store, served)) = &self.objects else { return true };
        let target = Target::of_server(served.clone(), None, None);
        if let Err(status) = delete::delete_everything(&self.context, &target).await {
            tracing::warn!(crd = self.name, message = status.message, "its objects were not all deleted");
            return false;
        }
        let deadline = self.context.clock.now() + READY_WAIT;
        let Ok(snapshot) = store.cacher.fresh(deadline).await else { return false };
        if snapshot.may_have_unreadable(&store.reach(None, None)) {
            // What cannot be read is not nothing: whoever knows better deletes it explicitly.
            let why = errors::unreadable(&served.gvr.group_resource()).message;
            let done = self.say(conditions::Termination::NotListed(why)).await;
            if let Err(status) = done {
                tracing::warn!(crd = self.name, message = status.message, "its condition was not written");
            }
            return false;
        }
        snapshot.is_empty()
    }

    /// Takes the finalizer away, and with it the CRD when it was the last one.
    async fn release(&self) -> Result<(), Status> {
        self.change(|mut value| {
            let finalizers = value["metadata"]["finalizers"].as_array_mut()?;
            finalizers.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
            (!finalizers.is_empty()).then_some(value)
        })
        .await
    }

    /// Stores what `make` makes of the CRD, or removes it when that is nothing. One that is gone, another of
    /// the same name, or one that is not in that deletion any more is left alone.
    async fn change(&self, make: impl Fn(Value) -> Option<Value>) -> Result<(), Status> {
        let key = self.crds.key("", &self.name);
        let done = self
            .crds
            .guarded_update(&key, Mode::Commit, |current| {
                let Some(current) = current else { return Err(Status::new(Reason::NotFound, "gone")) };
                let live = self.served.to_value(&current.object)?;
                if !self.is_of(&live) {
                    return Ok(Decision::Keep);
                }
                let Some(mut value) = make(live.clone()) else { return Ok(Decision::Delete) };
                owners::by_server(
                    &self.context,
                    &self.served,
                    (owners::SERVER, "status"),
                    Some(&live),
                    &mut value,
                )?;
                Ok(Decision::Put { value: self.served.encode(value)?, ttl: None })
            })
            .await;
        match done {
            Err(status) if status.reason != Reason::NotFound => Err(status),
            _ => Ok(()),
        }
    }
}
