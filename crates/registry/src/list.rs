//! LIST: a pinned snapshot, walked at the client's speed.

use std::iter::Peekable;
use std::sync::Arc;

use forebay_apimachinery::continue_token::{ContinueAt, ContinueToken};
use forebay_apimachinery::object::{Block, Scratch};
use forebay_apimachinery::{Key, Object, Revision, Status};
use forebay_watchcache::{ExactPage, FieldSource, Interest, ReadError, Snapshot};
use jiff::Timestamp;

use crate::catalog::Served;
use crate::counts::Counting;
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
    let Page { snapshot, after, meta } = page(store, &plan, &interest, clock).await?;
    let counting = Counting::new(store.lists.clone(), index_name(served, &snapshot, &interest));
    let mut body = ListBody {
        snapshot,
        interest,
        presenter: Presenter::new(served.clone(), shown),
        meta,
        items_len: 0,
        clock: clock.clone(),
        after,
        left: plan.limit,
        counting,
        scratch: Scratch::default(),
        state: State::Head,
    };
    if shown.encoding == Encoding::Protobuf {
        body.measure().await;
    }
    Ok(body)
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
/// As [`list`].
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
                Ok(ExactPage::Whole(state)) => Ok(Page::of(store, state, revision, plan, interest, after)),
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
    Ok(Page::of(store, state, revision, plan, interest, after))
}

impl Page {
    /// The page of a whole state, which is shown as `rv`.
    fn of(
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
                let last = limit.checked_sub(1).and_then(|place| rest.nth(place));
                meta.remaining = Some(rest.len() as u64).filter(|remaining| last.is_some() && *remaining > 0);
                (last, meta.remaining.is_some())
            } else {
                let mut rest = snapshot.candidates(interest, after.as_ref());
                let last = rest.by_ref().filter(|object| interest.selects(object)).take(limit).last();
                // What comes next need not match: looking for one that does could take as long as the whole list.
                (last, rest.next().is_some())
            };
            if let (Some(last), true) = (last, more) {
                meta.continue_token = token(interest, last, rv);
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

/// Objects measured in one go: while their messages are made, a millisecond or two.
const MEASURE_BATCH: usize = 64;

/// Values that a list names as left out; of more it says how many.
const LEFT_OUT_SHOWN_MAX: usize = 5;

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

    /// Whether whole blocks of the cache are parts of the body as they are: a sink that wants them compressed finds them so.
    pub fn is_of_blocks(&self) -> bool {
        self.left.is_none() && self.interest.is_unfiltered() && self.presenter.shows_bodies()
    }

    /// Appends about `chunk_bytes` of the body to `sink`, an object or a block at least; false when the body is complete.
    pub fn next_chunk(&mut self, chunk_bytes: usize, sink: &mut impl Sink) -> bool {
        if self.state == State::Done {
            return false;
        }
        if self.state == State::Head {
            self.presenter.list_head(&self.meta, self.items_len, sink.text());
            self.state = State::FirstItem;
        }
        let begun = sink.bytes();
        let (now, whole) = (timestamp(&self.clock), self.is_of_blocks());
        let mut last: Option<&Arc<Object>> = None;
        let mut ended = true;
        let mut objects = self.snapshot.candidates(&self.interest, self.after.as_ref()).peekable();
        let mut run = Vec::new();
        'walk: while let Some(first) = objects.next() {
            let block = if whole {
                block_of(first, &mut objects, &mut run)
            } else {
                run.clear();
                run.push(first);
                None
            };
            // What is compressed in between takes less than it did.
            let taken = sink.bytes().saturating_sub(begun);
            if let Some(block) = block.filter(|_| run.iter().all(|object| self.presenter.shows_body(object)))
            {
                if taken > 0 && taken + sink.block_bytes(block) > chunk_bytes {
                    ended = false;
                    break;
                }
                if self.state == State::Items {
                    sink.text().push(b',');
                }
                sink.block(block);
                self.counting.fetched += run.len() as u64;
                self.counting.returned += run.len() as u64;
                self.state = State::Items;
                last = run.last().copied();
                continue;
            }
            for object in &run {
                if self.left == Some(0) {
                    break 'walk;
                }
                if sink.bytes().saturating_sub(begun) >= chunk_bytes {
                    ended = false;
                    break 'walk;
                }
                last = Some(object);
                self.counting.fetched += 1;
                if self.interest.selects(object) {
                    self.counting.returned += 1;
                    let shown = self.presenter.readable(object, &mut self.scratch);
                    self.presenter.item(&shown, self.state == State::FirstItem, now, sink.text());
                    self.state = State::Items;
                    self.left = self.left.map(|left| left - 1);
                }
            }
        }
        drop(objects);
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
    /// The plain text of a whole block comes next.
    fn block(&mut self, block: &Block);
    /// Bytes that it has.
    fn bytes(&self) -> usize;
    /// How many a block adds to them.
    fn block_bytes(&self, block: &Block) -> usize;
}

impl Sink for Vec<u8> {
    fn text(&mut self) -> &mut Vec<u8> {
        self
    }

