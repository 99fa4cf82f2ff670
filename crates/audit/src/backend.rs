//! One place where events are kept, and how requests stand to it.
//!
//! In: an event in its forms. Out: what whoever made it waits for. Never: waits.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use forebay_room::Room;
use forebay_rt::{Clock, Tasks};
use tokio::sync::oneshot;

use crate::buffer::{Batches, Buffer};
use crate::counts::{AuditCounts, AuditPlugin};
use crate::kept::{Strictness, Waits};
use crate::legacy;
use crate::level::AuditStage;
use crate::limits::LOG_GATHERS_FOR;
use crate::line::{Forms, Line};
use crate::log::Log;
use crate::options::{AuditMode, LogFormat, TruncateOptions};
use crate::webhook::Webhook;

/// See the module's doc.
pub(crate) struct Backend {
    pub to: To,
    pub mode: AuditMode,
    pub truncate: TruncateOptions,
    /// Where events wait in [`AuditMode::Batch`].
    pub buffer: Option<Buffer>,
    pub counts: Arc<AuditCounts>,
    pub clock: Clock,
    /// What events hold is held of this.
    pub room: Arc<OnceLock<Room>>,
}

/// Where events are kept.
#[derive(Clone)]
pub(crate) enum To {
    Log(Log, LogFormat),
    Webhook(Webhook),
}

impl Backend {
    /// Takes an event; what is to be waited for goes to `waits`.
    pub fn take(&self, forms: &mut Forms<'_>, waits: &mut Waits) {
        let stage = forms.event().stage;
        if forms.within(&self.truncate).is_none() {
            let why = "event is too large even after truncating";
            return self.counts.lost(AuditPlugin::Truncate, 1, why, &self.clock);
        }
        let bytes = match &self.to {
            To::Log(_, LogFormat::Legacy) => Bytes::from(legacy::line(forms.event())),
            _ => forms.within(&self.truncate).cloned().unwrap_or_default(),
        };
        self.counts.begun(self.plugin());
        match (&self.buffer, &self.to) {
            (Some(buffer), _) => {
                let put = self.line(forms, bytes).and_then(|line| buffer.put(line));
                put.unwrap_or_else(|why| self.lost(AuditPlugin::Buffered, why));
            }
            (None, To::Log(log, _)) => {
                // As much as the queue of the file takes.
                let held = self.room.get().map(|room| room.charge(self.cost(&bytes)));
                let line = Line { bytes, held };
                match self.strictness() {
                    // Lines are written in their order: whoever waits for a later one has waited for this.
                    Strictness::Lenient if stage == AuditStage::RequestReceived => log.put(line),
                    strictness => waits.add(log.put_and_tell(line), strictness),
                }
            }
            (None, To::Webhook(webhook)) => {
                let told = match self.line(forms, bytes) {
                    Ok(line) => webhook.send_and_tell(line),
                    Err(why) => {
                        self.lost(AuditPlugin::Webhook, why);
                        // Nobody tells: it is not kept.
                        oneshot::channel().1
                    }
                };
                waits.add(told, self.strictness());
            }
        }
    }

    /// An event as it waits, if there is memory for that: else without its objects, which it says.
    fn line(&self, forms: &mut Forms<'_>, bytes: Bytes) -> Result<Line, &'static str> {
        let Some(room) = self.room.get() else { return Ok(Line { bytes, held: None }) };
        if let Some(held) = room.try_take(self.cost(&bytes)) {
            return Ok(Line { bytes, held: Some(held) });
        }
        drop(bytes);
        let short = match self.to {
            // It has none.
            To::Log(_, LogFormat::Legacy) => None,
            _ => forms.without_objects(),
        };
        let short = short.and_then(|bytes| room.try_take(self.cost(bytes)).map(|held| (bytes.clone(), held)));
        let (bytes, held) = short.ok_or("there is no memory for it")?;
        Ok(Line { bytes, held: Some(held) })
    }

    fn lost(&self, plugin: AuditPlugin, why: &str) {
        self.counts.settled(self.plugin(), 1);
        self.counts.lost(plugin, 1, why, &self.clock);
    }

    fn plugin(&self) -> AuditPlugin {
        match self.to {
            To::Log(..) => AuditPlugin::Log,
            To::Webhook(_) => AuditPlugin::Webhook,
        }
    }

    /// What is sent is there twice: as it is kept, and in the list that it is sent in.
    fn cost(&self, bytes: &Bytes) -> usize {
        match self.to {
            To::Log(..) => bytes.len(),
            To::Webhook(_) => 2 * bytes.len(),
        }
    }

    fn strictness(&self) -> Strictness {
        if self.mode == AuditMode::BlockingStrict { Strictness::Strict } else { Strictness::Lenient }
    }
}

impl To {
    /// Hands batches on until `tasks` are to end and nothing is left.
    pub async fn drain(self, mut batches: Batches, clock: Clock, tasks: Tasks) {
        while let Some(mut batch) = batches.next(tasks.shutdown()).await {
            match &self {
                To::Log(log, _) => {
                    // Nobody waits for it, and waking a thread to write one line takes longer than the line.
                    tokio::select! {
                        () = clock.sleep(LOG_GATHERS_FOR) => {}
                        () = tasks.shutdown().raised() => {}
                    }
                    batches.take_beside(&mut batch);
                    batch.into_iter().for_each(|line| log.put(line));
                    // The buffer is what waits, not the file's queue.
                    log.written().await;
                }
                To::Webhook(webhook) => webhook.send(batch).await,
            }
        }
    }
}
