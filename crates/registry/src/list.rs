//! LIST: a pinned snapshot, walked at the client's speed.

use std::sync::Arc;

use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::{Key, Revision, Status};
use forebay_catalog::Served;
use forebay_catalog::errors;
use forebay_catalog::store::Store;
use forebay_object::{Deflated, Object, Scratch, Segment, Segments};
use forebay_watchcache::{ExactPage, FieldSource, Interest, ReadError, Snapshot};

use crate::limits::{LEFT_OUT_SHOWN_MAX, MEASURE_BATCH};
use crate::plan::{Begun, Freshness, ListPlan, Planned};
use crate::present::{Encoding, ListMeta, Presenter, Shown};
use crate::wall_time::timestamp;
use forebay_catalog::counts::Counting;
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
    counting: Counting,
    // The block that the last object came from.
    scratch: Scratch,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    FirstItem,
    Items,
    Done,
}

impl Planned<ListPlan, Shown> {
    /// Finds the snapshot that is asked for.
    ///
    /// # Errors
    /// 410, 429 and 504 as reference §1.2 has them; never a list from the store.
    pub async fn run<L>(self, lease: L) -> Result<Begun<ListBody, L>, Status> {
        let Planned { plan, interest, served, store, shown, clock, .. } = self;
        let Page { snapshot, after, meta } = page(&store, &plan, &interest, &clock).await?;
        let counting = Counting::new(store.lists.clone(), index_name(&served, &snapshot, &interest));
        let mut body = ListBody {
            snapshot,
            interest,
            presenter: Presenter::new(served, shown),
            meta,
            items_len: 0,
            clock,
            after,
            left: plan.limit,
            counting,
            scratch: Scratch::default(),
            state: State::Head,
        };
        body.skip().await;
        if shown.encoding == Encoding::Protobuf {
            body.measure().await;
        }
        Ok(Begun { body, lease })
    }
}

/// The index that a list goes by, as kube-apiserver calls it; empty for none.
fn index_name(served: &Served, snapshot: &Snapshot, interest: &Interest) -> String {
    let field = match snapshot.indexed_term(interest).map(|term| &term.field) {
        Some(FieldSource::Indexed { fields, .. }) => {
            served.selectable.iter().find(|known| known.fields == *fields)
        }
        _ => None,
    };
    field.map_or_else(String::new, |field| format!("f:{}", field.label))
}

/// What a LIST shows: the part of a state after a place, and what the list says of itself.
pub struct Page {
    pub snapshot: Arc<Snapshot>,
    pub after: Option<Key>,
    pub meta: ListMeta,
}

/// The page that `plan` asks for.
///
/// # Errors
/// As [`Planned::run`].
pub async fn page(
    store: &Store,
    plan: &ListPlan,
    interest: &Interest,
    clock: &Clock,
) -> Result<Page, Status> {
    let cacher = &store.cacher;
    let deadline = clock.now() + forebay_watchcache::limits::FRESH_WAIT;
    let after = plan.start_after.as_deref().map(|start| place(interest_prefix(interest), start));
    let read = match plan.freshness {
        Freshness::Any => cacher.snapshot(),
        Freshness::Latest => cacher.fresh(deadline).await,
        Freshness::AtLeast(revision) => cacher.at_least(revision, deadline).await,
        Freshness::Exact(revision) => {
            let read = cacher.exact_page(revision, interest, after.as_ref(), plan.limit, deadline).await;
            return match read {
                Ok(ExactPage::Whole(state)) => {
                    Ok(Page::of(store, state, revision, plan, interest, after).await)
                }
                Ok(ExactPage::Part { snapshot, more, remaining }) => {
                    let meta = ListMeta { revision: Some(revision), remaining, ..ListMeta::default() };
                    Ok(Page::part(snapshot, meta, more, interest, after))
                }
                Err(ReadError::Expired { .. }) => Err(expired(plan)),
                Err(error) => Err(errors::cache(&error)),
            };
        }
    };
    let state = read.map_err(|error| errors::cache(&error))?;
    let revision = state.revision();
    Ok(Page::of(store, state, revision, plan, interest, after).await)
}

