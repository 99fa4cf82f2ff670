//! The verbs on one server's resources, as one list: each is a function over a [`Context`] in a file of its
//! own.
//!
//! In: a target, options and a body. Out: an answer, or a `Status`. Never: does anything itself.

use std::sync::{Arc, Weak};

use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Revision, Status};
use forebay_backend::Backend;
use forebay_catalog::Catalog;
use forebay_catalog::errors;
use forebay_neighbours::{Heard, Word};
use forebay_object::Object;
use forebay_reads::{EventForm, ListBody, Shown, WatchBody, freshness, status_without_code};
use forebay_rt::{Clock, Random, Tasks};
use serde_json::Value;
use tokio::sync::watch;

use crate::config::Config;
use crate::context::Context;
use crate::informer::{CatalogChanges, Informer, Objects};
use crate::own_writes::{OwnWrite, WritesForServer};
use crate::service_address::Found;
use crate::{
    apply, bootstrap, create, delete, get, informer, kubernetes_service, neighbours, published, update,
};
use forebay_api::{Answer, Body, PatchKind};
use forebay_catalog::Target;

/// The verbs. Cheap to clone.
#[derive(Clone)]
pub struct Registry(pub(crate) Arc<Context>);

impl Registry {
    /// A registry of the built-in resources on `backend`. CRDs are served once [`Registry::start`] has run.
    pub fn new(
        config: Config,
        backend: Arc<dyn Backend>,
        clock: Clock,
        random: Random,
        tasks: Tasks,
    ) -> Registry {
        let context = Arc::new(Context::new(config, backend, clock, random, tasks));
        context.own_writes.begin(ForServer(Arc::downgrade(&context)));
        Registry(context)
    }

