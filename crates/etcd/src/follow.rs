//! The task that follows one prefix: a watch of etcd, opened again wherever it was lost.
//!
//! Owner of the place up to which everything was handed over. In: the stream. Out: whole revisions and
//! progress, into the feed. A lost stream, a missing leader or a member that keeps quiet is no concern of the
//! reader: the watch goes on elsewhere from its place. Only history that is gone ends the feed, a store that
//! went back, and one that is another cluster.

use std::sync::Arc;

use forebay_apimachinery::Revision;
use forebay_backend::{Change, FeedError};
use forebay_grpc::Sender;
use forebay_rt::{Duration, Instant};

use crate::cluster::Generation;
use crate::error::RequestError;
use crate::feed::{Left, Writer};
use crate::group::Grouper;
use crate::grpc::Receiver;
use crate::limits;
use crate::messages::{self, WatchResponse, path};
use crate::pool::{Connection, Use};
use crate::range::{end_of, key_of};
use crate::shared::Shared;

/// See the module's doc.
pub(crate) struct Follower {
    pub(crate) shared: Arc<Shared>,
    pub(crate) prefix: Box<str>,
    /// Everything up to here was handed over.
    pub(crate) reached: u64,
    /// What it follows: it ends when another cluster takes that one's place.
    pub(crate) generation: Generation,
    /// Which connection it shares.
    pub(crate) number: usize,
    pub(crate) feed: Writer,
}

/// How one stream ended.
enum End {
    /// It goes on with another one.
    Lost(RequestError),
    Over(FeedError),
    Left,
}

impl From<Left> for End {
    fn from(_: Left) -> End {
        End::Left
    }
}

/// When what is due on one stream.
struct Times {
    // Somebody waits for progress until then.
    haste_until: Instant,
    // When to ask for progress next, and how long after that again.
    ask_at: Instant,
    period: Duration,
    // Since when an answer is missing.
    asked_at: Option<Instant>,
    // When it was asked last.
    last_at: Option<Instant>,
}

/// What is said of a watch that etcd refuses, and will most likely go on to.
#[derive(Default)]
struct Refusals {
    said_at: Option<Instant>,
}

impl Follower {
    /// Follows until the reader leaves, the feed cannot go on, or another cluster has taken the place of the
    /// one followed.
    pub(crate) async fn run(mut self) {
        let (cluster, generation) = (self.shared.cluster.clone(), self.generation);
        let end = tokio::select! {
            biased;
            () = cluster.replaced(generation) => Some(cluster.went_back(self.reached)),
            end = self.follow_on() => end,
        };
        if let Some(error) = end {
            self.feed.end(error).await;
        }
    }

    /// Follows one stream after the other. How the feed ended; nothing when the reader has left.
    async fn follow_on(&mut self) -> Option<FeedError> {
        let (mut pause, mut silence) = (limits::REOPEN_PAUSE.0, limits::SILENCE.0);
        let (mut again, mut refusals) = (false, Refusals::default());
        loop {
            let mut heard = false;
            let end = match self.check(again).await {
                Ok(()) => self.follow(silence, &mut heard).await,
                Err(end) => end,
            };
            let fault = match end {
                End::Left => return None,
                End::Over(error) => return Some(error),
                End::Lost(fault) => fault,
            };
            again = true;
            if heard {
                (pause, silence) = (limits::REOPEN_PAUSE.0, limits::SILENCE.0);
            } else {
                silence = (silence * 2).min(limits::SILENCE.1);
            }
            let (prefix, reached) = (&*self.prefix, self.reached);
            match refusals.are_to_be_said(&fault, self.shared.clock.now()) {
                true => {
                    tracing::warn!(prefix, reached, %fault, "etcd refuses a watch: what changes is not heard of")
                }
                false => tracing::debug!(prefix, reached, %fault, "a watch of etcd is opened again"),
            }
            self.shared.count_reopened();
            tokio::select! {
                () = self.shared.clock.sleep(pause) => {}
                () = self.feed.left() => return None,
            }
            pause = (pause * 2).min(limits::REOPEN_PAUSE.1);
        }
    }

    /// Before a stream is opened again: whether the store is still the one that was followed.
    async fn check(&self, again: bool) -> Result<(), End> {
        if !again {
            return Ok(());
        }
        let header = tokio::select! {
            header = self.shared.quorum() => header.map_err(End::Lost)?,
            () = self.feed.left() => return Err(End::Left),
        };
        if header.revision < self.reached {
            return Err(End::Over(self.went_back(header.revision)));
        }
        Ok(())
    }

