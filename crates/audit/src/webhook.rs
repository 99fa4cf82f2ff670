//! The webhook: lists of events that are sent to a server, again and again for a while where it does not
//! take them.
//!
//! In: lines. Out: whether they were taken. Never: makes a connection, which is for whoever is asked to
//! post; holds up what is not for it.
//!
//! Source: apiserver v0.36.3 `plugin/pkg/audit/webhook/webhook.go`, `pkg/util/webhook/webhook.go`.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use forebay_rt::{Clock, Duration, Random, Tasks};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

use crate::counts::{AuditCounts, AuditPlugin};
use crate::limits::{BLOCKING_MAX, PAUSE_AT_THE_END, SEND_ATTEMPTS, SEND_WAIT, SENDS_MAX};
use crate::line::{Line, event_list};

/// What came of a POST: taken, or why not.
pub type Posted<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// Carries a list of events to the server that wants it. Whoever waits no longer drops the future.
pub trait Posts: Send + Sync {
    /// - `parts`: the body, one after the other.
    fn post(&self, parts: Vec<Bytes>) -> Posted<'_>;
}

/// See the module's doc. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Webhook(Arc<Inner>);

struct Inner {
    posts: Arc<dyn Posts>,
    backoff: Duration,
    sends: Arc<Semaphore>,
    waiting: AtomicUsize,
    counts: Arc<AuditCounts>,
    clock: Clock,
    random: Random,
    tasks: Tasks,
}

impl Webhook {
    pub fn new(
        posts: Arc<dyn Posts>,
        backoff: Duration,
        counts: Arc<AuditCounts>,
        (clock, random, tasks): (Clock, Random, Tasks),
    ) -> Webhook {
        let sends = Arc::new(Semaphore::new(SENDS_MAX));
        let waiting = AtomicUsize::new(0);
        Webhook(Arc::new(Inner { posts, backoff, sends, waiting, counts, clock, random, tasks }))
    }

    /// Sends one event, and tells whether it was taken.
    pub fn send_and_tell(&self, line: Line) -> oneshot::Receiver<bool> {
        let (tell, told) = oneshot::channel();
        let inner = self.0.clone();
        let is_full = inner.waiting.fetch_add(1, Ordering::Relaxed) >= BLOCKING_MAX;
        // Where the server is gone nobody can send anything.
        if is_full || Handle::try_current().is_err() {
            inner.waiting.fetch_sub(1, Ordering::Relaxed);
            inner.counts.settled(AuditPlugin::Webhook, 1);
            inner.counts.lost(AuditPlugin::Webhook, 1, "too many events wait for the webhook", &inner.clock);
            return told;
        }
        self.0.tasks.spawn_graceful("audit event", async move {
            // It is never closed.
            let _turn = inner.sends.acquire().await;
            let is_taken = inner.send(vec![line]).await;
            inner.waiting.fetch_sub(1, Ordering::Relaxed);
            let _gone = tell.send(is_taken);
        });
        told
    }

    /// Sends a batch, once there is a turn for it; whoever calls goes on from then on.
    pub async fn send(&self, batch: Vec<Line>) {
        let Ok(turn) = self.0.sends.clone().acquire_owned().await else { return };
        let inner = self.0.clone();
        self.0.tasks.spawn_graceful("audit batch", async move {
            inner.send(batch).await;
            drop(turn);
        });
    }
}

impl Inner {
    /// Whether the server has taken it, at one of its attempts: those of other times, or where the server
    /// ends meanwhile as many that follow on each other.
    async fn send(&self, batch: Vec<Line>) -> bool {
        let is_taken = self.attempt(&batch).await;
        self.counts.settled(AuditPlugin::Webhook, batch.len());
        is_taken
            .inspect_err(|why| self.counts.lost(AuditPlugin::Webhook, batch.len(), why, &self.clock))
            .is_ok()
    }

    async fn attempt(&self, batch: &[Line]) -> Result<(), String> {
        let stop = self.tasks.shutdown();
        let (mut delay, mut is_end) = (self.backoff, false);
        let mut attempt = 1;
        loop {
            if !is_end && stop.is_raised() {
                (is_end, attempt, delay) = (true, 1, self.backoff.min(PAUSE_AT_THE_END));
            }
            let posted = tokio::select! {
                posted = self.posts.post(event_list(batch)) => posted,
                () = self.clock.sleep(SEND_WAIT) => Err("it does not answer".to_owned()),
            };
            match posted {
                Ok(()) => return Ok(()),
                // Where the server ends meanwhile there is another one.
                Err(why) if attempt >= SEND_ATTEMPTS && (is_end || !stop.is_raised()) => return Err(why),
                Err(_) => {}
            }
            tokio::select! {
                () = self.clock.sleep(delay.mul_f64(1.0 + self.jitter())) => {}
                () = stop.raised(), if !is_end => {}
            }
            attempt += 1;
            delay = delay.mul_f64(1.5);
        }
    }

    /// Up to a fifth.
    fn jitter(&self) -> f64 {
        self.random.below(200) as f64 / 1000.0
    }
}