    fn block(&mut self, block: &Block) {
        block.inflate_into(self);
    }

    fn bytes(&self) -> usize {
        self.len()
    }

    fn block_bytes(&self, block: &Block) -> usize {
        block.plain_len()
    }
}

/// The block that `first` and what comes next of `rest` are all of, if they are. `run` is what was taken for that: `first`
/// and its neighbours in the same block, whether they are all of it or not.
fn block_of<'a>(
    first: &'a Arc<Object>,
    rest: &mut Peekable<impl Iterator<Item = &'a Arc<Object>>>,
    run: &mut Vec<&'a Arc<Object>>,
) -> Option<&'a Arc<Block>> {
    run.clear();
    run.push(first);
    let mut at = first.part().filter(|part| part.index == 0)?;
    while run.len() < at.block.objects() {
        let next = rest.next_if(|next| next.part().is_some_and(|next| at.is_followed_by(&next)))?;
        at = next.part()?;
        run.push(next);
    }
    Some(at.block)
}

/// Wall time as the printers take it.
pub fn timestamp(clock: &Clock) -> Timestamp {
    Timestamp::from_millisecond(clock.unix_ms() as i64).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::object::{Form, Interner, Layout, Scope, Sealer};

    use super::*;

    fn objects(count: u64) -> Vec<Arc<Object>> {
        let layout = Layout { prefix_len: 10, scope: Scope::Cluster, form: Form::Typed, fields: Vec::new() };
        let object = |number: u64| {
            let value = format!(
                r#"{{"kind":"Foo","apiVersion":"v1","metadata":{{"name":"foo-{number}","uid":"u{number}"}},"spec":{{"text":"{}"}}}}"#,
                "the same in each of them, ".repeat(10)
            );
            let (key, revision) =
                (Key::from(format!("/registry/foo-{number:03}")), Revision::from_log(number + 1));
            let made = Object::decode(&layout, key, revision, value.as_bytes(), &mut Interner::default());
            Arc::new(made.expect("valid"))
        };
        (0..count).map(object).collect()
    }

    fn runs(objects: &[Arc<Object>]) -> Vec<(usize, bool)> {
        let (mut rest, mut run, mut found) = (objects.iter().peekable(), Vec::new(), Vec::new());
        while let Some(first) = rest.next() {
            let whole = block_of(first, &mut rest, &mut run).is_some();
            found.push((run.len(), whole));
        }
        found
    }

    #[test]
    fn a_block_is_whole_while_all_its_objects_are_there_in_order() {
        let plain = objects(8);
        let sealed: Vec<_> = Sealer::new(Arc::default()).seal(&plain);
        assert_eq!(runs(&sealed), [(8, true)]);
        assert_eq!(runs(&plain), [(1, false); 8]);
        let mut updated = sealed.clone();
        updated[3] = plain[3].clone();
        assert_eq!(runs(&updated), [(3, false), (1, false), (1, false), (1, false), (1, false), (1, false)]);
        assert_eq!(runs(&sealed[1..]), [(1, false); 7]);
        assert_eq!(runs(&sealed[..7]), [(7, false)]);
        let again: Vec<_> = Sealer::new(Arc::default()).seal(&objects(8));
        let mixed = [&sealed[..4], &again[4..]].concat();
        assert_eq!(runs(&mixed), [(4, false), (1, false), (1, false), (1, false), (1, false)]);
        assert_eq!(runs(&[sealed, again].concat()), [(8, true), (8, true)]);
    }
}