    fn went_back(&self, current: u64) -> FeedError {
        let reached = Revision::from_log(self.reached.max(1));
        FeedError::WentBack { reached, current: Revision::from_log(current.max(1)) }
    }

    async fn follow(&mut self, silence: Duration, heard: &mut bool) -> End {
        let opened = tokio::select! {
            opened = self.open() => opened,
            () = self.feed.left() => return End::Left,
        };
        let (connection, sender, receiver) = match opened {
            Ok(opened) => opened,
            Err(fault) => return End::Lost(fault),
        };
        let end = self.read(sender, receiver, silence, heard).await;
        if let End::Lost(fault) = &end {
            self.shared.pool.blame(&connection, fault);
        }
        end
    }

    async fn open(&self) -> Result<(Arc<Connection>, Sender, Receiver), RequestError> {
        let connection = self.shared.pool.connection(Use::Watch(self.number)).await?;
        let create = messages::watch_create(
            key_of(&self.prefix, None).as_bytes(),
            end_of(&self.prefix).as_bytes(),
            self.reached + 1,
        );
        let opening = connection.channel.stream(path::WATCH, &create);
        let opened = tokio::select! {
            opened = opening => opened,
            () = self.shared.clock.sleep(limits::READ_WAIT) => {
                Err(RequestError::Timeout { text: "a watch was not opened in time".to_string() })
            }
        };
        match opened {
            Ok((sender, receiver)) => Ok((connection, sender, receiver)),
            Err(fault) => {
                self.shared.pool.blame(&connection, &fault);
                Err(fault)
            }
        }
    }

    /// Reads one stream to its end.
    async fn read(
        &mut self,
        sender: Sender,
        mut receiver: Receiver,
        silence: Duration,
        heard: &mut bool,
    ) -> End {
        let clock = self.shared.clock.clone();
        let mut grouper = Grouper::default();
        let now = clock.now();
        let mut times = Times::new(now);
        if self.feed.wanted() > self.reached {
            times.hasten(now);
        }
        loop {
            let silent_at = times.asked_at.map(|at| at + silence);
            let alarm = silent_at.map_or(times.ask_at, |at| at.min(times.ask_at));
            tokio::select! {
                biased;
                message = receiver.next() => {
                    let taken = match message {
                        Ok(Some(message)) => self.take(message, &mut grouper).await,
                        Ok(None) => Err(End::Lost(RequestError::Lost { text: "the stream has ended".to_string() })),
                        Err(fault) => Err(End::Lost(fault)),
                    };
                    match taken {
                        Ok(told) => *heard |= told,
                        Err(end) => return end,
                    }
                    times.heard(clock.now(), self.feed.wanted() > self.reached);
                }
                wants = self.feed.wants() => match wants {
                    Ok(()) if self.feed.wanted() > self.reached => times.hasten(clock.now()),
                    Ok(()) => {}
                    Err(Left) => return End::Left,
                },
                () = clock.sleep_until(alarm) => {
                    let now = clock.now();
                    if silent_at.is_some_and(|at| now >= at) {
                        return End::Lost(RequestError::Timeout { text: "a watch keeps quiet".to_string() });
                    }
                    sender.try_send(&messages::watch_progress());
                    times.asked(now, self.feed.wanted() > self.reached);
                }
            }
        }
    }

    /// Takes one message in. Whether it shows that the stream goes on.
    async fn take(&mut self, message: bytes::Bytes, grouper: &mut Grouper) -> Result<bool, End> {
        let response = messages::read_watch(message).map_err(|error| End::Lost(error.into()))?;
        let WatchResponse { header, fragment, .. } = response;
        // Where another cluster has taken the place of ours, `run` ends the feed before it is asked for
        // again.
        self.shared.cluster.note(header, self.generation).map_err(End::Lost)?;
        if response.compact_revision > 0 {
            self.shared.forget_oldest();
            let oldest = Revision::from_log(response.compact_revision);
            return Err(End::Over(FeedError::Compacted { oldest }));
        }
        if response.canceled {
            return Err(End::Lost(RequestError::of_status(0, &response.cancel_reason)));
        }
        if response.created {
            return Ok(false);
        }
        if response.events.is_empty() && !fragment {
            let revision = header.revision;
            // A member that lags behind the one before it says less than is known.
            if revision > self.reached {
                self.feed.progress(Revision::from_log(revision)).await?;
                self.reached = revision;
            }
            return Ok(true);
        }
        let whole = grouper.take(response.events, fragment);
        self.hand_over(whole).await?;
        Ok(true)
    }

