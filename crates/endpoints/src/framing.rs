//! What the frames of a watch are sent in: as they are, as a member of gzip, or as messages of a WebSocket.
//!
//! In: a watch, and room for frames, which `reads` makes in whichever media type. Out: a [`Batch`] as its
//! connection takes it. Never: makes a frame, or looks into one.

use std::task::{Context, Poll};

use forebay_pieces::{Effort, Zipped};
use forebay_reads::{Batch, EventFormat, FrameSink as _, Step, WatchBody};

use crate::metrics::WatchEvents;
use crate::websocket;

/// See the module's doc.
pub enum Framing {
    /// A body.
    Http,
    /// A body in gzip.
    Gzip(Box<Zipped>),
    WebSocket(&'static EventFormat),
}

impl Framing {
    /// Has `watch` put about `room` bytes of frames where they are put together; see [`WatchBody::poll_now`].
    pub fn poll_now(
        &mut self,
        watch: &mut WatchBody,
        room: usize,
        batch: &mut Batch,
        cx: &mut Context<'_>,
    ) -> Poll<Step> {
        match self {
            Framing::Gzip(zipped) => watch.poll_now(room, &mut **zipped, cx),
            Framing::Http | Framing::WebSocket(_) => watch.poll_now(room, batch, cx),
        }
    }

    /// Counts the frames that were made since, and puts them into what they are sent in: `batch` is all of
    /// that.
    ///
    /// - `effort`: where it is compressed.
    /// - `is_initial`: more of the initial state is to come.
    /// - `is_last`: nothing comes behind it.
    pub fn close(
        &mut self,
        batch: &mut Batch,
        events: &WatchEvents,
        (effort, is_initial, is_last): (Effort, bool, bool),
    ) {
        match self {
            Framing::Http => events.count(batch.take_sizes()),
            Framing::Gzip(zipped) => {
                events.count(zipped.take_sizes());
                if !is_initial {
                    zipped.end_blocks();
                }
                *batch = zipped.part(effort, is_last).into();
            }
            Framing::WebSocket(format) => {
                events.count(batch.take_sizes());
                let mut frames = std::mem::take(batch);
                let mut messages = Vec::with_capacity(frames.frame_bytes() + 64);
                frames.parts().for_each(|part| websocket::messages(format, part, &mut messages));
                *batch = messages.into();
            }
        }
    }
}
