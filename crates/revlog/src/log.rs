//! The log's shared state and its one writer.

use std::collections::VecDeque;
// Not loom's: threads share nothing by the numbers that logs have.
use std::sync::atomic::AtomicU64 as Ids;
use std::sync::{Arc, PoisonError};

use crate::cursor::{Cursor, Expired};
use crate::lane::{Lane, LaneReader, Place};
use crate::sync::{AtomicU64, BELL_ROWS, Bell, Ear, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// No two logs of a process are mistaken for each other.
static NEXT_ID: Ids = Ids::new(0);

/// Instead of the number of the next item: it says nothing any more.
const NO_END: u64 = u64::MAX;

/// A log to which nothing was appended for so long keeps little room for more.
const QUIET_MS: u64 = 10_000;

/// The number of the first item that is appended: below it there is room for what is put in front.
const FIRST_SEQ: u64 = 1 << 40;

/// What a log may hold. At a limit the oldest whole revisions are evicted; the newest revision always stays.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Items at most.
    pub items_max: usize,
    /// Bytes at most, as the writer counts them in [`Writer::append`].
    pub bytes_max: usize,
    /// Age at most, in the writer's milliseconds.
    pub age_ms_max: u64,
}

/// What a log holds now, and what became of what it held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub items: usize,
    pub bytes: usize,
    /// Items that there is room for.
    pub capacity: usize,
    /// How often the capacity grew, and how often it shrank.
    pub grown: u64,
    pub shrunk: u64,
    /// Items that were evicted before their age: at a limit of number or bytes.
    pub pressed_out: u64,
}

/// The one that appends. Not `Clone`: a log has one writer. Dropping it closes the log.
#[derive(Debug)]
pub struct Writer<T> {
    shared: Arc<Shared<T>>,
    bell: Bell,
    limits: Limits,
}

/// A log as its readers see it: makes cursors. Cheap to clone.
#[derive(Debug)]
pub struct Log<T> {
    shared: Arc<Shared<T>>,
    // Rings whenever something was appended or the log was closed.
    bell: Ear,
}

#[derive(Debug)]
pub(crate) struct Shared<T> {
    pub(crate) id: u64,
    state: RwLock<State<T>>,
    // The sequence number of the next item; NO_END once the log has ended. To be looked at without the lock, which all readers
    // write to.
    end: AtomicU64,
    // Everything at or below this revision has been appended.
    progress: AtomicU64,
}

#[derive(Debug)]
pub(crate) struct State<T> {
    // Oldest first; revisions never decrease.
    pub(crate) entries: VecDeque<Entry<T>>,
    // Sequence number of `entries[0]`.
    pub(crate) first_seq: u64,
    // Every item above this revision is held, or was never appended.
    pub(crate) floor: u64,
    // As it began: nothing was evicted yet, or put in front.
    is_whole: bool,
    bytes: usize,
    grown: u64,
    shrunk: u64,
    pressed_out: u64,
    pub(crate) closed: bool,
    // Nothing that is held counts any more: every cursor has missed something.
    pub(crate) lost: bool,
}

#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) revision: u64,
    pub(crate) item: T,
    bytes: usize,
    at_ms: u64,
}

impl<T: Clone> Writer<T> {
    /// An empty log whose history begins after revision `floor`: a cursor may start there or later.
    pub fn new(floor: u64, limits: Limits) -> Writer<T> {
        let state = State {
            entries: VecDeque::new(),
            first_seq: FIRST_SEQ,
            floor,
            is_whole: true,
            bytes: 0,
            grown: 0,
            shrunk: 0,
            pressed_out: 0,
            closed: false,
            lost: false,
        };
        let shared = Arc::new(Shared {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            state: RwLock::new(state),
            end: AtomicU64::new(FIRST_SEQ),
            progress: AtomicU64::new(floor),
        });
        Writer { shared, bell: Bell::new(BELL_ROWS), limits }
    }

    /// The reading side.
    pub fn log(&self) -> Log<T> {
        Log { shared: self.shared.clone(), bell: self.bell.ear() }
    }

    /// Appends whole revisions and moves progress to the last of them.
    ///
    /// - `batch`: (revision, item, bytes the item costs), revisions not decreasing and above everything before.
    /// - `now_ms`: the time that ages are counted in; may stand still, never goes back.
    ///
    /// # Panics
    /// When a revision is at or below the progress already announced: an event after its bookmark.
    pub fn append(&mut self, batch: impl IntoIterator<Item = (u64, T, usize)>, now_ms: u64) {
        self.append_routed(batch, Vec::new(), now_ms);
    }