    async fn hand_over(&mut self, events: Vec<messages::Event>) -> Result<(), End> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let (first, last) = (first.revision, last.revision);
        if first <= self.reached || last < first {
            return Err(End::Over(self.went_back(first)));
        }
        let changes = self.prepared(&events).await?;
        match changes.is_empty() {
            true => self.feed.progress(Revision::from_log(last)).await?,
            false => self.feed.changes(changes).await?,
        }
        self.reached = last;
        Ok(())
    }
}

impl Follower {
    /// Waits until what `events` put can be read, or will never be: meanwhile etcd is held back, and whoever
    /// reads this prefix is told nothing that is newer.
    async fn prepared(&self, events: &[messages::Event]) -> Result<Vec<Change>, End> {
        let values = self.shared.values();
        let mut pause = limits::REOPEN_PAUSE.0;
        loop {
            let put = events.iter().filter_map(|event| Some((&event.key[..], event.value.as_ref()?)));
            let known = values.lacking(put).known().await;
            // What was asked may be other than what is in force by now.
            match known.and_then(|()| self.changes(events)) {
                Ok(changes) => return Ok(changes),
                Err(why) => {
                    tracing::warn!(prefix = &*self.prefix, why, "what was written cannot be read yet")
                }
            }
            tokio::select! {
                () = self.shared.clock.sleep(pause) => {}
                () = self.feed.left() => return Err(End::Left),
            }
            pause = (pause * 2).min(limits::REOPEN_PAUSE.1);
        }
    }

    /// What `events` mean.
    ///
    /// # Errors
    /// Why a value of theirs is not known now.
    fn changes(&self, events: &[messages::Event]) -> Result<Vec<Change>, String> {
        let values = self.shared.values();
        let mut changes = Vec::with_capacity(events.len());
        for event in events {
            let Some(key) = values.key(&event.key) else { continue };
            let value = event.value.clone().map(|stored| values.to_value(&key, stored)).transpose()?;
            changes.push(Change { key, revision: Revision::from_log(event.revision), value });
        }
        Ok(changes)
    }
}

impl Refusals {
    /// Whether somebody has to look after `fault`, and was not told of one a moment ago.
    fn are_to_be_said(&mut self, fault: &RequestError, now: Instant) -> bool {
        let passes = !matches!(fault, RequestError::Denied { .. } | RequestError::Other { .. });
        if passes || self.said_at.is_some_and(|said_at| now < said_at + limits::REFUSALS_PERIOD) {
            return false;
        }
        self.said_at = Some(now);
        true
    }
}

impl Times {
    fn new(now: Instant) -> Times {
        let (ask_at, period) = (now + limits::PULSE, limits::PROGRESS_PERIOD.0);
        Times { haste_until: now, ask_at, period, asked_at: None, last_at: None }
    }

    /// Somebody waits from now on.
    fn hasten(&mut self, now: Instant) {
        // For somebody else it was asked already, maybe just now; what that one waits for may never come.
        let last_at = self.last_at.filter(|_| now < self.haste_until);
        let soonest = last_at.map_or(now, |at| now.max(at + limits::PROGRESS_PERIOD.0));
        self.haste_until = now + limits::HASTE;
        self.ask_at = self.ask_at.min(soonest);
        self.period = limits::PROGRESS_PERIOD.0;
    }

    fn asked(&mut self, now: Instant, wanting: bool) {
        self.asked_at = self.asked_at.or(Some(now));
        self.last_at = Some(now);
        let hasty = wanting && now < self.haste_until;
        self.ask_at = now + if hasty { self.period } else { limits::PULSE };
        self.period = (self.period * 2).min(limits::PROGRESS_PERIOD.1);
    }

