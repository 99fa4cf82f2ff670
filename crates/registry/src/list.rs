//! LIST: a pinned snapshot, walked at the client's speed.

use std::sync::Arc;

use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::{Key, Object, Revision, Status};
use forebay_watchcache::{Interest, Snapshot};
use jiff::Timestamp;

use crate::catalog::Served;
use crate::errors;
use crate::plan::{Freshness, ListPlan};
use crate::present::{Encoding, ListMeta, Presenter, Shown};
use crate::store::Store;
use forebay_rt::Clock;

/// A LIST's body, made piece by piece. Pins its snapshot until dropped; holds no other copy of what it sends.
pub struct ListBody {
    snapshot: Arc<Snapshot>,
    interest: Interest,
    presenter: Presenter,
    meta: ListMeta,
    // What the items take, where a list begins with its length.
    items_len: usize,
    clock: Clock,
    // The last object that was sent.
    after: Option<Key>,
    // Objects still to be sent; `None` is all.
    left: Option<usize>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    FirstItem,
    Items,
    Done,
}

/// Finds the snapshot that `plan` asks for.
///
/// # Errors
/// 410, 429 and 504 as reference §1.2 has them; never a list from the store.
pub async fn list(
    served: &Arc<Served>,
    store: &Store,
    plan: ListPlan,
    interest: Interest,
    shown: Shown,
    clock: &Clock,
) -> Result<ListBody, Status> {
    let (snapshot, rv) = pin(store, &plan, clock).await?;
    let prefix = interest_prefix(&interest);
    let after = plan.start_after.as_deref().map(|start| Key::from(format!("{prefix}{start}")));
    let mut meta = ListMeta { revision: Some(rv), ..ListMeta::default() };
    if let Some(limit) = plan.limit {
        let mut matching =
            snapshot.candidates(&interest, after.as_ref()).filter(|object| interest.selects(object));
        let last = matching.by_ref().take(limit).last();
        if let (Some(last), Some(_)) = (last, matching.next()) {
            let start = &last.key().as_str()[prefix.len()..];
            let at = if plan.continues_latest { ContinueAt::Latest } else { ContinueAt::Revision(rv) };
            meta.continue_token = ContinueToken::after(start, at).encode();
            if interest.is_unfiltered() {
                meta.remaining = Some(1 + matching.count() as u64);
            }
            store.cacher.remember(snapshot.clone());
        }
    }
    let mut body = ListBody {
        snapshot,
        interest,
        presenter: Presenter::new(served.clone(), shown),
        meta,
        items_len: 0,
        clock: clock.clone(),
        after,
        left: plan.limit,
        state: State::Head,
    };
    if shown.encoding == Encoding::Protobuf {
        body.measure().await;
    }
    Ok(body)
}

/// The snapshot to read, and the revision that the list shows.
async fn pin(store: &Store, plan: &ListPlan, clock: &Clock) -> Result<(Arc<Snapshot>, Revision), Status> {
    let cacher = &store.cacher;
    let deadline = clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let snapshot = match plan.freshness {
        Freshness::Any => cacher.snapshot(),
        Freshness::Latest => cacher.fresh(deadline).await,
        Freshness::AtLeast(revision) => cacher.at_least(revision, deadline).await,
        Freshness::Exact(revision) => {
            return match cacher.exact(revision, deadline).await {
                Ok(snapshot) => Ok((snapshot, revision)),
                Err(forebay_watchcache::ReadError::Expired { .. }) => Err(match &plan.start_after {
                    Some(start) => {
                        let latest = ContinueToken { start: start.clone(), at: ContinueAt::Latest };
                        errors::continue_expired(latest.encode())
                    }
                    None => errors::list_expired(),
                }),
                Err(error) => Err(errors::cache(&error)),
            };
        }
    };
    let snapshot = snapshot.map_err(|error| errors::cache(&error))?;
    let revision = snapshot.revision();
    Ok((snapshot, revision))
}

/// What continue tokens leave off: the prefix of the keys in reach.
fn interest_prefix(interest: &Interest) -> &str {
    match &interest.reach {
        forebay_watchcache::Reach::Below(prefix) => prefix.as_str(),
        forebay_watchcache::Reach::One(key) => {
            let slash = key.as_str().rfind('/').map_or(0, |slash| slash + 1);
            &key.as_str()[..slash]
        }
    }
}

/// Objects measured in one go: while their messages are made, a millisecond or two.
const MEASURE_BATCH: usize = 64;

impl ListBody {
    /// Adds up what the items take. Makes the messages that were not made yet, which sending them would do anyway, and
    /// lets others work in between.
    async fn measure(&mut self) {
        let (mut after, mut left) = (self.after.clone(), self.left.unwrap_or(usize::MAX));
        while left > 0 {
            let batch = self.snapshot.candidates(&self.interest, after.as_ref()).take(MEASURE_BATCH);
            let mut last: Option<&Arc<Object>> = None;
            for object in batch {
                last = Some(object);
                if left > 0 && self.interest.selects(object) {
                    self.items_len += self.presenter.item_len(object).unwrap_or(0);
                    left -= 1;
                }
            }
            let Some(last) = last else { return };
            after = Some(last.key().clone());
            tokio::task::yield_now().await;
        }
    }

    /// Appends about `chunk_bytes` of the body to `out`; false when the body is complete.
    pub fn next_chunk(&mut self, chunk_bytes: usize, out: &mut Vec<u8>) -> bool {
        if self.state == State::Done {
            return false;
        }
        if self.state == State::Head {
            self.presenter.list_head(&self.meta, self.items_len, out);
            self.state = State::FirstItem;
        }
        let now = timestamp(&self.clock);
        let mut last: Option<&Arc<Object>> = None;
        let mut ended = true;
        let full = out.len() + chunk_bytes;
        for object in self.snapshot.candidates(&self.interest, self.after.as_ref()) {
            if self.left == Some(0) {
                break;
            }
            if out.len() >= full {
                ended = false;
                break;
            }
            last = Some(object);
            if self.interest.selects(object) {
                self.presenter.item(object, self.state == State::FirstItem, now, out);
                self.state = State::Items;
                self.left = self.left.map(|left| left - 1);
            }
        }
        if let Some(last) = last {
            self.after = Some(last.key().clone());
        }
        if ended {
            self.presenter.list_tail(&self.meta, out);
            self.state = State::Done;
        }
        true
    }
}

/// Wall time as the printers take it.
pub fn timestamp(clock: &Clock) -> Timestamp {
    Timestamp::from_millisecond(clock.unix_ms() as i64).unwrap_or(Timestamp::UNIX_EPOCH)
}
