//! The two ends of a feed: what a follower puts in, and what the reader of a [`Feed`](forebay_backend::Feed)
//! takes out.
//!
//! Bounded in number and bytes: at the limit the follower waits, and with it its stream of etcd, nobody else.
//! Dropping the reading end ends the follower.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_backend::{BoxFuture, Change, FeedError, FeedStep, Follow};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use crate::cluster::Cluster;
use crate::limits;

/// What each change costs beside its key and value.
const OVERHEAD_BYTES: usize = 96;

/// The reading end.
pub(crate) struct Reader {
    parts: mpsc::Receiver<Part>,
    // Looked at by `ready`, not yet taken.
    next: Option<Part>,
    // Up to where the reader wants to be told.
    wanted: watch::Sender<u64>,
    // How it ended; told for ever.
    ended: Option<FeedError>,
    // Where it is noted that whoever reads the prefix was told to forget everything.
    cluster: Arc<Cluster>,
    prefix: Box<str>,
}

/// The writing end.
pub(crate) struct Writer {
    parts: mpsc::Sender<Part>,
    room: Arc<Semaphore>,
    wanted: watch::Receiver<u64>,
}

enum Part {
    /// Whole revisions; never empty.
    Changes(Vec<Change>, OwnedSemaphorePermit),
    Progress(Revision),
    End(FeedError),
}

/// The reader has gone.
pub(crate) struct Left;

/// - `prefix`: what it is a feed of.
pub(crate) fn feed(cluster: Arc<Cluster>, prefix: &str) -> (Writer, Reader) {
    let (sender, receiver) = mpsc::channel(limits::FEED_BATCHES_MAX);
    let (want, wanted) = watch::channel(0);
    let writer = Writer { parts: sender, room: Arc::new(Semaphore::new(limits::FEED_BYTES_MAX)), wanted };
    let prefix = prefix.into();
    (writer, Reader { parts: receiver, next: None, wanted: want, ended: None, cluster, prefix })
}

impl Writer {
    /// Hands over whole revisions; waits for room.
    pub(crate) async fn changes(&self, changes: Vec<Change>) -> Result<(), Left> {
        let cost = |change: &Change| {
            OVERHEAD_BYTES + change.key.as_str().len() + change.value.as_ref().map_or(0, bytes::Bytes::len)
        };
        // One batch that is larger than all room takes all of it.
        let bytes = changes.iter().map(cost).sum::<usize>().min(limits::FEED_BYTES_MAX);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(bytes as u32) => room.map_err(|_| Left)?,
            () = self.parts.closed() => return Err(Left),
        };
        self.parts.send(Part::Changes(changes, room)).await.map_err(|_| Left)
    }

    /// Says that everything up to `revision` was handed over; waits for room.
    pub(crate) async fn progress(&self, revision: Revision) -> Result<(), Left> {
        self.parts.send(Part::Progress(revision)).await.map_err(|_| Left)
    }

    /// Says how it ends.
    pub(crate) async fn end(self, error: FeedError) {
        // A reader that has left needs no end.
        let _ = self.parts.send(Part::End(error)).await;
    }

    /// Up to where the reader wants to be told now.
    pub(crate) fn wanted(&self) -> u64 {
        *self.wanted.borrow()
    }

    /// Waits until the reader wants to be told, also when it has wanted the same before. An error: it has
    /// left.
    pub(crate) async fn wants(&mut self) -> Result<(), Left> {
        self.wanted.changed().await.map_err(|_| Left)
    }

    /// Waits until the reader has left.
    pub(crate) async fn left(&self) {
        self.parts.closed().await;
    }
}

impl Follow for Reader {
    fn take(&mut self, changes: &mut Vec<Change>) -> Result<FeedStep, FeedError> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        let mut progress = None;
        loop {
            let part = match self.next.take().map_or_else(|| self.parts.try_recv(), Ok) {
                Ok(part) => part,
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => Part::End(FeedError::Closed),
            };
            match part {
                Part::Progress(revision) => progress = Some(revision),
                other if progress.is_some() => {
                    self.next = Some(other);
                    break;
                }
                Part::Changes(some, _room) => {
                    changes.extend(some);
                    return Ok(FeedStep::Changes);
                }
                Part::End(error) => {
                    if let FeedError::WentBack { .. } = error {
                        self.cluster.forget(&self.prefix);
                    }
                    self.ended = Some(error.clone());
                    return Err(error);
                }
            }
        }
        Ok(progress.map_or(FeedStep::Idle, FeedStep::Progress))
    }

    fn ready(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if self.next.is_none() && self.ended.is_none() {
                let end = || Part::End(FeedError::Closed);
                self.next = Some(self.parts.recv().await.unwrap_or_else(end));
            }
        })
    }

    fn hasten(&self, upto: Revision) {
        // What was said last counts: who waited for more may have given up.
        self.wanted.send_modify(|wanted| *wanted = upto.get());
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use forebay_apimachinery::Key;
    use forebay_rt::Clock;

    use super::*;

    fn feed() -> (Writer, Reader) {
        super::feed(Cluster::new(Clock::system()), "/")
    }

    fn change(revision: u64, bytes: usize) -> Change {
        let value = Some(Bytes::from(vec![b'x'; bytes]));
        Change { key: Key::new("/a"), revision: Revision::from_log(revision), value }
    }

    fn take(reader: &mut Reader) -> String {
        let mut changes = Vec::new();
        match reader.take(&mut changes) {
            Ok(FeedStep::Changes) => {
                changes.iter().map(|change| change.revision.to_string()).collect::<Vec<_>>().join(" ")
            }
            Ok(FeedStep::Progress(revision)) => format!("progress {revision}"),
            Ok(FeedStep::Idle) => "idle".to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn a_reader_is_told_changes_progress_and_the_end_in_order() {
        let (writer, mut reader) = feed();
        assert_eq!(take(&mut reader), "idle");
        for (step, revision) in [("c", 2), ("p", 3), ("p", 4), ("c", 5), ("p", 9)] {
            let told = match step {
                "c" => writer.changes(vec![change(revision, 1)]).await,
                _ => writer.progress(Revision::from_log(revision)).await,
            };
            assert!(told.is_ok());
        }
        writer.end(FeedError::Compacted { oldest: Revision::from_log(12) }).await;
        reader.ready().await;
        let told: Vec<_> = (0..6).map(|_| take(&mut reader)).collect();
        let end = "history before revision 12 is gone";
        assert_eq!(told, ["2", "progress 4", "5", "progress 9", end, end]);
    }

    #[tokio::test]
    async fn a_writer_waits_for_a_slow_reader_and_leaves_with_it() {
        let (writer, mut reader) = feed();
        let large = limits::FEED_BYTES_MAX * 2;
        assert!(writer.changes(vec![change(2, large)]).await.is_ok());
        let mut second = Box::pin(writer.changes(vec![change(3, 1)]));
        tokio::select! { biased; _ = &mut second => panic!("no room"), () = std::future::ready(()) => {} }
        assert_eq!(take(&mut reader), "2");
        assert!(second.await.is_ok());
        let third = writer.changes(vec![change(4, large)]);
        drop(reader);
        assert!(third.await.is_err());
    }

    #[tokio::test]
    async fn who_wants_more_is_heard_each_time() {
        let (mut writer, reader) = feed();
        // Less than before, when who wanted that has given up.
        for upto in [5, 5, 3, 8] {
            reader.hasten(Revision::from_log(upto));
            assert!(writer.wants().await.is_ok());
            assert_eq!(writer.wanted(), upto);
        }
        drop(reader);
        assert!(writer.wants().await.is_err());
    }
}
