//! Protobuf's wire format.
//!
//! In: the bytes of a message, or its beginning. Out: its fields one by one. Never: what they mean; a group,
//! which no type of Kubernetes has.

use forebay_apimachinery::varint::{self, VarintError};

use super::super::error::{WireError, garbled};

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;
const FIXED32: u64 = 5;

/// Numbers that fields may have.
const NUMBERS: std::ops::Range<u64> = 1..1 << 29;

/// What stands before the value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) number: u32,
    /// A varint is part of the head.
    pub(super) varint: Option<u64>,
    pub(super) is_bytes: bool,
    /// Bytes of the head.
    pub(super) len: usize,
    /// Bytes of the value behind it.
    pub(super) value_len: u64,
}

/// The field that `text` begins with; `None` when more has to come in first.
pub(super) fn head(text: &[u8]) -> Result<Option<Head>, WireError> {
    let Some((tag, tag_len)) = varint(text)? else { return Ok(None) };
    let number = tag >> 3;
    if !NUMBERS.contains(&number) {
        return garbled("a field whose number is none");
    }
    let mut head = Head { number: number as u32, varint: None, is_bytes: false, len: tag_len, value_len: 0 };
    match tag & 7 {
        wire @ (VARINT | BYTES) => {
            let Some((value, len)) = varint(&text[tag_len..])? else { return Ok(None) };
            head.len += len;
            match wire {
                VARINT => head.varint = Some(value),
                _ => (head.is_bytes, head.value_len) = (true, value),
            }
        }
        FIXED64 => head.value_len = 8,
        FIXED32 => head.value_len = 4,
        _ => return garbled("a group, or a field of an unknown form"),
    }
    Ok(Some(head))
}

/// The number that `text` begins with, and how long it is.
fn varint(text: &[u8]) -> Result<Option<(u64, usize)>, WireError> {
    let mut rest = text;
    match varint::read(&mut rest) {
        Ok(value) => Ok(Some((value, text.len() - rest.len()))),
        Err(VarintError::UnexpectedEof) => Ok(None),
        Err(VarintError::Overflow) => garbled("a number of more than 64 bits"),
    }
}

/// The fields of a whole message.
pub(super) struct Fields<'m>(&'m [u8]);

/// What a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'m> {
    Number(u64),
    Bytes(&'m [u8]),
    /// A value of a wire type that nothing here reads.
    Other,
}

impl<'m> Fields<'m> {
    pub(super) fn of(message: &'m [u8]) -> Fields<'m> {
        Fields(message)
    }

    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'m>)>, WireError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let head = head(self.0)?.ok_or(HALF)?;
        let rest = &self.0[head.len..];
        let len = usize::try_from(head.value_len).map_err(|_| HALF)?;
        let (value, rest) = rest.split_at_checked(len).ok_or(HALF)?;
        self.0 = rest;
        let value = match head.varint {
            Some(number) => Value::Number(number),
            None if head.is_bytes => Value::Bytes(value),
            None => Value::Other,
        };
        Ok(Some((head.number, value)))
    }
}

/// A message ended in the middle of a field.
const HALF: WireError = WireError::Garbled { what: "half a field" };

impl<'m> Value<'m> {
    pub(super) fn bytes(self) -> Result<&'m [u8], WireError> {
        match self {
            Value::Bytes(bytes) => Ok(bytes),
            _ => garbled("a message or text that is none"),
        }
    }

    pub(super) fn text(self) -> Result<&'m str, WireError> {
        match str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text),
            Err(_) => garbled("a text that is not UTF-8"),
        }
    }

    /// Bits as they are.
    pub(super) fn number(self) -> Result<u64, WireError> {
        match self {
            Value::Number(number) => Ok(number),
            _ => garbled("a number that is none"),
        }
    }
}
