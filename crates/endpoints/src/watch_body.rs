//! A watch on its way out: frames as they come, and the end when it is time.
//!
//! In: `reads`' [`WatchBody`]. Out: bytes, made of a batch of whole lines or frames at a time, and only when
//! the one before is gone: that is looked at when there is something to say, so that nobody is woken for it
//! alone. Between batches it holds nothing but its place: a slow client is parked by its socket. Ends with
//! the stream, with an ERROR event, or when the server leaves and it is this watch's turn; and with a
//! bookmark when its connection goes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_apimachinery::Reason;
use forebay_pieces::Effort;
use forebay_reads::{Batch, FrameSink as _, Step as Made, WatchBody};
use forebay_room::Held;
use forebay_rt::{Clock, Instant};
use forebay_transport::limits::PIECE_BYTES;
use forebay_transport::{
    LetGoFor, ResponseChannel, SendBuffer, StalledReaders, Stalls, WatchSlot, WatchTurn,
};

use crate::flow_control::Starting;
use crate::framing::Framing;
use crate::limits::{HELD_BYTES_MAX, STATE_BYTES};
use crate::metrics::WatchEvents;

/// A watch's bytes. All that it is lies in one piece of memory: thousands wait, and each event touches it of
/// each.
pub struct WatchStream(Arc<Watch>);

/// Locked by who sends it, and by who takes it away from a client that reads nothing.
struct Watch {
    channel: ResponseChannel,
    work: Mutex<Work>,
}

struct Work {
    // Taken away when its client stalled.
    body: Option<WatchBody>,
    step: Step,
    // Frames that were made and not given yet; no more are made before they are gone.
    batch: Batch,
    // Bytes that were given since all before them had passed.
    given: usize,
    ended: bool,
    // When its client last came for more.
    touched: Instant,
    // Until the stream is dropped.
    slot: Option<WatchSlot>,
    // For its initial state.
    lease: Option<Held>,
    starting: Option<Starting>,
    events: WatchEvents,
    framing: Framing,
    is_listing: bool,
    // The socket's buffer is small while a watch goes over it.
    is_small: bool,
    clock: Clock,
}

/// What a watch does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Waits for something to say.
    Wait,
    /// Waits until the client has room for it: it may be taken away.
    Pass { is_turn: bool },
    /// Makes a batch of it.
    Make { is_turn: bool },
    /// The batch waits for the client: it may be taken away.
    Give,
}

impl WatchStream {
    /// - `slot`: counts it and says when the server's leaving ends it; `lease` and `starting` are for its
    ///   initial state.
    pub fn new(
        watch: WatchBody,
        (slot, lease, starting): (WatchSlot, Option<Held>, Option<Starting>),
        events: WatchEvents,
        framing: Framing,
        (stalled_readers, channel): (&StalledReaders, ResponseChannel),
        clock: Clock,
    ) -> WatchStream {
        let work = Work {
            is_listing: watch.session().is_watch_list(),
            body: Some(watch),
            // It may be long until somebody asks.
            step: Step::Give,
            batch: Batch::default(),
            given: 0,
            ended: false,
            touched: clock.now(),
            slot: Some(slot),
            lease,
            starting,
            events,
            framing,
            is_small: false,
            clock,
        };
        let watch = Arc::new(Watch { channel, work: Mutex::new(work) });
        stalled_readers.watch_over(&watch);
        WatchStream(watch)
    }

    /// The next bytes; `None` at the end. Nothing is made before the client has room for it.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let (channel, mut work) = (&self.0.channel, self.0.work());
        if work.batch.is_empty() && !work.ended {
            ready!(work.poll_batch(channel, cx));
            // It was made when all before it had passed.
            work.given = 0;
        }
        let next_bytes = work.batch.next_bytes();
        if next_bytes == 0 {
            return Poll::Ready(None);
        }
        let most = work.give_max(channel);
        if work.given > 0 && work.given + next_bytes > most {
            ready!(poll_passed(channel, (&work.events, &work.clock), cx));
            work.given = 0;
        }
        let piece = work.batch.take(most);
        if work.batch.is_empty() {
            // What it has reserved goes, too: it may be long until there is another.
            work.batch = Batch::default();
        }
        work.touched = work.clock.now();
        work.starting.iter().for_each(Starting::touch);
        work.given += piece.len();
        if let Some(usage) = work.events.usage() {
            usage.sent(piece.len());
            usage.falls_behind(work.touched);
        }
        Poll::Ready(Some(channel.give(piece)))
    }

    /// Who takes it, to be let go of.
    pub fn reader(&self) -> Weak<dyn Stalls> {
        let watch: Weak<Watch> = Arc::downgrade(&self.0);
        watch
    }

    /// Asks for its memory, which is about to be needed.
    pub fn prefetch(&self) {
        forebay_rt::prefetch(&*self.0);
    }

    /// Whether it goes on as soon as what was given has passed.
    pub fn waits_to_pass(&self) -> bool {
        let work = self.0.work();
        matches!(work.step, Step::Pass { .. }) || !work.batch.is_empty()
    }

    /// Whether what was given last is a part of a batch.
    pub fn has_more(&self) -> bool {
        !self.0.work().batch.is_empty()
    }
}

