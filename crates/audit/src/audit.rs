//! What notes requests: a policy, and where events are kept.
//!
//! In: what is asked, by whom; events. Out: verdicts; what a request waits for. Never: keeps an event
//! itself.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use forebay_apimachinery::Attributes;
use forebay_room::Room;
use forebay_rt::{Clock, Duration, Random, Tasks};

use crate::backend::{Backend, To};
use crate::buffer::Buffer;
use crate::counts::AuditCounts;
use crate::event::AuditEvent;
use crate::kept::Waits;
use crate::line::Forms;
use crate::log::{Log, Sink};
use crate::log_file::LogFile;
use crate::options::{AuditMode, AuditOptions, BatchOptions, LogOptions, TruncateOptions};
use crate::panics;
use crate::policy::{AuditPolicy, AuditVerdict};
use crate::webhook::{Posts, Webhook};

/// See the module's doc. One for a server.
pub struct Audit {
    policy: AuditPolicy,
    // A log and a webhook, if there are both.
    backends: Vec<Backend>,
    counts: Arc<AuditCounts>,
    room: Arc<OnceLock<Room>>,
    clock: Clock,
    tasks: Tasks,
}

impl Audit {
    /// Begins to note what `policy` says. To be called within a runtime.
    ///
    /// - `posts`: who carries lists of events to the webhook, if there is one.
    ///
    /// # Errors
    /// The file cannot be made or written to.
    pub fn begin(
        policy: AuditPolicy,
        options: &AuditOptions,
        posts: Option<Arc<dyn Posts>>,
        clock: Clock,
        random: Random,
    ) -> io::Result<Audit> {
        panics::listen();
        let tasks = Tasks::new();
        let mut audit = Audit {
            policy,
            backends: Vec::new(),
            counts: Arc::default(),
            room: Arc::default(),
            clock: clock.clone(),
            tasks: tasks.clone(),
        };
        if let Some(log) = &options.log {
            let to = Log::new(sink(log, &clock)?, audit.counts.clone(), clock.clone());
            audit.add(To::Log(to, log.format), &log.batch, log.truncate);
        }
        if let Some((webhook, posts)) = options.webhook.as_ref().zip(posts) {
            let counts = audit.counts.clone();
            let to = Webhook::new(posts, webhook.backoff, counts, (clock, random, tasks));
            audit.add(To::Webhook(to), &webhook.batch, webhook.truncate);
        }
        Ok(audit)
    }

    fn add(&mut self, to: To, batch: &BatchOptions, truncate: TruncateOptions) {
        let buffer = (batch.mode == AuditMode::Batch).then(|| {
            let (buffer, batches) = Buffer::new(batch, &truncate, self.clock.clone());
            let drained = to.clone().drain(batches, self.clock.clone(), self.tasks.clone());
            self.tasks.spawn_graceful("audit buffer", drained);
            buffer
        });
        self.backends.push(Backend {
            to,
            mode: batch.mode,
            truncate,
            buffer,
            counts: self.counts.clone(),
            clock: self.clock.clone(),
            room: self.room.clone(),
        });
    }

    /// From now on events are held of `room`, which nobody waits for.
    pub fn hold_of(&self, room: Room) {
        let _first = self.room.set(room);
    }

    /// What is noted of a request. It is counted.
    pub fn verdict(&self, asked: &Attributes<'_>) -> AuditVerdict {
        let verdict = self.policy.verdict(asked);
        self.counts.level(verdict.level);
        verdict
    }

    /// Hands an event to whatever keeps it.
    pub fn process(&self, event: &AuditEvent) -> Waits {
        self.counts.event();
        let (mut forms, mut waits) = (Forms::new(event), Waits::default());
        self.backends.iter().for_each(|backend| backend.take(&mut forms, &mut waits));
        waits
    }

    /// A request is refused because it could not be noted.
    pub fn rejected(&self) {
        self.counts.reject();
    }

    pub fn counts(&self) -> &Arc<AuditCounts> {
        &self.counts
    }

    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Hands out what still waits, for as long as `limit`. What is not kept by then is lost, and counted.
    pub async fn finish(&self, limit: Duration) {
        let deadline = self.clock.now() + limit;
        let _in_time = self.tasks.stop(limit).await;
        for backend in &self.backends {
            if let To::Log(log, _) = &backend.to {
                tokio::select! {
                    () = log.written() => {}
                    () = self.clock.sleep_until(deadline) => {}
                }
            }
        }
        self.counts.give_up();
    }
}

