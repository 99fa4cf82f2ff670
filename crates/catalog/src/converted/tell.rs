//! Tells the cache of a version what happens to what is stored, each object converted once.
//!
//! In: a watch of the cache of what is stored. Out: its state and its changes, in order, in batches. What
//! fails to convert is tried again until it is no more, or there is something else in its place: until then
//! nothing behind it is told. Never: an object passed over, a change out of order.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use forebay_apimachinery::{Lease, Revision, Status};
use forebay_backend::{Backend, BoxFuture, Change, FeedError, Layer, ReadError as StoreError, Tell, Told};
use forebay_object::Object;
use forebay_rt::{Clock, Tasks};
use forebay_watchcache::limits::FRESH_WAIT;
use forebay_watchcache::{Budget, EventKind, Interest, ReadError, WatchStep, Watcher};
use serde_json::Value;
use tokio::sync::{Notify, mpsc, watch};

use super::attempts::Attempts;
use super::converter::{Converter, bytes_of};
use crate::limits::{CONVERT_AGAIN, CONVERTED_AT_ONCE_MAX, CONVERTED_BYTES, TOLD_BATCHES_MAX};

/// The store of a view: the store below, of which it tells what was converted.
pub(super) struct Layered {
    pub(super) converter: Arc<Converter>,
    pub(super) below: Arc<dyn Backend>,
    pub(super) clock: Clock,
    pub(super) tasks: Tasks,
    pub(super) attempts: watch::Sender<Attempts>,
    pub(super) again: Arc<Notify>,
    pub(super) after: Option<Revision>,
    /// Up to where somebody waits for it.
    pub(super) wanted: watch::Sender<Option<Revision>>,
}

impl Layer for Layered {
    fn below(&self) -> Arc<dyn Backend> {
        self.below.clone()
    }

    fn barrier(&self) -> BoxFuture<'_, Result<Revision, StoreError>> {
        Box::pin(async move {
            let current = self.below.barrier().await?;
            self.wanted.send_if_modified(|wanted| {
                let is_later = wanted.is_none_or(|known| known < current);
                if is_later {
                    *wanted = Some(current);
                }
                is_later
            });
            Ok(current)
        })
    }

    fn tell(&self, _prefix: &str) -> Option<Box<dyn Tell>> {
        let (lines, told) = mpsc::channel(TOLD_BATCHES_MAX);
        let teller = Teller {
            converter: self.converter.clone(),
            clock: self.clock.clone(),
            attempts: self.attempts.clone(),
            again: self.again.clone(),
            after: self.after,
            wanted: self.wanted.subscribe(),
            lines: lines.clone(),
            told_upto: Revision::FIRST,
        };
        self.tasks.spawn("conversion", async move {
            tokio::select! { biased; () = lines.closed() => {}, () = teller.run() => {} }
        });
        Some(Box::new(Lines(told)))
    }
}

/// What is told, one batch after the other.
struct Lines(mpsc::Receiver<Vec<Told>>);

impl Tell for Lines {
    fn poll_told(&mut self, context: &mut Context<'_>, told: &mut Vec<Told>) -> Poll<Result<(), FeedError>> {
        match ready!(self.0.poll_recv(context)) {
            None => Poll::Ready(Err(FeedError::Closed)),
            Some(batch) => {
                told.extend(batch);
                Poll::Ready(Ok(()))
            }
        }
    }
}

struct Teller {
    converter: Arc<Converter>,
    clock: Clock,
    attempts: watch::Sender<Attempts>,
    again: Arc<Notify>,
    // Where the first state is to begin.
    after: Option<Revision>,
    wanted: watch::Receiver<Option<Revision>>,
    lines: mpsc::Sender<Vec<Told>>,
    told_upto: Revision,
}

/// Nothing more is to be told: what is stored is no longer served, or nobody listens.
struct Over;

/// Steps of the watch that are told together.
struct Steps {
    steps: Vec<WatchStep>,
    is_lost: bool,
}

impl Teller {
    async fn run(mut self) {
        while let Some(watcher) = self.begin().await {
            if self.follow(watcher).await.is_err() || self.converter.store.cacher.is_stopped() {
                return;
            }
        }
    }

    /// A watch that begins with a state; none where nothing is served any more.
    async fn begin(&mut self) -> Option<Watcher> {
        let cacher = &self.converter.store.cacher;
        loop {
            cacher.wait_ready().await;
            let begun = match cacher.snapshot() {
                Ok(now) => {
                    let past = match self.after.take().filter(|after| *after < now.revision()) {
                        Some(after) => cacher.exact(after, self.clock.now() + FRESH_WAIT).await.ok(),
                        None => None,
                    };
                    let everything = Interest::all(self.converter.store.reach(None, None));
                    cacher.watch_list(everything, past.unwrap_or(now))
                }
                Err(error) => Err(error),
            };
            match begun {
                Ok(watcher) => return Some(watcher),
                Err(ReadError::Closed) => return None,
                Err(_) => self.clock.sleep(CONVERT_AGAIN.0).await,
            }
        }
    }

    /// Tells a state and what comes behind it, until the watch is lost.
    async fn follow(&mut self, mut watcher: Watcher) -> Result<(), Over> {
        self.say(vec![Told::StateBegins { may_go_back: true }]).await?;
        self.told_upto = Revision::FIRST;
        loop {
            let Steps { steps, is_lost } = next_steps(&mut watcher);
            if !steps.is_empty() {
                let told = self.converted(steps).await;
                self.say(told).await?;
            } else if !is_lost {
                self.rest(&mut watcher).await?;
            }
            if is_lost {
                return Ok(());
            }
        }
    }