impl Drop for WatchStream {
    /// Gives back what it has at once, also when somebody looks just now whether it has stalled.
    fn drop(&mut self) {
        let mut work = self.0.work();
        let _given_back = (work.body.take(), work.slot.take(), work.lease.take(), work.starting.take());
        let is_small = work.is_small;
        // What watches drop is not dropped with it locked.
        drop(work);
        if is_small {
            self.0.channel.set_send_buffer(SendBuffer::Usual);
        }
    }
}

impl Watch {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Work {
    /// Makes a batch of what there is to say, once there is something and room to say it in; after a final
    /// one, or when it was taken away, it has ended.
    fn poll_batch(&mut self, channel: &ResponseChannel, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(body) = &mut self.body else {
                self.ended = true;
                return Poll::Ready(());
            };
            match self.step {
                Step::Give => self.step = Step::Wait,
                Step::Wait => {
                    // The initial state is long, and goes as fast as the network takes it.
                    if !self.is_small && !body.is_initial() {
                        self.is_small = true;
                        channel.set_send_buffer(SendBuffer::Watch);
                    }
                    let turn = self.slot.as_mut().map_or(Poll::Pending, |slot| slot.poll_turn(cx));
                    if turn == Poll::Ready(WatchTurn::Go) {
                        // It says where it is, and ends.
                        body.leave();
                        continue;
                    }
                    let is_turn = turn.is_ready();
                    if !is_turn && body.poll_ready(cx).is_pending() {
                        // It is asked for more once what was given is taken.
                        self.events.usage().iter().for_each(|usage| usage.catches_up());
                        return Poll::Pending;
                    }
                    self.step = Step::Pass { is_turn };
                }
                Step::Pass { is_turn } => {
                    ready!(poll_passed(channel, (&self.events, &self.clock), cx));
                    self.step = Step::Make { is_turn };
                }
                Step::Make { is_turn } => {
                    let was_initial = body.is_initial();
                    // Later it may wait for its client with this in hand.
                    let batch_bytes = if was_initial { STATE_BYTES } else { PIECE_BYTES };
                    let made = match is_turn {
                        true => Made::End,
                        false => ready!(self.framing.poll_now(body, batch_bytes, &mut self.batch, cx)),
                    };
                    if let Made::Wait(_) = made {
                        self.step = Step::Wait;
                        continue;
                    }
                    self.step = Step::Give;
                    let is_initial = body.is_initial();
                    self.ended = made == Made::End;
                    if body.session().failure() == Some(Reason::Expired) {
                        self.events.usage().iter().for_each(|usage| usage.expired());
                    }
                    self.finish(was_initial, is_initial);
                    return Poll::Ready(());
                }
            }
        }
    }

    /// How much is given before the client has taken what was given before: of the initial state, on whose
    /// lease it is, a stream whose reader is quick is given more.
    fn give_max(&self, channel: &ResponseChannel) -> usize {
        channel.watch_bytes_at_once(|| {
            self.lease.is_some().then(|| self.clock.now().duration_since(self.touched))
        })
    }

    /// Counts what is in the batch, and puts it into what it is sent in.
    fn finish(&mut self, was_initial: bool, is_initial: bool) {
        if !is_initial {
            // From here on it takes what a connection may take.
            self.lease = None;
            self.starting = None;
            if was_initial {
                self.events.usage().iter().for_each(|usage| usage.state_is_sent());
            }
            if std::mem::take(&mut self.is_listing) {
                self.events.listed();
            }
        }
        let effort = if was_initial { Effort::Deflate } else { Effort::Store };
        let kind = (effort, is_initial, self.ended);
        self.framing.close(&mut self.batch, &self.events, kind);
    }