    /// Makes sure that what is always there exists, serves the CRDs, and waits for the caches: for the
    /// largest last. Then early history may be read.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn start(&self) -> Result<(), Status> {
        bootstrap::start(&self.0).await
    }

    /// Why some of what is kept cannot be read for now, if that is so.
    pub fn hindered(&self) -> Option<String> {
        self.0.backend.hindered()
    }

    /// One object.
    ///
    /// # Errors
    /// 404; 500 for a resourceVersion that is no number; 504 for one that is not reached in time.
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Arc<Object>, Status> {
        get::get(&self.0, target, freshness(resource_version)?).await
    }

    /// A list, whose body is made as it is read, for somebody in this process, who holds what they like.
    ///
    /// # Errors
    /// 400, 410, 422, 429 and 504 of reference §1.
    pub async fn list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<Shown>,
    ) -> Result<ListBody, Status> {
        Ok(self.0.planner.list(target, options, shown.into())?.run(()).await?.body)
    }

    /// The same of a watch.
    ///
    /// # Errors
    /// As [`Registry::list`]; a 410 comes inside the stream, as kube-apiserver has it.
    pub async fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<EventForm>,
        path_form: bool,
    ) -> Result<WatchBody, Status> {
        let planned = self.0.planner.watch(target, options, shown.into(), path_form)?;
        Ok(planned.run((), status_without_code).await?.body)
    }

    /// Creates an object.
    ///
    /// # Errors
    /// 400, 403, 404, 409 and 422 in kube-apiserver's words.
    pub async fn create(
        &self,
        target: &Target,
        body: &Body,
        options: &CreateOptions,
    ) -> Result<Answer, Status> {
        create::create(&self.0, target, body, options).await
    }

    /// Replaces an object, or one of its subresources, for the server itself: where that creates, nobody is
    /// asked.
    ///
    /// # Errors
    /// 400, 404, 409 and 422 in kube-apiserver's words.
    pub async fn update(
        &self,
        target: &Target,
        body: &Body,
        options: &UpdateOptions,
    ) -> Result<Answer, Status> {
        update::update(&self.0, target, body, options, None).await
    }

    /// Patches an object, or one of its subresources. Retried inside the server until it commits, so that
    /// concurrent patches of one object all succeed, unless the patch names a resourceVersion.
    ///
    /// # Errors
    /// 400, 404, 409, 415 and 422 in kube-apiserver's words.
    pub async fn patch(
        &self,
        target: &Target,
        kind: PatchKind,
        body: &[u8],
        options: &PatchOptions,
    ) -> Result<Answer, Status> {
        update::patch(&self.0, target, kind, body, options).await
    }

    /// Makes of an object, or of one of its subresources, what `config` says, and keeps who owns that;
    /// creates an object that is not there.
    ///
    /// # Errors
    /// 400, 404, 409 and 422 in kube-apiserver's words.
    pub async fn apply(
        &self,
        target: &Target,
        config: &Value,
        options: &PatchOptions,
    ) -> Result<Answer, Status> {
        apply::apply(&self.0, target, &Body::Json(config.to_string().into()), options, None).await
    }

    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 403, 404 and 409 in kube-apiserver's words.
    pub async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Answer, Status> {
        delete::delete(&self.0, target, options).await
    }

    /// Deletes everything that a LIST of the same options shows, one by one, and answers that list, or a
    /// `Status` where that is too long.
    ///
    /// # Errors
    /// As [`Registry::list`] and [`Registry::delete`]; objects that are gone in the meantime are passed over.
    pub async fn delete_collection(
        &self,
        target: &Target,
        selection: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Answer, Status> {
        let selection = forebay_reads::deletion(target, selection)?;
        Ok(delete::delete_collection(&self.0, target, selection, options).await?.answer)
    }

    /// An informer of the collection that `target` names.
    ///
    /// # Errors
    /// 405 for what has no storage, 400 for a field that cannot be selected by.
    pub fn informer(&self, target: &Target, options: &ListOptions) -> Result<Informer, Status> {
        informer::informer(target, options)
    }

    /// The objects of a collection, with every commit that was acknowledged before the call.
    ///
    /// # Errors
    /// 429 and 504 when the cache cannot answer.
    pub async fn objects(&self, target: &Target) -> Result<Objects, Status> {
        informer::objects(&self.0, target).await
    }

    /// The revision of the store: no older than any commit acknowledged before the call.
    ///
    /// # Errors
    /// When the store cannot say.
    pub async fn current_revision(&self) -> Result<Revision, Status> {
        informer::current_revision(&self.0).await
    }

    /// Waits until every create has ended that had seen its namespace live by now. Who has seen a namespace
    /// on its way out, and has waited for this, finds in the store whatever is created there; but for what a
    /// client gave up on, which is there with the next write of whoever waited, or is not. Cancel-safe.
    pub async fn creates_ended(&self) {
        self.0.creates.ended().await;
    }

    /// Tells of every catalog that is published from now on.
    pub fn catalog_changes(&self) -> CatalogChanges {
        informer::catalog_changes(&self.0)
    }

    /// Where what is sent to a service goes, host and port: by its routing to its address or to an endpoint.
    ///
    /// # Errors
    /// Why it has none, in upstream's words.
    pub fn service_address(&self, namespace: &str, name: &str, port: u16) -> Result<Box<str>, String> {
        Found::of(&self.0, namespace, name, port)?.address(&self.0)
    }

    /// The endpoints of a service that are ready, some of them.
    pub fn service_endpoints(&self, namespace: &str, name: &str, port: u16) -> Vec<Box<str>> {
        let found = Found::of(&self.0, namespace, name, port);
        found.map(|found| found.endpoints(&self.0)).unwrap_or_default()
    }

    /// Publishes what programs beside this server need to know to tell who asks them: whose certificates are
    /// clients', and which proxies are believed.
    ///
    /// - `wanted`: from the published members, by name, to those that have to be.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn publish_authentication(
        &self,
        wanted: impl Fn(&dyn Fn(&str) -> String) -> Vec<(&'static str, String)>,
    ) -> Result<(), Status> {
        published::publish_authentication(&self.0, wanted).await
    }

    /// Publishes the day since which tokens are tracked: the first day on which that was asked for.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn publish_tokens_tracked(&self) -> Result<(), Status> {
        published::publish_tokens_tracked(&self.0).await
    }

    /// Leads nobody here any more, before this server ends. Others go on to be led to.
    pub async fn withdraw(&self) {
        kubernetes_service::advertised::withdraw(&self.0).await;
    }

    /// Tells the other servers of the store what `own` says from now on, once it says anything, and returns
    /// what they say. Alone on a store, it tells and hears nothing.
    pub fn follow_neighbours(&self, own: watch::Receiver<Option<Word>>) -> watch::Receiver<Heard> {
        neighbours::follow(&self.0, own)
    }

    /// What is served now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.0.catalog()
    }

    /// Whether nobody else writes to the store.
    pub fn is_alone(&self) -> bool {
        self.0.is_alone()
    }

    /// Wall time as Tables show ages at.
    pub fn timestamp(&self) -> jiff::Timestamp {
        self.0.timestamp()
    }

    /// The clock that the registry lives by.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Wall time as `creationTimestamp` has it.
    pub fn now_rfc3339(&self) -> String {
        self.0.now_rfc3339()
    }
}

/// The verbs, for writes of the server's own. The context has it, and so it does not have the context.
struct ForServer(Weak<Context>);

impl WritesForServer for ForServer {
    fn create(&self, target: Target, value: Value) -> OwnWrite {
        let context = self.0.upgrade();
        Box::pin(async move {
            let context = context.ok_or_else(errors::shutting_down)?;
            let options = CreateOptions::default();
            create::create(&context, &target, &Body::Value(value), &options).await.map(drop)
        })
    }

    fn replace(&self, target: Target, value: Value) -> OwnWrite {
        let context = self.0.upgrade();
        Box::pin(async move {
            let context = context.ok_or_else(errors::shutting_down)?;
            let options =
                UpdateOptions { field_manager: "kube-apiserver".to_owned(), ..UpdateOptions::default() };
            update::update(&context, &target, &Body::Value(value), &options, None).await.map(drop)
        })
    }
}
