//! Seals the objects that only the window still holds, because they were replaced or deleted some seconds
//! ago. A replaced object is kept as its difference from its successor. Where that is not worth it, and when
//! it was deleted, it is deflated together with others that were replaced or deleted at about the same time.
//!
//! An object is in the window as the `current` of its own event and as the `previous` of the one that
//! replaced it; both get the sealed one in its place. It may be the successor in the `previous` of its own
//! event, which follows it then.
//!
//! In: the window's events, oldest first. Out: the same events, in less memory. Never: touches the state, or
//! an event that is younger than [`limits::SEAL_MS`].

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use forebay_object::Object;
use forebay_object::seal::{RecentBlocks, Sealer};
use forebay_revlog::Writer;

use super::Haste;
use crate::event::Event;
use crate::limits;

pub(super) struct Replaced {
    // The window's next item to look at.
    next_seq: u64,
    // Items from there on whose replaced objects are loose, oldest first, and how many bytes that is: each,
    // all of them, and of those that are being sealed.
    loose: VecDeque<(u64, usize)>,
    loose_bytes: usize,
    sealing_bytes: usize,
}

/// Objects that are to be sealed.
pub(super) struct Found {
    found: Vec<One>,
}

struct One {
    // The item of the event that replaced it.
    seq: u64,
    object: Arc<Object>,
    // The object that replaced it, in that event.
    next: Option<Arc<Object>>,
    // How many older objects are read through it, in events that were looked at before.
    chain: u8,
}

/// What became of each: the item of the event that replaced it, as it was, and as it is to be.
pub(super) struct Batch {
    sealed: Vec<(u64, Arc<Object>, Arc<Object>)>,
}

impl Replaced {
    pub(super) fn new(next_seq: u64) -> Replaced {
        Replaced { next_seq, loose: VecDeque::new(), loose_bytes: 0, sealing_bytes: 0 }
    }

    /// Notes events that are appended from number `seq` on.
    pub(super) fn note<'a>(&mut self, seq: u64, events: impl Iterator<Item = &'a Arc<Event>>) {
        for (seq, event) in (seq..).zip(events) {
            let bytes = event.previous.as_ref().map_or(0, |replaced| replaced.loose_bytes());
            if bytes > 0 {
                self.loose.push_back((seq, bytes));
                self.loose_bytes += bytes;
            }
        }
    }

    /// Bytes of replaced objects that the window still holds in plain form.
    pub(super) fn loose_bytes(&mut self, window: &Writer<Arc<Event>>) -> usize {
        self.pass(window.first_seq());
        self.loose_bytes + self.sealing_bytes
    }

    /// Those before number `seq` are no longer waited for.
    fn pass(&mut self, seq: u64) -> usize {
        let mut passed = 0;
        while let Some((_, bytes)) = self.loose.pop_front_if(|(at, _)| *at < seq) {
            passed += bytes;
        }
        self.loose_bytes -= passed;
        passed
    }

    fn is_loose_before(&self, seq: u64) -> bool {
        self.loose.front().is_some_and(|(at, _)| *at < seq)
    }

    /// The window's item to go on at: those before were looked at.
    pub(super) fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// Notes that the last batch is in place, or is lost and its objects stay as they are.
    pub(super) fn sealed(&mut self) {
        self.sealing_bytes = 0;
    }

    pub(super) fn is_behind(&self, window: &Writer<Arc<Event>>) -> bool {
        self.next_seq < window.next_seq()
    }

    pub(super) fn next_job(
        &mut self,
        window: &Writer<Arc<Event>>,
        haste: Haste,
        now_ms: u64,
    ) -> Option<Found> {
        let old_ms = now_ms.saturating_sub(limits::SEAL_MS);
        let patience_ms = old_ms.saturating_sub(limits::SEAL_PATIENCE_MS);
        let until_ms = haste.until(old_ms);
        // In haste until there is a job, or nothing more: the state follows.
        let looks = if haste == Haste::Now { usize::MAX } else { limits::SEAL_LOOKS };
        for _ in 0..looks {
            let settled = window.settled(self.next_seq, until_ms, limits::SEAL_BATCH);
            let (last, _) = settled.last()?;
            let (next_seq, whole) = (last + 1, settled.len() == limits::SEAL_BATCH);
            let replaced = settled.iter().filter_map(|(_, event)| event.previous.as_ref());
            let bytes: usize = replaced.map(|object| object.body_len()).sum();
            let in_haste = haste == Haste::Now && self.is_loose_before(next_seq);
            let worth_it = bytes >= limits::SEAL_BYTES_MIN || in_haste;
            if !worth_it
                && !whole
                && haste == Haste::None
                && window.settled(self.next_seq, patience_ms, 1).is_empty()
            {
                // Too little: more may come to be sealed with it.
                return None;
            }
            self.next_seq = next_seq;
            let loose = self.pass(next_seq);
            if worth_it {
                self.sealing_bytes = loose;
                let one = |(seq, event): (u64, Arc<Event>)| {
                    let object = event.previous.clone()?;
                    let chain = chain(window, &object);
                    Some(One { seq, object, next: event.current.clone(), chain })
                };
                return Some(Found { found: settled.into_iter().filter_map(one).collect() });
            }
        }
        None
    }
}