    /// Whether it is its client that it waits for.
    fn waits_for_client(&self) -> bool {
        matches!(self.step, Step::Pass { .. } | Step::Give)
    }

    /// Whether all of it was given, the end included.
    fn is_given(&self) -> bool {
        self.ended && self.batch.is_empty()
    }
}

/// Whether its client has taken what came before. One that has not, while there is more to be sent, is
/// behind.
fn poll_passed(
    channel: &ResponseChannel,
    (events, clock): (&WatchEvents, &Clock),
    cx: &mut Context<'_>,
) -> Poll<()> {
    let passed = channel.poll_passed(cx);
    events.usage().iter().for_each(|usage| match passed {
        Poll::Ready(()) => usage.catches_up(),
        Poll::Pending => usage.falls_behind(clock.now()),
    });
    passed
}

impl Stalls for Watch {
    fn let_go(&self, since: Instant, why: LetGoFor) -> bool {
        // One that is locked is being sent just now.
        let Ok(mut work) = self.work.try_lock() else { return false };
        // Who is only short of memory gains nothing by one that is on its way as a whole.
        if !work.waits_for_client() || (work.is_given() && why == LetGoFor::ShortOfMemory) {
            return false;
        }
        let touched = self.channel.wrote_at().map_or(work.touched, |at| at.max(work.touched));
        let is_over = work.body.as_ref().is_some_and(WatchBody::is_not_worth_waiting_for);
        // Its client comes back for what it did not take.
        let holds_much = why == LetGoFor::ShortOfMemory && work.batch.frame_bytes() > HELD_BYTES_MAX;
        let gone = if (is_over || holds_much) && touched <= since { work.body.take() } else { None };
        drop(work);
        let Some(body) = gone else { return false };
        body.give_up();
        self.channel.abort();
        true
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use forebay_catalog::Served;
    use forebay_catalog::histogram::Histogram;
    use forebay_embedded::{Engine, Options};
    use forebay_registry::{Config, Registry};
    use forebay_rt::{Random, Tasks};

    use super::*;

    /// One that was taken away, with `batch` in hand.
    pub(super) fn work(clock: &Clock, slot: WatchSlot, lease: Option<Held>, batch: Batch) -> Work {
        let sizes = || Arc::new(Histogram::new(&[("1", 1.0)]));
        Work {
            body: None,
            step: Step::Give,
            batch,
            given: 0,
            ended: false,
            touched: clock.now(),
            slot: Some(slot),
            lease,
            starting: None,
            events: WatchEvents::new(sizes(), sizes(), clock.clone(), None),
            framing: Framing::Http,
            is_listing: false,
            is_small: false,
            clock: clock.clone(),
        }
    }

    /// Of a server without objects, its store in memory.
    pub(super) async fn registry(clock: &Clock) -> Registry {
        let options = Options { clock: clock.clone(), ..Options::default() };
        let engine = Engine::open_in_memory(options).expect("opens");
        let registry =
            Registry::new(Config::default(), engine, clock.clone(), Random::seeded(7), Tasks::new());
        registry.start().await.expect("starts");
        registry
    }

    /// A core resource as it is served.
    pub async fn served(resource: &str) -> Arc<Served> {
        let registry = registry(&Clock::system()).await;
        registry.catalog().resource("", "v1", resource).expect("served").clone()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use forebay_apimachinery::options::{ListOptions, Query};
    use forebay_apimachinery::{Reason, Status};
    use forebay_catalog::Target;
    use forebay_reads::{As, EventForm, JSON};
    use forebay_rt::Duration;
    use forebay_transport::Drain;
    use forebay_transport::limits::{MADE_BYTES, QUICK};
    use futures_util::FutureExt as _;

    use super::testing::work;
    use super::*;
    use crate::rooms::Rooms;
    use crate::status;

    #[tokio::test]
    async fn a_watch_that_is_dropped_counts_no_more_though_somebody_looks_at_it() {
        let clock = Clock::system();
        let drain = Drain::new(clock.clone(), Duration::ZERO);
        let work = Mutex::new(work(&clock, drain.watch(None), None, Batch::default()));
        let stream = WatchStream(Arc::new(Watch { channel: ResponseChannel::default(), work }));
        let looks = stream.0.clone();
        assert_eq!(drain.watches(), 1);
        drop(stream);
        assert_eq!(drain.watches(), 0);
        assert!(!looks.let_go(clock.now(), LetGoFor::Stalled));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_given_more_of_what_there_is_room_for_when_its_reader_is_quick() {
        let (clock, rooms) = (Clock::system(), Rooms::new(Clock::system()));
        let drain = Drain::new(clock.clone(), Duration::ZERO);
        for (has_room, pause, want) in [
            (true, Duration::ZERO, [MADE_BYTES, PIECE_BYTES]),
            // It was not, and then it is.
            (true, QUICK, [PIECE_BYTES, MADE_BYTES]),
            (false, Duration::ZERO, [PIECE_BYTES; 2]),
        ] {
            let room = has_room.then(|| rooms.answers.charge(MADE_BYTES));
            let batch = vec![b'x'; MADE_BYTES + PIECE_BYTES].into();
            let work = Mutex::new(work(&clock, drain.watch(None), room, batch));
            let mut stream = WatchStream(Arc::new(Watch { channel: ResponseChannel::stream(), work }));
            clock.sleep(pause).await;
            let first = std::future::poll_fn(|cx| stream.poll_next(cx)).await.expect("there is some");
            let mut next = pin!(std::future::poll_fn(|cx| stream.poll_next(cx)));
            assert!(next.as_mut().now_or_never().is_none(), "not before that has passed");
            let bytes = first.len();
            drop(first);
            let next = next.await.expect("there is more");
            assert_eq!([bytes, next.len()], want, "{has_room} {pause:?}");
        }
    }

    /// It was given everything, and does not take the end: memory is not short because of it, but its stream
    /// is.
    #[tokio::test]
    async fn a_watch_whose_end_nobody_takes_is_cut_when_it_has_stalled_and_not_for_its_memory() {
        let clock = Clock::system();
        let registry = testing::registry(&clock).await;
        let served = registry.catalog().resource("", "v1", "configmaps").expect("served").clone();
        let target = Target::of_server(served, None, None);
        let options = ListOptions::from_query(&Query::parse("watch=1&timeoutSeconds=5")).expect("options");
        let body = registry.watch(&target, &options, As::Object, false).await.expect("watches");
        let drain = Drain::new(clock.clone(), Duration::ZERO);
        let work =
            Mutex::new(Work { body: Some(body), ..work(&clock, drain.watch(None), None, Batch::default()) });
        let channel = ResponseChannel::stream();
        let mut stream = WatchStream(Arc::new(Watch { channel: channel.clone(), work }));
        let mut next = async || std::future::poll_fn(|cx| Poll::Ready(stream.poll_next(cx))).await;
        assert!(next().await.is_pending());
        tokio::time::pause();
        clock.sleep(Duration::from_secs(6)).await;
        assert!(matches!(next().await, Poll::Ready(None)), "its end");
        let let_go = |why| stream.0.let_go(clock.now(), why);
        assert!(!let_go(LetGoFor::ShortOfMemory));
        let mut carried = pin!(channel.carry(std::future::pending::<()>()));
        assert!(carried.as_mut().now_or_never().is_none(), "not cut");
        assert!(let_go(LetGoFor::Stalled) && !let_go(LetGoFor::Stalled), "once");
        assert_eq!(carried.await, None);
    }

    #[test]
    fn a_watch_that_waits_is_small() {
        let sizes = [("all of it", size_of::<Watch>(), 1_024), ("its body", size_of::<WatchBody>(), 560)];
        for (what, size, most) in sizes {
            assert!(size <= most, "{what}: {size}, of {most}; all: {sizes:?}");
        }
    }

    #[tokio::test]
    async fn an_error_is_a_line() {
        let (mut json, mut out) = (Vec::new(), Vec::new());
        status::write(&Status::new(Reason::Expired, "too old resource version: 1 (5)"), &mut json);
        let mut events = (JSON.writer)(
            testing::served("configmaps").await,
            EventForm { format: &JSON, ..EventForm::from(As::Object) },
        );
        events.error(&json, &mut out);
        let want = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
                    \"status\":\"Failure\",\"message\":\"too old resource version: 1 (5)\",\"reason\":\"Expired\",\
                    \"code\":410}}\n";
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
}
