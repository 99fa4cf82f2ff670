//! The body of an answer, cut into frames or the parts of a list.
//!
//! In: what comes of a connection, in gzip or not. Out: a [`Cutting`] each time. Never: says what it means,
//! holds more than what is not whole yet.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use forebay_client::reflector::{Fault, Input};
use forebay_client::wire::{Frame, FrameAt, Inflate, NextRun, Part, Runs, WireError};
use forebay_connector::fault_of;
use http_body::Body as _;
use kube::client::Body;

use super::packed::Framed;
use crate::encoding::{Frames, Items, Object};
use crate::progress::Progress;

/// A body that comes in.
pub(super) struct Answer {
    pub(super) body: Body,
    // While a state comes in gzip, and it comes in runs.
    pub(super) runs: Option<Box<Runs>>,
    pub(super) inflate: Option<Inflate>,
    pub(super) cut: Cut,
    // It was not told yet that bytes came and no frame ended with them.
    pub(super) has_new_bytes: bool,
    pub(super) is_at_end: bool,
}

pub(super) enum Cut {
    Watch(Box<Frames>),
    List { items: Box<Items>, is_paged: bool },
}

/// What came of an answer.
pub(super) enum Cutting {
    Frame(Frame<Object>),
    /// Frames that are all of a run.
    Framed(Framed),
    Part(Part<Object>),
    /// Bytes of something that is not whole yet.
    Half,
    /// Nothing more comes.
    Over(Input),
}

impl Answer {
    /// Takes what comes as it comes, no longer in runs.
    pub(super) fn go_on(&mut self) {
        if let Some(runs) = self.runs.take() {
            self.inflate = Some(runs.go_on());
        }
    }

    /// Whether it stands in the middle of a frame, an item or a run.
    pub(super) fn is_within(&self) -> bool {
        self.cut.is_within() || self.runs.as_ref().is_some_and(|runs| runs.is_within_run())
    }

    pub(super) fn poll_cut(&mut self, context: &mut Context<'_>, progress: &Progress) -> Poll<Cutting> {
        loop {
            match self.cut.next() {
                Ok(Some(cut)) => return Poll::Ready(cut),
                Ok(None) => {}
                Err(_) => return Poll::Ready(Cutting::Over(Input::Garbled)),
            }
            if let Some(runs) = &mut self.runs {
                match runs.next_run() {
                    NextRun::Run(run) => match self.cut.frames_of(&run.plain) {
                        Ok(Some(frames)) => return Poll::Ready(Cutting::Framed(Framed { run, frames })),
                        Ok(None) => {
                            self.cut.push(&run.plain);
                            continue;
                        }
                        Err(_) => return Poll::Ready(Cutting::Over(Input::Garbled)),
                    },
                    NextRun::More if !self.is_at_end => {}
                    NextRun::More | NextRun::Otherwise => self.go_on(),
                }
            }
            if let Some(inflate) = &mut self.inflate {
                match inflate.next_piece() {
                    Ok(Some(piece)) => {
                        self.cut.push(piece);
                        continue;
                    }
                    Ok(None) => {}
                    Err(_) => return Poll::Ready(Cutting::Over(Input::Garbled)),
                }
            }
            if self.is_at_end {
                let is_whole = self.inflate.as_ref().is_none_or(Inflate::is_whole);
                return Poll::Ready(Cutting::Over(self.cut.ended(is_whole)));
            }
            if std::mem::take(&mut self.has_new_bytes) && self.is_within() {
                return Poll::Ready(Cutting::Half);
            }
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                None => self.is_at_end = true,
                Some(Ok(frame)) => {
                    let Ok(piece) = frame.into_data() else { continue };
                    self.has_new_bytes = true;
                    progress.read(piece.len());
                    match (&mut self.runs, &mut self.inflate) {
                        (Some(runs), _) => runs.push(&piece),
                        (None, Some(inflate)) => inflate.push(&piece),
                        (None, None) => self.cut.push(&piece),
                    }
                }
                Some(Err(error)) => {
                    tracing::debug!(error = &error as &dyn std::error::Error, "an answer failed");
                    let fault = match fault_of(&error) {
                        Fault::Other => Fault::CutShort,
                        fault => fault,
                    };
                    progress.failed(fault);
                    return Poll::Ready(Cutting::Over(Input::Failed(fault)));
                }
            }
        }
    }
}

impl Cut {
    fn next(&mut self) -> Result<Option<Cutting>, WireError> {
        match self {
            Cut::Watch(frames) => Ok(frames.next_frame()?.map(Cutting::Frame)),
            Cut::List { items, is_paged } => {
                let part = items.next_part()?;
                *is_paged |= matches!(part, Some(Part::End(_) | Part::Status(_)));
                Ok(part.map(Cutting::Part))
            }
        }
    }

    /// The frames of a text that comes next, if that is what it is.
    fn frames_of(&mut self, text: &Bytes) -> Result<Option<Vec<FrameAt>>, WireError> {
        match self {
            Cut::Watch(frames) => frames.frames_of(text),
            Cut::List { .. } => Ok(None),
        }
    }

    fn push(&mut self, piece: &[u8]) {
        match self {
            Cut::Watch(frames) => frames.push(piece),
            Cut::List { items, .. } => items.push(piece),
        }
    }

    /// Whether it stands in the middle of a frame or an item.
    fn is_within(&self) -> bool {
        match self {
            Cut::Watch(frames) => frames.is_within_frame(),
            Cut::List { items, .. } => items.is_within_item(),
        }
    }

    /// What it means that the body ended.
    fn ended(&self, is_whole: bool) -> Input {
        match self {
            Cut::Watch(frames) if is_whole && !frames.is_within_frame() => Input::Ended,
            Cut::List { is_paged: true, .. } => Input::Ended,
            Cut::Watch(_) | Cut::List { .. } => Input::Failed(Fault::CutShort),
        }
    }
}
