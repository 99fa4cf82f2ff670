//! Equal lists in equal forms: their readers share what is made for them, down to the last byte.
//!
//! In: a list, its form, and how its answer is begun. Out: the answer, begun once for all who come together
//! or shortly after. Short ones are there whole; of long ones all read the same
//! [pieces](crate::shared_pieces).
//! Nothing in it depends on who asks: a list is known by its state and by what is shown of it
//! ([`ListBody::is_same`]), an answer by its form besides.
//!
//! A piece is kept for as long as somebody is yet to come to it, and all of an answer for
//! [`SHARED_ANSWER_WAIT`], if somebody else has asked for it: a lone reader who is [far](LONE_BYTES_MAX) into
//! its answer lets go of it and goes on by itself, and it is only remembered that it was asked for. Never:
//! more than a limit. There answers go first, the oldest before the others, so that only what readers need
//! stays, and then the oldest pieces: a reader who is so far behind makes its own.

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use forebay_reads::{ListBody, SeenObjects, Sought};
use forebay_rt::Clock;
use forebay_transport::BodySource;
use tokio::sync::OnceCell;

use crate::form::Form;
use crate::limits::{
    LONE_BYTES_MAX, SHARED_ANSWER_WAIT, SHARED_ANSWERS_MAX, SHARED_LISTS_BYTES_MAX, SHARED_LISTS_SHARE,
};
use crate::list_content::{ListAnswer, ListContent, MadeFor, SourceAnswer};
use crate::shared_pieces::{KeptBytes, PieceBytes, Place};
use crate::source::{ListSource, OfList as _};

/// Those of a server. Cheap to clone.
#[derive(Clone)]
pub struct SharedLists(Arc<Inner>);

struct Inner {
    clock: Clock,
    shelf: Mutex<Shelf>,
    kept: KeptBytes,
    bytes_max: usize,
    made: AtomicU64,
    shared: AtomicU64,
}

struct Shelf {
    // Oldest first, <= SHARED_ANSWERS_MAX.
    answers: VecDeque<Known>,
    // Places at which a piece was made, oldest first; at most twice as many as there are, and a few.
    pieces: VecDeque<Weak<Place>>,
    pieces_max: usize,
    // While memory is short, nothing is kept.
    is_short: bool,
}

struct Known {
    list: ListBody,
    form: Form,
    takes_gzip: bool,
    // By wall time, as Tables show ages.
    since_ms: u64,
    // `None` once its lone reader was far into it.
    begun: Option<Arc<OnceCell<Begun>>>,
    asked_by: AskedBy,
}

/// Who has asked for an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskedBy {
    One,
    Several,
}

/// An answer, as its readers share it.
#[derive(Clone)]
struct Begun {
    answer: ListAnswer<Arc<Place>>,
    seen: SeenObjects,
    // For all of one that is short, and for what a long one begins with.
    _kept: Arc<PieceBytes>,
}

/// One who reads a shared answer.
pub struct ListReader {
    lists: SharedLists,
    // The request's own, which counts what it was sent.
    list: ListBody,
    reads: Reads,
    // The answer that it began, until it is known whether that is its alone.
    alone: Option<Alone>,
    // Nothing of it was there, or made by another, so far.
    has_all_made: bool,
}

/// Where a reader has its pieces from.
enum Reads {
    Shared(Arc<Place>),
    // Nobody else is to have them.
    Own(Box<dyn ListSource>),
}

/// Somebody who may be the only one to read an answer.
struct Alone {
    begun: Weak<OnceCell<Begun>>,
    // Of what it has read.
    bytes: usize,
}

/// What was made of lists, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Pieces that were made, of all lists that may be shared.
    pub made: u64,
    /// Pieces that somebody else had made.
    pub shared: u64,
    /// Bytes that are kept.
    pub bytes: usize,
}

/// Pieces are counted anew when there are so many more than there were.
const PIECES_SLACK: usize = 64;

impl SharedLists {
    /// - `limit`: bytes that the process may take, if that is limited.
    pub fn new(clock: Clock, limit: Option<u64>) -> SharedLists {
        let share = limit.map_or(usize::MAX, |limit| (limit / SHARED_LISTS_SHARE) as usize);
        let shelf = Shelf {
            answers: VecDeque::new(),
            pieces: VecDeque::new(),
            pieces_max: PIECES_SLACK,
            is_short: false,
        };
        SharedLists(Arc::new(Inner {
            clock,
            shelf: Mutex::new(shelf),
            kept: KeptBytes::default(),
            bytes_max: share.min(SHARED_LISTS_BYTES_MAX),
            made: AtomicU64::new(0),
            shared: AtomicU64::new(0),
        }))
    }

