//! DELETE: preconditions, grace, finalizers, and only then the end.
//!
//! Source: kube-apiserver v1.36.3 `registry/generic/registry/store.go`, `registry/rest/delete.go`.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::{DeleteOptions, IGNORE_READ_ERRORS, field_invalid};
use forebay_apimachinery::{Key, Status, Verb};
use forebay_catalog::Served;
use forebay_catalog::store::{Done, Store};
use forebay_object::Object;
use forebay_reads::{DeletionPlan, ListMeta, ListPlan, Page, Presenter, Shown, ShownStore, page};
use forebay_watchcache::Interest;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::context::{Context, whole};
use crate::limits::{COLLECTION_PAGE, DELETED_LIST_BYTES_MAX, TOLD_MAX};
use crate::ruled::Ruled as _;
use crate::services;
use crate::write::{Input, Write, rounds};
use forebay_api::{Answer, DeletedCollection, Outcome, Success, SuccessOf};
use forebay_catalog::Target;

/// What the default of Jobs, which is not that of other kinds, does to their pods.
const JOB_WARNING: &str = "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to \
                           remove them or set propagationPolicy=Orphan to suppress this warning";

/// Deletes an object, or begins to.
///
/// # Errors
/// 403, 404 and 409 in kube-apiserver's words.
pub(crate) async fn delete(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Answer, Status> {
    delete_as(context, target, options, AskedBy::Name).await
}

/// Deletes a pod that an Eviction is for: nobody judges that anew.
///
/// # Errors
/// As [`delete`].
pub(crate) async fn delete_evicted(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
) -> Result<Answer, Status> {
    delete_as(context, target, options, AskedBy::Eviction).await
}

/// How an object that is deleted was asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskedBy {
    Name,
    Collection,
    /// What an Eviction asks for was judged as that.
    Eviction,
}

async fn delete_as(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
    by: AskedBy,
) -> Result<Answer, Status> {
    if !services::take_part(&target.served) {
        return delete_object(context, target, options, by).await;
    }
    let (owned, target, options) = (context.clone(), target.clone(), options.clone());
    services::to_the_end(context, async move { delete_object(&owned, &target, &options, by).await }).await
}

async fn delete_object(
    context: &Arc<Context>,
    target: &Target,
    options: &DeleteOptions,
    by: AskedBy,
) -> Result<Answer, Status> {
    let served = &target.served;
    let mut write = Write::new(Verb::Delete, target, Input::Deletion(options), options);
    write.is_nameless = by == AskedBy::Collection;
    write.is_judged = by == AskedBy::Eviction;
    if !write.is_judged {
        rounds::admit(&mut write, context).await?;
    }
    let store = served.stored()?;
    if options.ignores_read_errors() {
        let key = store.key(target.namespace(), target.name());
        return delete_corrupt(target, &store, &key).await;
    }
    write.store = Some(store);
    if let Err(status) = rounds::delete(&mut write, context).await {
        return Err(write.refused(status).warning(warning_of_jobs(served, options)));
    }
    let outcome = match write.done.take() {
        Some(Done::Deleted { object, revision, .. }) => {
            if served.rules().flags().returns_deleted_object {
                Outcome::Object(whole(served, &object, Some(revision)))
            } else {
                success(served, &object)?
            }
        }
        Some(Done::Put { object } | Done::Kept { object }) => {
            let bytes = whole(served, &object, None);
            if options.orphan_dependents == Some(false) {
                Outcome::Accepted(bytes)
            } else {
                Outcome::Object(bytes)
            }
        }
        None => return Err(Status::internal("nothing was deleted")),
    };
    let mut warnings = write.warnings();
    warnings.extend(warning_of_jobs(served, options));
    Ok(Answer { outcome, warnings })
}

/// What who deletes Jobs without a word of their pods is told, whether or not there are any.
fn warning_of_jobs(served: &Served, options: &DeleteOptions) -> Vec<String> {
    let says_nothing = options.propagation_policy.is_none() && options.orphan_dependents.is_none();
    let is_told = served.is("batch", "jobs") && says_nothing;
    is_told.then(|| JOB_WARNING.to_owned()).into_iter().collect()
}

/// Deletes everything that a LIST of the same options shows, one by one, and answers that list, or a `Status`
/// where that is too long.
///
/// # Errors
/// As a LIST and as [`delete`]; objects that are gone in the meantime are passed over.
pub(crate) async fn delete_collection(
    context: &Arc<Context>,
    target: &Target,
    selection: DeletionPlan,
    options: &DeleteOptions,
) -> Result<DeletedCollection, Status> {
    if options.ignores_read_errors() {
        let why = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let cause = field_invalid(IGNORE_READ_ERRORS, "true", why);
        return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
    }
    let deletion = Input::Deletion(options);
    let mut write = Write::new(Verb::DeleteCollection, target, deletion, options);
    rounds::admit(&mut write, context).await?;
    let DeletionPlan { plan, interest, shown, .. } = selection;
    let mut told = Told::default();
    told.add(warning_of_jobs(&target.served, options));
    let deleted = delete_selected(context, target, (plan, interest), options, shown, &mut told).await;
    let (objects, list) = match deleted {
        Ok(deleted) => deleted,
        Err(mut status) => {
            told.add(std::mem::take(&mut status.warnings));
            return Err(status.warning(told.warnings));
        }
    };
    let warnings = told.warnings;
    let outcome = match list {
        Some(list) => Outcome::Object(list.finish()),
        None => success_of(&target.served, Map::new()),
    };
    Ok(DeletedCollection { answer: Answer { outcome, warnings }, objects })
}

