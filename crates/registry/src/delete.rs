//! DELETE: preconditions, grace, finalizers, and only then the end.
//!
//! Source: kube-apiserver v1.36.3 `registry/generic/registry/store.go`, `registry/rest/delete.go`.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::{DeleteOptions, IGNORE_READ_ERRORS, field_invalid};
use forebay_apimachinery::{Key, Revision, Status};
use forebay_backend::BoxFuture;
use forebay_object::Object;
use forebay_watchcache::Interest;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::admission;
use crate::catalog::Served;
use crate::list::{self, Page};
use crate::plan::ListPlan;
use crate::present::{As, ListMeta, Presenter};
use crate::registry::{Registry, whole};
use crate::request::{Answer, Outcome, Target};
use crate::services;
use crate::store::{Current, Decision, Done, Mode, Store};
use crate::update::not_found;
use forebay_strategy::{self as strategy, Deletion};

/// What the default of Jobs, which is not that of other kinds, does to their pods.
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                           remove them or set propagationPolicy=Orphan to suppress this warning";

/// Objects that one DELETE of a collection reads at a time, fewer where each takes many looks.
const COLLECTION_PAGE: usize = 1_000;

/// Bytes of the list that the DELETE of a collection answers; as YAML or protobuf it is a tree as well, of several times that.
/// Where it would be longer it is let go of: the rest is deleted all the same, and the answer is a `Status`, as of the
/// DELETE of one object. Clients read neither.
const DELETED_LIST_BYTES_MAX: usize = 4 << 20;

/// What the DELETE of a collection is about.
pub struct Selection {
    pub(crate) interest: Interest,
    pub(crate) plan: ListPlan,
}

impl Selection {
    /// All that is there.
    pub(crate) fn everything(interest: Interest) -> Selection {
        Selection { interest, plan: ListPlan::EVERYTHING }
    }
}

impl Registry {
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 403, 404 and 409 in kube-apiserver's words.
    pub async fn delete(&self, target: &Target, options: &DeleteOptions) -> Result<Answer, Status> {
        if !services::take_part(&target.served) {
            return self.delete_now(target, options).await;
        }
        let (registry, target, options) = (self.clone(), target.clone(), options.clone());
        self.to_the_end(async move { registry.delete_now(&target, &options).await }).await
    }

    async fn delete_now(&self, target: &Target, options: &DeleteOptions) -> Result<Answer, Status> {
        let served = &target.served;
        admission::admit_delete(served, target.name())?;
        let store = self.store_of(served)?;
        let key = store.key(target.namespace(), target.name());
        if options.ignores_read_errors() {
            return delete_corrupt(target, &store, &key).await;
        }
        let mode = if options.dry_run { Mode::DryRun } else { Mode::Commit };
        let done = store
            .guarded_update(&key, mode, |current| {
                let current = current.ok_or_else(|| not_found(target))?;
                self.decide_delete(target, current, options)
            })
            .await?;
        let done = match done {
            Done::Put { object, carry: Then::Remove } if mode == Mode::Commit => {
                let uid = served.to_value(&object)?["metadata"]["uid"].clone();
                store.guarded_update(&key, mode, |current| remove_same(target, current, &uid)).await?
            }
            done => done,
        };
        let outcome = match done {
            Done::Deleted { object, revision, .. } => {
                self.after_delete(served, &object, revision, mode).await;
                if served.rules().flags().returns_deleted_object {
                    Outcome::Object(whole(served, &object, Some(revision)))
                } else {
                    Outcome::Success(success(served, &object)?)
                }
            }
            Done::Put { object, .. } | Done::Kept { object, .. } => {
                self.after_write(served, &object).await;
                let bytes = whole(served, &object, None);
                if options.orphan_dependents == Some(false) {
                    Outcome::Accepted(bytes)
                } else {
                    Outcome::Object(bytes)
                }
            }
        };
        let mut warnings = Vec::new();
        if served.is("batch", "jobs")
            && options.propagation_policy.is_none()
            && options.orphan_dependents.is_none()
        {
            warnings.push(JOB_WARNING.to_string());
        }
        Ok(Answer { outcome, warnings })
    }

