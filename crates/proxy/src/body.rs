//! An answer of another server as the body of ours: at the pace of its reader.
//!
//! In: what was carried. Out: its pieces; or an error, when that server breaks off or takes too long, or its
//! reader has stalled. Never: reads on before its reader asks.
//!
//! Owner of what is carried: its body. Whoever takes it away does so under the same lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_rt::{Alarm, Clock, Instant};
use forebay_transport::{LetGoFor, ResponseChannel, StalledReaders, Stalls, WatchSlot, WatchTurn};

use crate::carried::Carried;

/// When it ends, but by itself.
pub enum Lasts {
    /// It is to be complete by then.
    Until(Instant),
    /// As long as its server and its client like: until ours ends.
    WhileServed(Box<WatchSlot>),
}

/// See the module's doc.
pub struct ProxiedBody {
    state: Arc<State>,
    lasts: Lasts,
    alarm: Alarm,
}

struct State {
    channel: ResponseChannel,
    clock: Clock,
    reading: Mutex<Reading>,
}

struct Reading {
    // `None` once it is complete or taken away.
    carried: Option<Carried>,
    // The part of the last piece that was not handed out yet.
    piece: Bytes,
    // When its reader last came for more.
    touched: Instant,
    // Its reader waits for the other server.
    is_waiting: bool,
    is_over: bool,
}

impl ProxiedBody {
    /// - `readers`: what watches over those who read, and what it is written to.
    pub fn new(
        carried: Carried,
        lasts: Lasts,
        (readers, channel): (&StalledReaders, &ResponseChannel),
        clock: Clock,
    ) -> ProxiedBody {
        let reading = Reading {
            carried: Some(carried),
            piece: Bytes::new(),
            touched: clock.now(),
            is_waiting: false,
            is_over: false,
        };
        let state = Arc::new(State { channel: channel.clone(), clock, reading: Mutex::new(reading) });
        readers.watch_over(&state);
        ProxiedBody { state, lasts, alarm: Alarm::default() }
    }

    /// Whether it lasts as long as its client likes.
    pub fn is_watch(&self) -> bool {
        matches!(self.lasts, Lasts::WhileServed(_))
    }

    /// The next piece; `None` at the end. A slow stream of HTTP/2 is given a long piece in parts.
    ///
    /// # Errors
    /// Why it has broken off, once.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        let now = self.state.clock.now();
        let mut reading = self.state.reading();
        if reading.is_over {
            return Poll::Ready(Ok(None));
        }
        let pause = now.duration_since(reading.touched);
        if reading.piece.is_empty() {
            let Some(carried) = &mut reading.carried else {
                return Poll::Ready(Err("the reader took nothing for too long".to_owned()));
            };
            match carried.poll_data(cx) {
                Poll::Ready(Ok(Some(data))) => reading.piece = data,
                Poll::Ready(Ok(None)) => {
                    (reading.carried, reading.is_over) = (None, true);
                    return Poll::Ready(Ok(None));
                }
                Poll::Ready(Err(why)) => {
                    (reading.carried, reading.is_over) = (None, true);
                    return Poll::Ready(Err(why.to_string()));
                }
                Poll::Pending => {
                    reading.is_waiting = true;
                    let ended = ready!(self.lasts.poll_end(&mut self.alarm, cx));
                    (reading.carried, reading.is_over) = (None, true);
                    return Poll::Ready(ended);
                }
            }
        }
        let most = self.state.channel.body_bytes_at_once(|| pause);
        let bytes = reading.piece.len().min(most);
        let piece = reading.piece.split_to(bytes);
        (reading.touched, reading.is_waiting) = (now, false);
        Poll::Ready(Ok(Some(piece)))
    }

    /// Who reads it, to be let go of.
    pub fn reader(&self) -> Weak<dyn Stalls> {
        let state: Weak<State> = Arc::downgrade(&self.state);
        state
    }
}

impl Lasts {
    /// Ready when there is no more time: a watch ends there, and what is to be whole breaks off.
    fn poll_end(&mut self, alarm: &mut Alarm, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        match self {
            Lasts::Until(at) => {
                ready!(alarm.poll_rings(*at, cx));
                Poll::Ready(Err("the request took too long".to_owned()))
            }
            Lasts::WhileServed(slot) => loop {
                // That its connection goes is nothing to a watch that nobody here can tell where to go on.
                if ready!(slot.poll_turn(cx)) == WatchTurn::End {
                    return Poll::Ready(Ok(None));
                }
            },
        }
    }
}

impl State {
    fn reading(&self) -> MutexGuard<'_, Reading> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stalls for State {
    fn let_go(&self, since: Instant, why: LetGoFor) -> bool {
        // While it is locked, it is being read: its reader has not stalled.
        let Ok(mut reading) = self.reading.try_lock() else { return false };
        if reading.is_waiting && why == LetGoFor::Stalled {
            return false;
        }
        let touched = self.channel.wrote_at().map_or(reading.touched, |at| at.max(reading.touched));
        let taken = if touched <= since { reading.carried.take() } else { None };
        if taken.is_some() {
            reading.piece = Bytes::new();
        }
        drop(reading);
        if taken.is_some() {
            self.channel.abort();
        }
        taken.is_some()
    }
}
