//! The verbs of [`Api`], carried out here: a target is resolved, once, and its verb called.
//!
//! In: a target by its name. Out: what the verb says. Never: does anything itself.

use forebay_api::{Answer, Api, Awaited, Body, Eventual, MayCreate, PatchKind, Read, ResourceTarget};
use forebay_apimachinery::Status;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};

use crate::registry::Registry;
use crate::request::Target;
use crate::{create, delete, get, read, subresources, update};

impl Registry {
    fn resolve(&self, target: &ResourceTarget) -> Result<Target, Status> {
        Target::resolve(&self.0.catalog(), target)
    }
}

impl Api for Registry {
    fn get<'a>(&'a self, target: &'a ResourceTarget, resource_version: &'a str) -> Awaited<'a, Read> {
        Eventual::later(async move {
            let target = self.resolve(target)?;
            if target.subresource.as_deref() == Some("scale") {
                return subresources::get_scale(&self.0, &target, resource_version).await.map(Read::Other);
            }
            get::get(&self.0, &target, resource_version).await.map(Read::Object)
        })
    }

    fn create<'a>(
        &'a self,
        target: &'a ResourceTarget,
        body: &'a Body,
        options: &'a CreateOptions,
    ) -> Awaited<'a, Answer> {
        Eventual::later(async move { create::create(&self.0, &self.resolve(target)?, body, options).await })
    }

    fn update<'a>(
        &'a self,
        target: &'a ResourceTarget,
        body: &'a Body,
        options: &'a UpdateOptions,
        may_create: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        Eventual::later(async move {
            update::update(&self.0, &self.resolve(target)?, body, options, may_create).await
        })
    }

    fn patch<'a>(
        &'a self,
        target: &'a ResourceTarget,
        kind: PatchKind,
        body: &'a [u8],
        options: &'a PatchOptions,
    ) -> Awaited<'a, Answer> {
        Eventual::later(
            async move { update::patch(&self.0, &self.resolve(target)?, kind, body, options).await },
        )
    }

    fn delete<'a>(&'a self, target: &'a ResourceTarget, options: &'a DeleteOptions) -> Awaited<'a, Answer> {
        Eventual::later(async move { delete::delete(&self.0, &self.resolve(target)?, options).await })
    }

    fn delete_collection<'a>(
        &'a self,
        target: &'a ResourceTarget,
        selection: &'a ListOptions,
        options: &'a DeleteOptions,
    ) -> Result<Awaited<'a, Answer>, Status> {
        let target = self.resolve(target)?;
        let selection = read::selection(&self.0, &target, selection)?;
        Ok(Eventual::later(
            async move { delete::delete_collection(&self.0, &target, selection, options).await },
        ))
    }
}
