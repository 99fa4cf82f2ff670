//! JSON or protobuf: what is asked for, what came, and one form for both.
//!
//! In: what a factory is told, the heads of answers. Out: headers of requests, cutters for what came, changes
//! whose values are JSON. Owner: a collection's driver. Never: asks again for protobuf what came as JSON or
//! could not be kept whole.

use bytes::Bytes;
use forebay_apimachinery::{Key, Revision};
use forebay_backend::Change;
use forebay_client::Collection;
use forebay_client::wire::{
    Frame, FrameAt, ListItems, MessageFrames, MessageItems, ObjectMessage, ObjectText, Part, Projection,
    TypeMeta, WatchFrames, WireError,
};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};

use crate::change::{self, Of, change, key};
use crate::transcode::Transcoder;

/// In what form objects are asked for. They are kept as JSON in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// What costs the server least: protobuf, but JSON of a server that says it has that ready. Forebay does.
    #[default]
    Auto,
    /// As kept: least work for this program.
    Json,
    /// Protobuf for kinds that this program knows, and JSON for the others, where a server has no protobuf,
    /// and where an object has a field that this program does not know, which would be lost.
    Protobuf,
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Both count alike: a server without a preference of its own takes the first that it has.
const BOTH: &str = "application/vnd.kubernetes.protobuf, application/json";

/// Asks that the server have one (RFC 7240); who does not know it passes over it.
const PREFER: (HeaderName, &str) = (HeaderName::from_static("prefer"), "stored-form");

/// What a server answers to one that takes nothing it has.
const NOT_ACCEPTABLE: u16 = 406;

/// In what form a collection is asked for now.
pub(crate) struct Spoken {
    encoding: Encoding,
    collection: Collection,
    // Made when protobuf comes: it needs the table of types, which many programs never do.
    transcoder: Option<Box<Transcoder>>,
    // Asked for as JSON alone, and that stays so.
    is_json: bool,
}

/// What an answer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    Json,
    Protobuf,
    /// What cannot be read here. The same is to be asked for again, as JSON.
    Unknown,
}

impl Spoken {
    pub(crate) fn new(encoding: Encoding, collection: &Collection) -> Spoken {
        let is_json = encoding == Encoding::Json;
        Spoken { encoding, collection: collection.clone(), transcoder: None, is_json }
    }

    #[cfg(test)]
    pub(crate) fn of(transcoder: Option<Transcoder>) -> Spoken {
        let is_json = transcoder.is_none();
        let transcoder = transcoder.map(Box::new);
        Spoken { encoding: Encoding::Protobuf, collection: Collection::default(), transcoder, is_json }
    }

    /// The headers of a request that is made now.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, &'static str)> {
        let accept = if self.is_json { "application/json" } else { BOTH };
        let prefer = (self.encoding == Encoding::Auto && !self.is_json).then_some(PREFER);
        [(ACCEPT, accept)].into_iter().chain(prefer)
    }

    /// Whether a refusal is of the form alone, so that the same is to be asked for again, as JSON.
    pub(crate) fn is_refused(&mut self, code: u16) -> bool {
        code == NOT_ACCEPTABLE && !std::mem::replace(&mut self.is_json, true)
    }

    /// What came, by the head of an answer. Once it was not protobuf, that is not asked for again.
    pub(crate) fn came(&mut self, head: &HeaderMap) -> Came {
        let media = head.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
        if media.split(';').next().is_none_or(|media| media.trim() != PROTOBUF) {
            self.is_json = true;
            return Came::Json;
        }
        if self.transcoder.is_none() {
            self.transcoder = Transcoder::of(&self.collection).map(Box::new);
        }
        match self.transcoder {
            Some(_) => Came::Protobuf,
            // A server that was told JSON alone is not asked a third time: it comes to grief as what cannot
            // be read.
            None if self.is_json => Came::Json,
            None => {
                self.is_json = true;
                Came::Unknown
            }
        }
    }

    /// The change that an object is. `None` when it cannot be read; if it was a message, it comes as JSON
    /// when it is asked for again.
    ///
    /// - `of`: the type of an object that says none.
    /// - `part`: whether it is to be marked as part of it.
    pub(crate) fn change(
        &mut self,
        object: Object,
        revision: Revision,
        of: &TypeMeta,
        projection: &Projection,
        part: Of,
    ) -> Option<Change> {
        let object = match object {
            Object::Text(object) => return change(object, revision, of, projection, part).ok(),
            Object::Message(object) => object,
        };
        let transcoder = self.transcoder.as_mut();
        let value = transcoder.and_then(|transcoder| transcoder.value(&object, of, projection));
        if value.is_none() {
            let of = object.type_meta().unwrap_or(of);
            tracing::info!(kind = of.kind, "a message cannot be kept whole; JSON is asked for from now on");
            self.is_json = true;
        }
        let value = match part {
            Of::Whole => value?,
            Of::Part => change::partial(&value?).ok()?.into(),
        };
        Some(Change { key: key(object.namespace(), object.name()), revision, value: Some(value) })
    }
}

