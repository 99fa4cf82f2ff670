//! DELETE: preconditions, grace, finalizers, and only then the end.
//!
//! Source: kube-apiserver v1.36.3 `registry/generic/registry/store.go`, `registry/rest/delete.go`.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::{DeleteOptions, FieldValidation, IGNORE_READ_ERRORS, field_invalid};
use forebay_apimachinery::{Key, Status, Verb};
use forebay_catalog::Served;
use forebay_catalog::store::{Done, Mode, Store};
use forebay_object::Object;
use forebay_watchcache::Interest;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::context::{Context, whole};
use crate::limits::{COLLECTION_PAGE, DELETED_LIST_BYTES_MAX};
use crate::list::{self, Page};
use crate::plan::ListPlan;
use crate::present::{As, ListMeta, Presenter};
use crate::request::{Answer, Outcome, Target};
use crate::ruled::Ruled as _;
use crate::services;
use crate::write::{Input, Write, rounds};

/// What the default of Jobs, which is not that of other kinds, does to their pods.
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                           remove them or set propagationPolicy=Orphan to suppress this warning";

/// What the DELETE of a collection is about.
pub(crate) struct Selection {
    pub(crate) interest: Interest,
    pub(crate) plan: ListPlan,
}

impl Selection {
    /// All that is there.
    pub(crate) fn everything(interest: Interest) -> Selection {
        Selection { interest, plan: ListPlan::EVERYTHING }
    }
}

/// Deletes an object, or begins to.
///
/// # Errors
/// 403, 404 and 409 in kube-apiserver's words.
pub(crate) async fn delete(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Answer, Status> {
    if !services::take_part(&target.served) {
        return delete_object(context, target, options).await;
    }
    let (owned, target, options) = (context.clone(), target.clone(), options.clone());
    services::to_the_end(context, async move { delete_object(&owned, &target, &options).await }).await
}

async fn delete_object(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Answer, Status> {
    let served = &target.served;
    let mode = Mode::of(options.dry_run);
    let mut write = Write::new(Verb::Delete, target, Input::Deletion(options), mode, FieldValidation::Ignore);
    rounds::admit(&mut write, context).await?;
    let store = context.store_of(served)?;
    if options.ignores_read_errors() {
        let key = store.key(target.namespace(), target.name());
        return delete_corrupt(target, &store, &key).await;
    }
    write.store = Some(store);
    rounds::delete(&mut write, context).await?;
    let outcome = match write.done {
        Some(Done::Deleted { object, revision, .. }) => {
            if served.rules().flags().returns_deleted_object {
                Outcome::Object(whole(served, &object, Some(revision)))
            } else {
                Outcome::Success(success(served, &object)?)
            }
        }
        Some(Done::Put { object, .. } | Done::Kept { object, .. }) => {
            let bytes = whole(served, &object, None);
            if options.orphan_dependents == Some(false) {
                Outcome::Accepted(bytes)
            } else {
                Outcome::Object(bytes)
            }
        }
        None => return Err(Status::internal("nothing was deleted")),
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

/// Deletes everything that a LIST of the same options shows, one by one, and answers that list, or a `Status` where that
/// is too long.
///
/// # Errors
/// As [`Registry::list`] and [`Registry::delete`]; objects that are gone in the meantime are passed over.
pub(crate) async fn delete_collection(
    context: &Arc<Context>,
    target: &Target,
    selection: Selection,
    options: &DeleteOptions,
) -> Result<Answer, Status> {
    if options.ignores_read_errors() {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let cause = field_invalid(IGNORE_READ_ERRORS, "true", why);
        return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
    }
    let mode = Mode::of(options.dry_run);
    let deletion = Input::Deletion(options);
    let mut write = Write::new(Verb::DeleteCollection, target, deletion, mode, FieldValidation::Ignore);
    rounds::admit(&mut write, context).await?;
    let outcome = match delete_selected(context, target, selection, options, Collect::List).await? {
        Some(list) => Outcome::Object(list.finish()),
        None => Outcome::Success(success_of(&target.served, Map::new())),
    };
    Ok(Answer::plain(outcome))
}

/// Deletes every object of a resource, and keeps nothing of them.
///
/// # Errors
/// As [`Registry::delete_collection`].
pub(crate) async fn delete_everything(context: &Arc<Context>, target: &Target) -> Result<(), Status> {
    let store = context.store_of(&target.served)?;
    let everything = Selection::everything(Interest::all(store.reach(None, None)));
    delete_selected(context, target, everything, &DeleteOptions::default(), Collect::Nothing).await.map(drop)
}

/// Deletes what `selection` shows. The list of it, unless that is too long or nobody wants it.
async fn delete_selected(
    context: &Arc<Context>,
    target: &Target,
    selection: Selection,
    options: &DeleteOptions,
    collect: Collect,
) -> Result<Option<DeletedList>, Status> {
    let Selection { interest, plan } = selection;
    let mut left = plan.limit.unwrap_or(usize::MAX);
    let served = &target.served;
    let store = context.store_of(served)?;
    let page = list::page(&store, &plan, &interest, &context.clock).await?;
    let Page { snapshot, mut after, meta } = page;
    let mut deleted = match collect {
        Collect::List => Some(DeletedList::new(served, meta)),
        Collect::Nothing => None,
    };
    let page_max = interest.objects_max(Interest::LOOKS_MAX).min(COLLECTION_PAGE);
    loop {
        let page: Vec<_> = snapshot.candidates(&interest, after.as_ref()).take(page_max).cloned().collect();
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
            match delete(context, &one, options).await {
                Err(status) if status.reason != forebay_apimachinery::Reason::NotFound => {
                    return Err(status);
                }
                // What was in the list is shown, whoever deleted it.
                Ok(_) | Err(_) => {
                    deleted = deleted.and_then(|list| list.with(object, context.timestamp()));
                    left -= 1;
                }
            }
        }
        // Where nothing matches this is all that it waits for.
        tokio::task::yield_now().await;
    }
    Ok(deleted)
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
    let mut out = forebay_catalog::compact(status).into_bytes();
    out.push(b'\n');
    Bytes::from(out)
}
