//! An object as a message, and the envelope that it may come in.
//!
//! In: the bytes of a message of a kind, or of a `runtime.Unknown` behind its prefix. Out: [`ObjectMessage`],
//! which knows who the object is and at which `resourceVersion`. Never: what else is in it.

use bytes::Bytes;

use super::super::error::{WireError, garbled};
use super::super::object::{INITIAL_EVENTS_END, TypeMeta, decimal};
use super::fields::Fields;

/// The first bytes of an object in its envelope, which is a `runtime.Unknown`.
pub(super) const PREFIX: &[u8; 4] = b"k8s\0";

/// Every kind has its metadata there.
const METADATA: u32 = 1;

/// An object as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMessage {
    message: Bytes,
    type_meta: Option<TypeMeta>,
    // Where the object's `ObjectMeta` stands, and what it contains.
    metadata: Place,
    name: Place,
    namespace: Place,
    resource_version: Place,
}

/// A part of the message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    from: usize,
    to: usize,
}

impl Place {
    /// - `part`: of `message`, or empty.
    fn of(part: &[u8], message: &[u8]) -> Place {
        let from = if part.is_empty() { 0 } else { part.as_ptr().addr() - message.as_ptr().addr() };
        Place { from, to: from + part.len() }
    }
}

impl ObjectMessage {
    /// - `type_meta`: what it is, if that was said.
    pub(super) fn read(message: Bytes, type_meta: Option<TypeMeta>) -> Result<ObjectMessage, WireError> {
        let mut fields = Fields::of(&message);
        let mut metadata = None;
        while let Some((number, value)) = fields.next()? {
            if number == METADATA && metadata.replace(value.bytes()?).is_some() {
                return garbled("a second metadata");
            }
        }
        let metadata = metadata.unwrap_or_default();
        let (mut name, mut namespace, mut resource_version) = ("", "", "");
        let mut fields = Fields::of(metadata);
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => name = value.text()?,
                3 => namespace = value.text()?,
                6 => resource_version = value.text()?,
                _ => {}
            }
        }
        let place = |part: &[u8]| Place::of(part, &message);
        Ok(ObjectMessage {
            metadata: place(metadata),
            name: place(name.as_bytes()),
            namespace: place(namespace.as_bytes()),
            resource_version: place(resource_version.as_bytes()),
            type_meta,
            message,
        })
    }

    /// The message of its kind.
    pub fn message(&self) -> &Bytes {
        &self.message
    }

    /// What it is; items of a list do not say it.
    pub fn type_meta(&self) -> Option<&TypeMeta> {
        self.type_meta.as_ref()
    }

    /// `metadata.name`; empty when it has none, as the others are.
    pub fn name(&self) -> &str {
        self.text(self.name)
    }

    /// `metadata.namespace`.
    pub fn namespace(&self) -> &str {
        self.text(self.namespace)
    }

    /// `metadata.resourceVersion`.
    pub fn resource_version(&self) -> &str {
        self.text(self.resource_version)
    }

    /// `metadata.resourceVersion` where it is a decimal number.
    pub fn revision(&self) -> Option<u64> {
        decimal(self.resource_version())
    }

    /// That it is UTF-8 was looked at when the object was read.
    fn text(&self, place: Place) -> &str {
        str::from_utf8(&self.message[place.from..place.to]).unwrap_or_default()
    }

    /// Whether the annotation is there that says that a watch list has sent its initial events.
    pub(super) fn ends_initial_events(&self) -> Result<bool, WireError> {
        let mut fields = Fields::of(&self.message[self.metadata.from..self.metadata.to]);
        let mut ends = false;
        while let Some((number, value)) = fields.next()? {
            if number != 12 {
                continue;
            }
            let (mut key, mut said) = (&b""[..], &b""[..]);
            let mut entry = Fields::of(value.bytes()?);
            while let Some((number, value)) = entry.next()? {
                match number {
                    1 => key = value.bytes()?,
                    2 => said = value.bytes()?,
                    _ => {}
                }
            }
            if key == INITIAL_EVENTS_END {
                ends = said == b"true";
            }
        }
        Ok(ends)
    }
}

/// What an object comes in, read.
pub(super) struct Envelope {
    pub(super) type_meta: TypeMeta,
    pub(super) message: Bytes,
}

/// Reads an object in its envelope.
pub(super) fn envelope(bytes: &Bytes) -> Result<Envelope, WireError> {
    let Some(unknown) = bytes.strip_prefix(PREFIX) else { return garbled("an object without its envelope") };
    let mut fields = Fields::of(unknown);
    let (mut kind, mut message) = (TypeMeta::default(), None);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => type_meta(value.bytes()?, &mut kind)?,
            2 if message.replace(value.bytes()?).is_some() => {
                return garbled("a second object in an envelope");
            }
            2 => {}
            3 if !value.bytes()?.is_empty() => return garbled("an object in an unknown coding"),
            _ => {}
        }
    }
    // An object of which everything is empty is a message of no bytes, and may not be written.
    let message = message.map_or_else(Bytes::new, |message| bytes.slice_ref(message));
    Ok(Envelope { type_meta: kind, message })
}

/// Reads a `runtime.TypeMeta` into what is known.
pub(super) fn type_meta(message: &[u8], found: &mut TypeMeta) -> Result<(), WireError> {
    let mut fields = Fields::of(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => found.api_version = value.text()?.to_owned(),
            2 => found.kind = value.text()?.to_owned(),
            _ => {}
        }
    }
    Ok(())
}