    /// The same, and into lanes.
    ///
    /// - `routes`: which items of `batch`, by index, are in which lanes; ascending for each lane, each item once.
    pub fn append_routed(
        &mut self,
        batch: impl IntoIterator<Item = (u64, T, usize)>,
        routes: Vec<(usize, Lane)>,
        now_ms: u64,
    ) {
        let mut last = self.progress();
        let announced = last;
        let mut state = self.shared.write();
        let (base, room) = (state.entries.len(), state.entries.capacity());
        for (revision, item, bytes) in batch {
            assert!(revision > announced && revision >= last, "revision {revision} after {last}");
            last = revision;
            state.bytes += bytes;
            state.entries.push_back(Entry { revision, item, bytes, at_ms: now_ms });
        }
        state.grown += u64::from(state.entries.capacity() > room);
        let place = |(index, lane): (usize, Lane)| {
            let revision = state.entries[base + index].revision;
            (lane, Place { revision, seq: state.first_seq + (base + index) as u64 })
        };
        let mut places: Vec<(Lane, Place)> = routes.into_iter().map(place).collect();
        evict(&mut state, self.limits, now_ms);
        let first_seq = state.first_seq;
        let next_seq = first_seq + state.entries.len() as u64;
        self.shared.end.store(next_seq, Ordering::Release);
        drop(state);
        // Stable, so that each lane's places stay in order; a lane gets all of a revision at once.
        places.sort_by_key(|(lane, _)| lane.id());
        let lanes = || places.chunk_by(|(one, _), (next, _)| one.id() == next.id());
        for group in lanes() {
            group[0].0.push(group.iter().map(|(_, place)| *place), first_seq);
        }
        self.shared.progress.store(last, Ordering::Release);
        self.bell.ring();
        lanes().for_each(|group| group[0].0.ring());
    }

    /// Puts what was before the log's beginning in front of it, so that history begins after `floor`. The limits count what is in
    /// front first. Once only; nothing happens, and it says so, when the log has evicted something: that would be missing between.
    ///
    /// - `past`: as for [`Writer::append`], above `floor` and not above the beginning; all of what was between.
    ///
    /// # Panics
    /// When a revision is not between the two, or lower than the one before it.
    pub fn prepend(&mut self, floor: u64, past: Vec<(u64, T, usize)>, now_ms: u64) -> bool {
        let mut state = self.shared.write();
        if !std::mem::replace(&mut state.is_whole, false) {
            return false;
        }
        let begins = state.floor;
        assert!(floor <= begins, "a past after {floor} of a log after {begins}");
        let at_ms = state.entries.front().map_or(now_ms, |front| front.at_ms);
        state.first_seq -= past.len() as u64;
        state.floor = floor;
        let mut next = begins;
        for (revision, item, bytes) in past.into_iter().rev() {
            assert!(revision > floor && revision <= next, "revision {revision} before {next}");
            next = revision;
            state.bytes += bytes;
            state.entries.push_front(Entry { revision, item, bytes, at_ms });
        }
        evict(&mut state, self.limits, now_ms);
        true
    }

    /// Forgets the places in `lane` of what was evicted, also when nothing is appended to it any more.
    pub fn trim(&self, lane: &Lane) {
        let first_seq = self.shared.read().first_seq;
        lane.trim(first_seq);
    }

    /// Says that nothing at or below `revision` is still to come. Wakes nobody: progress is read, not awaited.
    pub fn announce(&mut self, revision: u64) {
        self.shared.progress.fetch_max(revision, Ordering::AcqRel);
    }

    /// What the log holds now.
    pub fn usage(&self) -> Usage {
        self.shared.usage()
    }

    /// The revision last announced.
    pub fn progress(&self) -> u64 {
        self.shared.progress.load(Ordering::Acquire)
    }

    /// Ends the log as one whose history is void: every cursor is told `Expired`, whatever it has read.
    pub fn lose(self) {
        self.shared.write().lost = true;
    }

    /// Evicts what has grown too old, also when nothing is appended any more. Then little room for more is kept.
    pub fn evict(&mut self, now_ms: u64) {
        let mut state = self.shared.write();
        let before = state.shrunk;
        evict(&mut state, self.limits, now_ms);
        if state.shrunk > before {
            return;
        }
        let newest = state.entries.back().map_or(0, |newest| newest.at_ms);
        let (held, room) = (state.entries.len(), state.entries.capacity());
        if now_ms.saturating_sub(newest) > QUIET_MS && room > LEAST_ROOM && room - held > held / 4 {
            shrink(&mut state, held + held / 8);
        }
    }

