//! How objects are shown to a client, and in which encoding.
//!
//! In: objects from a snapshot. Out: bytes appended to a buffer, JSON or protobuf, for a LIST or one object.
//! The two encodings are in files of their own; this one chooses. Around an object of a WATCH
//! [`crate::frames`] puts what makes it an event.

#[cfg(test)]
mod dropping_tests;
mod managed_fields;
pub(crate) mod message;
pub(crate) mod text;

use std::sync::Arc;

use forebay_apimachinery::accept::{Drops, MetaVersion};
use forebay_apimachinery::{Revision, Status};
use forebay_catalog::Served;
use forebay_object::{Object, Scratch};
use jiff::Timestamp;

use message::Messages;
use text::Text;

/// What the client wants objects to be shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum As {
    Object,
    /// `meta.k8s.io` Table.
    Table(IncludeObject),
    /// `meta.k8s.io` PartialObjectMetadata.
    PartialMetadata,
}

/// What a Table's row carries of its object (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    Metadata,
    Object,
}

/// What objects are written in. YAML is made of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Json,
    Protobuf,
}

/// All that a client says of how it wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub what: As,
    /// The version of a Table or PartialObjectMetadata.
    pub meta: MetaVersion,
    /// In JSON.
    pub drops: Drops,
    /// Protobuf has no Table, and custom resources have nothing but their metadata in it.
    pub encoding: Encoding,
}

impl From<As> for Shown {
    fn from(what: As) -> Shown {
        Shown { what, meta: MetaVersion::V1, drops: Drops::default(), encoding: Encoding::Json }
    }
}

/// A list's own metadata.
#[derive(Clone, Debug, Default)]
pub struct ListMeta {
    pub revision: Option<Revision>,
    pub continue_token: String,
    pub remaining: Option<u64>,
}

/// Shows the objects of one resource in one way.
#[derive(Clone)]
pub struct Presenter {
    served: Arc<Served>,
    shown: Shown,
    writer: Writer,
}

#[derive(Clone)]
enum Writer {
    Text(Text),
    Messages(Messages),
}

impl Presenter {
    pub fn new(served: Arc<Served>, shown: impl Into<Shown>) -> Presenter {
        let shown = shown.into();
        let writer = match (shown.encoding, shown.what) {
            (Encoding::Protobuf, As::Object | As::PartialMetadata) => {
                Writer::Messages(Messages::new(served.clone(), shown.what, shown.meta))
            }
            _ => Writer::Text(Text::new(served.clone(), shown.what, shown.meta, shown.drops)),
        };
        Presenter { served, shown, writer }
    }

    /// Whether the items of a list are objects as they are stored, unless [`Presenter::shows_body`] denies it
    /// for one.
    pub(crate) fn shows_bodies(&self) -> bool {
        matches!(self.writer, Writer::Text(_))
            && self.shown.what == As::Object
            && self.shown.drops == Drops::default()
            && self.served.has_items_as_stored()
    }

    /// Whether this one is shown as it is stored.
    pub(crate) fn shows_body(&self, object: &Object) -> bool {
        self.served.is_as_stored(object)
    }

    /// What an object takes in a list, where a list begins with its length.
    pub fn item_len(&self, object: &Object) -> Option<usize> {
        match &self.writer {
            Writer::Text(_) => None,
            Writer::Messages(messages) => Some(messages.item_len(object)),
        }
    }

    /// Everything of a list before its first item.
    ///
    /// - `items_len`: the sum of [`Presenter::item_len`]; 0 where there is none.
    pub fn list_head(&self, meta: &ListMeta, items_len: usize, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.list_head(meta, out),
            Writer::Messages(messages) => messages.list_head(meta, items_len, out),
        }
    }

    /// One item of a list.
    pub fn item(&self, object: &Object, first: bool, now: Timestamp, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.item(object, first, now, out),
            Writer::Messages(messages) => messages.item(object, out),
        }
    }

    /// The same of a state at rest. Text is made of an object's bytes: then its block is inflated once,
    /// however many of its objects are shown, and the rest of each object, which is somewhere else in memory,
    /// is looked at only if it must be. Its message is kept with the object itself, for the next who asks.
    pub(crate) fn item_at_rest(
        &self,
        object: &Arc<Object>,
        scratch: &mut Scratch,
        first: bool,
        now: Timestamp,
        out: &mut Vec<u8>,
    ) {
        match &self.writer {
            Writer::Text(text) if text.shows_body(object) => {
                text.stored_item(&scratch.bytes(object), first, out);
            }
            Writer::Text(text) => text.item(&scratch.plain(object), first, now, out),
            Writer::Messages(messages) => messages.item(object, out),
        }
    }

    /// Everything of a list behind its last item.
    pub fn list_tail(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.list_tail(meta, out),
            Writer::Messages(messages) => messages.list_tail(meta, out),
        }
    }

    /// One object as the whole answer.
    pub fn single(&self, object: &Object, now: Timestamp, out: &mut Vec<u8>) {
        match &self.writer {
            Writer::Text(text) => text.single(object, now, out),
            Writer::Messages(messages) => messages.single(object, out),
        }
    }

    /// An object that was just written, from the JSON of all of it, in JSON.
    ///
    /// # Errors
    /// JSON of ours that is none.
    pub fn written(&self, json: &[u8], now: Timestamp) -> Result<Vec<u8>, Status> {
        match &self.writer {
            Writer::Text(text) => text.written(json, now),
            Writer::Messages(messages) => messages.as_text().written(json, now),
        }
    }
}