impl Page {
    /// The page of a whole state, which is shown as `rv`.
    async fn of(
        store: &Store,
        snapshot: Arc<Snapshot>,
        rv: Revision,
        plan: &ListPlan,
        interest: &Interest,
        after: Option<Key>,
    ) -> Page {
        let mut meta = ListMeta { revision: Some(rv), ..ListMeta::default() };
        if let Some(limit) = plan.limit {
            let (last, more) = if interest.is_unfiltered() {
                // The tree knows where the page ends, and how much comes behind it.
                let mut rest = snapshot.range(&interest.reach, after.as_ref());
                let last = limit.checked_sub(1).and_then(|place| rest.nth(place)).cloned();
                meta.remaining = Some(rest.len() as u64).filter(|remaining| last.is_some() && *remaining > 0);
                (last, meta.remaining.is_some())
            } else {
                end(&snapshot, interest, after.as_ref(), limit).await
            };
            if let (Some(last), true) = (last, more) {
                meta.continue_token = token(interest, &last, rv);
                store.cacher.remember(snapshot.clone());
            }
        }
        Page { snapshot, after, meta }
    }

    /// The page that is all of `part`.
    fn part(
        part: Arc<Snapshot>,
        mut meta: ListMeta,
        more: bool,
        interest: &Interest,
        after: Option<Key>,
    ) -> Page {
        let last = part.range(&interest.reach, after.as_ref()).next_back().filter(|_| more);
        let rv = part.revision();
        meta.continue_token = last.map(|last| token(interest, last, rv)).unwrap_or_default();
        Page { snapshot: part, after, meta }
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
    let start = &last.key().as_str()[interest_prefix(interest).len() - 1..];
    ContinueToken::after(start, ContinueAt::Revision(rv)).encode()
}

/// The place behind which a page begins with `start`. Our tokens end in a zero byte, which no key has; before any other
/// start there is room for a letter that no key has.
fn place(prefix: &str, start: &str) -> Key {
    let mut place = format!("{prefix}{start}");
    if let Some(last) = place.pop().filter(|last| *last != '\0') {
        place.extend(char::from_u32(u32::from(last) - 1));
        place.push(char::MAX);
    } else {
        place.push('\0');
    }
    Key::from(place)
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

impl ListBody {
    /// What the list leaves out because it cannot be read, for `Warning` headers.
    pub fn warnings(&self) -> Vec<String> {
        let mut left_out = self.snapshot.unreadable(&self.interest.reach);
        let text = |key: &Key| format!("left out of the list, because it cannot be read in the store: {key}");
        let mut warnings: Vec<String> = left_out.by_ref().take(LEFT_OUT_SHOWN_MAX).map(text).collect();
        match left_out.count() {
            0 => {}
            more => warnings.push(format!("left out of the list for the same reason: {more} more")),
        }
        warnings
    }

    /// Goes on to the first object that is shown, and lets others work in between: where few match, that is most of the
    /// work, and it is done before the answer begins.
    async fn skip(&mut self) {
        if self.interest.is_unfiltered() {
            return;
        }
        let batch_max = self.interest.objects_max(Interest::LOOKS_MAX);
        loop {
            let mut last: Option<&Arc<Object>> = None;
            let mut ended = true;
            let batch = self.snapshot.candidates(&self.interest, self.after.as_ref()).take(batch_max + 1);
            for (number, object) in batch.enumerate() {
                if self.interest.selects(object) {
                    break;
                }
                if number == batch_max {
                    ended = false;
                    break;
                }
                last = Some(object);
                self.counting.fetched += 1;
            }
            if let Some(last) = last {
                self.after = Some(last.key().clone());
            }
            if ended {
                return;
            }
            tokio::task::yield_now().await;
        }
    }

    /// Adds up what the items take. Makes the messages that were not made yet, which sending them would do anyway, and
    /// lets others work in between.
    async fn measure(&mut self) {
        let (mut after, mut left) = (self.after.clone(), self.left.unwrap_or(usize::MAX));
        let batch_max = self.interest.objects_max(Interest::LOOKS_MAX).min(MEASURE_BATCH);
        while left > 0 {
            let batch = self.snapshot.candidates(&self.interest, after.as_ref()).take(batch_max);
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

    /// Whether what the cache has deflated is part of the body as it is: a sink that wants it compressed finds it so.
    pub fn is_of_segments(&self) -> bool {
        self.left.is_none() && self.interest.is_unfiltered() && self.presenter.shows_bodies()
    }

    /// Appends about `chunk_bytes` of the body to `sink`, an object or a segment at least; false when the body is complete.
    /// Where little matches it is less, or nothing: it ends when it has looked for more long enough.
    pub fn next_chunk(&mut self, chunk_bytes: usize, sink: &mut impl Sink) -> bool {
        if self.state == State::Done {
            return false;
        }
        if self.state == State::Head {
            self.presenter.list_head(&self.meta, self.items_len, sink.text());
            self.state = State::FirstItem;
        }
        let begun = sink.bytes();
        let (now, whole) = (timestamp(&self.clock), self.is_of_segments());
        let mut last: Option<&Arc<Object>> = None;
        let mut ended = true;
        let rest = self.snapshot.candidates(&self.interest, self.after.as_ref());
        let mut rest = if whole { Segments::new(rest) } else { Segments::one_by_one(rest) };
        let mut left_to_look = self.interest.objects_max(Interest::LOOKS_MAX);
        'walk: while let Some(Segment { objects, deflated }) = rest.next_segment() {
            // What is compressed in between takes less than it did.
            let taken = sink.bytes().saturating_sub(begun);
            let are_shown = || objects.iter().all(|object| self.presenter.shows_body(object));
            if let Some(deflated) = deflated.filter(|_| are_shown()) {
                if taken > 0 && taken + sink.deflated_bytes(deflated) > chunk_bytes {
                    ended = false;
                    break;
                }
                if self.state == State::Items {
                    sink.text().push(b',');
                }
                sink.deflated(deflated);
                self.counting.fetched += objects.len() as u64;
                self.counting.returned += objects.len() as u64;
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
                self.counting.fetched += 1;
                if self.interest.selects(object) {
                    self.counting.returned += 1;
                    let is_first = self.state == State::FirstItem;
                    self.presenter.item_at_rest(object, &mut self.scratch, is_first, now, sink.text());
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
            self.presenter.list_tail(&self.meta, sink.text());
            self.state = State::Done;
        }
        true
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
    use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions};
    use forebay_apimachinery::selector::LabelSelector;
    use serde_json::{Value, json};

    use super::*;
    use crate::present::As;
    use crate::registry::Registry;
    use crate::request::{Body, Target};
    use crate::tests::config_maps;

    /// ConfigMaps `o-0` to `o-7`, of which the first and the last have the label `app`.
    async fn world() -> (Registry, Target) {
        let (registry, all) = config_maps(Some("default")).await;
        for number in 0..8 {
            let labels = if number % 7 == 0 { json!({ "app": "web" }) } else { json!({}) };
            let body = json!({ "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": { "name": format!("o-{number}"), "labels": labels } });
            let made = registry.create(&all, &Body::Value(body), &CreateOptions::default()).await;
            assert!(made.is_ok(), "o-{number}");
        }
        (registry, all)
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
        let (registry, all) = world().await;
        let mut body = registry.list(&all, &laborious("app", 0), As::Object).await.expect("lists");
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
        let (registry, all) = world().await;
        let (passed, body) = turns(registry.list(&all, &laborious("none", 0), As::Object)).await;
        assert!(passed >= 7, "{passed}");
        let (mut body, mut out) = (body.expect("lists"), Vec::new());
        assert!(body.next_chunk(1 << 20, &mut out) && !body.next_chunk(1 << 20, &mut out));
        assert!(names(&out).is_empty());
    }

    #[tokio::test]
    async fn the_end_of_a_page_is_looked_for_a_part_at_a_time() {
        let (registry, all) = world().await;
        for (limit, want, more) in [(1, vec!["o-0"], true), (2, vec!["o-0", "o-7"], false)] {
            let (passed, body) = turns(registry.list(&all, &laborious("app", limit), As::Object)).await;
            assert!(passed >= if more { 1 } else { 8 }, "{passed}");
            let (mut body, mut out) = (body.expect("lists"), Vec::new());
            while body.next_chunk(1 << 20, &mut out) {}
            assert_eq!(names(&out), want);
            assert_eq!(String::from_utf8_lossy(&out).contains("\"continue\":"), more);
        }
    }

    #[tokio::test]
    async fn the_delete_of_a_collection_lets_others_work() {
        let (registry, all) = world().await;
        let (selection, options) = (laborious("none", 0), DeleteOptions::default());
        let (passed, deleted) = turns(registry.delete_collection(&all, &selection, &options)).await;
        assert!(deleted.is_ok() && passed >= 8, "{passed}");
    }
}
