//! A watch on its way out: frames as they come, and the end when it is time.
//!
//! In: the registry's [`WatchBody`]. Out: bytes, a batch of whole lines or frames at a time. Between batches it holds nothing but
//! its place. Ends with the stream, with an ERROR event, or when the server leaves and it is this watch's turn.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use forebay_registry::{Encoding, Flow, WatchBody};

use crate::limits::CHUNK_BYTES;
use crate::metrics::WatchEvents;
use crate::protobuf;
use crate::shutdown::WatchSlot;
use crate::status::Failure;

/// A watch's bytes.
pub struct WatchStream {
    // Made once, so that a batch costs no allocation but its own.
    run: Pin<Box<dyn Future<Output = ()> + Send>>,
    batch: Arc<Mutex<Vec<u8>>>,
    ended: bool,
}

impl WatchStream {
    /// - `slot`: counts it and says when the server's leaving ends it.
    pub fn new(watch: WatchBody, slot: WatchSlot, events: WatchEvents, encoding: Encoding) -> WatchStream {
        let batch = Arc::new(Mutex::new(Vec::new()));
        let run = Box::pin(run(watch, slot, events, encoding, batch.clone()));
        WatchStream { run, batch, ended: false }
    }

    /// The next lines; `None` at the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.ended = self.run.as_mut().poll(cx).is_ready();
        let batch = std::mem::take(&mut *self.batch.lock().unwrap_or_else(PoisonError::into_inner));
        match (batch.is_empty(), self.ended) {
            (false, _) => Poll::Ready(Some(Bytes::from(batch))),
            (true, true) => Poll::Ready(None),
            (true, false) => Poll::Pending,
        }
    }
}

/// Puts a batch into `batch` and pauses, again and again; a final one is there when it returns.
async fn run(
    mut watch: WatchBody,
    slot: WatchSlot,
    mut events: WatchEvents,
    encoding: Encoding,
    batch: Arc<Mutex<Vec<u8>>>,
) {
    let turn = slot.turn();
    let mut turn = std::pin::pin!(turn);
    let put = |lines: Vec<u8>| *batch.lock().unwrap_or_else(PoisonError::into_inner) = lines;
    loop {
        let mut lines = Vec::new();
        let flow = tokio::select! {
            flow = watch.next(CHUNK_BYTES, &mut lines) => flow,
            () = &mut turn => Flow::End,
        };
        let last = match flow {
            Flow::Frames => false,
            Flow::Error(status) => {
                match encoding {
                    Encoding::Json => write_error(&status.into(), &mut lines),
                    Encoding::Protobuf => protobuf::write_error(&status.into(), &mut lines),
                }
                true
            }
            Flow::End => true,
        };
        match encoding {
            Encoding::Json => events.count_lines(&lines),
            Encoding::Protobuf => events.count_frames(&lines),
        }
        put(lines);
        if last {
            return;
        }
        pause().await;
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
