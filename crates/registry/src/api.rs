//! The verbs of [`Api`], carried out here: each is a function over a context, in a file of its own.
//!
//! In: a target and what is asked of it. Out: what the verb says. Never: does anything itself.

use std::convert::Infallible;
use std::sync::Arc;

use forebay_api::{
    AdmittedOptions, Answer, Api, Awaited, Body, Completes, DeletedCollection, Eventual, MayCreate,
    PatchKind, Read, ReviewRequest,
};
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Reason, Status};
use forebay_catalog::{Catalog, Target};
use forebay_reads::{DeletionPlan, EventForm, Freshness, ListPlan, Planned, Shown, WatchPlan};
use serde_json::Value;

use crate::registry::Registry;
use crate::{apply, create, delete, get, review, subresources, update};

impl Api for Registry {
    fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    fn get<'a>(&'a self, target: &'a Target, freshness: Freshness) -> Awaited<'a, Read> {
        Eventual::later(async move {
            if target.subresource.as_deref() == Some("scale") {
                return subresources::get_scale(&self.0, target, freshness).await.map(Read::Other);
            }
            get::get(&self.0, target, freshness).await.map(Read::Object)
        })
    }

    fn list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: Shown,
    ) -> Result<Planned<ListPlan, Shown>, Status> {
        self.0.planner.list(target, options, shown)
    }

    fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: EventForm,
        path_form: bool,
    ) -> Result<Planned<WatchPlan, EventForm>, Status> {
        self.0.planner.watch(target, options, shown, path_form)
    }

    fn create<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a CreateOptions,
    ) -> Awaited<'a, Answer> {
        Eventual::later(create::create(&self.0, target, body, options))
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a UpdateOptions,
        may_create: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        Eventual::later(update::update(&self.0, target, body, options, may_create))
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        kind: PatchKind,
        body: &'a [u8],
        options: &'a PatchOptions,
    ) -> Awaited<'a, Answer> {
        Eventual::later(update::patch(&self.0, target, kind, body, options))
    }

    fn apply<'a>(
        &'a self,
        target: &'a Target,
        config: &'a Body,
        options: &'a PatchOptions,
        may_create: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        Eventual::later(apply::apply(&self.0, target, config, options, may_create))
    }

    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Awaited<'a, Answer> {
        Eventual::later(delete::delete(&self.0, target, options))
    }

    fn plan_deletion(&self, target: &Target, options: &ListOptions) -> Result<DeletionPlan, Status> {
        forebay_reads::deletion(target, options)
    }

    fn delete_collection<'a>(
        &'a self,
        target: &'a Target,
        selection: DeletionPlan,
        options: &'a DeleteOptions,
    ) -> Awaited<'a, DeletedCollection> {
        Eventual::later(delete::delete_collection(&self.0, target, selection, options))
    }

    fn connect<'a>(&'a self, target: &'a Target) -> Awaited<'a, Infallible> {
        Eventual::Now(Err(no_kubelet(target)))
    }

    fn admit_connection<'a>(&'a self, target: &'a Target, options: Value) -> Awaited<'a, AdmittedOptions> {
        Eventual::later(review::connection(&self.0, target, options))
    }

    fn review<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a CreateOptions,
        completes: Option<Completes>,
    ) -> Awaited<'a, ReviewRequest> {
        Eventual::later(review::review(&self.0, target, body, options, completes))
    }
}

/// What only the node of a pod could answer.
fn no_kubelet(target: &Target) -> Status {
    let (served, subresource) = (&target.served, target.subresource.as_deref().unwrap_or(""));
    let message = format!(
        "{}/{subresource} is answered by the kubelet of a node, and this server is connected to none",
        served.gvr.group_resource()
    );
    Status::new(Reason::MethodNotAllowed, message).about(served.group(), served.resource(), target.name())
}
