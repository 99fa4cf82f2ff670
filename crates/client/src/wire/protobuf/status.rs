//! A `Status` as a message.
//!
//! In: the bytes of one. Out: what decides what to do next. Never: more causes than are kept of JSON.

use bytes::Bytes;

use super::super::error::{WireError, garbled};
use super::super::status::{StatusCause, StatusFrame};
use super::fields::Fields;
use super::object::{Envelope, PREFIX, envelope};
use crate::limits::CAUSES_MAX;

/// Reads the body of a refused request, if it is in protobuf.
pub(in super::super) fn refused(body: &[u8]) -> Result<Option<StatusFrame>, WireError> {
    if !body.starts_with(PREFIX) {
        return Ok(None);
    }
    let Envelope { type_meta, message } = envelope(&Bytes::copy_from_slice(body))?;
    if type_meta.kind == "Status" { status(&message).map(Some) } else { garbled("not a Status") }
}

/// Reads a `meta.v1.Status`.
pub(super) fn status(message: &[u8]) -> Result<StatusFrame, WireError> {
    let mut status = StatusFrame::default();
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => status.next = next(value.bytes()?)?,
            3 => status.message = lossy(value.bytes()?),
            4 => status.reason = lossy(value.bytes()?),
            5 => details(value.bytes()?, &mut status)?,
            6 => status.code = u16::try_from(value.number()?).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(status)
}

/// `metadata.continue`.
fn next(message: &[u8]) -> Result<Option<String>, WireError> {
    let mut next = None;
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        if number == 3 {
            next = Some(lossy(value.bytes()?)).filter(|next| !next.is_empty());
        }
    }
    Ok(next)
}

fn details(message: &[u8], status: &mut StatusFrame) -> Result<(), WireError> {
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            4 if status.causes.len() < CAUSES_MAX => status.causes.push(cause(value.bytes()?)?),
            5 => status.retry_after_seconds = u32::try_from(value.number()?).unwrap_or_default(),
            _ => {}
        }
    }
    Ok(())
}

fn cause(message: &[u8]) -> Result<StatusCause, WireError> {
    let mut cause = StatusCause::default();
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => cause.reason = lossy(value.bytes()?),
            2 => cause.message = lossy(value.bytes()?),
            3 => cause.field = lossy(value.bytes()?),
            _ => {}
        }
    }
    Ok(cause)
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
