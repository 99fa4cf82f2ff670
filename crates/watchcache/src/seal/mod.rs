//! Puts quiet objects at rest: those of the state into blocks with their neighbours in key order, and those
//! that only the window still holds into blocks of their own, or behind their successors. It changes memory
//! and time, and nothing else.
//!
//! Deflating happens on background threads, one job of each kind at a time; in haste two jobs for the state.
//! The ingest task, which owns state and window, takes the results in: an object that changed meanwhile is
//! left alone, and readers keep what they have. When there is little room (`room.rs`), objects need not be
//! quiet first: loose ones are sealed at ordinary priority, the oldest first.
//!
//! In: the state and the window. Out: the same, in less memory. Never: makes an event or a revision.

mod fill;
mod run;
mod tree;
mod window;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod window_tests;

use std::sync::Arc;

use forebay_object::seal::RecentBlocks;
use forebay_revlog::Writer;
use forebay_rt::Background;

use crate::event::Event;
use crate::limits;
use crate::snapshot::Snapshot;
pub(crate) use fill::Resting;
use tree::{Renewed, Tree};
use window::Replaced;
pub(crate) use window::renew;

/// How soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Haste {
    /// What is quiet, behind everything else.
    None,
    /// Whatever is loose, oldest first, now: there is little room for more.
    Now,
}

/// Owned by the ingest task.
pub(crate) struct Sealing {
    recent: Arc<RecentBlocks>,
    window: Replaced,
    tree: Tree,
    window_job: Job<window::Batch>,
    // The second in haste alone.
    tree_jobs: [Job<tree::Done>; 2],
}

enum Job<T> {
    None,
    Running(Background<T>),
    // Nothing when it was lost.
    Finished(Option<T>),
}

impl Sealing {
    /// - `recent`: the blocks of this resource that were inflated last.
    /// - `seq`: the number of the window's first item.
    pub(crate) fn new(pace: limits::Pace, recent: Arc<RecentBlocks>, seq: u64) -> Sealing {
        Sealing {
            recent,
            window: Replaced::new(seq),
            tree: Tree::new(pace, seq),
            window_job: Job::None,
            tree_jobs: [Job::None, Job::None],
        }
    }

    /// Takes note of events that the window is given from number `seq` on.
    pub(crate) fn note<'a>(&mut self, seq: u64, events: impl Iterator<Item = &'a Arc<Event>>) {
        self.window.note(seq, events);
    }

    /// Bytes of objects that the window alone holds, in plain form.
    pub(crate) fn loose_bytes(&mut self, window: &Writer<Arc<Event>>) -> usize {
        self.window.loose_bytes(window)
    }

    /// Waits until there is something for [`Sealing::go_on`] to put in place; for ever when nothing is being
    /// sealed. Cancel-safe.
    pub(crate) async fn finished(&mut self) {
        let [first, second] = &mut self.tree_jobs;
        tokio::select! {
            biased;
            () = self.window_job.finished() => {}
            () = first.finished() => {}
            () = second.finished() => {}
        }
    }

    /// Puts what is finished in place, and begins the next jobs. Whether the state's bytes are elsewhere now.
    pub(crate) fn go_on(
        &mut self,
        window: &mut Writer<Arc<Event>>,
        snapshot: &mut Snapshot,
        haste: Haste,
        now_ms: u64,
    ) -> bool {
        if let Some(batch) = self.window_job.take() {
            self.window.sealed();
            batch.into_iter().for_each(|batch| batch.put_in_place(window));
        }
        let mut renewed = false;
        for job in &mut self.tree_jobs {
            match job.take() {
                Some(Some(done)) => renewed |= put_in_place(self.tree.take(done), window, snapshot),
                // Lost: what it was to seal is found again.
                Some(None) => self.tree.lost(),
                None => {}
            }
        }
        if self.window_job.is_none()
            && let Some(job) = self.window.next_job(window, haste, now_ms)
        {
            let recent = self.recent.clone();
            self.window_job = Job::Running(haste.run(move || job.seal(recent)));
        }
        // What is put behind its successor finds that in plain form: in haste the state follows the window.
        let upto_seq = if haste == Haste::Now { self.window.next_seq() } else { u64::MAX };
        // Both are in place first: what they seal may be neighbours.
        if self.tree_jobs.iter().all(Job::is_none) {
            let jobs = self.tree.next_jobs(window, snapshot, &self.recent, (haste, upto_seq), now_ms);
            for (place, job) in self.tree_jobs.iter_mut().zip(jobs) {
                *place = Job::Running(haste.run(move || job.run()));
            }
        }
        renewed
    }

    /// Whether something is finished and not yet in place.
    pub(crate) fn is_finished(&mut self) -> bool {
        self.window_job.is_finished() || self.tree_jobs.iter_mut().any(Job::is_finished)
    }

    /// Whether nothing is being sealed.
    pub(crate) fn is_idle(&self) -> bool {
        self.window_job.is_none() && self.tree_jobs.iter().all(Job::is_none)
    }

    /// Whether there is something that it has not looked at yet.
    pub(crate) fn is_behind(&self, window: &Writer<Arc<Event>>) -> bool {
        self.window.is_behind(window) || self.tree.is_behind(window)
    }
}

impl Haste {
    /// What was appended until when is looked at, if it is to be what was there at `old_ms`.
    fn until(self, old_ms: u64) -> u64 {
        match self {
            Haste::None => old_ms,
            Haste::Now => u64::MAX,
        }
    }

    fn run<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> Background<T> {
        match self {
            Haste::None => forebay_rt::background(work),
            Haste::Now => forebay_rt::promptly(work),
        }
    }
}

impl<T> Job<T> {
    fn is_none(&self) -> bool {
        matches!(self, Job::None)
    }

    async fn finished(&mut self) {
        match self {
            Job::Running(work) => *self = Job::Finished(work.finished().await),
            Job::Finished(_) => {}
            Job::None => std::future::pending().await,
        }
    }

    fn is_finished(&mut self) -> bool {
        if let Job::Running(work) = self
            && let Ok(done) = work.try_finished()
        {
            *self = Job::Finished(done);
        }
        matches!(self, Job::Finished(_))
    }

    /// What it made, once it is finished.
    fn take(&mut self) -> Option<Option<T>> {
        if !self.is_finished() {
            return None;
        }
        match std::mem::replace(self, Job::None) {
            Job::Finished(done) => Some(done),
            Job::None | Job::Running(_) => None,
        }
    }
}

/// Puts each new form of an object where the old one is: in the state, and in the event that brought it.
pub(crate) fn put_in_place(
    renewed: Vec<Renewed>,
    window: &mut Writer<Arc<Event>>,
    snapshot: &mut Snapshot,
) -> bool {
    let mut any = false;
    for (old, new) in renewed {
        if snapshot.replace(&old, new.clone()) {
            any = true;
            window::renew(window, &old, &new, None);
        }
    }
    any
}
