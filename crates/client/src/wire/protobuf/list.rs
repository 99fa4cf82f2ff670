//! A list in protobuf: its items one by one, while it comes in.
//!
//! In: the body in pieces: an envelope with the message of the list. Out: a [`Part`] for each item, and for
//! what the list says of itself before and after them; a Status is another part. Never: holds more than a
//! field of the list that is coming in, and a piece.

use bytes::Bytes;

use super::super::error::{WireError, garbled};
use super::super::list::{ListMeta, Part};
use super::super::object::TypeMeta;
use super::super::pending::Pending;
use super::fields::{Fields, Head, head};
use super::object::{ObjectMessage, PREFIX, type_meta};
use super::status::status;
use crate::limits::OBJECT_BYTES_MAX;

/// Fields of the envelope.
const TYPE_META: u32 = 1;
const RAW: u32 = 2;
const CONTENT_ENCODING: u32 = 3;

/// Fields of every list.
const METADATA: u32 = 1;
const ITEM: u32 = 2;

/// The parts of a list.
#[derive(Debug, Default)]
pub struct MessageItems {
    pending: Pending,
    place: Place,
    // Bytes of a field that nobody asks for and that are still to come.
    skip: u64,
    // The type that was said.
    of: TypeMeta,
    meta: ListMeta,
    has_metadata: bool,
    head_sent: bool,
    // What comes behind the head.
    ready: Option<Part<ObjectMessage>>,
    is_whole: bool,
    failed: Option<WireError>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Prefix,
    /// A field of the envelope, before the list.
    Envelope,
    /// A field of the list, of which so many bytes are left.
    List { left: u64 },
    /// A field of the envelope, behind the list.
    Behind,
}

/// What came of looking at what comes next.
enum Turn {
    Part(Part<ObjectMessage>),
    Again,
    /// More bytes have to come in first.
    Wait,
}

impl MessageItems {
    pub fn new() -> MessageItems {
        MessageItems::default()
    }

    /// Takes what came in. Parts that were not asked for before stay.
    pub fn push(&mut self, piece: &[u8]) {
        self.pending.push(piece);
    }

