//! Where an object is, here or on another server, and the three things that are done to it there.
//!
//! In: a place. Out: metadata as it is now; a delete, a merge of metadata. Never: what only another server
//! knows, where the work may not wait for that: see [`WorkReach`].

use std::sync::Arc;

use forebay_api::{ObjectsElsewhere, PlaceElsewhere};
use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Reason, ResourceAttributes, Status, Verb};
use forebay_catalog::Target;
use serde_json::{Value, json};

use super::kinds::Kinds;
use super::lanes::OtherServer;
use super::others::OtherKinds;
use crate::acting::ActingRegistry;
use crate::limits;
use crate::meta::Meta;
use crate::objects::{self, ChangeVerb};

/// Where an object is.
#[derive(Clone)]
pub enum ObjectPlace {
    Here(Target),
    Elsewhere(PlaceElsewhere),
}

/// What work may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkReach {
    /// This server alone.
    Here,
    Anywhere,
}

/// What work needs.
#[derive(Clone)]
pub struct Context {
    pub registry: ActingRegistry,
    pub kinds: Arc<Kinds>,
    pub other_kinds: Arc<OtherKinds>,
    pub objects: Option<Arc<dyn ObjectsElsewhere>>,
    pub reach: WorkReach,
}

impl ObjectPlace {
    pub fn namespace(&self) -> &str {
        match self {
            ObjectPlace::Here(target) => target.namespace(),
            ObjectPlace::Elsewhere(at) => &at.namespace,
        }
    }

    pub fn resource(&self) -> &str {
        match self {
            ObjectPlace::Here(target) => target.served.resource(),
            ObjectPlace::Elsewhere(at) => &at.of.resource,
        }
    }

    pub fn name(&self) -> &str {
        match self {
            ObjectPlace::Here(target) => target.name(),
            ObjectPlace::Elsewhere(at) => &at.name,
        }
    }

    /// Who has it, if that is another server.
    pub fn server(&self) -> Option<OtherServer> {
        match self {
            ObjectPlace::Here(_) => None,
            ObjectPlace::Elsewhere(at) => Some(format!("{}/{}", at.of.group, at.of.version).into()),
        }
    }
}

/// Why work ends before it is done.
pub enum Stop {
    Failed(Status),
    UnknownKind,
    /// What this server knows may not be waited for.
    Elsewhere(OtherServer),
    /// An owner waits for its dependents of which the graph does not know that yet: nor, perhaps, of the
    /// object's own dependents.
    GraphBehind,
}

impl From<Status> for Stop {
    fn from(status: Status) -> Stop {
        Stop::Failed(status)
    }
}

impl Context {
    /// The metadata of the object there, as new as anything acknowledged; `None` when it is certain that
    /// there is none.
    pub async fn find(&self, place: &ObjectPlace) -> Result<Option<Meta>, Stop> {
        match place {
            ObjectPlace::Here(target) => {
                Ok(objects::find(&self.registry, target).await?.map(|object| Meta::of(&object)))
            }
            ObjectPlace::Elsewhere(at) => {
                let Some(metadata) = self.elsewhere(place)?.metadata(self.registry.account(), at).await?
                else {
                    return Ok(None);
                };
                Ok(Some(serde_json::from_value(metadata).map_err(Status::internal)?))
            }
        }
    }

    /// Deletes it; one that is gone is as good as deleted.
    pub async fn delete(&self, place: &ObjectPlace, options: &DeleteOptions) -> Result<(), Stop> {
        match place {
            ObjectPlace::Here(target) => Ok(objects::delete(&self.registry, target, options).await?),
            ObjectPlace::Elsewhere(at) => {
                let elsewhere = self.elsewhere(place)?;
                let account = self.registry.account_that_may(&Verb::Delete, attributes(at)).await?;
                match elsewhere.delete(account, at, options).await {
                    Err(status) if status.reason != Reason::NotFound => Err(status.into()),
                    _ => Ok(()),
                }
            }
        }
    }

    /// As [`objects::change_metadata`], by a patch.
    pub async fn change_metadata(
        &self,
        place: &ObjectPlace,
        uid: &str,
        change: impl Fn(&Value) -> Option<Value>,
    ) -> Result<(), Stop> {
        let at = match place {
            ObjectPlace::Here(target) => {
                let verb = ChangeVerb::Patch;
                return Ok(objects::change_metadata(&self.registry, target, uid, verb, change).await?);
            }
            ObjectPlace::Elsewhere(at) => at,
        };
        let elsewhere = self.elsewhere(place)?;
        let account = self.registry.account_that_may(&Verb::Patch, attributes(at)).await?;
        let mut attempt = 1;
        loop {
            let Some(metadata) = elsewhere.metadata(account, at).await? else { return Ok(()) };
            if metadata["uid"] != *uid {
                return Ok(());
            }
            let Some(mut changed) = change(&metadata) else { return Ok(()) };
            changed["resourceVersion"] = metadata["resourceVersion"].clone();
            match elsewhere.merge(account, at, &json!({ "metadata": changed })).await {
                Err(status) if status.reason == Reason::NotFound => return Ok(()),
                Err(status) if status.reason == Reason::Conflict && attempt < limits::CONFLICTS_MAX => {
                    attempt += 1;
                }
                done => return Ok(done?),
            }
        }
    }

    /// Who asks the server that has what is at `place`.
    fn elsewhere(&self, place: &ObjectPlace) -> Result<&Arc<dyn ObjectsElsewhere>, Stop> {
        match (self.reach, place.server()) {
            (WorkReach::Here, Some(server)) => Err(Stop::Elsewhere(server)),
            _ => self.objects.as_ref().ok_or(Stop::UnknownKind),
        }
    }
}

fn attributes(at: &PlaceElsewhere) -> ResourceAttributes<'_> {
    ResourceAttributes {
        group: &at.of.group,
        version: &at.of.version,
        resource: &at.of.resource,
        namespace: &at.namespace,
        name: &at.name,
        ..ResourceAttributes::default()
    }
}
