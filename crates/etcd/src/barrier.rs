//! What is current, at quorum: one read of etcd for everybody who asked before it was sent.
//!
//! In: questions, bounded. Out: the header of an answer that was asked for after the question came. One is in flight at a
//! time. Where several ask at once, the next is sent a [`BARRIER_PERIOD`](limits::BARRIER_PERIOD) later, so that etcd's load does not depend on
//! how many there are; one who asks alone does not wait.
//! Owner: one task.

use forebay_rt::{Clock, Instant};
use std::future::Future;
use tokio::sync::{mpsc, oneshot};

use crate::error::Fault;
use crate::limits;
use crate::messages::Header;

type Answer = Result<Header, Fault>;

/// Where to ask. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Barrier(mpsc::Sender<oneshot::Sender<Answer>>);

/// The questions.
pub(crate) struct Questions(mpsc::Receiver<oneshot::Sender<Answer>>);

pub(crate) fn barrier() -> (Barrier, Questions) {
    let (ask, questions) = mpsc::channel(limits::BARRIER_WAITING_MAX);
    (Barrier(ask), Questions(questions))
}

impl Barrier {
    pub(crate) async fn ask(&self) -> Answer {
        let (reply, answer) = oneshot::channel();
        let gone = || Fault::Unreachable { text: "the store is closed".to_string() };
        self.0.try_send(reply).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Fault::TooManyRequests,
            mpsc::error::TrySendError::Closed(_) => gone(),
        })?;
        answer.await.map_err(|_| gone())?
    }
}

impl Questions {
    /// Answers until nobody can ask any more.
    ///
    /// - `read`: reads what is current, in bounded time.
    pub(crate) async fn answer<F: Future<Output = Answer>>(mut self, clock: Clock, read: impl Fn() -> F) {
        let mut next_at: Option<Instant> = None;
        let mut asking = Vec::new();
        while self.0.recv_many(&mut asking, limits::BARRIER_WAITING_MAX).await > 0 {
            if let Some(at) = next_at.filter(|at| *at > clock.now()) {
                clock.sleep_until(at).await;
            }
            // Who came meanwhile came before it is sent.
            while let Ok(more) = self.0.try_recv() {
                asking.push(more);
            }
            next_at = (asking.len() > 1).then(|| clock.now() + limits::BARRIER_PERIOD);
            let answer = read().await;
            for reply in asking.drain(..) {
                // Who does not wait any more needs no answer.
                let _ = reply.send(answer.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thousand_reads_share_a_few_quorum_reads_and_none_is_older_than_its_question() {
        let (barrier, questions) = barrier();
        let (clock, sent) = (Clock::system(), &AtomicU64::new(0));
        let read = || async {
            // The number of the read at the time it is sent.
            let revision = sent.fetch_add(1, Ordering::Relaxed) + 1;
            Clock::system().sleep(limits::BARRIER_PERIOD / 2).await;
            Ok(Header { cluster: 1, revision })
        };
        let asking = async {
            for round in 0..5 {
                let before = sent.load(Ordering::Relaxed);
                let ask = |barrier: Barrier| tokio::spawn(async move { barrier.ask().await });
                let all: Vec<_> = (0..1_000).map(|_| ask(barrier.clone())).collect();
                let mut answers = Vec::new();
                for answer in all {
                    answers.push(answer.await.expect("no panic").expect("answered").revision);
                }
                assert!(answers.iter().all(|answer| *answer > before), "round {round}");
                assert!(sent.load(Ordering::Relaxed) <= before + 2, "one in flight, one behind it");
            }
        };
        let begun = clock.now();
        tokio::select! { () = questions.answer(clock.clone(), read) => {}, () = asking => {} }
        let periods = (clock.now() - begun).as_millis() / limits::BARRIER_PERIOD.as_millis();
        assert!(u128::from(sent.load(Ordering::Relaxed)) <= periods + 1, "at most one a period");
    }
}