impl Found {
    /// One that was in a block of the state's leaves it, so that the block can go when its other objects
    /// have.
    pub(super) fn seal(self, recent: Arc<RecentBlocks>) -> Batch {
        let mut sealer = Sealer::new(recent);
        let (mut sealed, mut others) = (Vec::with_capacity(self.found.len()), Vec::new());
        // Successors in this batch -> how many are read through them.
        let mut chains: HashMap<*const Object, u8> = HashMap::new();
        for One { seq, object, next, chain } in self.found {
            let chain = chains.get(&Arc::as_ptr(&object)).copied().unwrap_or(chain);
            match next.as_ref().and_then(|next| sealer.put_behind(&object, next, chain)) {
                Some(delta) => {
                    chains.extend(next.iter().map(|next| (Arc::as_ptr(next), delta.chain())));
                    sealed.push((seq, object, delta));
                }
                None => others.push((seq, object)),
            }
        }
        let objects: Vec<Arc<Object>> = others.iter().map(|(_, object)| object.clone()).collect();
        let blocks = others.into_iter().zip(sealer.seal(&objects));
        sealed.extend(blocks.map(|((seq, old), new)| (seq, old, new)));
        // Whoever is read through another is in its place when that one moves.
        sealed.sort_unstable_by_key(|(seq, ..)| *seq);
        Batch { sealed }
    }
}

/// How many objects are read through `object`: its own event has the last of them.
fn chain(window: &Writer<Arc<Event>>, object: &Arc<Object>) -> u8 {
    let own = window
        .seqs_at(object.revision().get())
        .filter_map(|seq| window.get(seq))
        .find(|event| event.current.as_ref().is_some_and(|current| Arc::ptr_eq(current, object)));
    own.and_then(|event| event.previous.as_ref().map(|previous| previous.chain())).unwrap_or(0)
}

impl Batch {
    pub(super) fn put_in_place(self, window: &mut Writer<Arc<Event>>) {
        for (seq, old, new) in self.sealed {
            if !Arc::ptr_eq(&old, &new) {
                renew(window, &old, &new, Some(seq));
            }
        }
    }
}

/// Puts another form of an object in its place in the window.
///
/// - `replaced`: the item of the event that replaced it.
pub(crate) fn renew(
    window: &mut Writer<Arc<Event>>,
    old: &Arc<Object>,
    new: &Arc<Object>,
    replaced: Option<u64>,
) {
    let is_it = |object: &Option<Arc<Object>>| object.as_ref().is_some_and(|it| Arc::ptr_eq(it, old));
    let mut seqs: Vec<u64> = window.seqs_at(old.revision().get()).collect();
    seqs.extend(replaced);
    window.replace(&seqs, |event| {
        let (previous, current) = (is_it(&event.previous), is_it(&event.current));
        if let Some(before) = event.previous.as_ref().filter(|_| current) {
            before.follow(old, new);
        }
        let pick = |is_it, there: &Option<Arc<Object>>| if is_it { Some(new.clone()) } else { there.clone() };
        let renewed = Event {
            revision: event.revision,
            previous: pick(previous, &event.previous),
            current: pick(current, &event.current),
            is_of_hole: event.is_of_hole,
            hidden: event.hidden.clone(),
        };
        if let (true, Some(before), Some(next)) = (previous, &renewed.previous, &renewed.current) {
            // The successor may have moved while this one was being put behind it.
            before.read_through(next);
        }
        let bytes = renewed.cost_bytes();
        (previous || current).then(|| (Arc::new(renewed), bytes))
    });
}
