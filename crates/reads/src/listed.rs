//! What equal LISTs have in common, and who is equal.
//!
//! In: a state, and what is shown of it. Out: a [`Listed`] that all have who ask for the same of the same
//! state at the same time: where its page ends, where it begins, and what its items take are found out once.
//! Whoever asks first does that; if it leaves before it is done, the next one does. Never: anything that
//! depends on who asks; keeps a list that nobody reads.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use forebay_apimachinery::{Key, Revision};
use forebay_catalog::Served;
use forebay_catalog::counts::ListCounts;
use forebay_object::Object;
use forebay_watchcache::{FieldSource, Interest, Snapshot};
use jiff::Timestamp;
use tokio::sync::OnceCell;

use crate::gathering::Wanted;
use crate::limits::{MEASURE_BATCH, SHARED_LISTS_MAX};
use crate::page::Reached;
use crate::present::{As, Encoding, ListMeta, Presenter, Shown};

/// A list: all that its content depends on. One for all that are equal.
pub(crate) struct Listed {
    pub reached: Reached,
    pub served: Arc<Served>,
    pub shown: Shown,
    pub presenter: Presenter,
    pub interest: Interest,
    /// The place behind which its page begins.
    pub after: Option<Key>,
    /// Objects at most; `None` is all.
    pub limit: Option<usize>,
    /// The time that a Table shows ages at: whole seconds, so that equal ones are equal.
    pub now: Timestamp,
    pub counts: Arc<ListCounts>,
    /// Whether others may have it, too.
    pub is_shared: bool,
    start: OnceCell<Start>,
}

/// How a list begins.
pub(crate) struct Start {
    pub meta: ListMeta,
    /// The object before the first that is shown.
    pub after: Option<Key>,
    /// What the items take, where a list begins with its length.
    pub items_len: usize,
}

/// The lists that are read now. One for the whole server.
#[derive(Default)]
pub(crate) struct SharedLists {
    // Oldest first, <= SHARED_LISTS_MAX; some are gone.
    lists: Mutex<Vec<Known>>,
}

/// A list, for as long as somebody reads it.
struct Known {
    identity: Identity,
    list: Weak<Listed>,
}

/// Where two lists are equal, all of this is. Neither the state nor the resource is kept alive; nor are they
/// mistaken for others, as their place in memory is not given away.
#[derive(PartialEq)]
pub(crate) struct Identity {
    pub snapshot: Place<Snapshot>,
    pub revision: Revision,
    pub served: Place<Served>,
    pub shown: Shown,
    // Only of what shows ages.
    pub now: Option<Timestamp>,
    pub after: Option<Key>,
    pub limit: Option<usize>,
    pub interest: Interest,
}

pub(crate) struct Place<T>(Weak<T>);

impl<T> Place<T> {
    pub fn of(it: &Arc<T>) -> Place<T> {
        Place(Arc::downgrade(it))
    }

    pub fn is(&self, it: &Arc<T>) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(it))
    }
}

impl<T> PartialEq for Place<T> {
    fn eq(&self, other: &Place<T>) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

/// Whether it shows ages.
pub(crate) fn is_table(shown: Shown) -> bool {
    matches!(shown.what, As::Table(_))
}

pub(crate) fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

impl SharedLists {
    /// The list that others read and that is equal to this one.
    pub fn find(&self, list: &Listed) -> Option<Arc<Listed>> {
        let identity = list.identity();
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        // Few: at most [`SHARED_LISTS_MAX`], and most differ in their first field.
        lists.iter().find(|known| known.identity == identity)?.list.upgrade()
    }

    /// `list`, or the equal one that others read.
    pub fn join(&self, list: Listed) -> Arc<Listed> {
        let identity = list.identity();
        let list = Arc::new(list);
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        // Few: at most [`SHARED_LISTS_MAX`], and most differ in their first field.
        let place = lists.iter().position(|known| known.identity == identity);
        if let Some(place) = place {
            if let Some(known) = lists[place].list.upgrade() {
                return known;
            }
            lists.remove(place);
        }
        if lists.len() == SHARED_LISTS_MAX {
            lists.retain(|known| known.list.strong_count() > 0);
            // Who comes to the oldest from now on shares it with those who come later.
            let first = usize::from(lists.len() == SHARED_LISTS_MAX);
            lists.drain(..first);
        }
        lists.push(Known { identity, list: Arc::downgrade(&list) });
        list
    }
}

impl Listed {
    /// - `reached`, `after`, `limit`: the page.
    /// - `now`: for a Table's ages.
    pub fn new(
        (reached, interest, after, limit): (Reached, Interest, Option<Key>, Option<usize>),
        (served, shown): (Arc<Served>, Shown),
        counts: Arc<ListCounts>,
        now: Timestamp,
        is_shared: bool,
    ) -> Listed {
        let presenter = Presenter::new(served.clone(), shown);
        let (now, start) = (whole_seconds(now), OnceCell::new());
        Listed { reached, served, shown, presenter, interest, after, limit, now, counts, is_shared, start }
    }

