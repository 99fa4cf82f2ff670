//! A watch on its way out: frames as they come, and the end when it is time.
//!
//! In: the registry's [`WatchBody`]. Out: bytes, made of a batch of whole lines or frames at a time, and only when the
//! one before is gone: that is looked at when there is something to say, so that nobody is woken for it alone. Between
//! batches it holds nothing but its place: a slow client is parked by its socket. Ends with the stream, with an ERROR event,
//! or when the server leaves and it is this watch's turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_registry::{Batch, Encoding, Flow, FrameSink as _, WatchBody};
use forebay_rt::{Clock, Instant};

use crate::limits::{
    CHUNK_BYTES, HELD_BYTES_MAX, PIECE_BYTES, SEND_BYTES, TLS_GATHER_BYTES, WATCH_SEND_BYTES,
};
use crate::line::Line;
use crate::member::{Effort, Live};
use crate::metrics::WatchEvents;
use crate::pins::{Pins, Stalls, Why};
use crate::protobuf;
use crate::room::Held;
use crate::shutdown::WatchSlot;
use crate::status::Failure;
use crate::websocket;
use crate::wire::Socket;

/// A watch's bytes.
pub struct WatchStream {
    // Made once, so that a batch costs no allocation but its own.
    run: Pin<Box<dyn Future<Output = ()> + Send>>,
    parked: Arc<Parked>,
    clock: Clock,
    // Bytes that were given since all before them had passed.
    given: usize,
    ended: bool,
}

/// What a watch's frames are put into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// A body.
    Http,
    /// A body in gzip.
    Gzip,
    WebSocket,
}

/// What is between batches, and looked at by others only then.
struct Parked {
    line: Line,
    place: Mutex<Place>,
}

struct Place {
    /// `None` while it waits for events: then it is its client that waits.
    watch: Option<Box<WatchBody>>,
    // Frames that were made and not given yet; no more are made before they are gone.
    batch: Batch,
    /// When the client last had room for more.
    touched: Instant,
}

impl WatchStream {
    /// - `slot`: counts it and says when the server's leaving ends it; `room` is what its initial state takes.
    pub fn new(
        watch: WatchBody,
        (slot, room): (WatchSlot, Option<Held>),
        events: WatchEvents,
        encoding: Encoding,
        framing: Framing,
        pins: &Pins,
        clock: Clock,
    ) -> WatchStream {
        let line = Line::current();
        // Boxed, because it goes back and forth.
        let place = Place { watch: Some(Box::new(watch)), batch: Batch::default(), touched: clock.now() };
        let parked = Arc::new(Parked { line, place: Mutex::new(place) });
        pins.watch_over(&parked);
        let run = Box::pin(run(parked.clone(), room, slot, events, encoding, framing));
        WatchStream { run, parked, clock, given: 0, ended: false }
    }

    /// The next bytes; `None` at the end. Nothing is made before the client has room for it.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut place = self.parked.place();
        if place.batch.is_empty() && !self.ended {
            drop(place);
            self.ended = self.run.as_mut().poll(cx).is_ready();
            // It was made when all before it had passed.
            self.given = 0;
            place = self.parked.place();
        }
        let next_bytes = place.batch.next_bytes();
        if next_bytes == 0 {
            return if self.ended { Poll::Ready(None) } else { Poll::Pending };
        }
        let line = &self.parked.line;
        let is_stream = line.socket().is_none();
        let most = if is_stream { PIECE_BYTES } else { TLS_GATHER_BYTES };
        if self.given > 0 && self.given + next_bytes > most {
            ready!(line.poll_passed(cx));
            self.given = 0;
        }
        let piece = place.batch.take(most);
        if place.batch.is_empty() {
            // What it has reserved goes, too: it may be long until there is another.
            place.batch = Batch::default();
        }
        if is_stream {
            // How far a connection's reader is, its socket says.
            place.touched = self.clock.now();
        }
        drop(place);
        self.given += piece.len();
        Poll::Ready(Some(line.give(piece)))
    }

    /// Whether what was given last is a part of a batch.
    pub fn has_more(&self) -> bool {
        !self.parked.place().batch.is_empty()
    }
}

