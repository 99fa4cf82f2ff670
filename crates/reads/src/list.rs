//! LIST: a pinned snapshot, walked at the client's speed.

use std::sync::Arc;
use std::time::Duration;

use forebay_apimachinery::{Key, Status};
use forebay_catalog::Store;
use forebay_catalog::counts::ListCount;
use forebay_object::{Deflated, Object, Scratch, Segment, Segments};
use forebay_rt::Clock;
use forebay_watchcache::Interest;

use crate::limits::{GATHERED_MAKING_MIN, LEFT_OUT_SHOWN_MAX, SHARED_LIST_BYTES_MIN};
use crate::listed::Listed;
use crate::page::Reached;
use crate::plan::{Begun, Freshness, ListPlan, Planned, Shared};
use crate::present::Shown;
use crate::shown_store::ShownStore;
use crate::wall_time::timestamp;

/// A LIST's body, made piece by piece. Pins its snapshot until dropped; holds no other copy of what it sends.
pub struct ListBody {
    list: Arc<Listed>,
    // The last object that was sent.
    after: Option<Key>,
    // Objects still to be sent; `None` is all that is there.
    left: Option<usize>,
    // The block that the last object came from.
    scratch: Scratch,
    state: State,
    seen: SeenObjects,
    // It is a request's own, and counts as one.
    is_request: bool,
}

/// Objects of a list, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeenObjects {
    /// Those that were looked at.
    pub fetched: u64,
    pub returned: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    FirstItem,
    Items,
    Done,
}

impl Planned<ListPlan, Shown> {
    /// Finds the snapshot that is asked for, and whether somebody reads the same list.
    ///
    /// # Errors
    /// 410, 429 and 504 as reference §1.2 has them; 500 for what cannot be decrypted; never a list from the
    /// store.
    pub async fn run<L>(self, lease: L) -> Result<Begun<ListBody, L>, Status> {
        self.run_among_equals(lease, Duration::ZERO, || {}).await
    }

    /// The same, where others may ask for the same all the while: see [`crate::gathering`].
    ///
    /// - `making`: CPU time that it is foreseen to take.
    /// - `waits`: said before it waits with others, for half a second at most. Nothing is done for it
    ///   meanwhile.
    ///
    /// # Errors
    /// As [`Planned::run`].
    pub async fn run_among_equals<L>(
        self,
        lease: L,
        making: Duration,
        waits: impl FnOnce(),
    ) -> Result<Begun<ListBody, L>, Status> {
        let Planned { plan, interest, served, shown, shared, clock, weight, .. } = self;
        // Who asks for one state is given no other.
        let making = if matches!(plan.freshness, Freshness::Exact(_)) { Duration::ZERO } else { making };
        let of = ShownStore::of(&served, &plan).await?;
        let store = of.store();
        let reached = of.guard(Reached::by(store, &plan, &interest, &clock)).await??;
        reached.check(&interest)?;
        let after = plan.after(&interest);
        // It was foreseen, or there is more by now than the cache had then. With a selector it is a sample.
        let looked_at = || reached.snapshot.estimate(&interest, after.as_ref(), plan.limit).bytes;
        let is_shared = weight.of.bytes >= SHARED_LIST_BYTES_MIN || looked_at() >= SHARED_LIST_BYTES_MIN;
        let page = (reached, interest, after, plan.limit);
        let list = Listed::new(page, (served, shown), store.lists.clone(), timestamp(&clock), is_shared);
        let list = if is_shared {
            let among = Among { shared: &shared, store, clock: &clock };
            // What others made meanwhile may have failed to convert.
            of.guard(among.equals(list, making, waits)).await?
        } else {
            Arc::new(list)
        };
        // It may be of a later state than that, for which others have waited.
        list.reached.check(&list.interest)?;
        let looked_at = list.begin().await;
        let mut body = ListBody::new(list, true);
        body.seen.fetched = looked_at;
        if let Some(start) = body.list.start() {
            body.list.reached.remember(store, &start.meta);
        }
        Ok(Begun { body, lease })
    }
}

/// What a list is begun among.
struct Among<'a> {
    shared: &'a Shared,
    store: &'a Store,
    clock: &'a Clock,
}

