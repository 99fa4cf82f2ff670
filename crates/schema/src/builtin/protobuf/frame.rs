//! What stands around messages that are made already: envelopes, items of a list, frames of a watch.
//!
//! In: lengths and messages. Out: bytes appended to a buffer, so that a list or a stream is written piece by
//! piece and its messages are shared. Never: encodes an object.

use super::envelope::ENVELOPE_PREFIX;
use super::error::DecodeError;
use super::reader::{BYTES, Reader};
use super::writer::{bytes_field, bytes_field_len, bytes_head};

/// The envelope of one kind: `runtime.Unknown` behind its prefix.
#[derive(Clone, Debug)]
pub struct Envelope {
    // The prefix and the kind.
    head: Box<[u8]>,
}

/// Behind the message: no content encoding, and no content type.
const ENVELOPE_TAIL: [u8; 4] = [0x1a, 0, 0x22, 0];

/// Fields of `runtime.Unknown`.
const TYPE_META: u16 = 1;
const RAW: u16 = 2;

impl Envelope {
    pub fn new(api_version: &str, kind: &str) -> Envelope {
        let mut type_meta = Vec::with_capacity(api_version.len() + kind.len() + 4);
        bytes_field(1, api_version.as_bytes(), &mut type_meta);
        bytes_field(2, kind.as_bytes(), &mut type_meta);
        let mut head = ENVELOPE_PREFIX.to_vec();
        bytes_field(TYPE_META, &type_meta, &mut head);
        Envelope { head: head.into() }
    }

    /// How long it is around a message.
    pub fn len_around(&self, message_len: usize) -> usize {
        self.head.len() + bytes_field_len(RAW, message_len) + ENVELOPE_TAIL.len()
    }

    /// Appends what comes before a message.
    pub fn open(&self, message_len: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        bytes_head(RAW, message_len, out);
    }

    /// Appends what comes behind it.
    pub fn close(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&ENVELOPE_TAIL);
    }

    /// Appends all of it.
    pub fn write(&self, message: &[u8], out: &mut Vec<u8>) {
        out.reserve(self.len_around(message.len()));
        self.open(message.len(), out);
        out.extend_from_slice(message);
        self.close(out);
    }
}

/// Where a list has its metadata and its items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListForm {
    /// Every list but one.
    MetadataFirst,
    /// `PartialObjectMetadataList` of `meta.k8s.io/v1beta1`.
    ItemsFirst,
}

impl ListForm {
    fn metadata(self) -> u16 {
        match self {
            ListForm::MetadataFirst => 1,
            ListForm::ItemsFirst => 2,
        }
    }

    fn items(self) -> u16 {
        3 - self.metadata()
    }

    /// Appends what comes before an item's message.
    pub fn open_item(self, message_len: usize, out: &mut Vec<u8>) {
        bytes_head(self.items(), message_len, out);
    }

    /// What an item takes.
    pub fn item_len(self, message_len: usize) -> usize {
        bytes_field_len(self.items(), message_len)
    }

    /// The list's metadata as a field.
    ///
    /// - `message`: of a `ListMeta`.
    pub fn metadata_field(self, message: &[u8]) -> Vec<u8> {
        let mut field = Vec::with_capacity(bytes_field_len(self.metadata(), message.len()));
        bytes_field(self.metadata(), message, &mut field);
        field
    }
}

/// Appends what comes before the object of an event of a stream: the length of the frame, and the event's
/// type. Nothing comes behind it.
///
/// - `kind`: `ADDED`, `MODIFIED`, ...
/// - `object_len`: the object in its envelope.
pub fn open_watch_frame(kind: &str, object_len: usize, out: &mut Vec<u8>) {
    let extension_len = bytes_field_len(1, object_len);
    let len = bytes_field_len(1, kind.len()) + bytes_field_len(2, extension_len);
    out.reserve(4 + len);
    out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
    bytes_field(1, kind.as_bytes(), out);
    bytes_head(2, extension_len, out);
    bytes_head(1, object_len, out);
}

/// Every kind has its metadata in field 1; `ObjectMeta` has resourceVersion in field 6.
const METADATA: u32 = 1;
const RESOURCE_VERSION: u16 = 6;

/// The metadata of an object's message, as a field: the message of its PartialObjectMetadata.
///
/// # Errors
/// What is no message of an object.
pub fn metadata_field(message: &[u8]) -> Result<&[u8], DecodeError> {
    let mut reader = Reader::new(message);
    metadata(&mut reader)?;
    Ok(&message[..message.len() - reader.rest().len()])
}

fn metadata<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], DecodeError> {
    match reader.tag("ObjectMeta")? {
        Some(tag) if (tag.number, tag.wire) == (METADATA, BYTES) => reader.bytes(),
        _ => Err(DecodeError::UnexpectedEof),
    }
}

/// An object's message with another `metadata.resourceVersion`. What is in front of that is copied as it is,
/// and so is what is behind it.
///
/// # Errors
/// What is no message of an object.
pub fn with_resource_version(message: &[u8], resource_version: &str) -> Result<Vec<u8>, DecodeError> {
    let mut rest = Reader::new(message);
    let metadata = metadata(&mut rest)?;
    let mut fields = Reader::new(metadata);
    loop {
        let start = metadata.len() - fields.rest().len();
        let tag = fields.tag("ObjectMeta")?.ok_or(DecodeError::UnexpectedEof)?;
        fields.skip(tag.wire)?;
        if tag.number != u32::from(RESOURCE_VERSION) {
            continue;
        }
        let new_len = bytes_field_len(RESOURCE_VERSION, resource_version.len());
        let mut out = Vec::with_capacity(message.len() + new_len);
        bytes_head(METADATA as u16, start + new_len + fields.rest().len(), &mut out);
        out.extend_from_slice(&metadata[..start]);
        bytes_field(RESOURCE_VERSION, resource_version.as_bytes(), &mut out);
        out.extend_from_slice(fields.rest());
        out.extend_from_slice(rest.rest());
        return Ok(out);
    }
}