fn sink(log: &LogOptions, clock: &Clock) -> io::Result<Sink> {
    if log.path == Path::new("-") {
        return Ok(Sink::StandardOutput);
    }
    Ok(Sink::File(Box::new(LogFile::ensure(log, clock.clone())?)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use bytes::Bytes;
    use forebay_room::Limit;
    use forebay_scratch::Scratch;

    use super::*;
    use crate::counts::AuditPlugin;
    use crate::event::an_event;
    use crate::kept::Unkept;
    use crate::level::AuditStage;
    use crate::line::{Forms, TRUNCATED};
    use crate::options::{LogFormat, NO_LIMIT, WebhookOptions, batch};
    use crate::webhook::Posted;

    /// A server that keeps what it is sent, or refuses it.
    #[derive(Default)]
    struct Server {
        is_dead: AtomicBool,
        attempts: Mutex<usize>,
        bodies: Mutex<Vec<String>>,
    }

    impl Posts for Server {
        fn post(&self, parts: Vec<Bytes>) -> Posted<'_> {
            *self.attempts.lock().expect("whole") += 1;
            if self.is_dead.load(Ordering::Relaxed) {
                return Box::pin(std::future::ready(Err("dead".to_owned())));
            }
            let text = String::from_utf8(parts.concat()).expect("a text");
            self.bodies.lock().expect("whole").push(text);
            Box::pin(std::future::ready(Ok(())))
        }
    }

    fn webhook(mode: AuditMode) -> (Audit, Arc<Server>) {
        let server = Arc::new(Server::default());
        let webhook =
            WebhookOptions { backoff: Duration::from_secs(10), batch: batch(mode), truncate: NO_LIMIT };
        let options = AuditOptions { log: None, webhook: Some(webhook) };
        let (clock, random) = (Clock::system(), Random::seeded(1));
        let audit = Audit::begin(AuditPolicy::default(), &options, Some(server.clone()), clock, random);
        (audit.expect("begun"), server)
    }

    fn lost(audit: &Audit) -> Vec<(AuditPlugin, u64)> {
        audit.counts().errors().filter(|(_, count)| *count > 0).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn a_webhook_gets_batches_and_at_the_end_the_rest() {
        let (audit, server) = webhook(AuditMode::Batch);
        for _ in 0..3 {
            assert!(audit.process(&an_event()).is_empty());
        }
        audit.finish(Duration::from_secs(5)).await;
        let bodies = server.bodies.lock().expect("whole").clone();
        let events: Vec<usize> = bodies.iter().map(|body| body.matches("auditID").count()).collect();
        assert_eq!((events.as_slice(), audit.counts().events()), (&[2, 1][..], 3));
        assert!(lost(&audit).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_webhook_is_asked_five_times_and_what_it_does_not_take_is_counted() {
        let (audit, server) = webhook(AuditMode::Blocking);
        server.is_dead.store(true, Ordering::Relaxed);
        let begun = audit.clock().now();
        assert_eq!(audit.process(&an_event()).kept().await, Ok(()));
        let took = (audit.clock().now() - begun).as_secs();
        // 10, 15, 22.5 and 33.75 seconds, and up to a fifth more.
        assert!((81..98).contains(&took), "{took}");
        assert_eq!(*server.attempts.lock().expect("whole"), 5);
        assert_eq!(lost(&audit), [(AuditPlugin::Webhook, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_must_not_lose_an_event_is_told_of_it() {
        let (audit, server) = webhook(AuditMode::BlockingStrict);
        assert_eq!(audit.process(&an_event()).kept().await, Ok(()));
        server.is_dead.store(true, Ordering::Relaxed);
        assert_eq!(audit.process(&an_event()).kept().await, Err(Unkept));
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_is_held_of_a_room_and_goes_without_its_objects_or_is_lost_where_that_is_full() {
        let (audit, server) = webhook(AuditMode::Batch);
        let mut long = an_event();
        long.request_object = Some(Bytes::from(vec![b'1'; 5_000]));
        let short = 2 * Forms::new(&long).without_objects().expect("it has some").len();
        // Room for one that is whole, for one that is not, and for a half.
        let room = Room::new(Clock::system(), Limit::Strict(10_000 + 2 * short + short / 2));
        audit.hold_of(room.clone());
        for _ in 0..3 {
            audit.process(&long);
        }
        assert!(room.totals().held > 10_000 + short, "{}", room.totals().held);
        assert_eq!(lost(&audit), [(AuditPlugin::Buffered, 1)]);
        audit.finish(Duration::from_secs(5)).await;
        assert_eq!(room.totals().held, 0);
        let sent = server.bodies.lock().expect("whole").concat();
        assert_eq!((sent.matches("11111").count() > 0, sent.matches(TRUNCATED).count()), (true, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_webhook_for_which_there_is_no_room_is_told_so() {
        let (audit, _server) = webhook(AuditMode::BlockingStrict);
        let room = Room::new(Clock::system(), Limit::Strict(10));
        let _held = room.charge(10);
        audit.hold_of(room.clone());
        assert_eq!(audit.process(&an_event()).kept().await, Err(Unkept));
        assert_eq!(lost(&audit), [(AuditPlugin::Webhook, 1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_end_a_webhook_is_asked_again_at_once_and_what_it_does_not_take_is_counted() {
        for comes_back in [true, false] {
            let (audit, server) = webhook(AuditMode::Batch);
            server.is_dead.store(true, Ordering::Relaxed);
            for _ in 0..3 {
                audit.process(&an_event());
            }
            // Two are tried, and would be again after ten seconds.
            audit.clock().sleep(Duration::from_secs(1)).await;
            assert_eq!(*server.attempts.lock().expect("whole"), 1);
            let begun = audit.clock().now();
            let comes = async {
                audit.clock().sleep(Duration::from_millis(100)).await;
                server.is_dead.store(!comes_back, Ordering::Relaxed);
            };
            tokio::join!(audit.finish(Duration::from_secs(10)), comes);
            assert!(audit.clock().now() - begun < Duration::from_secs(5));
            let want = if comes_back { vec![] } else { vec![(AuditPlugin::Webhook, 3)] };
            assert_eq!(lost(&audit), want);
        }
    }

    /// A server that takes connections and says nothing.
    struct Silent;

    impl Posts for Silent {
        fn post(&self, _parts: Vec<Bytes>) -> Posted<'_> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_nobody_has_answered_for_at_the_end_is_counted_as_lost() {
        let batch = batch(AuditMode::Batch);
        let webhook = WebhookOptions { backoff: Duration::from_secs(10), batch, truncate: NO_LIMIT };
        let options = AuditOptions { log: None, webhook: Some(webhook) };
        let (clock, random) = (Clock::system(), Random::seeded(1));
        let audit = Audit::begin(AuditPolicy::default(), &options, Some(Arc::new(Silent)), clock, random);
        let audit = audit.expect("begun");
        for _ in 0..3 {
            audit.process(&an_event());
        }
        audit.finish(Duration::from_secs(10)).await;
        assert_eq!(lost(&audit), [(AuditPlugin::Webhook, 3)]);
    }

    #[tokio::test]
    async fn a_file_has_each_event_as_a_line_in_both_formats() {
        for (format, begin) in [(LogFormat::Json, "{\"kind\":\"Event\","), (LogFormat::Legacy, "2027-01-15T")]
        {
            let scratch = Scratch::new();
            let path = scratch.path().join("audit.log");
            let log = LogOptions {
                path: path.clone(),
                format,
                age_days_max: 1,
                backups_max: 1,
                megabytes_max: 1,
                compresses: false,
                batch: batch(AuditMode::Blocking),
                truncate: NO_LIMIT,
            };
            let options = AuditOptions { log: Some(log), webhook: None };
            let (clock, random) = (Clock::system(), Random::seeded(1));
            let audit = Audit::begin(AuditPolicy::default(), &options, None, clock, random).expect("begun");
            let received = AuditEvent { stage: AuditStage::RequestReceived, ..an_event() };
            // Whoever waits for the last has waited for the first.
            assert!(audit.process(&received).is_empty());
            assert_eq!(audit.process(&an_event()).kept().await, Ok(()));
            let text = fs::read_to_string(&path).expect("read");
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines.len(), 2, "{text}");
            assert!(lines.iter().all(|line| line.starts_with(begin)), "{text}");
            assert!(lines[0].contains("RequestReceived") && lines[1].contains("ResponseComplete"));
        }
    }
}