impl Among<'_> {
    /// `list`, or the equal one that others read; of a later state, if those have gathered for one that want
    /// the same.
    async fn equals(&self, list: Listed, making: Duration, waits: impl FnOnce()) -> Arc<Listed> {
        let lists = &self.shared.lists;
        if making < GATHERED_MAKING_MIN {
            return lists.join(list);
        }
        if let Some(known) = lists.find(&list) {
            return known;
        }
        let Some(gathering) = self.shared.gatherings.join(list.wanted(), making, self.clock.now()) else {
            return lists.join(list);
        };
        waits();
        let state = gathering.state(&self.store.cacher, self.clock).await;
        // A cache that was filled anew meanwhile may be of another history.
        lists.join(match state.filter(|state| state.follows(list.snapshot())) {
            Some(state) => list.of_state(state, timestamp(self.clock)),
            None => list,
        })
    }
}

impl ListBody {
    /// From the first object on.
    fn new(list: Arc<Listed>, is_request: bool) -> ListBody {
        ListBody {
            after: list.start().and_then(|start| start.after.clone()),
            left: list.leaves_out(),
            list,
            scratch: Scratch::default(),
            state: State::Head,
            seen: SeenObjects::default(),
            is_request,
        }
    }

    /// The rest of it, for whoever makes the same as this one would. It counts as no list.
    pub fn fork(&self) -> ListBody {
        ListBody {
            list: self.list.clone(),
            after: self.after.clone(),
            left: self.left,
            scratch: Scratch::default(),
            state: self.state,
            seen: self.seen,
            is_request: false,
        }
    }

    pub(crate) fn list(&self) -> &Listed {
        &self.list
    }

    /// Whether it is looked for others who read the same.
    pub fn is_shared(&self) -> bool {
        self.list.is_shared
    }

    /// Whether both are of the same list: from its beginning, the same is made of both.
    pub fn is_same(&self, other: &ListBody) -> bool {
        Arc::ptr_eq(&self.list, &other.list)
    }

    /// What was looked at and returned.
    pub fn seen(&self) -> SeenObjects {
        self.seen
    }

    /// A fork did so much for it.
    pub fn add_seen(&mut self, SeenObjects { fetched, returned }: SeenObjects) {
        self.seen.fetched += fetched;
        self.seen.returned += returned;
    }

    /// What the list leaves out because it cannot be read, for `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        let mut left_out = self.list.snapshot().unreadable(&self.list.interest.reach);
        let text = |key: &Key| format!("left out of the list, because it cannot be read in the store: {key}");
        let mut warnings: Vec<String> = left_out.by_ref().take(LEFT_OUT_SHOWN_MAX).map(text).collect();
        match left_out.count() {
            0 => {}
            more => warnings.push(format!("left out of the list for the same reason: {more} more")),
        }
        warnings
    }

    /// Whether what the cache has deflated is part of the body as it is: a sink that wants it compressed
    /// finds it so.
    pub fn is_of_segments(&self) -> bool {
        let list = &self.list;
        self.left.is_none() && list.interest.is_unfiltered() && list.presenter.shows_bodies()
    }

    /// Appends about `chunk_bytes` of the body to `sink`, an object or a segment at least; false when the
    /// body is complete. Where little matches it is less, or nothing: it ends when it has looked for more
    /// long enough.
    pub fn next_chunk(&mut self, chunk_bytes: usize, sink: &mut impl Sink) -> bool {
        if self.state == State::Done {
            return false;
        }
        let list = self.list.clone();
        let (interest, presenter) = (&list.interest, &list.presenter);
        let Some(start) = list.start() else { return false };
        if self.state == State::Head {
            presenter.list_head(&start.meta, start.items_len, sink.text());
            self.state = State::FirstItem;
        }
        let begun = sink.bytes();
        let whole = self.is_of_segments();
        let mut last: Option<&Arc<Object>> = None;
        let mut ended = true;
        let rest = list.snapshot().candidates(interest, self.after.as_ref());
        let mut rest = if whole { Segments::new(rest) } else { Segments::one_by_one(rest) };
        let mut left_to_look = interest.objects_max(Interest::LOOKS_MAX);
        'walk: while let Some(Segment { objects, deflated }) = rest.next_segment() {
            // What is compressed in between takes less than it did.
            let taken = sink.bytes().saturating_sub(begun);
            let are_shown = || objects.iter().all(|object| presenter.shows_body(object));
            if let Some(deflated) = deflated.filter(|_| are_shown()) {
                if taken > 0 && taken + sink.deflated_bytes(deflated) > chunk_bytes {
                    ended = false;
                    break;
                }
                if self.state == State::Items {
                    sink.text().push(b',');
                }
                sink.deflated(deflated);
                self.seen.fetched += objects.len() as u64;
                self.seen.returned += objects.len() as u64;
                self.state = State::Items;
                last = objects.last().copied();
                continue;
            }
            for object in objects {
                if self.left == Some(0) {
                    break 'walk;
                }
                if left_to_look == 0 || sink.bytes().saturating_sub(begun) >= chunk_bytes {
                    ended = false;
                    break 'walk;
                }
                left_to_look -= 1;
                last = Some(object);
                self.seen.fetched += 1;
                if interest.selects(object) {
                    self.seen.returned += 1;
                    let is_first = self.state == State::FirstItem;
                    presenter.item_at_rest(object, &mut self.scratch, is_first, list.now, sink.text());
                    self.state = State::Items;
                    self.left = self.left.map(|left| left - 1);
                }
            }
        }
        drop(rest);
        if let Some(last) = last {
            self.after = Some(last.key().clone());
        }
        if ended {
            self.scratch.clear();
            presenter.list_tail(&start.meta, sink.text());
            self.state = State::Done;
        }
        true
    }
}