    /// The next part that is whole; `None` when more has to come in first, or when all of it came.
    ///
    /// # Errors
    /// [`WireError`], now and from now on.
    pub fn next_part(&mut self) -> Result<Option<Part<ObjectMessage>>, WireError> {
        if let Some(part) = self.ready.take() {
            return Ok(Some(part));
        }
        if let Some(error) = self.failed {
            return Err(error);
        }
        let next = self.advance();
        self.failed = next.as_ref().err().copied();
        let is_of_list = matches!(next, Ok(Some(Part::Item(_) | Part::End(_))));
        if is_of_list && !std::mem::replace(&mut self.head_sent, true) {
            self.ready = next?;
            return Ok(Some(Part::Head(self.meta.clone())));
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
        !self.is_whole && (self.skip > 0 || !self.pending.text().is_empty())
    }

    fn advance(&mut self) -> Result<Option<Part<ObjectMessage>>, WireError> {
        loop {
            match self.turn()? {
                Turn::Part(part) => return Ok(Some(part)),
                Turn::Again => {}
                Turn::Wait => return Ok(None),
            }
        }
    }

    fn turn(&mut self) -> Result<Turn, WireError> {
        match self.place {
            _ if self.skip > 0 => {
                let here = self.skip.min(self.pending.text().len() as u64);
                self.pending.use_up(here as usize);
                self.skip -= here;
                Ok(if self.skip == 0 { Turn::Again } else { Turn::Wait })
            }
            Place::Prefix => self.prefix(),
            Place::Envelope | Place::Behind => self.of_envelope(),
            Place::List { left: 0 } => {
                self.is_over();
                Ok(Turn::Part(Part::End(self.meta.clone())))
            }
            Place::List { left } => self.of_list(left),
        }
    }

    fn is_over(&mut self) {
        (self.place, self.is_whole) = (Place::Behind, true);
    }

    fn prefix(&mut self) -> Result<Turn, WireError> {
        let text = self.pending.text();
        let len = text.len().min(PREFIX.len());
        if text[..len] != PREFIX[..len] {
            return garbled("a list without its envelope");
        }
        if len < PREFIX.len() {
            return Ok(Turn::Wait);
        }
        self.pending.use_up(len);
        self.place = Place::Envelope;
        Ok(Turn::Again)
    }

    fn of_envelope(&mut self) -> Result<Turn, WireError> {
        let Some(head) = head(self.pending.text())? else { return Ok(Turn::Wait) };
        match head.number {
            RAW if self.place == Place::Behind => return garbled("a second list in an envelope"),
            RAW => return self.raw(head),
            TYPE_META => {
                let Some(message) = self.whole(head)? else { return Ok(Turn::Wait) };
                type_meta(&message, &mut self.of)?;
                if self.place == Place::Envelope {
                    self.meta.kind.clone_from(&self.of.kind);
                    self.meta.api_version.clone_from(&self.of.api_version);
                }
            }
            CONTENT_ENCODING if head.value_len > 0 => return garbled("a list in an unknown coding"),
            _ => self.pass(head),
        }
        Ok(Turn::Again)
    }

    /// The list, or what is there instead of it.
    fn raw(&mut self, head: Head) -> Result<Turn, WireError> {
        if self.meta.kind == "Status" {
            let Some(message) = self.whole(head)? else { return Ok(Turn::Wait) };
            self.is_over();
            return Ok(Turn::Part(Part::Status(status(&message)?)));
        }
        // Any message could be taken for an empty list.
        if !head.is_bytes || !self.meta.kind.ends_with("List") {
            return garbled("something that is no list");
        }
        self.pending.use_up(head.len);
        self.place = Place::List { left: head.value_len };
        Ok(Turn::Again)
    }

    /// - `left`: bytes of the list that were not looked at; not 0.
    fn of_list(&mut self, left: u64) -> Result<Turn, WireError> {
        let text = self.pending.text();
        let here = left.min(text.len() as u64);
        let Some(head) = head(&text[..here as usize])? else {
            return if here == left { garbled("half a field of a list") } else { Ok(Turn::Wait) };
        };
        let len = head.value_len.saturating_add(head.len as u64);
        let Some(left) = left.checked_sub(len) else {
            return garbled("a field that is longer than its list");
        };
        let mut turn = Turn::Again;
        match head.number {
            METADATA | ITEM => {
                let Some(message) = self.whole(head)? else { return Ok(Turn::Wait) };
                match head.number {
                    METADATA => self.metadata(&message)?,
                    _ => turn = Turn::Part(Part::Item(ObjectMessage::read(message, None)?)),
                }
            }
            _ => self.pass(head),
        }
        self.place = Place::List { left };
        Ok(turn)
    }

    fn metadata(&mut self, message: &[u8]) -> Result<(), WireError> {
        if std::mem::replace(&mut self.has_metadata, true) {
            return garbled("a second metadata of a list");
        }
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next()? {
            let some = || value.text().map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()));
            match number {
                2 => self.meta.revision = some()?,
                3 => self.meta.next = some()?,
                4 => self.meta.remaining = u64::try_from(value.number()?.cast_signed()).ok(),
                _ => {}
            }
        }
        Ok(())
    }

    /// The value of a field once all of it is there.
    fn whole(&mut self, head: Head) -> Result<Option<Bytes>, WireError> {
        if !head.is_bytes {
            return garbled("a message that is none");
        }
        if head.value_len > OBJECT_BYTES_MAX as u64 {
            return Err(WireError::TooLong);
        }
        let end = head.len + head.value_len as usize;
        let Some(value) = self.pending.text().get(head.len..end) else { return Ok(None) };
        let value = Bytes::copy_from_slice(value);
        self.pending.use_up(end);
        Ok(Some(value))
    }

    fn pass(&mut self, head: Head) {
        self.pending.use_up(head.len);
        self.skip = head.value_len;
    }
}