    /// What it is, of whichever state.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            served: Arc::downgrade(&self.served),
            shown: self.shown,
            after: self.after.clone(),
            limit: self.limit,
            interest: self.interest.clone(),
        }
    }

    /// The same of another state, which is asked for now.
    pub fn of_state(self, snapshot: Arc<Snapshot>, now: Timestamp) -> Listed {
        let Listed { interest, after, limit, served, shown, counts, is_shared, .. } = self;
        let page = (Reached::at(snapshot), interest, after, limit);
        Listed::new(page, (served, shown), counts, now, is_shared)
    }

    pub fn identity(&self) -> Identity {
        Identity {
            snapshot: Place::of(&self.reached.snapshot),
            revision: self.reached.revision,
            served: Place::of(&self.served),
            shown: self.shown,
            now: is_table(self.shown).then_some(self.now),
            after: self.after.clone(),
            limit: self.limit,
            interest: self.interest.clone(),
        }
    }

    /// Objects at most, if that leaves any out: where it does not, blocks may go as they are.
    pub fn leaves_out(&self) -> Option<usize> {
        let is_within = |limit: &usize| self.reached.is_within(&self.interest, self.after.as_ref(), *limit);
        self.limit.filter(|limit| !is_within(limit))
    }

    pub fn snapshot(&self) -> &Snapshot {
        &self.reached.snapshot
    }

    /// The index that it goes by, as kube-apiserver calls it; empty for none.
    pub fn index_name(&self) -> String {
        let field = match self.snapshot().indexed_term(&self.interest).map(|term| &term.field) {
            Some(FieldSource::Indexed { fields, .. }) => {
                self.served.selectable.iter().find(|known| known.fields == *fields)
            }
            _ => None,
        };
        field.map_or_else(String::new, |field| format!("f:{}", field.label))
    }

    /// How it begins, once that is known; it is known from [`Listed::begin`] on.
    pub fn start(&self) -> Option<&Start> {
        self.start.get()
    }

    /// Finds out how it begins, unless somebody did; how many objects were looked at for that. Cancel-safe:
    /// the next one begins anew.
    pub async fn begin(&self) -> u64 {
        let mut looked_at = 0;
        self.start.get_or_init(|| self.find_start(&mut looked_at)).await;
        looked_at
    }

    async fn find_start(&self, looked_at: &mut u64) -> Start {
        let meta = self.reached.meta(&self.interest, self.after.as_ref(), self.limit).await;
        let after = self.skip(looked_at).await;
        let items_len = match self.shown.encoding {
            Encoding::Protobuf => self.measure(after.clone()).await,
            Encoding::Json => 0,
        };
        Start { meta, after, items_len }
    }

    /// Goes on to the first object that is shown, and lets others work in between: where few match, that is
    /// most of the work, and it is done before the answer begins.
    async fn skip(&self, looked_at: &mut u64) -> Option<Key> {
        let mut after = self.after.clone();
        if self.interest.is_unfiltered() {
            return after;
        }
        let batch_max = self.interest.objects_max(Interest::LOOKS_MAX);
        loop {
            let mut last: Option<&Arc<Object>> = None;
            let mut ended = true;
            let batch = self.snapshot().candidates(&self.interest, after.as_ref()).take(batch_max + 1);
            for (number, object) in batch.enumerate() {
                if self.interest.selects(object) {
                    break;
                }
                if number == batch_max {
                    ended = false;
                    break;
                }
                last = Some(object);
                *looked_at += 1;
            }
            if let Some(last) = last {
                after = Some(last.key().clone());
            }
            if ended {
                return after;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Adds up what the items take. Makes the messages that were not made yet, which sending them would do
    /// anyway, and lets others work in between.
    async fn measure(&self, mut after: Option<Key>) -> usize {
        let (mut items_len, mut left) = (0, self.limit.unwrap_or(usize::MAX));
        let batch_max = self.interest.objects_max(Interest::LOOKS_MAX).min(MEASURE_BATCH);
        while left > 0 {
            let batch = self.snapshot().candidates(&self.interest, after.as_ref()).take(batch_max);
            let mut last: Option<&Arc<Object>> = None;
            for object in batch {
                last = Some(object);
                if left > 0 && self.interest.selects(object) {
                    items_len += self.presenter.item_len(object).unwrap_or(0);
                    left -= 1;
                }
            }
            let Some(last) = last else { break };
            after = Some(last.key().clone());
            tokio::task::yield_now().await;
        }
        items_len
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::options::ListOptions;
    use forebay_apimachinery::selector::LabelSelector;
    use forebay_catalog::counts::ListCount;
    use serde_json::json;

    use super::*;
    use crate::tests::{World, config_maps};
    use crate::{ListBody, SeenObjects};

    /// ConfigMaps of 300 kB all in all, of which the last of ten has the label `app`.
    async fn world() -> World {
        let world = config_maps(Some("default")).await;
        for number in 0..10 {
            let labels = if number == 9 { json!({ "app": "web" }) } else { json!({}) };
            let data = json!({ "text": "x".repeat(30_000) });
            world.put(&format!("o-{number}"), json!({ "labels": labels }), data).await;
        }
        world
    }

    fn of_app(limit: i64) -> ListOptions {
        let label_selector = LabelSelector::parse("app").expect("a selector");
        ListOptions { label_selector, limit, ..ListOptions::default() }
    }

    async fn list(world: &World, options: &ListOptions, shown: impl Into<Shown>) -> ListBody {
        let planned = world.planner.list(&world.target, options, shown.into()).expect("is in order");
        planned.run(()).await.expect("lists").body
    }

    fn read(mut body: ListBody) -> Vec<u8> {
        let mut out = Vec::new();
        while body.next_chunk(1 << 10, &mut out) {}
        out
    }

    #[tokio::test]
    async fn who_asks_for_the_same_of_the_same_state_has_the_same_list() {
        let world = world().await;
        let protobuf = Shown { encoding: Encoding::Protobuf, ..As::Object.into() };
        let first = list(&world, &of_app(0), As::Object).await;
        let again = list(&world, &of_app(0), As::Object).await;
        assert!(first.is_shared() && first.is_same(&again));
        // The others were passed over for the first.
        assert_eq!(
            (first.seen(), again.seen()),
            (SeenObjects { fetched: 9, returned: 0 }, SeenObjects::default())
        );
        let everything = ListOptions::default();
        for (options, shown) in [
            (&of_app(1), As::Object.into()),
            (&everything, As::Object.into()),
            (&of_app(0), As::PartialMetadata.into()),
            (&of_app(0), protobuf),
        ] {
            let other = list(&world, options, shown).await;
            assert!(other.is_shared() && !other.is_same(&first), "{shown:?}");
        }
        let (text, fork) = (read(first.fork()), read(again));
        assert!(text == fork && text.starts_with(b"{\"kind\":\"ConfigMapList\""));
        world.put("o-a", json!({}), json!({})).await;
        let later = list(&world, &of_app(0), As::Object).await;
        assert!(!later.is_same(&first), "of another state");
    }

    #[tokio::test]
    async fn a_fork_goes_on_from_where_it_was_taken_and_is_no_list_of_its_own() {
        let world = world().await;
        let mut body = list(&world, &ListOptions::default(), As::Object).await;
        let mut begun = Vec::new();
        assert!(body.next_chunk(75_000, &mut begun));
        let rest = read(body.fork());
        assert!(read(body) == rest && rest.len() > 150_000);
        let store = world.target.served.stored().expect("stored");
        let want = ListCount { lists: 1, fetched: 10, returned: 10 };
        assert_eq!(store.lists.read().get(""), Some(&want));
    }

    #[tokio::test]
    async fn whoever_leaves_before_it_is_known_how_a_list_begins_is_followed_by_the_next() {
        let world = world().await;
        let many: String = (0..Interest::LOOKS_MAX / 2).map(|number| format!("!k{number},")).collect();
        let label_selector = LabelSelector::parse(&format!("{many}app")).expect("a selector");
        let laborious = ListOptions { label_selector, ..ListOptions::default() };
        let mut first = Box::pin(list(&world, &laborious, As::Object));
        // It looks at one object at a time, and lets others work in between.
        for _ in 0..4 {
            let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(first.as_mut().poll(cx).is_ready()));
            assert!(!poll.await);
        }
        let second = list(&world, &laborious, As::Object);
        let (second, ()) = tokio::join!(second, async {
            tokio::task::yield_now().await;
            drop(first);
        });
        assert_eq!(second.seen().fetched, 9);
        assert!(String::from_utf8(read(second)).expect("text").contains("\"name\":\"o-9\""));
    }

    #[tokio::test]
    async fn lists_that_are_gone_make_room_and_of_too_many_the_oldest_is_no_longer_found() {
        let world = world().await;
        let mut kept = Vec::new();
        for limit in 1..=SHARED_LISTS_MAX as i64 {
            drop(list(&world, &of_app(1_000 + limit), As::Object).await);
            kept.push(list(&world, &of_app(limit), As::Object).await);
        }
        let known = world.planner.shared.lists.lists.lock().expect("whole").len();
        assert!(known <= SHARED_LISTS_MAX, "{known}");
        let is_found = async |limit: i64| {
            let again = list(&world, &of_app(limit), As::Object).await;
            again.is_same(&kept[limit as usize - 1])
        };
        assert!(is_found(1).await && is_found(SHARED_LISTS_MAX as i64).await);
        let _one_more = list(&world, &of_app(5_000), As::Object).await;
        assert!(!is_found(1).await && is_found(SHARED_LISTS_MAX as i64).await);
    }
}
