//! A body of an answer, cut into the frames of a watch or the parts of a list.
//!
//! In: pieces. Out: a [`Cutting`] each time. Never: says what it means.

use forebay_client::reflector::{Fault, Input};
use forebay_client::wire::{Frame, ListItems, Part, WatchFrames, WireError};

/// What is cut.
pub enum Cut {
    Watch(Box<WatchFrames>),
    List { items: Box<ListItems>, is_whole: bool },
}

/// What came of an answer.
pub enum Cutting {
    Frame(Frame),
    Part(Part),
    /// Nothing more comes, or nothing that can be read.
    Over(Input),
}

impl Cut {
    pub fn new(is_watch: bool) -> Cut {
        match is_watch {
            true => Cut::Watch(Box::new(WatchFrames::new())),
            false => Cut::List { items: Box::new(ListItems::new()), is_whole: false },
        }
    }

    /// The next one that is whole.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn next(&mut self) -> Result<Option<Cutting>, WireError> {
        match self {
            Cut::Watch(frames) => Ok(frames.next_frame()?.map(Cutting::Frame)),
            Cut::List { items, is_whole } => {
                let part = items.next_part()?;
                *is_whole |= matches!(part, Some(Part::End(_) | Part::Status(_)));
                Ok(part.map(Cutting::Part))
            }
        }
    }

    pub fn push(&mut self, piece: &[u8]) {
        match self {
            Cut::Watch(frames) => frames.push(piece),
            Cut::List { items, .. } => items.push(piece),
        }
    }

    /// Whether it stands in the middle of a frame or an item.
    pub fn is_within(&self) -> bool {
        match self {
            Cut::Watch(frames) => frames.is_within_frame(),
            Cut::List { items, .. } => items.is_within_item(),
        }
    }

    /// What it means that the body ended.
    pub fn ended(&self) -> Input {
        match self {
            Cut::Watch(frames) if !frames.is_within_frame() => Input::Ended,
            Cut::List { is_whole: true, .. } => Input::Ended,
            Cut::Watch(_) | Cut::List { .. } => Input::Failed(Fault::CutShort),
        }
    }
}
