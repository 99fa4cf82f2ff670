//! A list as JSON: its items one by one, while it comes in.
//!
//! In: the body in pieces. Out: a [`Part`] for each item, and for what the list says of itself before and
//! after them. A server that thought better of it answers with a Status; that is another part. Never: holds
//! more than what stands before the items or the item that is coming in, and a piece.

use std::ops::Range;

use bytes::Bytes;

use super::error::{WireError, garbled};
use super::object::{ObjectScan, ObjectText};
use super::pending::Pending;
use super::status::StatusFrame;
use super::text::string;
use super::walk::{Coming, Reached, Take, Visit, Walk};
use crate::limits::OBJECT_BYTES_MAX;

/// What a list says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListMeta {
    /// `PodList`; empty when it says none.
    pub kind: String,
    pub api_version: String,
    /// `metadata.resourceVersion`, as it stands there; [`super::decimal`] reads it as a number.
    pub revision: Option<String>,
    /// `metadata.continue`: there are more.
    pub next: Option<String>,
    /// How many more, where the server knows.
    pub remaining: Option<u64>,
}

/// A part of the answer to a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<O = ObjectText> {
    /// Comes once, before the items: what is known by then, as `metadata` may stand behind them.
    Head(ListMeta),
    Item(O),
    /// The end of the list.
    End(ListMeta),
    /// The body is a `Status` instead of a list.
    Status(StatusFrame),
}

impl<O> Part<O> {
    /// The same part, with its item replaced by what `of` makes of it.
    pub fn map<P>(self, of: impl FnOnce(O) -> P) -> Part<P> {
        match self {
            Part::Head(meta) => Part::Head(meta),
            Part::Item(item) => Part::Item(of(item)),
            Part::End(meta) => Part::End(meta),
            Part::Status(status) => Part::Status(status),
        }
    }
}

/// The parts of a list.
#[derive(Debug)]
pub struct ListItems {
    pending: Pending,
    walk: Walk,
    scan: ListScan,
    head_sent: bool,
    // What comes behind the head.
    ready: Option<Part>,
    is_whole: bool,
    failed: Option<WireError>,
}

impl Default for ListItems {
    fn default() -> ListItems {
        ListItems::new()
    }
}

impl ListItems {
    pub fn new() -> ListItems {
        ListItems {
            pending: Pending::default(),
            walk: Walk::new(),
            scan: ListScan::default(),
            head_sent: false,
            ready: None,
            is_whole: false,
            failed: None,
        }
    }

    /// Takes what came in. Parts that were not asked for before stay.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.push(piece);
    }

    /// The next part that is whole; `None` when more has to come in first, or when all of it came.
    ///
    /// # Errors
    /// [`WireError`], now and from now on.
    pub fn next_part(&mut self) -> Result<Option<Part>, WireError> {
        if let Some(part) = self.ready.take() {
            return Ok(Some(part));
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.advance();
        self.failed = next.as_ref().err().copied();
        let is_of_list = matches!(next, Ok(Some(Part::Item(_) | Part::End(_))));
        if !self.head_sent && (is_of_list || self.scan.items != Items::Ahead) && next.is_ok() {
            self.head_sent = true;
            self.ready = next?;
            return Ok(Some(Part::Head(self.scan.meta.clone())));
        }
        next
    }

    /// Whether the end of the list, or a Status, was given: when the body ends before, the rest is lost.
    pub fn is_whole(&self) -> bool {
        self.is_whole && self.ready.is_none()
    }

    /// Whether it stands in the middle of something, once all parts that are whole were taken: more has to
    /// come.
    pub fn is_within_item(&self) -> bool {
        !self.is_whole && !self.pending.text().is_empty()
    }

    fn advance(&mut self) -> Result<Option<Part>, WireError> {
        let text = self.pending.text();
        if self.is_whole {
            let is_blank = text.iter().all(|byte| matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
            self.pending.use_up(text.len());
            return if is_blank { Ok(None) } else { garbled("bytes behind the list") };
        }
        let part = match self.walk.go(text, &mut self.scan)? {
            Reached::Stop => Some(Part::Item(self.scan.item(text)?)),
            Reached::End => {
                self.is_whole = true;
                Some(self.scan.end(&text[..self.walk.at()])?)
            }
            // All of it was looked at.
            Reached::More if text.len() - self.scan.held_from > OBJECT_BYTES_MAX => {
                return Err(WireError::TooLong);
            }
            Reached::More => None,
        };
        let used = if self.is_whole { self.walk.at() } else { self.scan.held_from };
        self.pending.use_up(used);
        self.walk.forget(used);
        self.scan.forget(used);
        Ok(part)
    }
}

/// Where the items are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Items {
    #[default]
    Ahead,
    /// The walk is among them.
    Here,
    Behind,
}