    /// Everything is told: says how far that is, and waits for more.
    async fn rest(&mut self, watcher: &mut Watcher) -> Result<(), Over> {
        match watcher.bookmark_within(&mut Budget::new(Interest::LOOKS_MAX)) {
            Poll::Ready(Some(upto)) if upto > self.told_upto => {
                self.told_upto = upto;
                return self.say(vec![Told::Progress(upto)]).await;
            }
            Poll::Ready(None) | Poll::Pending => return Ok(()),
            Poll::Ready(Some(_)) => {}
        }
        let upto = tokio::select! {
            () = watcher.ready() => return Ok(()),
            changed = self.wanted.changed() => changed.map_err(|_gone| Over).map(|()| *self.wanted.borrow_and_update())?,
        };
        if let Some(upto) = upto.filter(|upto| *upto > self.told_upto) {
            // The cache of what is stored hurries, too. If it does not get there, who waits is told.
            let deadline = self.clock.now() + FRESH_WAIT;
            let _late = self.converter.store.cacher.at_least(upto, deadline).await.is_err();
        }
        Ok(())
    }

    async fn say(&self, told: Vec<Told>) -> Result<(), Over> {
        self.lines.send(told).await.map_err(|_gone| Over)
    }

    /// What is told of `steps`.
    async fn converted(&self, mut steps: Vec<WatchStep>) -> Vec<Told> {
        let mut pause = CONVERT_AGAIN.0;
        loop {
            let mut number = 0;
            self.attempts.send_if_modified(|attempts| {
                attempts.begun += 1;
                number = attempts.begun;
                false
            });
            match self.attempt(&steps).await {
                Ok(told) => {
                    self.attempts.send_if_modified(|attempts| attempts.failed.take().is_some());
                    return told;
                }
                Err(status) => {
                    let store = &self.converter.store;
                    tracing::warn!(
                        resource = &*store.resource,
                        why = status.message,
                        "objects are not converted"
                    );
                    self.attempts.send_modify(|attempts| attempts.failed = Some((number, Arc::new(status))));
                }
            }
            tokio::select! {
                () = self.again.notified() => {}
                () = self.clock.sleep(pause) => {}
            }
            pause = (pause * 2).min(CONVERT_AGAIN.1);
            self.pass_over(&mut steps).await;
        }
    }

    /// Drops of `steps` which put an object that is not there any more, or is another: what became of it
    /// follows.
    async fn pass_over(&self, steps: &mut Vec<WatchStep>) {
        let cacher = &self.converter.store.cacher;
        // Whoever has it tried again has perhaps just mended it.
        let fresh = cacher.fresh(self.clock.now() + FRESH_WAIT).await;
        let Ok(now) = fresh.or_else(|_late| cacher.snapshot()) else { return };
        steps.retain(|step| match put_by(step) {
            Some((object, revision)) => {
                now.get(object.key()).is_some_and(|there| there.revision() == revision)
            }
            None => true,
        });
    }

    /// # Errors
    /// What failed to convert.
    async fn attempt(&self, steps: &[WatchStep]) -> Result<Vec<Told>, Status> {
        let (converter, lease) = (&self.converter, Lease::of_server());
        let mut values: Vec<Option<Value>> = Vec::with_capacity(steps.len());
        let mut to_convert = Vec::new();
        for (object, _) in steps.iter().filter_map(put_by) {
            let value = converter.value(object, &lease)?;
            if converter.is_shown(object) {
                values.push(Some(value));
            } else {
                to_convert.push(value);
                values.push(None);
            }
        }
        let mut made = match to_convert.is_empty() {
            true => Vec::new(),
            false => converter.convert(to_convert, converter.api_version(), &lease).await?,
        }
        .into_iter();
        let mut bodies = values.into_iter().map(|value| match value {
            Some(value) => bytes_of(&value),
            None => converter.body(made.next().unwrap_or_default()),
        });
        let told = steps.iter().filter_map(|step| match step {
            WatchStep::Event { kind: EventKind::Deleted, object, revision } => {
                Some(Told::Change(Change { key: object.key().clone(), revision: *revision, value: None }))
            }
            WatchStep::Event { object, revision, .. } => {
                let (key, value) = (object.key().clone(), bodies.next());
                Some(Told::Change(Change { key, revision: *revision, value }))
            }
            WatchStep::InitialEventsEnd(revision) => Some(Told::StateEnds(*revision)),
            WatchStep::Expired { .. } | WatchStep::Undecrypted { .. } | WatchStep::Closed => None,
        });
        Ok(told.collect())
    }
}

/// The object that a step puts, and at which revision.
fn put_by(step: &WatchStep) -> Option<(&Arc<Object>, Revision)> {
    match step {
        WatchStep::Event { kind: EventKind::Added | EventKind::Modified, object, revision } => {
            Some((object, *revision))
        }
        _ => None,
    }
}

/// What there is now, as much as is converted at once.
fn next_steps(watcher: &mut Watcher) -> Steps {
    let (mut steps, mut bytes) = (Vec::new(), 0);
    while steps.len() < CONVERTED_AT_ONCE_MAX && bytes < CONVERTED_BYTES {
        match watcher.try_next() {
            None => break,
            Some(WatchStep::Expired { .. } | WatchStep::Undecrypted { .. } | WatchStep::Closed) => {
                return Steps { steps, is_lost: true };
            }
            Some(step) => {
                bytes += put_by(&step).map_or(0, |(object, _)| object.body_len());
                steps.push(step);
            }
        }
    }
    Steps { steps, is_lost: false }
}