impl Drop for ListBody {
    fn drop(&mut self) {
        if self.is_request {
            let SeenObjects { fetched, returned } = self.seen;
            let count = ListCount { lists: 1, fetched, returned };
            self.list.counts.add(self.list.index_name(), count);
        }
    }
}

/// What a LIST's body is written to.
pub trait Sink {
    /// Where text goes.
    fn text(&mut self) -> &mut Vec<u8>;
    /// The plain text of these items comes next.
    fn deflated(&mut self, items: Deflated<'_>);
    /// Bytes that it has.
    fn bytes(&self) -> usize;
    /// How many they add to them.
    fn deflated_bytes(&self, items: Deflated<'_>) -> usize;
}

impl Sink for Vec<u8> {
    fn text(&mut self) -> &mut Vec<u8> {
        self
    }

    fn deflated(&mut self, items: Deflated<'_>) {
        items.inflate_into(self);
    }

    fn bytes(&self) -> usize {
        self.len()
    }

    fn deflated_bytes(&self, items: Deflated<'_>) -> usize {
        items.plain_len()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use forebay_apimachinery::options::ListOptions;
    use forebay_apimachinery::selector::LabelSelector;
    use serde_json::{Value, json};

    use super::*;
    use crate::As;
    use crate::gathering::Gatherings;
    use crate::limits::GATHERINGS_MAX;
    use crate::tests::{Tabs, World, config_maps};

    const MAKING: Duration = Duration::from_millis(100);

    /// ConfigMaps of 300 kB.
    async fn long() -> World {
        let world = config_maps(Some("default")).await;
        for number in 0..10 {
            world.put(&format!("o-{number}"), json!({}), json!({ "text": "x".repeat(30_000) })).await;
        }
        world
    }

    /// ConfigMaps `o-0` to `o-7`, of which the first and the last have the label `app`.
    async fn world() -> World {
        let world = config_maps(Some("default")).await;
        for number in 0..8 {
            let labels = if number % 7 == 0 { json!({ "app": "web" }) } else { json!({}) };
            world.put(&format!("o-{number}"), json!({ "labels": labels }), json!({})).await;
        }
        world
    }

    /// `last`, and so many requirements before it that one object is looked at in one go.
    fn laborious(last: &str, limit: i64) -> ListOptions {
        let many: String = (0..Interest::LOOKS_MAX / 2).map(|number| format!("!k{number},")).collect();
        let label_selector = LabelSelector::parse(&format!("{many}{last}")).expect("a selector");
        ListOptions { label_selector, limit, ..ListOptions::default() }
    }

    /// How often `work` lets others work, and what it comes to.
    async fn turns<T>(work: impl Future<Output = T>) -> (usize, T) {
        let mut work = std::pin::pin!(work);
        let mut turns = 0;
        let done = std::future::poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            turns += usize::from(polled.is_pending());
            polled
        });
        let done = done.await;
        (turns, done)
    }

    fn names(text: &[u8]) -> Vec<String> {
        let list: Value = serde_json::from_slice(text).expect("a list");
        let items = list["items"].as_array().expect("items");
        items.iter().map(|item| item["metadata"]["name"].as_str().expect("a name").to_string()).collect()
    }

    #[tokio::test]
    async fn a_piece_ends_where_it_was_looked_for_more_long_enough() {
        let world = world().await;
        let mut body = world.list(&laborious("app", 0)).await.expect("lists");
        let (mut out, mut added) = (Vec::new(), Vec::new());
        let mut before = 0;
        while body.next_chunk(1 << 20, &mut out) {
            added.push(out.len() > before);
            before = out.len();
        }
        assert_eq!(added, [true, false, false, false, false, false, false, true]);
        assert_eq!(names(&out), ["o-0", "o-7"]);
    }

    #[tokio::test]
    async fn what_comes_before_the_first_match_is_passed_over_a_part_at_a_time() {
        let world = world().await;
        let (passed, body) = turns(world.list(&laborious("none", 0))).await;
        assert!(passed >= 7, "{passed}");
        let (mut body, mut out) = (body.expect("lists"), Vec::new());
        assert!(body.next_chunk(1 << 20, &mut out) && !body.next_chunk(1 << 20, &mut out));
        assert!(names(&out).is_empty());
    }

    #[tokio::test]
    async fn the_end_of_a_page_is_looked_for_a_part_at_a_time() {
        let world = world().await;
        for (limit, want, more) in [(1, vec!["o-0"], true), (2, vec!["o-0", "o-7"], false)] {
            let (passed, body) = turns(world.list(&laborious("app", limit))).await;
            assert!(passed >= if more { 1 } else { 8 }, "{passed}");
            let (mut body, mut out) = (body.expect("lists"), Vec::new());
            while body.next_chunk(1 << 20, &mut out) {}
            assert_eq!(names(&out), want);
            assert_eq!(String::from_utf8_lossy(&out).contains("\"continue\":"), more);
        }
    }

    /// There is another state, and the cache has it.
    async fn written(world: &World) {
        world.put("o-a", json!({}), json!({})).await;
        drop(world.list(&ListOptions::default()).await.expect("lists"));
    }

    /// The body of a LIST of everything at any state, begun among equals that take long.
    async fn among_equals(world: &World, waits: &Cell<usize>) -> ListBody {
        let options = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
        let planned = world.planner.list(&world.target, &options, As::Object.into()).expect("is in order");
        let waits = || waits.set(waits.get() + 1);
        planned.run_among_equals((), MAKING, waits).await.expect("lists").body
    }

    #[tokio::test]
    async fn those_who_come_while_a_list_is_made_are_given_one_later_state() {
        let world = long().await;
        let gatherings = &world.planner.shared.gatherings;
        let first = world.list(&ListOptions::default()).await.expect("lists");
        written(&world).await;
        let (now, waits) = (world.clock.now(), Cell::new(0));
        // From here on time passes only here.
        tokio::time::pause();
        assert!(
            gatherings.join(first.list.wanted(), MAKING, world.clock.now()).is_none(),
            "the first one goes on"
        );
        let (second, third) = tokio::join!(among_equals(&world, &waits), among_equals(&world, &waits));
        assert!(world.clock.now() - now >= 2 * MAKING && waits.get() == 2, "{}", waits.get());
        assert!(second.is_same(&third) && !second.is_same(&first));
        // Who asks for a state that others read waits for nobody.
        let fourth = among_equals(&world, &waits).await;
        assert!(fourth.is_same(&second) && waits.get() == 2);
    }

    #[tokio::test]
    async fn a_list_that_gathers_is_refused_if_its_objects_fail_to_convert_meanwhile() {
        let tabs = Tabs::new().await;
        for number in 0..10 {
            tabs.put(&format!("t-{number}"), &"x".repeat(30_000)).await;
        }
        let plan = |options: &ListOptions| {
            tabs.planner.list(&tabs.target, options, As::Object.into()).expect("is in order")
        };
        let first = plan(&ListOptions::default()).run(()).await.expect("lists").body;
        tabs.put("u", "x").await;
        drop(plan(&ListOptions::default()).run(()).await.expect("lists"));
        tabs.put("v", "bad").await;
        tabs.converts.begun.notified().await;
        // From here on time passes only here.
        tokio::time::pause();
        let gatherings = &tabs.planner.shared.gatherings;
        assert!(gatherings.join(first.list.wanted(), MAKING, tabs.clock.now()).is_none());
        let any = ListOptions { resource_version: "0".into(), ..ListOptions::default() };
        let waits = || tabs.converts.fails.notify_one();
        let refused = plan(&any).run_among_equals((), MAKING, waits).await;
        assert_eq!(refused.err().expect("it fails to convert").message, "it is bad");
    }

    #[tokio::test]
    async fn one_who_waits_and_leaves_is_followed_by_the_next() {
        let world = long().await;
        let first = world.list(&ListOptions::default()).await.expect("lists");
        written(&world).await;
        tokio::time::pause();
        let waits = Cell::new(0);
        assert!(
            world.planner.shared.gatherings.join(first.list.wanted(), MAKING, world.clock.now()).is_none()
        );
        let mut leaves = Box::pin(among_equals(&world, &waits));
        let poll = std::future::poll_fn(|cx| std::task::Poll::Ready(leaves.as_mut().poll(cx).is_ready()));
        assert!(!poll.await);
        let stays = among_equals(&world, &waits);
        let (stays, ()) = tokio::join!(stays, async {
            tokio::task::yield_now().await;
            drop(leaves);
        });
        assert!(waits.get() == 2 && !stays.is_same(&first));
    }

    #[tokio::test]
    async fn a_list_is_begun_at_most_once_in_twice_the_time_that_it_takes() {
        let world = long().await;
        let all = world.list(&ListOptions::default()).await.expect("lists").list.clone();
        let few = ListOptions { limit: 3, ..ListOptions::default() };
        let page = world.list(&few).await.expect("lists").list.clone();
        let (gatherings, begin) = (Gatherings::default(), world.clock.now());
        let join = |list: &Listed, making, at_ms| {
            gatherings.join(list.wanted(), making, begin + Duration::from_millis(at_ms))
        };
        assert!(join(&all, MAKING, 0).is_none());
        assert!(join(&page, MAKING, 10).is_none(), "another list");
        let both = [30, 190].map(|at| join(&all, MAKING, at).expect("one to wait with"));
        assert!(Arc::ptr_eq(&both[0], &both[1]));
        // Those were let go at 200: the next ones at 400, and behind a pause nobody waits.
        let next = join(&all, MAKING, 210).expect("one to wait with");
        assert!(!Arc::ptr_eq(&next, &both[0]) && Arc::ptr_eq(&next, &join(&all, MAKING, 390).expect("it")));
        assert!(join(&all, MAKING, 700).is_none());
        // However long it takes, nobody waits longer than that.
        let long = Duration::from_secs(10);
        assert!(join(&all, long, 1_199).is_some() && join(&all, long, 1_701).is_none());
    }

    #[tokio::test]
    async fn of_too_many_lists_it_is_forgotten_when_the_oldest_were_begun() {
        let world = long().await;
        let (gatherings, now) = (Gatherings::default(), world.clock.now());
        let mut lists = Vec::new();
        for limit in 1..=GATHERINGS_MAX as i64 + 1 {
            let page = ListOptions { limit, ..ListOptions::default() };
            lists.push(world.list(&page).await.expect("lists").list.clone());
        }
        assert!(lists.iter().all(|list| gatherings.join(list.wanted(), MAKING, now).is_none()));
        assert!(gatherings.join(lists[1].wanted(), MAKING, now).is_some());
        assert!(gatherings.join(lists[0].wanted(), MAKING, now).is_none(), "it is begun anew");
    }
}
