//! Lists that differ in nothing but their state, and come while one of them is made.
//!
//! In: what is listed, of a state that nobody else reads, and how long it takes to make. Out: nothing for the
//! first, which goes on at once; for those that come soon after it a [`Gathering`], whose members are all
//! given one state, so that it is made once for all of them. A list that is made again and again, because
//! somebody writes all the while, takes half of a core at most, however many ask for it.
//!
//! A state may be any that is as new as each of its readers found one. Members have waited for theirs before,
//! and what is published never goes back: what is current when they are let go is new enough for all. Nobody
//! waits for another's client, nor for what another makes: they are let go when it is time. Never: asked
//! by who wants a state that others read now, or a list that is soon made.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use forebay_apimachinery::Key;
use forebay_catalog::Served;
use forebay_rt::{Clock, Instant};
use forebay_watchcache::{Cacher, Interest, Snapshot};
use tokio::sync::OnceCell;

use crate::limits::{GATHERING_WAIT_MAX, GATHERINGS_MAX};
use crate::present::Shown;

/// Those of a server.
#[derive(Default)]
pub(crate) struct Gatherings {
    // Oldest first, <= GATHERINGS_MAX.
    known: Mutex<Vec<Known>>,
}

/// A list that was begun lately.
struct Known {
    wanted: Wanted,
    begun: Instant,
    next: Option<Arc<Gathering>>,
}

/// All that a list depends on, but its state and when it is asked for.
pub(crate) struct Wanted {
    pub served: Weak<Served>,
    pub shown: Shown,
    pub after: Option<Key>,
    pub limit: Option<usize>,
    pub interest: Interest,
}

/// Those who are given one state.
pub(crate) struct Gathering {
    due: Instant,
    state: OnceCell<Option<Arc<Snapshot>>>,
}

impl Gatherings {
    /// Whom to wait with before what is wanted is begun, which takes `making` to be made; nobody where it may
    /// be begun at once.
    pub fn join(&self, wanted: Wanted, making: Duration, now: Instant) -> Option<Arc<Gathering>> {
        let pause = (2 * making).min(GATHERING_WAIT_MAX);
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Few: at most [`GATHERINGS_MAX`], and most differ in their first field.
        let Some(known) = all.iter_mut().find(|known| known.wanted == wanted) else {
            if all.len() == GATHERINGS_MAX {
                all.retain(|known| known.is_awaited(now));
                let first = usize::from(all.len() == GATHERINGS_MAX);
                all.drain(..first);
            }
            all.push(Known { wanted, begun: now, next: None });
            return None;
        };
        if let Some(over) = known.next.take_if(|next| next.due <= now) {
            known.begun = over.due;
        }
        let due = known.begun + pause;
        if due <= now && known.next.is_none() {
            known.begun = now;
            return None;
        }
        let gathering = || Arc::new(Gathering { due, state: OnceCell::new() });
        Some(known.next.get_or_insert_with(gathering).clone())
    }
}

impl Known {
    /// Whether somebody waits, or would.
    fn is_awaited(&self, now: Instant) -> bool {
        self.next.as_ref().map_or(self.begun, |next| next.due) + GATHERING_WAIT_MAX > now
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Wanted) -> bool {
        self.served.ptr_eq(&other.served)
            && (self.shown, &self.after, self.limit) == (other.shown, &other.after, other.limit)
            && self.interest == other.interest
    }
}

impl Gathering {
    /// The state that all are given, once it is time; none where the cache has ended. Cancel-safe: the next
    /// one waits on.
    pub async fn state(&self, cacher: &Cacher, clock: &Clock) -> Option<Arc<Snapshot>> {
        let take = || async {
            clock.sleep_until(self.due).await;
            cacher.snapshot().ok()
        };
        self.state.get_or_init(take).await.clone()
    }
}
