//! What stands around a message, as it is read: `runtime.Unknown` behind its prefix, and the events of a
//! watch.
//!
//! In and out: bytes. Never: the message inside, or the length in front of each frame of a watch.
//! [`frame`](super::frame) writes them.

use std::borrow::Cow;

use super::error::DecodeError;
use super::reader::{BYTES, Reader, text};
use super::special::expect;

/// The first bytes of each body of `application/vnd.kubernetes.protobuf`, and of what is stored in etcd.
pub const ENVELOPE_PREFIX: [u8; 4] = *b"k8s\0";
/// The first bytes of what is encrypted at rest instead; how is said behind them.
pub const ENCRYPTED_PREFIX: [u8; 8] = *b"k8s:enc:";

/// An object that is not decoded yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unknown<'a> {
    pub api_version: Cow<'a, str>,
    pub kind: Cow<'a, str>,
    /// The object's message.
    pub raw: &'a [u8],
    /// Empty in practice, as is the content type.
    pub content_encoding: Cow<'a, str>,
    pub content_type: Cow<'a, str>,
}

/// An event of a watch: one frame of `application/vnd.kubernetes.protobuf;stream=watch`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WatchEvent<'a> {
    /// `ADDED`, `MODIFIED`, ...
    pub kind: Cow<'a, str>,
    /// The object in an envelope of its own.
    pub object: &'a [u8],
}

/// Reads the envelope of a body.
///
/// # Errors
/// [`DecodeError::EmptyData`], [`DecodeError::NoPrefix`], [`DecodeError::EmptyBody`] and those of the wire
/// format.
pub fn decode_envelope(bytes: &[u8]) -> Result<Unknown<'_>, DecodeError> {
    if bytes.is_empty() {
        return Err(DecodeError::EmptyData);
    }
    let message = bytes.strip_prefix(&ENVELOPE_PREFIX).ok_or(DecodeError::NoPrefix)?;
    if message.is_empty() {
        return Err(DecodeError::EmptyBody);
    }
    let mut unknown = Unknown::default();
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("Unknown")? {
        match tag.number {
            1 => {
                expect(tag.wire, BYTES, "TypeMeta")?;
                type_meta(reader.bytes()?, &mut unknown)?;
            }
            2 => {
                expect(tag.wire, BYTES, "Raw")?;
                unknown.raw = reader.bytes()?;
            }
            3 => {
                expect(tag.wire, BYTES, "ContentEncoding")?;
                unknown.content_encoding = text(reader.bytes()?);
            }
            4 => {
                expect(tag.wire, BYTES, "ContentType")?;
                unknown.content_type = text(reader.bytes()?);
            }
            _ => reader.skip(tag.wire)?,
        }
    }
    Ok(unknown)
}

fn type_meta<'a>(message: &'a [u8], unknown: &mut Unknown<'a>) -> Result<(), DecodeError> {
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("TypeMeta")? {
        match tag.number {
            1 => {
                expect(tag.wire, BYTES, "APIVersion")?;
                unknown.api_version = text(reader.bytes()?);
            }
            2 => {
                expect(tag.wire, BYTES, "Kind")?;
                unknown.kind = text(reader.bytes()?);
            }
            _ => reader.skip(tag.wire)?,
        }
    }
    Ok(())
}

/// Reads a watch event, without the length in front of it.
///
/// # Errors
/// Those of the wire format.
pub fn decode_watch_event(message: &[u8]) -> Result<WatchEvent<'_>, DecodeError> {
    let mut event = WatchEvent::default();
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("WatchEvent")? {
        match tag.number {
            1 => {
                expect(tag.wire, BYTES, "Type")?;
                event.kind = text(reader.bytes()?);
            }
            2 => {
                expect(tag.wire, BYTES, "Object")?;
                if let Some(raw) = raw_extension(reader.bytes()?)? {
                    event.object = raw;
                }
            }
            _ => reader.skip(tag.wire)?,
        }
    }
    Ok(event)
}

fn raw_extension(message: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    let mut raw = None;
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag("RawExtension")? {
        if tag.number == 1 {
            expect(tag.wire, BYTES, "Raw")?;
            raw = Some(reader.bytes()?);
        } else {
            reader.skip(tag.wire)?;
        }
    }
    Ok(raw)
}