    fn decide_delete(
        &self,
        target: &Target,
        current: &Current,
        options: &DeleteOptions,
    ) -> Result<Decision<Then>, Status> {
        let served = &target.served;
        let old = served.to_judged_value(&current.object)?;
        check_preconditions(target, &old, options)?;
        let (mut value, now, rules) = (old, self.now_rfc3339(), served.rules());
        let wanted = wanted(options);
        let begun = if served.is("", "namespaces") {
            strategy::start_namespace_deletion(&mut value, &wanted, &now)
        } else if served.is_crd() {
            strategy::start_definition_deletion(&mut value, &now)
        } else {
            None
        };
        let put = |value: Value, carry| {
            Ok(Decision::Put { value: served.encode(value)?, ttl: self.ttl(served), carry })
        };
        match begun.unwrap_or_else(|| strategy::start_deletion(&rules, &mut value, &wanted, &now)) {
            Deletion::AlreadyDeleting => Ok(Decision::Keep { carry: Then::Wait }),
            Deletion::Store => put(value, Then::Wait),
            Deletion::StoreAndRemove => put(value, Then::Remove),
            Deletion::Remove => Ok(Decision::Delete { carry: Then::Wait }),
        }
    }

    /// Deletes everything that a LIST of the same options shows, one by one, and answers that list, or a `Status` where that
    /// is too long.
    ///
    /// # Errors
    /// As [`Registry::list`] and [`Registry::delete`]; objects that are gone in the meantime are passed over.
    pub async fn delete_collection(
        &self,
        target: &Target,
        selection: Selection,
        options: &DeleteOptions,
    ) -> Result<Answer, Status> {
        if options.ignores_read_errors() {
            let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
            let cause = field_invalid(IGNORE_READ_ERRORS, "true", why);
            return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
        }
        let outcome = match self.delete_selected(target, selection, options, Collect::List).await? {
            Some(list) => Outcome::Object(list.finish()),
            None => Outcome::Success(success_of(&target.served, Map::new())),
        };
        Ok(Answer::plain(outcome))
    }

    /// Deletes every object of a resource, and keeps nothing of them.
    ///
    /// # Errors
    /// As [`Registry::delete_collection`].
    pub(crate) async fn delete_everything(&self, target: &Target) -> Result<(), Status> {
        let store = self.store_of(&target.served)?;
        let everything = Selection::everything(Interest::all(store.reach(None, None)));
        self.delete_selected(target, everything, &DeleteOptions::default(), Collect::Nothing).await.map(drop)
    }

    /// Deletes what `selection` shows. The list of it, unless that is too long or nobody wants it.
    async fn delete_selected(
        &self,
        target: &Target,
        selection: Selection,
        options: &DeleteOptions,
        collect: Collect,
    ) -> Result<Option<DeletedList>, Status> {
        let Selection { interest, plan } = selection;
        let mut left = plan.limit.unwrap_or(usize::MAX);
        let served = &target.served;
        let store = self.store_of(served)?;
        let page = list::page(&store, &plan, &interest, &self.clock).await?;
        let Page { snapshot, mut after, meta } = page;
        let mut deleted = match collect {
            Collect::List => Some(DeletedList::new(served, meta)),
            Collect::Nothing => None,
        };
        let page_max = interest.objects_max(Interest::LOOKS_MAX).min(COLLECTION_PAGE);
        loop {
            let page: Vec<_> =
                snapshot.candidates(&interest, after.as_ref()).take(page_max).cloned().collect();
            let Some(last) = page.last().filter(|_| left > 0) else { break };
            after = Some(last.key().clone());
            for object in page.iter().filter(|object| interest.selects(object)) {
                if left == 0 {
                    break;
                }
                let one = Target {
                    name: Some(object.name().to_string()),
                    namespace: served.namespaced.then(|| object.namespace().to_string()),
                    ..target.clone()
                };
                match self.delete(&one, options).await {
                    Err(status) if status.reason != forebay_apimachinery::Reason::NotFound => {
                        return Err(status);
                    }
                    // What was in the list is shown, whoever deleted it.
                    Ok(_) | Err(_) => {
                        deleted = deleted.and_then(|list| list.with(object, self.timestamp()));
                        left -= 1;
                    }
                }
            }
            // Where nothing matches this is all that it waits for.
            tokio::task::yield_now().await;
        }
        Ok(deleted)
    }

    /// What follows a delete: a CRD's end is taken in before the client is answered, and what the object had is given
    /// back.
    pub(crate) async fn after_delete(
        &self,
        served: &Served,
        object: &Object,
        revision: Revision,
        mode: Mode,
    ) {
        if served.is_crd() {
            self.crds_taken_in(revision).await;
        }
        if mode == Mode::Commit {
            self.after_claims(served, object, revision).await;
        }
    }

    /// [`Registry::delete`] of what takes no part in claims, for those who are called by it.
    pub(crate) fn delete_beside<'a>(
        &'a self,
        target: &'a Target,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<Answer, Status>> {
        Box::pin(self.delete_now(target, options))
    }
}

