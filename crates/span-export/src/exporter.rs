//! The task that sends spans: it owns the queue's end, the batch in hand and the connection.

use std::sync::Arc;

use forebay_rt::{Clock, Instant, Tasks};
use forebay_spans::{Collector, EndedSpan, Tracer, otlp};
use tokio::sync::mpsc;

use crate::channel::{CollectorChannel, ExportError};
use crate::limits;

/// Where spans are sent, and as whose.
#[derive(Clone, Debug)]
pub struct ExportConfig {
    pub collector: Collector,
    /// What this process is called, and which one of them it is.
    pub service: (String, String),
}

struct Exporter {
    config: ExportConfig,
    tracer: Arc<Tracer>,
    clock: Clock,
    tasks: Tasks,
    channel: Option<CollectorChannel>,
    lost: Lost,
}

/// What did not reach a collector.
#[derive(Default)]
struct Lost {
    // Spans that were not taken, since it was said.
    untaken: usize,
    // Those that there was no room for, when it was said.
    dropped: u64,
    said: Option<Instant>,
}

/// Sends what comes out of `ended`, until the server leaves, and then what is left.
pub async fn run(
    config: ExportConfig,
    tracer: Arc<Tracer>,
    mut ended: mpsc::Receiver<EndedSpan>,
    clock: Clock,
    tasks: Tasks,
) {
    let shutdown = tasks.shutdown().clone();
    let mut exporter = Exporter { config, tracer, clock, tasks, channel: None, lost: Lost::default() };
    let mut batch = Vec::new();
    let leaving = async { shutdown.raised().await };
    let mut leaving = std::pin::pin!(leaving);
    loop {
        let full = exporter.gather(&mut batch, &mut ended);
        tokio::select! {
            () = full => exporter.send(&mut batch).await,
            () = &mut leaving => break,
        }
    }
    while batch.len() < limits::BATCH_MAX
        && let Ok(span) = ended.try_recv()
    {
        batch.push(span);
    }
    if !batch.is_empty() {
        let clock = exporter.clock.clone();
        let late = clock.sleep(limits::LEAVE_WAIT);
        tokio::select! { () = late => {}, () = exporter.send(&mut batch) => {} }
    }
}

impl Exporter {
    /// Waits until a batch is worth being sent. Cancel-safe: what came is in the batch.
    async fn gather(&self, batch: &mut Vec<EndedSpan>, ended: &mut mpsc::Receiver<EndedSpan>) {
        if batch.is_empty() {
            match ended.recv().await {
                Some(span) => batch.push(span),
                // Nobody is left who traces.
                None => std::future::pending().await,
            }
        }
        let deadline = self.clock.now() + limits::BATCH_WAIT;
        while batch.len() < limits::BATCH_MAX {
            tokio::select! {
                span = ended.recv() => match span {
                    Some(span) => batch.push(span),
                    None => return,
                },
                () = self.clock.sleep_until(deadline) => return,
            }
        }
    }

    /// Sends a batch, a second time on a new connection, and forgets it.
    async fn send(&mut self, batch: &mut Vec<EndedSpan>) {
        let (name, instance) = &self.config.service;
        let message = otlp::export((name, instance), batch.iter());
        let mut sent = self.try_send(&message).await;
        if sent.is_err() {
            self.channel = None;
            sent = self.try_send(&message).await;
        }
        if let Err(why) = sent {
            self.channel = None;
            self.lost.untaken += batch.len();
            self.complain(&why);
        }
        batch.clear();
    }

    async fn try_send(&mut self, message: &[u8]) -> Result<(), ExportError> {
        if self.channel.as_ref().is_none_or(CollectorChannel::is_closed) {
            let opened = tokio::select! {
                opened = CollectorChannel::open(&self.config.collector, &self.tasks) => opened?,
                () = self.clock.sleep(limits::CONNECT_WAIT) => {
                    return Err(ExportError::Unreachable("no answer".to_owned()));
                }
            };
            self.channel = Some(opened);
        }
        let Some(channel) = &mut self.channel else { return Err(ExportError::Lost(String::new())) };
        tokio::select! {
            sent = channel.call(otlp::PATH, message) => sent,
            () = self.clock.sleep(limits::EXPORT_WAIT) => Err(ExportError::Lost("no answer".to_owned())),
        }
    }

    /// Says what was lost, now and then.
    fn complain(&mut self, why: &ExportError) {
        let now = self.clock.now();
        if self.lost.said.is_some_and(|said| now.saturating_duration_since(said) < limits::COMPLAINT_PAUSE) {
            return;
        }
        let dropped = self.tracer.dropped();
        tracing::warn!(
            %why,
            untaken = self.lost.untaken,
            dropped = dropped - self.lost.dropped,
            "spans are lost"
        );
        self.lost = Lost { untaken: 0, dropped, said: Some(now) };
    }
}