/// What the client of a collection's deletion is told of its objects: each thing once.
#[derive(Default)]
struct Told {
    warnings: Vec<String>,
    seen: HashSet<String>,
}

impl Told {
    fn add(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if self.warnings.len() < TOLD_MAX && self.seen.insert(warning.clone()) {
                self.warnings.push(warning);
            }
        }
    }
}

/// Deletes what a plan shows. How many objects that were, and the list of them, unless that is too long.
async fn delete_selected(
    context: &Arc<Context>,
    target: &Target,
    (plan, interest): (ListPlan, Interest),
    options: &DeleteOptions,
    list_shown: Shown,
    told: &mut Told,
) -> Result<(usize, Option<DeletedList>), Status> {
    let (limit, mut left) = (plan.limit.unwrap_or(usize::MAX), plan.limit.unwrap_or(usize::MAX));
    let served = &target.served;
    // Selected as they are shown, and each is kept for as long as it takes.
    let shown = ShownStore::of(served, &plan).await?;
    let page = shown.guard(page(shown.store(), &plan, &interest, &context.clock)).await??;
    let Page { snapshot, mut after, meta } = page;
    let mut deleted = Some(DeletedList::new(served, list_shown, meta));
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
            match delete_as(context, &one, options, AskedBy::Collection).await {
                Err(status) if status.reason != forebay_apimachinery::Reason::NotFound => {
                    return Err(status);
                }
                // What was in the list is shown, whoever deleted it.
                done => {
                    told.add(done.map(|answer| answer.warnings).unwrap_or_default());
                    deleted = deleted.and_then(|list| list.with(object, context.timestamp()));
                    left -= 1;
                }
            }
        }
        // Where nothing matches this is all that it waits for.
        tokio::task::yield_now().await;
    }
    Ok((limit - left, deleted))
}

/// The list of what was deleted with its collection, at most [`DELETED_LIST_BYTES_MAX`].
struct DeletedList {
    presenter: Presenter,
    meta: ListMeta,
    first: bool,
    text: Vec<u8>,
}

impl DeletedList {
    fn new(served: &Arc<Served>, shown: Shown, meta: ListMeta) -> DeletedList {
        let presenter = Presenter::new(served.clone(), shown);
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
    let mut details = Map::new();
    details.insert("name".into(), json!(target.name()));
    details.insert("kind".into(), json!(*served.gvk.kind));
    Ok(Answer::plain(Outcome::Success(Success { of: SuccessOf::CorruptDeletion, details })))
}

/// A `Status` of success that names what is gone.
fn success(served: &Served, object: &Object) -> Result<Outcome, Status> {
    let uid = served.to_value(object)?["metadata"]["uid"].clone();
    let mut details = Map::new();
    details.insert("name".into(), json!(object.name()));
    details.insert("uid".into(), uid);
    Ok(success_of(served, details))
}

/// A `Status` of success that names the resource, and what `details` has.
fn success_of(served: &Served, mut details: Map<String, Value>) -> Outcome {
    if !served.group().is_empty() {
        details.insert("group".into(), json!(served.group()));
    }
    details.insert("kind".into(), json!(served.resource()));
    Outcome::Success(Success { of: SuccessOf::Deletion, details })
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use forebay_api::Body;
    use forebay_apimachinery::options::{CreateOptions, ListOptions};
    use forebay_apimachinery::selector::LabelSelector;

    use super::*;
    use crate::tests::config_maps;

    #[tokio::test]
    async fn the_delete_of_a_collection_lets_others_work() {
        let (registry, all) = config_maps(Some("default")).await;
        for number in 0..8 {
            let body = json!({ "metadata": { "name": format!("o-{number}") } });
            let made = registry.create(&all, &Body::Value(body), &CreateOptions::default()).await;
            assert!(made.is_ok(), "o-{number}");
        }
        // So many requirements that one object is looked at in one go.
        let many: String = (0..Interest::LOOKS_MAX / 2).map(|number| format!("!k{number},")).collect();
        let label_selector = LabelSelector::parse(&format!("{many}none")).expect("a selector");
        let (selection, options) =
            (ListOptions { label_selector, ..ListOptions::default() }, DeleteOptions::default());
        let mut work = std::pin::pin!(registry.delete_collection(&all, &selection, &options));
        let mut turns = 0;
        let deleted = std::future::poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            turns += usize::from(matches!(polled, Poll::Pending));
            polled
        });
        let deleted = deleted.await;
        assert!(deleted.is_ok() && turns >= 8, "{turns}");
    }
}