    /// Evicts what is at or below `upto`, because nobody will ask for it any more; the newest revision always stays.
    pub fn release(&mut self, upto: u64) {
        let mut state = self.shared.write();
        let Some(newest) = state.entries.back().map(|entry| entry.revision) else { return };
        while let Some(revision) = state.entries.front().map(|front| front.revision)
            && revision <= upto
            && revision != newest
        {
            drop_revision(&mut state, revision);
        }
        give_room_back(&mut state);
    }

    /// The number of the oldest item that is held, or else of the next.
    pub fn first_seq(&self) -> u64 {
        self.shared.read().first_seq
    }

    /// The number of the next item to be appended.
    pub fn next_seq(&self) -> u64 {
        let state = self.shared.read();
        state.first_seq + state.entries.len() as u64
    }

    /// About `max` items from number `seq` on that were appended at `until_ms` or before, with the number of each.
    pub fn settled(&self, seq: u64, until_ms: u64, max: usize) -> Vec<(u64, T)> {
        let state = self.shared.read();
        let from = seq.saturating_sub(state.first_seq).min(state.entries.len() as u64) as usize;
        let settled = state.entries.range(from..).take(max).take_while(|entry| entry.at_ms <= until_ms);
        (state.first_seq + from as u64..).zip(settled.map(|entry| entry.item.clone())).collect()
    }

    /// Puts something in the place of held items that says the same and costs other than it did. What was evicted is left
    /// alone.
    ///
    /// - `renew`: given the item, and the one to put there and its bytes if there is one.
    pub fn replace(&mut self, seqs: &[u64], mut renew: impl FnMut(&T) -> Option<(T, usize)>) {
        let mut state = self.shared.write();
        for seq in seqs {
            let Some(at) = seq.checked_sub(state.first_seq) else { continue };
            let Some(entry) = state.entries.get_mut(at as usize) else { continue };
            if let Some((item, bytes)) = renew(&entry.item) {
                let before = std::mem::replace(&mut entry.bytes, bytes);
                entry.item = item;
                state.bytes = state.bytes - before + bytes;
            }
        }
    }

    /// The highest revision that was appended at `ms` or before, as far as is known: what is no longer held is taken to be
    /// that old.
    pub fn reached_at(&self, ms: u64) -> u64 {
        let state = self.shared.read();
        let so_old = state.entries.partition_point(|entry| entry.at_ms <= ms);
        so_old.checked_sub(1).map_or(state.floor, |last| state.entries[last].revision)
    }

    /// The item with this number, while it is held.
    pub fn get(&self, seq: u64) -> Option<T> {
        let state = self.shared.read();
        let at = seq.checked_sub(state.first_seq)?;
        state.entries.get(at as usize).map(|entry| entry.item.clone())
    }

    /// The numbers of the items at `revision`.
    pub fn seqs_at(&self, revision: u64) -> std::ops::Range<u64> {
        let state = self.shared.read();
        let from = state.entries.partition_point(|entry| entry.revision < revision) as u64;
        let count =
            state.entries.range(from as usize..).take_while(|entry| entry.revision == revision).count();
        state.first_seq + from..state.first_seq + from + count as u64
    }

    /// Sets new limits; they take effect at once.
    pub fn set_limits(&mut self, limits: Limits, now_ms: u64) {
        self.limits = limits;
        self.evict(now_ms);
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        {
            let mut state = self.shared.write();
            state.closed = true;
            self.shared.end.store(NO_END, Ordering::Release);
        }
        self.bell.ring();
    }
}

impl<T: Clone> Log<T> {
    /// A cursor that yields every item above `after`. A future `after` waits in silence until the log passes it.
    ///
    /// # Errors
    /// [`Expired`] when items above `after` are gone already.
    pub fn cursor(&self, after: u64) -> Result<Cursor<T>, Expired> {
        self.holds(after)?;
        Ok(Cursor::on_log(self.shared.clone(), self.bell.clone(), after, None))
    }

    /// A cursor that yields every item of a lane of this log above `after`. Where the lane begins later than that, it
    /// begins with the log's own items up to there, those of other interests among them.
    ///
    /// # Errors
    /// As [`Log::cursor`], whatever the lane holds: how far back one may start depends on nobody else.
    pub fn lane_cursor(&self, lane: LaneReader, after: u64) -> Result<Cursor<T>, Expired> {
        self.holds(after)?;
        let floor = lane.floor();
        Ok(if after < floor {
            Cursor::on_log(self.shared.clone(), self.bell.clone(), after, Some((lane, floor)))
        } else {
            Cursor::on_lane(self.shared.clone(), lane, after)
        })
    }

