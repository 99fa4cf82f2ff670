//! What is current, at quorum: one read of etcd for everybody who asked before it was sent.
//!
//! In: questions, bounded. Out: the header of an answer that was asked for after the question came. One is in
//! flight at a time. Where several ask at once, each is sent a [`BARRIER_PERIOD`](limits::BARRIER_PERIOD)
//! after the one before at the earliest, so that etcd's load does not depend on how many there are; one who
//! has asked alone for a while does not wait. Owner: one task.

use forebay_rt::{Clock, Instant};
use std::future::Future;
use tokio::sync::{mpsc, oneshot};

use crate::error::RequestError;
use crate::limits;
use crate::messages::Header;

type Answer = Result<Header, RequestError>;

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
        let gone = || RequestError::Unreachable { text: "the store is closed".to_string() };
        self.0.try_send(reply).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => RequestError::TooManyRequests,
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
        // When the last was sent, and until when those who ask are taken for many.
        let mut sent_at: Option<Instant> = None;
        let mut many_until: Option<Instant> = None;
        let mut asking = Vec::new();
        loop {
            if asking.is_empty() && self.0.recv_many(&mut asking, limits::BARRIER_WAITING_MAX).await == 0 {
                return;
            }
            let next_at = sent_at.filter(|_| many_until.is_some_and(|until| clock.now() < until));
            if let Some(sent_at) = next_at {
                clock.sleep_until(sent_at + limits::BARRIER_PERIOD).await;
            }
            // Who came meanwhile came before it is sent.
            self.more(&mut asking);
            if asking.len() > 1 {
                many_until = Some(clock.now() + limits::BARRIER_MANY);
            }
            sent_at = Some(clock.now());
            let answer = read().await;
            for reply in asking.drain(..) {
                // Who does not wait any more needs no answer.
                let _ = reply.send(answer.clone());
            }
            self.more(&mut asking);
            if !asking.is_empty() {
                many_until = Some(clock.now() + limits::BARRIER_MANY);
            }
        }
    }

    /// Those who have come.
    fn more(&mut self, asking: &mut Vec<oneshot::Sender<Answer>>) {
        while let Ok(more) = self.0.try_recv() {
            asking.push(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use forebay_rt::Duration;

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

    /// Asks every `apart` for a while, and waits for no answer; how many quorum reads that takes, and how
    /// long it lasts.
    async fn asked_every(apart: Duration, takes: Duration) -> (u64, Duration) {
        let (barrier, questions) = barrier();
        let (clock, sent) = (Clock::system(), &AtomicU64::new(0));
        let read = || async {
            sent.fetch_add(1, Ordering::Relaxed);
            Clock::system().sleep(takes).await;
            Ok(Header { cluster: 1, revision: 1 })
        };
        let begun = clock.now();
        let asking = async {
            let mut all = Vec::new();
            for _ in 0..1_000 {
                let barrier = barrier.clone();
                all.push(tokio::spawn(async move { barrier.ask().await }));
                Clock::system().sleep(apart).await;
            }
            for answer in all {
                answer.await.expect("no panic").expect("answered");
            }
        };
        tokio::select! { () = questions.answer(clock.clone(), read) => {}, () = asking => {} }
        (sent.load(Ordering::Relaxed), clock.now() - begun)
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_alone_does_not_wait_and_many_who_trickle_in_share_as_those_who_come_at_once() {
        let ms = Duration::from_millis;
        // One at a time, each after the answer before.
        let (sent, _) = asked_every(ms(3), ms(1)).await;
        assert_eq!(sent, 1_000, "nobody to share with");
        // Never two that wait, but always one that comes while another is asked for.
        for (apart, takes) in [(ms(2), ms(3)), (ms(1), ms(5)), (ms(4), ms(9))] {
            let (sent, took) = asked_every(apart, takes).await;
            let periods = took.as_millis() / limits::BARRIER_PERIOD.as_millis();
            assert!(u128::from(sent) <= periods + 2, "{sent} in {took:?}");
        }
    }
}