/// An object as it came.
pub(crate) enum Object {
    Text(ObjectText),
    Message(ObjectMessage),
}

impl Object {
    pub(crate) fn revision(&self) -> Option<Revision> {
        let number = match self {
            Object::Text(object) => object.revision(),
            Object::Message(object) => object.revision(),
        };
        number.and_then(Revision::new)
    }

    pub(crate) fn key(&self) -> Key {
        match self {
            Object::Text(object) => key(&object.namespace(), &object.name()),
            Object::Message(object) => key(object.namespace(), object.name()),
        }
    }
}

/// The frames of a watch.
#[expect(clippy::large_enum_variant, reason = "one for each answer, in a box")]
pub(crate) enum Frames {
    Json(WatchFrames),
    Protobuf(MessageFrames),
}

impl Frames {
    pub(crate) fn new(is_protobuf: bool) -> Frames {
        if is_protobuf { Frames::Protobuf(MessageFrames::new()) } else { Frames::Json(WatchFrames::new()) }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        match self {
            Frames::Json(frames) => frames.push(piece),
            Frames::Protobuf(frames) => frames.push(piece),
        }
    }

    pub(crate) fn next_frame(&mut self) -> Result<Option<Frame<Object>>, WireError> {
        Ok(match self {
            Frames::Json(frames) => frames.next_frame()?.map(|frame| frame.map(Object::Text)),
            Frames::Protobuf(frames) => frames.next_frame()?.map(|frame| frame.map(Object::Message)),
        })
    }

    /// The frames of a text that comes next, if that is what it is.
    pub(crate) fn frames_of(&mut self, text: &Bytes) -> Result<Option<Vec<FrameAt>>, WireError> {
        match self {
            Frames::Json(frames) => frames.frames_of(text),
            Frames::Protobuf(_) => Ok(None),
        }
    }

    pub(crate) fn is_within_frame(&self) -> bool {
        match self {
            Frames::Json(frames) => frames.is_within_frame(),
            Frames::Protobuf(frames) => frames.is_within_frame(),
        }
    }
}

/// The parts of a list.
pub(crate) enum Items {
    Json(ListItems),
    Protobuf(MessageItems),
}

impl Items {
    pub(crate) fn new(is_protobuf: bool) -> Items {
        if is_protobuf { Items::Protobuf(MessageItems::new()) } else { Items::Json(ListItems::new()) }
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        match self {
            Items::Json(items) => items.push(piece),
            Items::Protobuf(items) => items.push(piece),
        }
    }

    pub(crate) fn next_part(&mut self) -> Result<Option<Part<Object>>, WireError> {
        Ok(match self {
            Items::Json(items) => items.next_part()?.map(|part| part.map(Object::Text)),
            Items::Protobuf(items) => items.next_part()?.map(|part| part.map(Object::Message)),
        })
    }

    pub(crate) fn is_within_item(&self) -> bool {
        match self {
            Items::Json(items) => items.is_within_item(),
            Items::Protobuf(items) => items.is_within_item(),
        }
    }
}