impl Parked {
    fn place(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stalls for Parked {
    fn let_go(&self, since: Instant, why: Why) -> bool {
        let mut place = self.place();
        let touched = self.line.wrote_at().map_or(place.touched, |at| at.max(place.touched));
        let is_over = place.watch.as_ref().is_some_and(|watch| watch.is_not_worth_waiting_for());
        // Its client comes back for what it did not take.
        let holds_much = why == Why::ShortOfMemory && place.batch.frame_bytes() > HELD_BYTES_MAX;
        let gone = if (is_over || holds_much) && touched <= since { place.watch.take() } else { None };
        drop(place);
        let Some(watch) = gone else { return false };
        watch.give_up();
        self.line.cut();
        true
    }
}

/// Waits for something to say and for room to say it in, makes a batch of it and pauses, again and again; a final one is
/// there when it returns.
///
/// Not an `async fn`, which would hold what it was given twice, for as long as a watch is idle.
fn run(
    parked: Arc<Parked>,
    mut room: Option<Held>,
    slot: WatchSlot,
    mut events: WatchEvents,
    encoding: Encoding,
    framing: Framing,
) -> impl Future<Output = ()> + Send {
    let mut zipped = Live::default();
    let mut is_listing = parked.place().watch.as_ref().is_some_and(|watch| watch.is_watch_list());
    async move {
        let mut turn = std::pin::pin!(slot.turn());
        let mut buffer = None;
        loop {
            // Taken away when it stalled.
            let Some(mut watch) = parked.place().watch.take() else { return };
            // The initial state is long, and goes as fast as the network takes it.
            if buffer.is_none() && !watch.is_initial() {
                buffer = parked.line.socket().map(SmallBuffer::new);
            }
            let is_turn = tokio::select! {
                biased;
                () = &mut turn => true,
                () = watch.ready() => false,
            };
            if !parked.line.has_passed() {
                // Parked here, with its place to be taken away, until the client has room.
                parked.place().watch = Some(watch);
                parked.line.passed().await;
                let Some(returned) = parked.place().watch.take() else { return };
                watch = returned;
            }
            let effort = if watch.is_initial() { Effort::Deflate } else { Effort::Store };
            let mut frames = Batch::default();
            // Later it may wait for its client with this in hand.
            let frame_bytes = if watch.is_initial() { CHUNK_BYTES } else { PIECE_BYTES };
            let flow = if is_turn { Some(Flow::End) } else { watch.now(frame_bytes, &mut frames).await };
            let Some(last) = flow.map(|flow| close(flow, encoding, frames.own())) else {
                // An event that is not for this one.
                parked.place().watch = Some(watch);
                continue;
            };
            frames.parts().for_each(|part| events.count(encoding, part));
            if !watch.is_initial() {
                // From here on it takes what a connection may take.
                drop(room.take());
            }
            if is_listing && !watch.is_initial() {
                is_listing = false;
                events.listed();
            }
            frames = match framing {
                Framing::Http => frames,
                Framing::Gzip => zipped.part(&frames.whole(), effort, last).into(),
                Framing::WebSocket => {
                    let mut messages = Vec::with_capacity(frames.frame_bytes() + 64);
                    frames.parts().for_each(|part| websocket::messages(encoding, &part.bytes, &mut messages));
                    messages.into()
                }
            };
            {
                let mut place = parked.place();
                place.batch = frames;
                place.watch = Some(watch);
            }
            if last {
                return;
            }
            pause().await;
        }
    }
}

/// Keeps the buffer of a socket small while a watch goes over it.
struct SmallBuffer<'a>(&'a Socket);

impl<'a> SmallBuffer<'a> {
    fn new(socket: &'a Socket) -> SmallBuffer<'a> {
        socket.set_send_buffer(WATCH_SEND_BYTES);
        SmallBuffer(socket)
    }
}

impl Drop for SmallBuffer<'_> {
    fn drop(&mut self) {
        self.0.set_send_buffer(SEND_BYTES);
    }
}

/// Returns to whoever polls, once. Not woken: the poller has something to do, and comes back when that is done.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

/// Writes what `flow` ends with. Whether it is an end.
fn close(flow: Flow, encoding: Encoding, out: &mut Vec<u8>) -> bool {
    match (flow, encoding) {
        (Flow::Frames, _) => return false,
        (Flow::End, _) => {}
        (Flow::Error(status), Encoding::Json) => write_error(&status.into(), out),
        (Flow::Error(status), Encoding::Protobuf) => protobuf::write_error(&status.into(), out),
    }
    true
}

/// `{"type":"ERROR","object":{...}}` and a newline.
fn write_error(failure: &Failure, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"ERROR\",\"object\":");
    failure.write(out);
    out.extend_from_slice(b"}\n");
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{Reason, Status};

    use super::*;

    /// What `make` returns takes: a future, of one who waits.
    fn size_of_made<A, B, C, D, E, F, Made>(_make: impl Fn(A, B, C, D, E, F) -> Made) -> usize {
        size_of::<Made>()
    }

    #[test]
    fn a_watch_that_waits_is_small() {
        let sizes = [
            ("what runs", size_of_made(run), 640),
            ("its body", size_of::<WatchBody>(), 448),
            ("what is between batches", size_of::<Parked>() + size_of::<WatchStream>(), 192),
        ];
        for (what, size, most) in sizes {
            assert!(size <= most, "{what}: {size}, of {most}; all: {sizes:?}");
        }
    }

    #[test]
    fn an_error_is_a_line() {
        let mut out = Vec::new();
        write_error(&Status::new(Reason::Expired, "too old resource version: 1 (5)").into(), &mut out);
        let want = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\
                    \"status\":\"Failure\",\"message\":\"too old resource version: 1 (5)\",\"reason\":\"Expired\",\
                    \"code\":410}}\n";
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
}