    /// The answer that is `list` in that form, and for whom it was begun: by `begin`, unless somebody who
    /// asked for the same has done so. Cancel-safe: the next one begins it.
    ///
    /// # Errors
    /// Those of `begin`, which is then tried again by the next one.
    pub async fn open<E>(
        &self,
        mut list: ListBody,
        (form, takes_gzip): (Form, bool),
        begin: impl AsyncFnOnce(ListBody) -> Result<SourceAnswer, E>,
    ) -> Result<(ListAnswer<ListReader>, MadeFor), E> {
        let (place, asked_by) = self.find(&list, form, takes_gzip);
        let mut is_new = false;
        let fork = list.fork();
        let make = || async {
            is_new = true;
            begin(fork).await.map(|answer| self.share(answer))
        };
        let begun = place.get_or_try_init(make).await?.clone();
        let before = list.seen().fetched;
        let fetched = if is_new { begun.seen.fetched.saturating_sub(before) } else { 0 };
        list.add_seen(SeenObjects { fetched, returned: begun.seen.returned });
        if is_new {
            self.make_room();
        }
        if let ListContent::Whole(..) = begun.answer.content {
            self.count(is_new);
        }
        let alone = is_new.then(|| Alone { begun: Arc::downgrade(&place), bytes: 0 });
        let reader = |place| ListReader {
            lists: self.clone(),
            list,
            reads: Reads::Shared(place),
            alone,
            has_all_made: is_new,
        };
        let answer = begun.answer.map(reader);
        let made_for = match (is_new, asked_by) {
            (true, AskedBy::One) => MadeFor::This,
            (true, AskedBy::Several) => MadeFor::Several,
            (false, _) => MadeFor::Another,
        };
        Ok((answer, made_for))
    }

    /// Whether the answer that `sought` would be in that form is there, or is being made.
    pub fn has(&self, sought: &Sought, (form, takes_gzip): (Form, bool)) -> bool {
        let is = |known: &Known| {
            let is_begun = known.begun.as_ref().is_some_and(|begun| begun.initialized());
            is_begun && (known.form, known.takes_gzip) == (form, takes_gzip) && sought.is(&known.list)
        };
        let now = self.0.clock.unix_ms();
        let mut shelf = self.shelf();
        let gone = shelf.too_old(now);
        // Few: at most [`SHARED_ANSWERS_MAX`].
        let has = shelf.answers.iter().any(is);
        drop(shelf);
        drop(gone);
        has
    }

    /// Lets go of answers that nobody has begun to read for long; of all, and of pieces, while memory is
    /// short.
    pub fn let_go(&self, is_short: bool) {
        let now = self.0.clock.unix_ms();
        let mut shelf = self.shelf();
        shelf.is_short = is_short;
        let gone = shelf.too_old(now);
        drop(shelf);
        drop(gone);
        self.make_room();
    }

