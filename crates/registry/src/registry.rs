//! The verbs on one server's resources, as one list: each is a function over a [`Context`] in a file of its own.
//!
//! In: a target, options and a body. Out: an answer, or a `Status`. Never: does anything itself.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{GroupVersionKind, Revision, Status};
use forebay_backend::Backend;
use forebay_catalog::Catalog;
use forebay_object::Object;
use forebay_rt::{Clock, Random, Tasks};
use forebay_watchcache::{Relief, window_cap};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::config::Config;
use crate::context::Context;
use crate::frames::EventForm;
use crate::incoming::Incoming;
use crate::informer::{CatalogChanges, Informer, Objects};
use crate::list::ListBody;
use crate::plan::{ListPlan, Planned, WatchPlan};
use crate::present::Shown;
use crate::request::{Answer, Body, PatchKind, Target};
use crate::watch::WatchBody;
use crate::{
    bootstrap, create, delete, get, informer, kubernetes_service, plan, published, read, review, update,
};

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
        Registry(Arc::new(Context::new(config, backend, clock, random, tasks)))
    }

    /// Makes sure that what is always there exists, serves the CRDs, and waits for the caches: for the largest last. Then early
    /// history may be read.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn start(&self) -> Result<(), Status> {
        bootstrap::start(&self.0).await
    }

    /// One object.
    ///
    /// # Errors
    /// 404; 500 for a resourceVersion that is no number; 504 for one that is not reached in time.
    pub async fn get(&self, target: &Target, resource_version: &str) -> Result<Arc<Object>, Status> {
        get::get(&self.0, target, resource_version).await
    }

    /// The object as it is cached, however old that is; nothing while the state is being read.
    pub fn cached(&self, target: &Target) -> Option<Arc<Object>> {
        get::cached(&self.0, target)
    }

    /// What `T` takes from an object of a core resource, as fresh as a GET of it.
    ///
    /// # Errors
    /// 404, and what keeps it from being read.
    pub async fn read<T: DeserializeOwned>(
        &self,
        resource: &str,
        namespace: &str,
        name: &str,
    ) -> Result<T, Status> {
        get::read(&self.0, resource, namespace, name).await
    }

    /// A LIST that is in order and has read nothing yet.
    ///
    /// # Errors
    /// 400, 405 and 422.
    pub fn plan_list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<Shown>,
    ) -> Result<Planned<ListPlan, Shown>, Status> {
        plan::plan_list(&self.0, target, options, shown.into())
    }

    /// The same of a WATCH. It weighs what its initial state does.
    ///
    /// - `path_form`: the deprecated `/watch/` paths.
    ///
    /// # Errors
    /// 400, 405, 422 and 500.
    pub fn plan_watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: impl Into<EventForm>,
        path_form: bool,
    ) -> Result<Planned<WatchPlan, EventForm>, Status> {
        plan::plan_watch(&self.0, target, options, shown.into(), path_form)
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
        read::list(&self.0, target, options, shown.into()).await
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
        read::watch(&self.0, target, options, shown.into(), path_form).await
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

    /// Replaces an object, or one of its subresources, for the server itself: where that creates, nobody is asked.
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

    /// Patches an object, or one of its subresources. Retried inside the server until it commits, so that concurrent
    /// patches of one object all succeed, unless the patch names a resourceVersion.
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

    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 403, 404 and 409 in kube-apiserver's words.
    pub async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Answer, Status> {
        delete::delete(&self.0, target, options).await
    }

    /// Deletes everything that a LIST of the same options shows, one by one, and answers that list, or a `Status` where that
    /// is too long.
    ///
    /// # Errors
    /// As [`Registry::list`] and [`Registry::delete`]; objects that are gone in the meantime are passed over.
    pub async fn delete_collection(
        &self,
        target: &Target,
        selection: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<Answer, Status> {
        let selection = read::selection(&self.0, target, selection)?;
        delete::delete_collection(&self.0, target, selection, options).await
    }

    /// Reads the body of a POST to what is not stored.
    ///
    /// # Errors
    /// 400 and 422 in kube-apiserver's words.
    pub async fn read_review(
        &self,
        target: &Target,
        body: &Body,
        options: &CreateOptions,
    ) -> Result<Incoming, Status> {
        review::read_review(&self.0, target, body, options).await
    }

    /// What of an access review's selectors is not understood, as its status says it.
    pub fn evaluation_error(&self, review: &Value) -> String {
        forebay_strategy::evaluation_error(review)
    }

    /// The JSON of an object that is answered.
    ///
    /// # Errors
    /// A value that does not fit its kind.
    pub fn review_json(&self, gvk: &GroupVersionKind, review: &Value) -> Result<Bytes, Status> {
        review::review_json(gvk, review)
    }

    /// An informer of the collection that `target` names.
    ///
    /// # Errors
    /// 405 for what has no storage, 400 for a field that cannot be selected by.
    pub fn informer(&self, target: &Target, options: &ListOptions) -> Result<Informer, Status> {
        informer::informer(&self.0, target, options)
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

    /// Tells of every catalog that is published from now on.
    pub fn catalog_changes(&self) -> CatalogChanges {
        informer::catalog_changes(&self.0)
    }

    /// Publishes the authorities of client certificates.
    ///
    /// - `bundle`: from the published bundle in PEM, empty where there is none, to what it has to be.
    ///
    /// # Errors
    /// When the store cannot be written or read.
    pub async fn publish_client_authorities(&self, bundle: impl Fn(&str) -> String) -> Result<(), Status> {
        published::publish_client_authorities(&self.0, bundle).await
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

    /// Resources that cannot be read yet.
    pub fn unready(&self) -> usize {
        self.catalog().stores().iter().filter(|store| store.cacher.snapshot().is_err()).count()
    }

    /// Sets what all caches together may keep of protobuf messages from now on, besides what they do: the messages of a whole state
    /// are two thirds of its JSON, and are made faster than memory can give way.
    pub fn keep_messages(&self, bytes: u64) {
        self.0.config.room.messages().set(bytes);
    }

    /// Lets every cache let go of what `relief` says. How many windows of events were made to forget something.
    pub fn relieve(&self, relief: Relief) -> usize {
        let stores = self.catalog().stores();
        let cap = window_cap(stores.iter().map(|store| store.cacher.window()), relief);
        let shrunk = stores.iter().filter(|store| {
            store.cacher.relieve(relief);
            store.cacher.cap_window(cap)
        });
        shrunk.count()
    }
}