/// What is kept of the objects that are deleted with their collection.
#[derive(Clone, Copy)]
enum Collect {
    List,
    Nothing,
}

/// The list of what was deleted with its collection, at most [`DELETED_LIST_BYTES_MAX`].
struct DeletedList {
    presenter: Presenter,
    meta: ListMeta,
    first: bool,
    text: Vec<u8>,
}

impl DeletedList {
    fn new(served: &Arc<Served>, meta: ListMeta) -> DeletedList {
        let presenter = Presenter::new(served.clone(), As::Object);
        let mut text = Vec::new();
        presenter.list_head(&meta, 0, &mut text);
        DeletedList { presenter, meta, first: true, text }
    }

    /// The list with one more object; `None` when it is too long with that.
    fn with(mut self, object: &Object, now: Timestamp) -> Option<DeletedList> {
        if self.text.len() + object.body_len() > DELETED_LIST_BYTES_MAX {
            return None;
        }
        self.presenter.item(object, self.first, now, &mut self.text);
        self.first = false;
        Some(self)
    }

    fn finish(mut self) -> Bytes {
        self.presenter.list_tail(&self.meta, &mut self.text);
        Bytes::from(self.text)
    }
}

/// Deletes what cannot be read: without preconditions, finalizers and what else a delete means.
async fn delete_corrupt(target: &Target, store: &Store, key: &Key) -> Result<Answer, Status> {
    let served = &target.served;
    if !store.remove_corrupt(key).await? {
        let why = "is exclusively used to delete corrupt object(s), try again by removing this option";
        let cause = field_invalid(IGNORE_READ_ERRORS, "true", why);
        return Err(Status::invalid(served.group(), served.resource(), target.name(), vec![cause]));
    }
    tracing::warn!(%key, "deleted a value that cannot be read, as a client asked for");
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": { "name": target.name(), "kind": *served.gvk.kind }, "code": 200,
    });
    Ok(Answer::plain(Outcome::Success(lined(&status))))
}

/// Refuses what is not the object that was meant.
pub(crate) fn check_preconditions(
    target: &Target,
    old: &Value,
    options: &DeleteOptions,
) -> Result<(), Status> {
    let served = &target.served;
    let text = |member: &str| old["metadata"][member].as_str().unwrap_or("");
    let conflict = |why: String| {
        // Upstream names the kind here, not the resource.
        Err(Status::conflict(served.group(), &served.gvk.kind, target.name(), &why))
    };
    if let Some(uid) = options.preconditions.uid.as_deref().filter(|uid| *uid != text("uid")) {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            text("uid")
        ));
    }
    let asked = options.preconditions.resource_version.as_deref();
    if let Some(rv) = asked.filter(|rv| *rv != text("resourceVersion")) {
        return conflict(format!(
            "the ResourceVersion in the precondition ({rv}) does not match the ResourceVersion in record ({}). The object \
             might have been modified",
            text("resourceVersion")
        ));
    }
    Ok(())
}

/// What follows the store of a deleted object's last state.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Wait,
    Remove,
}

fn remove_same(target: &Target, current: Option<&Current>, uid: &Value) -> Result<Decision<Then>, Status> {
    let current = current.ok_or_else(|| not_found(target))?;
    if target.served.to_value(&current.object)?["metadata"]["uid"] == *uid {
        Ok(Decision::Delete { carry: Then::Wait })
    } else {
        Err(not_found(target))
    }
}

fn wanted(options: &DeleteOptions) -> strategy::DeleteOptions {
    strategy::DeleteOptions {
        grace_period_seconds: options.grace_period_seconds,
        orphan_dependents: options.orphan_dependents,
        propagation: options
            .propagation_policy
            .and_then(|policy| strategy::Propagation::parse(policy.as_str())),
    }
}

/// A `Status` of success that names what is gone.
fn success(served: &Served, object: &Object) -> Result<Bytes, Status> {
    let uid = served.to_value(object)?["metadata"]["uid"].clone();
    let mut details = Map::new();
    details.insert("name".into(), json!(object.name()));
    details.insert("uid".into(), uid);
    Ok(success_of(served, details))
}

/// A `Status` of success that names the resource, and what `details` has.
fn success_of(served: &Served, mut details: Map<String, Value>) -> Bytes {
    if !served.group().is_empty() {
        details.insert("group".into(), json!(served.group()));
    }
    details.insert("kind".into(), json!(served.resource()));
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    });
    lined(&status)
}

fn lined(status: &Value) -> Bytes {
    let mut out = crate::catalog::compact(status).into_bytes();
    out.push(b'\n');
    Bytes::from(out)
}
