//! Puts at rest what is quiet: objects of the state into blocks with their neighbours in key order, and what only the window
//! still holds into blocks of its own. Nobody can tell, but by memory and time.
//!
//! Deflating happens in the background, one job at a time; the ingest task, which owns state and window, puts the results in
//! place: an object that changed meanwhile is left alone, and readers keep what they have.
//!
//! In: the state and the window. Out: the same with less behind them. Never: makes an event or a revision.

mod fill;
mod run;
mod tree;
mod window;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use forebay_apimachinery::object::RecentBlocks;
use forebay_revlog::Writer;
use forebay_rt::Background;

use crate::event::Event;
use crate::limits;
use crate::snapshot::Snapshot;
pub(crate) use fill::Resting;
use tree::{Renewed, Tree};
use window::Replaced;

/// Owned by the ingest task.
pub(crate) struct Sealing {
    recent: Arc<RecentBlocks>,
    window: Replaced,
    tree: Tree,
    work: Option<Background<Work>>,
    done: Option<Work>,
    turn: Turn,
}

/// Who is asked first for the next job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Window,
    Tree,
}

enum Work {
    Window(window::Batch),
    Tree(tree::Done),
}

impl Sealing {
    /// - `recent`: the blocks of this resource that were inflated last.
    pub(crate) fn new(pace: limits::Pace, recent: Arc<RecentBlocks>) -> Sealing {
        Sealing {
            recent,
            window: Replaced::default(),
            tree: Tree::new(pace),
            work: None,
            done: None,
            turn: Turn::Window,
        }
    }

    /// Waits until there is something for [`Sealing::go_on`] to put in place; for ever when nothing is being sealed.
    /// Cancel-safe.
    pub(crate) async fn finished(&mut self) {
        match &mut self.work {
            Some(work) if self.done.is_none() => {
                let done = work.finished().await;
                self.work = None;
                self.take(done);
            }
            Some(_) => {}
            None if self.done.is_some() => {}
            None => std::future::pending().await,
        }
    }

    /// Puts what is finished in place, and begins the next job. Whether the state's bytes are elsewhere now.
    pub(crate) fn go_on(
        &mut self,
        window: &mut Writer<Arc<Event>>,
        snapshot: &mut Snapshot,
        now_ms: u64,
    ) -> bool {
        self.take_finished();
        let renewed = match self.done.take() {
            Some(Work::Window(batch)) => {
                batch.put_in_place(window);
                false
            }
            Some(Work::Tree(done)) => put_in_place(self.tree.take(done), window, snapshot),
            None => false,
        };
        if self.work.is_none() {
            self.begin(window, snapshot, now_ms);
        }
        renewed
    }

    fn begin(&mut self, window: &Writer<Arc<Event>>, snapshot: &Snapshot, now_ms: u64) {
        for turn in [self.turn, self.turn.other()] {
            self.work = match turn {
                Turn::Window => {
                    let job = self.window.next_job(window, now_ms.saturating_sub(limits::SEAL_MS));
                    job.map(|job| {
                        let recent = self.recent.clone();
                        forebay_rt::background(move || Work::Window(job.seal(recent)))
                    })
                }
                Turn::Tree => {
                    let job = self.tree.next_job(window, snapshot, &self.recent, now_ms);
                    job.map(|job| forebay_rt::background(move || Work::Tree(job.run())))
                }
            };
            if self.work.is_some() {
                self.turn = turn.other();
                return;
            }
        }
    }

    /// Whether something is finished and not yet in place.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.take_finished();
        self.done.is_some()
    }

    fn take_finished(&mut self) {
        if let Some(Ok(done)) = self.work.as_mut().map(Background::try_finished) {
            self.work = None;
            self.take(done);
        }
    }

    fn take(&mut self, done: Option<Work>) {
        if done.is_none() {
            // Lost: the window's stay as they are, the state's are found again.
            self.tree.scan_again();
        }
        self.done = done;
    }

    /// Whether there is something that it has not looked at yet.
    pub(crate) fn is_behind(&self, window: &Writer<Arc<Event>>) -> bool {
        self.window.is_behind(window) || self.tree.is_behind(window)
    }
}

impl Turn {
    fn other(self) -> Turn {
        match self {
            Turn::Window => Turn::Tree,
            Turn::Tree => Turn::Window,
        }
    }
}

/// Puts each new form of an object where the old one is: in the state, and in the event that brought it.
fn put_in_place(renewed: Vec<Renewed>, window: &mut Writer<Arc<Event>>, snapshot: &mut Snapshot) -> bool {
    let mut any = false;
    for (old, new) in renewed {
        if snapshot.replace(&old, new.clone()) {
            any = true;
            window::renew(window, &old, &new, None);
        }
    }
    any
}