    fn holds(&self, after: u64) -> Result<(), Expired> {
        match self.oldest() {
            oldest if after < oldest => Err(Expired { oldest }),
            _ => Ok(()),
        }
    }

    /// The items in `(after, upto]`, newest first: what must be undone to go back from `upto` to `after`.
    ///
    /// # Errors
    /// [`Expired`] when some of them are gone.
    pub fn undo(&self, after: u64, upto: u64) -> Result<Vec<T>, Expired> {
        let state = self.shared.read();
        if after < state.floor {
            return Err(Expired { oldest: state.floor });
        }
        let from = state.entries.partition_point(|entry| entry.revision <= after);
        let to = state.entries.partition_point(|entry| entry.revision <= upto);
        Ok(state.entries.range(from..to).rev().map(|entry| entry.item.clone()).collect())
    }

    /// About `max` items from number `seq` on, and the number of the next.
    pub fn page(&self, seq: u64, max: usize) -> (Vec<T>, u64) {
        let state = self.shared.read();
        let from = seq.saturating_sub(state.first_seq).min(state.entries.len() as u64) as usize;
        let items: Vec<T> = state.entries.range(from..).take(max).map(|entry| entry.item.clone()).collect();
        let next = state.first_seq + (from + items.len()) as u64;
        (items, next)
    }

    /// The lowest revision that a cursor may start after.
    pub fn oldest(&self) -> u64 {
        self.shared.read().floor
    }

    /// The revision up to which everything was appended.
    pub fn progress(&self) -> u64 {
        self.shared.progress()
    }

    /// The time at which the oldest held item was appended, as the writer counts it.
    pub fn begins_at_ms(&self) -> Option<u64> {
        self.shared.read().entries.front().map(|oldest| oldest.at_ms)
    }

    /// What the log holds now.
    pub fn usage(&self) -> Usage {
        self.shared.usage()
    }
}

impl<T> Clone for Log<T> {
    fn clone(&self) -> Log<T> {
        Log { shared: self.shared.clone(), bell: self.bell.clone() }
    }
}

impl<T> Shared<T> {
    fn usage(&self) -> Usage {
        let state = self.read();
        Usage {
            items: state.entries.len(),
            bytes: state.bytes,
            capacity: state.entries.capacity(),
            grown: state.grown,
            shrunk: state.shrunk,
            pressed_out: state.pressed_out,
        }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State<T>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State<T>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn progress(&self) -> u64 {
        self.progress.load(Ordering::Acquire)
    }

    /// Whether everything below `seq` is all there is, and more may come.
    pub(crate) fn ends_at(&self, seq: u64) -> bool {
        self.end.load(Ordering::Acquire) == seq
    }
}

/// Drops the oldest whole revisions until the limits hold; the newest revision always stays.
fn evict<T>(state: &mut State<T>, limits: Limits, now_ms: u64) {
    let Some(newest) = state.entries.back().map(|entry| entry.revision) else { return };
    while let Some(front) = state.entries.front() {
        let pressed = state.entries.len() > limits.items_max || state.bytes > limits.bytes_max;
        let aged = now_ms.saturating_sub(front.at_ms) > limits.age_ms_max;
        if !(pressed || aged) || front.revision == newest {
            break;
        }
        let revision = front.revision;
        let dropped = drop_revision(state, revision);
        state.pressed_out += if aged { 0 } else { dropped };
    }
    give_room_back(state);
}

/// Drops the oldest revision, whose number is `revision`; returns how many items it had.
fn drop_revision<T>(state: &mut State<T>, revision: u64) -> u64 {
    let before = state.first_seq;
    while state.entries.front().is_some_and(|entry| entry.revision == revision) {
        if let Some(entry) = state.entries.pop_front() {
            state.bytes -= entry.bytes;
            state.first_seq += 1;
        }
    }
    state.floor = revision;
    state.is_whole = false;
    state.first_seq - before
}

/// Places that are kept, however few are needed.
const LEAST_ROOM: usize = 64;

/// A burst leaves no lasting capacity behind (kubernetes#139250).
fn give_room_back<T>(state: &mut State<T>) {
    if state.entries.capacity() > LEAST_ROOM && state.entries.len() * 4 < state.entries.capacity() {
        let room = state.entries.len() * 2;
        shrink(state, room);
    }
}

fn shrink<T>(state: &mut State<T>, room: usize) {
    state.entries.shrink_to(room.max(LEAST_ROOM));
    state.shrunk += 1;
}
