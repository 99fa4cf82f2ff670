//! The end of every chain of [`Api`]s: it serves nothing, and answers everything with 405.

use std::convert::Infallible;
use std::sync::Arc;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use forebay_catalog::{Catalog, Target};
use forebay_reads::{DeletionPlan, EventForm, Freshness, ListPlan, Planned, Shown, WatchPlan};
use serde_json::Value;

use crate::{
    AdmittedOptions, Answer, Api, Awaited, Body, Completes, DeletedCollection, Eventual, MayCreate,
    PatchKind, Read, ReviewRequest,
};

/// See the module's doc. It says something of every verb: none may be left to another.
pub(crate) struct Refusing;

fn refused<'a, T>(target: &Target, verb: &str) -> Awaited<'a, T> {
    Eventual::Now(Err(target.served.method_not_supported(verb)))
}

impl Api for Refusing {
    fn catalog(&self) -> Arc<Catalog> {
        Arc::new(Catalog::new([], None))
    }

    fn get<'a>(&'a self, target: &'a Target, _: Freshness) -> Awaited<'a, Read> {
        refused(target, "get")
    }

    fn list(&self, target: &Target, _: &ListOptions, _: Shown) -> Result<Planned<ListPlan, Shown>, Status> {
        Err(target.served.method_not_supported("list"))
    }

    fn watch(
        &self,
        target: &Target,
        _: &ListOptions,
        _: EventForm,
        _: bool,
    ) -> Result<Planned<WatchPlan, EventForm>, Status> {
        Err(target.served.method_not_supported("watch"))
    }

    fn create<'a>(&'a self, target: &'a Target, _: &'a Body, _: &'a CreateOptions) -> Awaited<'a, Answer> {
        refused(target, "create")
    }

    fn update<'a>(
        &'a self,
        target: &'a Target,
        _: &'a Body,
        _: &'a UpdateOptions,
        _: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        refused(target, "update")
    }

    fn patch<'a>(
        &'a self,
        target: &'a Target,
        _: PatchKind,
        _: &'a [u8],
        _: &'a PatchOptions,
    ) -> Awaited<'a, Answer> {
        refused(target, "patch")
    }

    fn apply<'a>(
        &'a self,
        target: &'a Target,
        _: &'a Body,
        _: &'a PatchOptions,
        _: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        refused(target, "patch")
    }

    fn delete<'a>(&'a self, target: &'a Target, _: &'a DeleteOptions) -> Awaited<'a, Answer> {
        refused(target, "delete")
    }

    fn plan_deletion(&self, target: &Target, _: &ListOptions) -> Result<DeletionPlan, Status> {
        Err(target.served.method_not_supported("deletecollection"))
    }

    fn delete_collection<'a>(
        &'a self,
        target: &'a Target,
        _: DeletionPlan,
        _: &'a DeleteOptions,
    ) -> Awaited<'a, DeletedCollection> {
        refused(target, "deletecollection")
    }

    fn connect<'a>(&'a self, target: &'a Target) -> Awaited<'a, Infallible> {
        refused(target, "connect")
    }

    fn admit_connection<'a>(&'a self, target: &'a Target, _: Value) -> Awaited<'a, AdmittedOptions> {
        refused(target, "connect")
    }

    fn review<'a>(
        &'a self,
        target: &'a Target,
        _: &'a Body,
        _: &'a CreateOptions,
        _: Option<Completes>,
    ) -> Awaited<'a, ReviewRequest> {
        refused(target, "create")
    }
}
