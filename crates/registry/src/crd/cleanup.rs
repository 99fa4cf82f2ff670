//! The end of a CRD: its objects, then itself.
//!
//! In: a CRD that is being deleted. Out: neither it nor its objects, or it as it is when it is not in that
//! deletion any more; meanwhile what it waits for, in its `Terminating` condition. Never: a built-in object
//! deleted with it.

use std::sync::Arc;

use forebay_apimachinery::{Reason, Revision, Status};
use forebay_catalog::Served;
use forebay_catalog::crd::text;
use forebay_catalog::store::{Decision, Mode, Store};
use forebay_crd::conditions::{self, Termination};
use serde_json::Value;

use super::instances::Instances;
use crate::context::Context;
use crate::limits::INSTANCES_PERIOD;
use crate::owners;
use forebay_strategy::CLEANUP_FINALIZER;

/// One deletion of one CRD. A store that was put back to an earlier state may have the same CRD in none, or
/// in another.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Deletion {
    uid: String,
    // Its `deletionTimestamp`.
    began: String,
}

impl Deletion {
    /// The one that `crd` is in, if it is in one and not through: whoever takes the finalizer away has its
    /// objects stay.
    pub(super) fn of(crd: &Value) -> Option<Deletion> {
        let began = crd["metadata"]["deletionTimestamp"].as_str()?.to_string();
        // Once: for the whole definition.
        let is_held = crd["metadata"]["finalizers"].as_array()?.iter().any(|held| held == CLEANUP_FINALIZER);
        is_held.then(|| Deletion { uid: text(crd, "/metadata/uid").to_string(), began })
    }
}

/// What goes with a CRD.
pub(super) enum Going {
    /// Its objects.
    Instances(Instances),
    /// It never served any.
    Nothing,
    /// Built-in objects are where its own would be.
    BuiltIn,
}

/// The end of one CRD: its objects first, then itself. Given up once the CRD is gone, or not in that deletion
/// any more.
pub(super) struct Cleanup {
    pub(super) context: Arc<Context>,
    pub(super) crds: Arc<Store>,
    pub(super) served: Arc<Served>,
    pub(super) name: String,
    pub(super) deletion: Deletion,
    pub(super) going: Going,
}

impl Cleanup {
    pub(super) async fn run(self) {
        self.say(&Termination::InProgress).await;
        let ended = match &self.going {
            Going::BuiltIn => Termination::BuiltIn,
            Going::Nothing => Termination::NeverEstablished,
            Going::Instances(instances) => {
                if !self.delete_all(instances).await {
                    return;
                }
                Termination::Completed
            }
        };
        while let Err(status) = self.release(&ended).await {
            tracing::warn!(
                crd = self.name,
                message = status.message,
                "its deletion was not finished, trying again"
            );
            self.context.clock.sleep(INSTANCES_PERIOD).await;
        }
    }

    /// Deletes the objects until none is left; false when it is given up.
    async fn delete_all(&self, instances: &Instances) -> bool {
        // Once it has said that some are left, that stays true for as long as nothing else is.
        let mut are_left = false;
        loop {
            match self.due().await {
                Ok(Some((crd, revision))) => {
                    let mut deleted = instances.delete(&self.context, crd, revision).await;
                    if deleted.is_ok() {
                        if !are_left {
                            self.say(&Termination::InProgress).await;
                        }
                        deleted = instances.wait_until_gone(&self.context).await;
                    }
                    let Err(why) = deleted else { return true };
                    are_left = matches!(why, Termination::NotConfirmed(_));
                    self.say(&why).await;
                }
                Ok(None) => return false,
                Err(status) => {
                    tracing::warn!(
                        crd = self.name,
                        message = status.message,
                        "it cannot be read, trying again"
                    )
                }
            }
            self.context.clock.sleep(INSTANCES_PERIOD).await;
        }
    }

    /// The CRD as it is in the store, if it is in that deletion.
    async fn due(&self) -> Result<Option<(Value, Revision)>, Status> {
        let key = self.crds.key("", &self.name);
        let Some(current) = self.crds.live(&key).await? else { return Ok(None) };
        let crd = self.served.to_value(&current.object)?;
        Ok(self.is_of(&crd).then(|| (crd, current.object.revision())))
    }

    fn is_of(&self, crd: &Value) -> bool {
        Deletion::of(crd).as_ref() == Some(&self.deletion)
    }

    /// Says how far it is, unless it says so already.
    async fn say(&self, termination: &Termination) {
        let now = self.context.now_rfc3339();
        let said = self.change(|mut value| {
            conditions::set_terminating(&mut value, termination, &now);
            Some(value)
        });
        if let Err(status) = said.await {
            tracing::warn!(crd = self.name, message = status.message, "its condition was not written");
        }
    }

    /// Takes the finalizer away, and with it the CRD when it was the last one; else says how it ended.
    async fn release(&self, ended: &Termination) -> Result<(), Status> {
        let now = self.context.now_rfc3339();
        self.change(|mut value| {
            let finalizers = value["metadata"]["finalizers"].as_array_mut()?;
            finalizers.retain(|finalizer| finalizer != CLEANUP_FINALIZER);
            if finalizers.is_empty() {
                return None;
            }
            conditions::set_terminating(&mut value, ended, &now);
            Some(value)
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
                if value == live {
                    return Ok(Decision::Keep);
                }
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