    /// The stream has said something.
    fn heard(&mut self, now: Instant, wanting: bool) {
        self.asked_at = None;
        if !wanting {
            self.haste_until = now;
            self.ask_at = now + limits::PULSE;
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_backend::{Backend, FeedStep};
    use forebay_rt::{Clock, Tasks};

    use super::*;
    use crate::messages::Header;
    use crate::{Etcd, StorageConfig, TlsFiles, Verbatim};

    #[test]
    fn a_silent_watch_is_asked_again_soon_at_first_and_while_somebody_waits() {
        let begun = forebay_rt::Clock::system().now();
        let mut times = Times::new(begun);
        assert_eq!(times.ask_at - begun, limits::PULSE, "nobody waits");
        times.hasten(begun);
        let mut asked_ms = Vec::new();
        for _ in 0..7 {
            asked_ms.push((times.ask_at - begun).as_millis());
            times.asked(times.ask_at, true);
        }
        assert_eq!(asked_ms, [0, 10, 30, 70, 150, 250, 350]);
        let now = times.ask_at;
        times.heard(now, false);
        assert_eq!(times.ask_at - now, limits::PULSE);
        times.hasten(now);
        times.asked(now, true);
        assert_eq!(times.ask_at - now, limits::PROGRESS_PERIOD.0, "soon again for the next one");
    }

    #[test]
    fn who_waits_for_what_never_comes_keeps_nobody_else_from_being_told_soon() {
        let begun = forebay_rt::Clock::system().now();
        let mut times = Times::new(begun);
        times.hasten(begun);
        for _ in 0..7 {
            times.asked(times.ask_at, true);
        }
        // Told, and there is still more that is wanted.
        let now = times.ask_at - Duration::from_millis(20);
        times.heard(now, true);
        times.hasten(now);
        assert_eq!(times.ask_at, now, "at once");
        times.asked(now, true);
        times.hasten(now + Duration::from_millis(3));
        assert_eq!(times.ask_at - now, limits::PROGRESS_PERIOD.0, "but not without end");
    }

    #[test]
    fn that_a_watch_is_refused_is_said_now_and_then_and_what_passes_is_not() {
        let begun = Clock::system().now();
        let mut refusals = Refusals::default();
        let denied = RequestError::of_status(7, "etcdserver: permission denied");
        let canceled = RequestError::of_status(
            0,
            "rpc error: code = PermissionDenied desc = etcdserver: permission denied",
        );
        let lost = RequestError::of_status(14, "transport is closing");
        let period = limits::REFUSALS_PERIOD;
        for (fault, after, is_said) in [
            (&lost, Duration::ZERO, false),
            (&denied, Duration::ZERO, true),
            (&canceled, period / 2, false),
            (&canceled, period, true),
            (&lost, period * 2, false),
            (&denied, period * 3, true),
        ] {
            assert_eq!(refusals.are_to_be_said(fault, begun + after), is_said, "{fault} after {after:?}");
        }
    }

    #[tokio::test]
    async fn a_feed_ends_once_when_another_cluster_answers() {
        // Nobody listens there: what is heard is heard from here.
        let endpoints = vec!["http://127.0.0.1:1".parse().expect("a URL")];
        let (codec, prefix) = (Arc::new(Verbatim), "/a".to_string());
        let (clock, tasks, tls) = (Clock::system(), Tasks::new(), TlsFiles::default());
        let options = StorageConfig { endpoints, tls, codec, prefix, compact_every: None, clock, tasks };
        let store = Etcd::open(options).expect("valid");
        let cluster = &store.shared().cluster;
        let note = |id, revision| cluster.note(Header { cluster: id, revision }, cluster.generation());
        assert_eq!(note(7, 9), Ok(()));
        let after = Revision::from_log(5);
        let mut followed = store.feed("/a/", after).await.expect("begun");
        let left = store.feed("/b/", after).await.expect("begun");
        assert_eq!(note(8, 4), Err(RequestError::Replaced));
        drop(left);
        followed.ready().await;
        let lost = store.feed("/b/", after).await.err().expect("it is told when it comes back");
        for end in [followed.take(9, &mut Vec::new()).expect_err("over"), lost] {
            let FeedError::WentBack { reached, current } = end else { panic!("{end}") };
            assert_eq!((reached.get(), current.get()), (9, 4), "what others were told never was");
        }
        for prefix in ["/a/", "/b/"] {
            let mut feed = store.feed(prefix, after).await.expect("told before");
            tokio::task::yield_now().await;
            assert!(matches!(feed.take(9, &mut Vec::new()), Ok(FeedStep::Idle)), "{prefix}");
        }
    }
}