/// A value that is taken.
#[derive(Clone, Copy, Debug, Default)]
enum What {
    #[default]
    Kind,
    ApiVersion,
    Revision,
    Next,
    Remaining,
}

/// What was seen of a list.
#[derive(Debug, Default)]
struct ListScan {
    meta: ListMeta,
    has_metadata: bool,
    items: Items,
    taking: What,
    item: ObjectScan,
    // Behind the item.
    item_end: usize,
    // What lies before it is not asked for again.
    held_from: usize,
}

impl ListScan {
    fn item(&mut self, text: &[u8]) -> Result<ObjectText, WireError> {
        std::mem::take(&mut self.item).finish(text, self.item_end, |span| Bytes::copy_from_slice(&text[span]))
    }

    /// - `text`: all of it, if there were no items.
    fn end(&mut self, text: &[u8]) -> Result<Part, WireError> {
        match (self.meta.kind == "Status", self.items) {
            (true, Items::Ahead) => StatusFrame::of_body(text).map(Part::Status),
            (true, _) => garbled("a Status with items"),
            // One that is empty says so: what does not is something else, and would be taken for an empty
            // one.
            (false, Items::Ahead) => garbled("a list without items"),
            (false, _) => Ok(Part::End(self.meta.clone())),
        }
    }

    fn forget(&mut self, len: usize) {
        self.held_from -= len.min(self.held_from);
        self.item.forget(len);
    }

    fn of_list(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        self.taking = match coming.name {
            b"kind" => What::Kind,
            b"apiVersion" => What::ApiVersion,
            b"metadata" if std::mem::replace(&mut self.has_metadata, true) => {
                return garbled("a second metadata of a list");
            }
            b"metadata" => return enter_or_null(coming.first, b'{'),
            b"items" if self.items != Items::Ahead => return garbled("a list with items twice"),
            b"items" => {
                let take = enter_or_null(coming.first, b'[')?;
                self.items = if take == Take::Enter { Items::Here } else { Items::Behind };
                self.held_from = coming.at;
                return Ok(take);
            }
            _ => return Ok(Take::Skip),
        };
        Ok(Take::Value)
    }

    fn of_metadata(&mut self, name: &[u8]) -> Take {
        self.taking = match name {
            b"resourceVersion" => What::Revision,
            b"continue" => What::Next,
            b"remainingItemCount" => What::Remaining,
            _ => return Take::Skip,
        };
        Take::Value
    }

    fn of_items(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        if coming.first != b'{' {
            return garbled("an item that is no object");
        }
        self.item = ObjectScan::begin(coming);
        self.held_from = coming.at;
        Ok(Take::Enter)
    }
}

fn enter_or_null(first: u8, bracket: u8) -> Result<Take, WireError> {
    match first {
        b'n' => Ok(Take::Skip),
        other if other == bracket => Ok(Take::Enter),
        _ => garbled("metadata or items of a list that are none"),
    }
}

impl Visit for ListScan {
    fn comes(&mut self, coming: Coming<'_>) -> Result<Take, WireError> {
        match (coming.level, self.items) {
            (0, _) => self.of_list(coming),
            (1, Items::Here) => self.of_items(coming),
            (1, _) => Ok(self.of_metadata(coming.name)),
            (level, _) => self.item.comes(level - 2, coming),
        }
    }

    fn passed(&mut self, level: usize, value: &[u8], member: Range<usize>) -> Result<(), WireError> {
        if level >= 2 {
            return self.item.passed(value, member);
        }
        let text = || string(value).map(Option::unwrap_or_default);
        let some = || text().map(|text| Some(text).filter(|text| !text.is_empty()));
        match self.taking {
            What::Kind => self.meta.kind = text()?,
            What::ApiVersion => self.meta.api_version = text()?,
            What::Revision => self.meta.revision = some()?,
            What::Next => self.meta.next = some()?,
            What::Remaining => {
                self.meta.remaining = str::from_utf8(value).ok().and_then(|count| count.parse().ok());
            }
        }
        Ok(())
    }

    fn left(&mut self, level: usize, at: usize, spaces: usize) -> Reached {
        if self.items != Items::Here || level == 0 {
            return Reached::More;
        }
        match level {
            1 => self.items = Items::Behind,
            2 => self.item_end = at,
            _ => {}
        }
        if level >= 2 {
            self.item.left(level - 2, at, spaces);
        }
        if level > 2 {
            return Reached::More;
        }
        self.held_from = at;
        if level == 2 { Reached::Stop } else { Reached::More }
    }
}
