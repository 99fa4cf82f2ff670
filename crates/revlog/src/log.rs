//! The log's shared state and its one writer.
//!
//! In: items with their revisions, and the time as the writer tells it. Out: a [`Log`], which makes cursors,
//! and what the log holds. Never: waits for a reader.

use std::collections::VecDeque;
// Of std, not of loom: a log's number is only compared, so loom has no interleaving to look at.
use std::sync::atomic::AtomicU64 as Ids;
use std::sync::{Arc, PoisonError};

use crate::cursor::{Cursor, Expired};
use crate::lane::{Lane, LaneReader, Place};
use crate::sync::{AtomicU64, BELL_ROWS, Bell, Ear, Ordering, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The next log's number in this process: a [`Position`](crate::Position) says with it which log it is in.
static NEXT_ID: Ids = Ids::new(0);

/// In [`Shared::end`] once the log is closed: no cursor may take it for the number of the next item.
const NO_END: u64 = u64::MAX;

/// How long nothing may be appended before [`Writer::evict`] gives spare capacity back.
const QUIET_MS: u64 = 10_000;

/// The number of the first item that is appended. The numbers below it are for items that [`Writer::prepend`]
/// puts in front.
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

/// What a log holds now, and counts of what it has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub items: usize,
    pub bytes: usize,
    /// Items that fit before the log has to allocate.
    pub capacity: usize,
    /// How often the capacity grew, and how often it shrank.
    pub grown: u64,
    pub shrunk: u64,
    /// Items that were evicted before they reached the greatest age, because the log was at its limit of
    /// items or bytes.
    pub pressed_out: u64,
}

/// The writing side. It is not `Clone`, because a log has one writer. Dropping it closes the log.
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
    // The sequence number of the next item; NO_END once the log has ended. To be looked at without the lock,
    // which all readers write to.
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
    /// - `batch`: (revision, item, bytes the item costs), revisions not decreasing and above everything
    ///   before.
    /// - `now_ms`: the time from which ages are counted. It may stand still, and never goes back.
    ///
    /// # Panics
    /// When a revision is at or below the progress already announced: a client would see an event after the
    /// bookmark that covers it.
    pub fn append(&mut self, batch: impl IntoIterator<Item = (u64, T, usize)>, now_ms: u64) {
        self.append_routed(batch, Vec::new(), now_ms);
    }

    /// As [`Writer::append`], and adds the items to lanes.
    ///
    /// - `routes`: an index into `batch` and a lane that this item belongs to. The indexes of one lane
    ///   ascend, and none is given twice.
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
        // The sort is stable, so that each lane's places stay in order. A lane gets all of a revision at
        // once.
        places.sort_by_key(|(lane, _)| lane.id());
        let lanes = || places.chunk_by(|(one, _), (next, _)| one.id() == next.id());
        for group in lanes() {
            group[0].0.push(group.iter().map(|(_, place)| *place), first_seq);
        }
        self.shared.progress.store(last, Ordering::Release);
        self.bell.ring();
        lanes().for_each(|group| group[0].0.ring());
    }

    /// Puts the items from before the log's beginning in front of it, so that history begins after `floor`.
    /// The limits apply as to all items: the oldest go first. Returns false, and changes nothing, when it was
    /// called before, or when the log has evicted something: then there would be a gap between `past` and
    /// what the log holds.
    ///
    /// - `past`: as for [`Writer::append`]: every item above `floor` and not above the log's beginning.
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

    /// Drops the places in `lane` of items that the log has evicted. An append to the lane does this, too; a
    /// lane to which nothing is appended needs this call.
    pub fn trim(&self, lane: &Lane) {
        let first_seq = self.shared.read().first_seq;
        lane.trim(first_seq);
    }

    /// Announces that no item at or below `revision` is still to come. Wakes nobody: readers look at
    /// progress, they do not wait for it.
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

    /// Closes the log because its history is no longer true: every cursor is told `Expired`, whatever it has
    /// read.
    pub fn lose(self) {
        self.shared.write().lost = true;
    }

    /// Evicts the items that are too old. [`Writer::append`] does this, too; a log to which nothing is
    /// appended needs this call. When nothing was appended for a while, most of the spare capacity is given
    /// back as well.
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

    /// Evicts the items at or below `upto`, because nobody will ask for them any more. The newest revision
    /// always stays.
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

    /// The number of the oldest item that is held; of the next one to be appended when none is.
    pub fn first_seq(&self) -> u64 {
        self.shared.read().first_seq
    }

    /// The number of the next item to be appended.
    pub fn next_seq(&self) -> u64 {
        let state = self.shared.read();
        state.first_seq + state.entries.len() as u64
    }

    /// At most `max` items, with their numbers, from number `seq` on, that were appended at `until_ms` or
    /// before.
    pub fn settled(&self, seq: u64, until_ms: u64, max: usize) -> Vec<(u64, T)> {
        let state = self.shared.read();
        let from = seq.saturating_sub(state.first_seq).min(state.entries.len() as u64) as usize;
        let settled = state.entries.range(from..).take(max).take_while(|entry| entry.at_ms <= until_ms);
        (state.first_seq + from as u64..).zip(settled.map(|entry| entry.item.clone())).collect()
    }

    /// Replaces held items by others that mean the same and take another number of bytes. Numbers of evicted
    /// items are skipped.
    ///
    /// - `renew`: is given an item, and returns the one to put in its place with its bytes, or `None` to
    ///   leave it.
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

    /// The highest revision that was appended at `ms` or before. Items that are no longer held are taken to
    /// be older than `ms`.
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
    /// A cursor that yields every item above `after`. Where `after` is still to come, it yields nothing until
    /// the log is past it.
    ///
    /// # Errors
    /// [`Expired`] when items above `after` were evicted.
    pub fn cursor(&self, after: u64) -> Result<Cursor<T>, Expired> {
        self.holds(after)?;
        Ok(Cursor::on_log(self.shared.clone(), self.bell.clone(), after, None))
    }

    /// A cursor that yields every item above `after` of one lane of this log. Where the lane begins after
    /// that, the cursor first yields the log's own items up to the lane's beginning, those of other interests
    /// among them.
    ///
    /// # Errors
    /// As [`Log::cursor`], whatever the lane holds: when the lane was made has no influence on how far back a
    /// cursor may start.
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

    /// The items in `(after, upto]`, newest first: whoever undoes them in this order goes back from `upto` to
    /// `after`.
    ///
    /// # Errors
    /// [`Expired`] when some of them were evicted.
    pub fn undo(&self, after: u64, upto: u64) -> Result<Vec<T>, Expired> {
        let state = self.shared.read();
        if after < state.floor {
            return Err(Expired { oldest: state.floor });
        }
        let from = state.entries.partition_point(|entry| entry.revision <= after);
        let to = state.entries.partition_point(|entry| entry.revision <= upto);
        Ok(state.entries.range(from..to).rev().map(|entry| entry.item.clone()).collect())
    }

    /// At most `max` items from number `seq` on, and the number of the next one.
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

    /// The revision that was announced last: no item at or below it is still to come.
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

    /// Whether `seq` is the number of the next item, and the log is still open.
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

/// Items for which capacity is kept, however few the log holds.
const LEAST_ROOM: usize = 64;

/// Gives capacity back once three quarters of it are unused, so that it does not stay after a burst
/// (kubernetes#139250).
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
