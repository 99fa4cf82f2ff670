//! One watch that is carried through a proxy: frame by frame, so that a fault can fall between two of them or
//! into one.
//!
//! In: the server's body, orders. Out: the client's body. Owner of a task, which ends with either. Never: a
//! frame that is cut unless a fault cuts it; more than [`FRAMES_MAX`] frames ahead of the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use tokio::sync::mpsc;

use super::effects::OfWatch;
use super::frames::{Cutter, Serialization};
use super::state::State;
use crate::limits::FRAMES_MAX;

/// A body that does not end as it should.
#[derive(Debug, thiserror::Error)]
#[error("the stream was cut")]
pub struct Broken;

/// Which bookmarks come through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bookmarks {
    All,
    None,
}

/// The client's side.
#[derive(Debug)]
pub struct Carried {
    frames: mpsc::Receiver<Result<Bytes, Broken>>,
}

/// Carries a watch that was asked for when `born` faults had begun.
pub fn carry(
    state: &Arc<State>,
    body: Incoming,
    serialization: Serialization,
    bookmarks: Bookmarks,
    born: u64,
) -> Carried {
    let (to, frames) = mpsc::channel(FRAMES_MAX);
    let carrier = Carrier { state: state.clone(), serialization, bookmarks, to };
    tokio::spawn(async move {
        // An error is a client that has gone: nobody is to be told.
        let _ = carrier.run(body, born).await;
    });
    Carried { frames }
}

struct Carrier {
    state: Arc<State>,
    serialization: Serialization,
    bookmarks: Bookmarks,
    to: mpsc::Sender<Result<Bytes, Broken>>,
}

/// The client has gone.
struct Gone;

impl Carrier {
    async fn run(self, mut body: Incoming, mut done: u64) -> Result<(), Gone> {
        let mut orders = self.state.subscribe();
        let mut cutter = Cutter::new(self.serialization);
        loop {
            let order = *orders.borrow_and_update();
            if order.number > done
                && let Some(fault) = order.begun
            {
                done = order.number;
                match fault.of_watch(self.serialization) {
                    OfWatch::GoesOn => {}
                    OfWatch::GoesOnWith(frame) => self.tell(Ok(frame)).await?,
                    OfWatch::Ends => return Ok(()),
                    OfWatch::EndsWith(last) => return self.tell(Ok(last)).await,
                    OfWatch::Reset => return self.tell(Err(Broken)).await,
                    OfWatch::StallsWith(half) => {
                        self.tell(Ok(half)).await?;
                        self.to.closed().await;
                        return Err(Gone);
                    }
                }
            }
            tokio::select! {
                biased;
                () = self.to.closed() => return Err(Gone),
                changed = orders.changed() => if changed.is_err() { return Ok(()) },
                piece = body.frame() => match piece {
                    None => return Ok(()),
                    Some(Err(_)) => return self.tell(Err(Broken)).await,
                    Some(Ok(piece)) => {
                        if let Some(data) = piece.data_ref() {
                            cutter.push(data);
                        }
                        if self.pass(&mut cutter).await? == Passed::Broken {
                            return self.tell(Err(Broken)).await;
                        }
                    }
                },
            }
        }
    }

    /// Tells all frames that are whole.
    async fn pass(&self, cutter: &mut Cutter) -> Result<Passed, Gone> {
        loop {
            match cutter.next() {
                Ok(None) => return Ok(Passed::All),
                Ok(Some(frame))
                    if self.bookmarks == Bookmarks::None && self.serialization.is_bookmark(&frame) => {}
                Ok(Some(frame)) => self.tell(Ok(frame)).await?,
                Err(_) => return Ok(Passed::Broken),
            }
        }
    }

    async fn tell(&self, what: Result<Bytes, Broken>) -> Result<(), Gone> {
        self.to.send(what).await.map_err(|_| Gone)
    }
}

#[derive(PartialEq, Eq)]
enum Passed {
    All,
    Broken,
}

impl Body for Carried {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        self.frames.poll_recv(context).map(|next| next.map(|next| next.map(Frame::data)))
    }
}
