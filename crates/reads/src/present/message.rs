//! Objects in protobuf: as they are, or as their metadata alone.
//!
//! In: objects from a snapshot or a watcher. Out: their shared messages between heads and tails, appended to
//! a buffer. An object's message is made once, whoever asks; a DELETED event's is that one with another
//! resourceVersion in it. Never: a Table, which protobuf does not have.

use std::ops::Deref;
use std::sync::Arc;

use forebay_apimachinery::accept::{Drops, MetaVersion};
use forebay_catalog::Served;
use forebay_object::{Keep, Message, MessageBytes, Object};
use forebay_schema::builtin::protobuf::{self, Envelope, ListForm};
use forebay_schema::builtin::{TypeId, codec, table};
use serde_json::{Value, json};

use super::text::Text;
use super::{As, ListMeta};

/// Shows the objects of one resource in one way.
#[derive(Clone)]
pub(crate) struct Messages {
    pub served: Arc<Served>,
    pub shown: As,
    meta: MetaVersion,
    // The type that objects are shown as.
    pub ty: TypeId,
    pub one: Envelope,
    list: Envelope,
    list_form: ListForm,
    // Where the resource's messages are counted.
    counted: Arc<MessageBytes>,
}

/// An object's message, or the part of it that is shown.
pub(crate) struct Piece {
    message: Message,
    len: usize,
}

impl Deref for Piece {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.message[..self.len]
    }
}

impl From<Message> for Piece {
    fn from(message: Message) -> Piece {
        Piece { len: message.len(), message }
    }
}

impl Messages {
    /// Custom resources are shown as metadata whatever is asked for: negotiation offers nothing else.
    pub fn new(served: Arc<Served>, shown: As, meta: MetaVersion) -> Messages {
        let counted = served.store.as_ref().map(|store| store.cacher.message_bytes().clone());
        let own = served.ty().filter(|_| shown == As::Object);
        let (ty, one, list, list_form) = match own {
            Some(ty) => {
                let api_version = served.gvk.api_version();
                let one = Envelope::new(&api_version, &served.gvk.kind);
                (ty, one, Envelope::new(&api_version, &served.list_kind), ListForm::MetadataFirst)
            }
            None => {
                let version = meta.api_version();
                let one = Envelope::new(version, "PartialObjectMetadata");
                let list_form = match meta {
                    MetaVersion::V1 => ListForm::MetadataFirst,
                    MetaVersion::V1beta1 => ListForm::ItemsFirst,
                };
                let list = Envelope::new(version, "PartialObjectMetadataList");
                (meta_type("PartialObjectMetadata"), one, list, list_form)
            }
        };
        Messages { served, shown, meta, ty, one, list, list_form, counted: counted.unwrap_or_default() }
    }

    /// The same in JSON.
    pub fn as_text(&self) -> Text {
        Text::new(self.served.clone(), self.shown, self.meta, Drops::default())
    }

    pub fn item_len(&self, object: &Object) -> usize {
        self.list_form.item_len(self.piece(object, Keep::IfRoom).len())
    }

    pub fn list_head(&self, meta: &ListMeta, items_len: usize, out: &mut Vec<u8>) {
        let metadata = self.list_metadata(meta);
        self.list.open(metadata.len() + items_len, out);
        if self.list_form == ListForm::MetadataFirst {
            out.extend_from_slice(&metadata);
        }
    }

    pub fn item(&self, object: &Object, out: &mut Vec<u8>) {
        let piece = self.piece(object, Keep::IfRoom);
        self.list_form.open_item(piece.len(), out);
        out.extend_from_slice(&piece);
    }

    pub fn list_tail(&self, meta: &ListMeta, out: &mut Vec<u8>) {
        if self.list_form == ListForm::ItemsFirst {
            out.extend_from_slice(&self.list_metadata(meta));
        }
        self.list.close(out);
    }

    fn list_metadata(&self, meta: &ListMeta) -> Vec<u8> {
        let mut value = json!({ "continue": meta.continue_token });
        if let Some(revision) = meta.revision {
            value["resourceVersion"] = Value::from(revision.to_string());
        }
        if let Some(remaining) = meta.remaining {
            value["remainingItemCount"] = Value::from(remaining);
        }
        self.list_form.metadata_field(&encode(meta_type("ListMeta"), &value, "a list's metadata"))
    }

    pub fn single(&self, object: &Object, out: &mut Vec<u8>) {
        self.one.write(&self.piece(object, Keep::Always), out);
    }

    /// What is shown of `object`: the one that all share, made unless it is there.
    pub fn piece(&self, object: &Object, keep: Keep) -> Piece {
        match (self.shown, self.served.ty()) {
            (As::PartialMetadata, Some(ty)) => {
                // An object's metadata is how its message begins.
                let whole = object.message_made(ty.index());
                let piece = whole.and_then(|message| {
                    let len = protobuf::metadata_field(&message).ok()?.len();
                    Some(Piece { message, len })
                });
                piece.unwrap_or_else(|| self.metadata(object, keep))
            }
            (_, Some(_)) => {
                object.message(self.ty.index(), (&self.counted, keep), || self.whole(object)).into()
            }
            (_, None) => self.metadata(object, keep),
        }
    }

    fn metadata(&self, object: &Object, keep: Keep) -> Piece {
        let make = || {
            let mut json = b"{\"metadata\":".to_vec();
            object.write_metadata(None, &mut json);
            json.push(b'}');
            match self.served.ty() {
                Some(_) => self.encode(&json, object),
                None => self.normalized(&json, object),
            }
        };
        object.message(self.ty.index(), (&self.counted, keep), make).into()
    }

    /// A custom resource's metadata is as its schema left it.
    fn normalized(&self, json: &[u8], object: &Object) -> Vec<u8> {
        let mut value: Value = serde_json::from_slice(json).unwrap_or_default();
        match codec::normalize(self.ty, &mut value) {
            Ok(_) => encode(self.ty, &value, object.key().as_str()),
            Err(error) => cannot_show(object.key().as_str(), &error),
        }
    }

    fn whole(&self, object: &Object) -> Vec<u8> {
        let mut json = Vec::with_capacity(object.body_len() + 1);
        self.served.write_item(object, &mut json);
        self.encode(&json, object)
    }

    /// The message of what is stored, which is canonical.
    fn encode(&self, json: &[u8], object: &Object) -> Vec<u8> {
        let mut out = Vec::with_capacity(json.len());
        match protobuf::encode_json(self.ty, json, &mut out) {
            Ok(()) => out,
            Err(error) => cannot_show(object.key().as_str(), &error),
        }
    }
}

/// The message of a value of ours.
pub(crate) fn encode(ty: TypeId, value: &Value, what: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    match protobuf::encode(ty, value, &mut out) {
        Ok(()) => out,
        Err(error) => cannot_show(what, &error),
    }
}

/// What was stored is not what is stored today: it is shown as an object that has nothing, and it is
/// reported.
fn cannot_show(what: &str, error: &dyn std::fmt::Display) -> Vec<u8> {
    tracing::error!(what, %error, "a stored object has no protobuf form");
    Vec::new()
}

fn meta_type(name: &'static str) -> TypeId {
    // A test of the table rules out that it is not there.
    table().type_named("meta/v1", name).expect("the table has the types of meta/v1")
}