    pub fn totals(&self) -> Totals {
        let Inner { made, shared, kept, .. } = &*self.0;
        let [made, shared] = [made, shared].map(|count| count.load(Ordering::Relaxed));
        Totals { made, shared, bytes: kept.bytes() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.0.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where an answer is or is to be, and who has asked for it.
    fn find(&self, list: &ListBody, form: Form, takes_gzip: bool) -> (Arc<OnceCell<Begun>>, AskedBy) {
        let since_ms = self.0.clock.unix_ms();
        let mut shelf = self.shelf();
        let mut gone = shelf.too_old(since_ms);
        let is =
            |known: &Known| known.list.is_same(list) && (known.form, known.takes_gzip) == (form, takes_gzip);
        // Few: at most [`SHARED_ANSWERS_MAX`].
        let at = shelf.answers.iter().position(is);
        let known = at.and_then(|at| shelf.answers.get_mut(at));
        let there = known.and_then(|known| {
            known.asked_by = AskedBy::Several;
            known.begun.clone()
        });
        let asked_by = if at.is_some() { AskedBy::Several } else { AskedBy::One };
        let begun = there.unwrap_or_else(|| {
            // One that its lone reader let go of is begun again, and kept for those who come after.
            let mark = at.and_then(|at| shelf.answers.remove(at));
            gone.extend(mark);
            let begun = Arc::new(OnceCell::new());
            if !shelf.is_short {
                if shelf.answers.len() == SHARED_ANSWERS_MAX {
                    gone.extend(shelf.answers.pop_front());
                }
                shelf.answers.push_back(Known {
                    list: list.fork(),
                    form,
                    takes_gzip,
                    since_ms,
                    begun: Some(begun.clone()),
                    asked_by,
                });
            }
            begun
        });
        drop(shelf);
        drop(gone);
        (begun, asked_by)
    }

    /// Lets go of an answer that only one has asked for: what stays is that it was asked for.
    fn leave(&self, begun: &Weak<OnceCell<Begun>>) {
        let mut shelf = self.shelf();
        let is = |known: &&mut Known| {
            let has_it = |there: &Arc<_>| Arc::as_ptr(there) == begun.as_ptr();
            known.asked_by == AskedBy::One && known.begun.as_ref().is_some_and(has_it)
        };
        // Few: at most [`SHARED_ANSWERS_MAX`].
        let gone = shelf.answers.iter_mut().find(is).and_then(|known| known.begun.take());
        drop(shelf);
        drop(gone);
    }

    fn share(&self, answer: SourceAnswer) -> Begun {
        let (seen, bytes) = match &answer.content {
            ListContent::Whole(bytes, seen) => (*seen, bytes.len()),
            ListContent::Pieces { source, .. } => (source.seen(), source.held_bytes()),
        };
        let _kept = Arc::new(self.0.kept.keep(bytes));
        Begun { answer: answer.map(|source| Arc::new(Place::new(source))), seen, _kept }
    }

    fn count(&self, is_new: bool) {
        let count = if is_new { &self.0.made } else { &self.0.shared };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// A piece was made at `place`.
    fn note(&self, place: &Arc<Place>) {
        let mut shelf = self.shelf();
        shelf.pieces.push_back(Arc::downgrade(place));
        if shelf.pieces.len() >= shelf.pieces_max {
            shelf.pieces.retain(|place| place.strong_count() > 0);
            shelf.pieces_max = 2 * shelf.pieces.len() + PIECES_SLACK;
        }
        drop(shelf);
        self.make_room();
    }

    /// Takes out what is too much.
    fn make_room(&self) {
        loop {
            let mut shelf = self.shelf();
            let bytes_max = if shelf.is_short { 0 } else { self.0.bytes_max };
            if self.0.kept.bytes() <= bytes_max {
                return;
            }
            let answer = shelf.answers.pop_front();
            let piece = if answer.is_none() { shelf.pieces.pop_front() } else { None };
            drop(shelf);
            match (answer, piece) {
                (Some(answer), _) => drop(answer),
                (None, Some(place)) => place.upgrade().iter().for_each(|place| place.forget()),
                (None, None) => return,
            }
        }
    }
}

impl Shelf {
    /// Answers that were begun long ago, for who does not hold the lock any more.
    fn too_old(&mut self, now_ms: u64) -> Vec<Known> {
        // A clock that was set is not waited for.
        let wait_ms = SHARED_ANSWER_WAIT.as_millis();
        let is_old = |known: &&Known| u128::from(now_ms.abs_diff(known.since_ms)) >= wait_ms;
        let count = self.answers.iter().take_while(is_old).count();
        self.answers.drain(..count).collect()
    }
}

impl ListReader {
    /// Whether all that it was given was made for it.
    pub fn has_all_made(&self) -> bool {
        self.has_all_made
    }

    fn go_on(&mut self, bytes: usize, then: Arc<Place>, is_new: bool) {
        self.has_all_made &= is_new;
        let Reads::Shared(place) = &mut self.reads else { return };
        let passed = mem::replace(place, then);
        let seen = (passed.seen(), place.seen());
        if is_new {
            self.lists.note(&passed);
        }
        drop(passed);
        self.count(seen, is_new);
        if let Some(alone) = self.alone.as_mut() {
            alone.bytes += bytes;
            if alone.bytes > LONE_BYTES_MAX {
                self.part();
            }
        }
    }

    /// Goes on by itself, if nobody has come for the same.
    fn part(&mut self) {
        let (Some(alone), Reads::Shared(place)) = (self.alone.take(), &mut self.reads) else { return };
        self.lists.leave(&alone.begun);
        if let Some(place) = Arc::get_mut(place) {
            self.reads = Reads::Own(place.source());
        }
    }

    fn count(&mut self, (from, to): (SeenObjects, SeenObjects), is_new: bool) {
        let fetched = if is_new { to.fetched - from.fetched } else { 0 };
        self.list.add_seen(SeenObjects { fetched, returned: to.returned - from.returned });
        self.lists.count(is_new);
    }
}

impl BodySource for ListReader {
    fn fill(&mut self, out: &mut Vec<u8>) -> bool {
        let piece = self.piece();
        out.extend_from_slice(piece.as_deref().unwrap_or_default());
        piece.is_some()
    }

    fn piece(&mut self) -> Option<Bytes> {
        match &mut self.reads {
            Reads::Shared(place) => {
                let next = place.next(&self.lists.0.kept);
                let (piece, then) = next.piece?;
                self.go_on(piece.len(), then, next.is_new);
                Some(piece)
            }
            Reads::Own(source) => {
                let from = source.seen();
                let piece = source.piece()?;
                let to = source.seen();
                self.count((from, to), true);
                Some(piece)
            }
        }
    }

    fn made(&mut self) -> Option<Bytes> {
        let Reads::Shared(place) = &self.reads else { return None };
        let (piece, then) = place.next_made()?;
        self.go_on(piece.len(), then, false);
        Some(piece)
    }
}
