//! Seals what only the window still holds: objects that were replaced or deleted some seconds ago.
//!
//! An object is in the window as the `current` of its own event and as the `previous` of the one that replaced it; both
//! get the sealed one in its place. Readers that hold an event keep what they have. Deflating happens on a thread of its
//! own, a batch at a time; the ingest task, which owns the window, puts the result in place.
//!
//! In: the window's events, oldest first. Out: the same events with less behind them. Never: touches the tree, or an event
//! that is younger than [`limits::SEAL_MS`].

use std::sync::Arc;

use forebay_apimachinery::Object;
use forebay_apimachinery::object::{RecentBlocks, Sealer};
use forebay_revlog::Writer;
use tokio::task::JoinHandle;

use crate::event::Event;
use crate::limits;

/// Owned by the ingest task.
pub(crate) struct Sealing {
    recent: Arc<RecentBlocks>,
    // The window's item to go on at.
    next_seq: u64,
    work: Option<JoinHandle<Batch>>,
    done: Option<Batch>,
}

/// Objects that are to be sealed, and what became of each.
struct Batch {
    // The item of the event that replaced the object, and the object.
    found: Vec<(u64, Arc<Object>)>,
    sealed: Vec<Option<Arc<Object>>>,
}

impl Sealing {
    pub(crate) fn new() -> Sealing {
        Sealing { recent: Arc::default(), next_seq: 0, work: None, done: None }
    }

    /// Waits until there is something for [`Sealing::go_on`] to put in place; for ever when nothing is being sealed.
    /// Cancel-safe.
    pub(crate) async fn finished(&mut self) {
        match &mut self.work {
            Some(work) if self.done.is_none() => {
                // Lost with its thread: then these stay as they are.
                self.done = work.await.ok();
                self.work = None;
            }
            Some(_) => {}
            None => std::future::pending().await,
        }
    }

    /// Puts what is finished in place, and begins the next batch.
    pub(crate) async fn go_on(&mut self, window: &mut Writer<Arc<Event>>, now_ms: u64) {
        if self.work.as_ref().is_some_and(JoinHandle::is_finished) {
            self.finished().await;
        }
        if let Some(batch) = self.done.take() {
            batch.put_in_place(window);
        }
        if self.work.is_none() {
            self.begin(window, now_ms.saturating_sub(limits::SEAL_MS));
        }
    }

    /// Lets go of what was inflated for readers of old events.
    pub(crate) fn let_go(&self) {
        self.recent.clear();
    }

    /// Whether something is finished and not yet in place.
    pub(crate) fn is_finished(&self) -> bool {
        self.done.is_some() || self.work.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Whether there are events that it has not looked at yet.
    pub(crate) fn is_behind(&self, window: &Writer<Arc<Event>>) -> bool {
        self.next_seq < window.next_seq()
    }

    fn begin(&mut self, window: &Writer<Arc<Event>>, until_ms: u64) {
        for _ in 0..limits::SEAL_LOOKS {
            let settled = window.settled(self.next_seq, until_ms, limits::SEAL_BATCH);
            let Some((last, _)) = settled.last() else { return };
            let (next_seq, whole) = (last + 1, settled.len() == limits::SEAL_BATCH);
            let replaced = |(seq, event): (u64, Arc<Event>)| Some((seq, event.previous.clone()?));
            let found: Vec<(u64, Arc<Object>)> = settled.into_iter().filter_map(replaced).collect();
            let bytes: usize = found.iter().map(|(_, object)| object.body_len()).sum();
            let worth_it = bytes >= limits::SEAL_BYTES_MIN;
            let patience_ms = until_ms.saturating_sub(limits::SEAL_PATIENCE_MS);
            if !worth_it && !whole && window.settled(self.next_seq, patience_ms, 1).is_empty() {
                // A trickle: more may come to be sealed with it.
                return;
            }
            self.next_seq = next_seq;
            if worth_it {
                let recent = self.recent.clone();
                self.work = Some(forebay_rt::blocking(move || Batch::seal(found, recent)));
                return;
            }
        }
    }
}

impl Batch {
    fn seal(found: Vec<(u64, Arc<Object>)>, recent: Arc<RecentBlocks>) -> Batch {
        let objects: Vec<Arc<Object>> = found.iter().map(|(_, object)| object.clone()).collect();
        let sealed = Sealer::new(recent).seal(&objects);
        Batch { found, sealed }
    }

    fn put_in_place(self, window: &mut Writer<Arc<Event>>) {
        for ((seq, plain), sealed) in self.found.into_iter().zip(self.sealed) {
            let Some(sealed) = sealed else { continue };
            let is_it =
                |object: &Option<Arc<Object>>| object.as_ref().is_some_and(|it| Arc::ptr_eq(it, &plain));
            let mut seqs: Vec<u64> = window.seqs_at(plain.revision().get()).collect();
            seqs.push(seq);
            window.replace(&seqs, |event| {
                let (previous, current) = (is_it(&event.previous), is_it(&event.current));
                let pick =
                    |is_it, old: &Option<Arc<Object>>| if is_it { Some(sealed.clone()) } else { old.clone() };
                let renewed = Event {
                    revision: event.revision,
                    previous: pick(previous, &event.previous),
                    current: pick(current, &event.current),
                };
                let bytes = renewed.cost_bytes();
                (previous || current).then(|| (Arc::new(renewed), bytes))
            });
        }
    }
}
