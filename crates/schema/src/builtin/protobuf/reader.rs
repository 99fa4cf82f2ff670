//! Reads protobuf's wire format as gogo-protobuf's generated code does, but for numbers of more than 64 bits,
//! which no client writes and which are refused here.
//!
//! In: the bytes of one message. Out: tags, and values checked against the wire type that their field has.
//! Never: what the fields mean.

use std::borrow::Cow;

use forebay_apimachinery::varint::{self, VarintError};

use super::error::DecodeError;

pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// What stands before each field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) number: u32,
    pub(super) wire: u8,
}

/// What is left of a message.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// What was not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns the next field's tag, or `None` at the end.
    ///
    /// - `message`: Go's name of the message, for errors.
    #[inline]
    pub(super) fn tag(&mut self, message: &'static str) -> Result<Option<Tag>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let (number, wire) = ((tag >> 3) as i32, (tag & 7) as u8);
        if wire == END_GROUP {
            return Err(DecodeError::EndGroup { message });
        }
        if number <= 0 {
            return Err(DecodeError::IllegalTag { message, number, tag });
        }
        Ok(Some(Tag { number: number.unsigned_abs(), wire }))
    }

    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        varint::read(&mut self.rest).map_err(|error| match error {
            VarintError::UnexpectedEof => DecodeError::UnexpectedEof,
            VarintError::Overflow => DecodeError::Overflow,
        })
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, DecodeError> {
        let bytes: [u8; 8] = self.take(8)?.try_into().map_err(|_| DecodeError::UnexpectedEof)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A length and as many bytes.
    #[inline]
    pub(super) fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.varint()?;
        if (len as i64) < 0 {
            return Err(DecodeError::NegativeLength);
        }
        self.take(usize::try_from(len).map_err(|_| DecodeError::UnexpectedEof)?)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(DecodeError::UnexpectedEof)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Passes over the value of a field that nobody knows.
    pub(super) fn skip(&mut self, wire: u8) -> Result<(), DecodeError> {
        let mut groups = 0usize; // open ones
        let mut wire = wire;
        loop {
            match wire {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                START_GROUP => groups += 1,
                END_GROUP => groups = groups.checked_sub(1).ok_or(DecodeError::UnexpectedEndOfGroup)?,
                FIXED32 => drop(self.take(4)?),
                _ => return Err(DecodeError::IllegalWireType(wire)),
            }
            if groups == 0 {
                return Ok(());
            }
            wire = (self.varint()? & 7) as u8;
        }
    }
}

/// Go's strings may hold any bytes, and its JSON encoder writes U+FFFD for each that is not UTF-8.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Cow::Owned(text)
}
