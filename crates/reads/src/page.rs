//! The page of a state that a LIST shows: which state, where it begins, and what comes behind it.
//!
//! In: a plan. Out: a pinned snapshot with a place in it, and the list's own metadata. Never: a list from the
//! store; makes anything of an object.

use std::sync::Arc;

use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::{Key, Revision, Status};
use forebay_catalog::errors;
use forebay_catalog::store::Store;
use forebay_object::Object;
use forebay_rt::Clock;
use forebay_watchcache::{ExactPage, Interest, ReadError, Snapshot};

use crate::page_start;
use crate::plan::{Freshness, ListPlan};
use crate::present::ListMeta;

/// What a LIST shows: the part of a state after a place, and what the list says of itself.
pub struct Page {
    pub snapshot: Arc<Snapshot>,
    pub after: Option<Key>,
    pub meta: ListMeta,
}

/// The page that `plan` asks for.
///
/// # Errors
/// 410, 429 and 504 as reference §1.2 has them; 500 for what cannot be decrypted.
pub async fn page(
    store: &Store,
    plan: &ListPlan,
    interest: &Interest,
    clock: &Clock,
) -> Result<Page, Status> {
    let reached = Reached::by(store, plan, interest, clock).await?;
    reached.check(interest)?;
    let after = plan.after(interest);
    let meta = reached.meta(interest, after.as_ref(), plan.limit).await;
    reached.remember(store, &meta);
    Ok(Page { snapshot: reached.snapshot, after, meta })
}

/// The state that a plan asks for.
pub(crate) struct Reached {
    pub snapshot: Arc<Snapshot>,
    /// The revision that it is shown as.
    pub revision: Revision,
    /// What is behind it, where it is no more than the page itself.
    part: Option<Behind>,
}

/// What a page of the past says of the rest.
struct Behind {
    more: bool,
    remaining: Option<u64>,
}

impl Reached {
    /// # Errors
    /// As [`page`].
    pub async fn by(
        store: &Store,
        plan: &ListPlan,
        interest: &Interest,
        clock: &Clock,
    ) -> Result<Reached, Status> {
        let cacher = &store.cacher;
        let deadline = clock.now() + forebay_watchcache::limits::FRESH_WAIT;
        let read = match plan.freshness {
            Freshness::Any => cacher.snapshot(),
            Freshness::Latest => cacher.fresh(deadline).await,
            Freshness::AtLeast(revision) => cacher.at_least(revision, deadline).await,
            Freshness::Exact(revision) => {
                let after = plan.after(interest);
                let read = cacher.exact_page(revision, interest, after.as_ref(), plan.limit, deadline).await;
                return match read {
                    Ok(ExactPage::Whole(snapshot)) => Ok(Reached { snapshot, revision, part: None }),
                    Ok(ExactPage::Part { snapshot, more, remaining }) => {
                        Ok(Reached { snapshot, revision, part: Some(Behind { more, remaining }) })
                    }
                    Err(ReadError::Expired { .. }) => Err(expired(plan)),
                    Err(error) => Err(errors::cache(&error)),
                };
            }
        };
        read.map(Reached::at).map_err(|error| errors::cache(&error))
    }

    /// Whether all of what `interest` is about can be read.
    ///
    /// # Errors
    /// 500 in kube-apiserver's words, for what cannot be decrypted: a list without it would say that it is
    /// gone.
    pub fn check(&self, interest: &Interest) -> Result<(), Status> {
        self.snapshot.check_decrypted(&interest.reach).map_err(|error| errors::cache(&error))
    }

    /// A state as it is.
    pub fn at(snapshot: Arc<Snapshot>) -> Reached {
        Reached { revision: snapshot.revision(), snapshot, part: None }
    }

    /// What the page of at most `limit` objects after a place says of itself.
    pub async fn meta(&self, interest: &Interest, after: Option<&Key>, limit: Option<usize>) -> ListMeta {
        let Reached { snapshot, revision, part } = self;
        let mut meta = ListMeta { revision: Some(*revision), ..ListMeta::default() };
        if let Some(Behind { more, remaining }) = part {
            meta.remaining = *remaining;
            let last = snapshot.range(&interest.reach, after).next_back().filter(|_| *more);
            meta.continue_token =
                last.map(|last| token(interest, last, snapshot.revision())).unwrap_or_default();
        } else if let Some(limit) = limit {
            let (last, more) = if interest.is_unfiltered() {
                // The tree knows where the page ends, and how much comes behind it.
                let mut rest = snapshot.range(&interest.reach, after);
                let last = limit.checked_sub(1).and_then(|place| rest.nth(place)).cloned();
                meta.remaining = Some(rest.len() as u64).filter(|remaining| last.is_some() && *remaining > 0);
                (last, meta.remaining.is_some())
            } else {
                end(snapshot, interest, after, limit).await
            };
            if let (Some(last), true) = (last, more) {
                meta.continue_token = token(interest, &last, *revision);
            }
        }
        meta
    }

    /// Whether `limit` leaves out nothing of what a page of everything in reach begins with.
    pub fn is_within(&self, interest: &Interest, after: Option<&Key>, limit: usize) -> bool {
        let is_all = self.part.is_none() && interest.is_unfiltered();
        is_all && self.snapshot.range(&interest.reach, after).len() <= limit
    }

    /// Keeps the state for whoever goes on where the page ends.
    pub fn remember(&self, store: &Store, meta: &ListMeta) {
        if self.part.is_none() && !meta.continue_token.is_empty() {
            store.cacher.remember(self.snapshot.clone());
        }
    }
}

/// The last object of a page of `limit`, and whether anything comes behind it. Lets others work in between.
async fn end(
    snapshot: &Snapshot,
    interest: &Interest,
    after: Option<&Key>,
    limit: usize,
) -> (Option<Arc<Object>>, bool) {
    let (mut last, mut left, mut place) = (None, limit, after.cloned());
    loop {
        let mut passed: Option<&Arc<Object>> = None;
        let batch_max = interest.objects_max(Interest::LOOKS_MAX);
        for object in snapshot.candidates(interest, place.as_ref()).take(batch_max) {
            if left == 0 {
                // It need not match: looking for one that does could take as long as the whole list.
                return (last, true);
            }
            passed = Some(object);
            if interest.selects(object) {
                last = Some(object.clone());
                left -= 1;
            }
        }
        let Some(passed) = passed else { return (last, false) };
        place = Some(passed.key().clone());
        tokio::task::yield_now().await;
    }
}

/// The token that goes on behind `last`, with the slash before its key that kube-apiserver's cache writes.
fn token(interest: &Interest, last: &Object, rv: Revision) -> String {
    let start = &last.key().as_str()[page_start::prefix(interest).len() - 1..];
    ContinueToken::after(start, ContinueAt::Revision(rv)).encode()
}

/// The state that `plan` names is gone; a token goes on with what there is now.
fn expired(plan: &ListPlan) -> Status {
    match &plan.start_after {
        Some(start) => {
            let latest = ContinueToken { start: start.clone(), at: ContinueAt::Latest };
            errors::continue_expired(latest.encode())
        }
        None => errors::list_expired(),
    }
}
