//! Messages of a built-in kind as the JSON that is kept.
//!
//! In: a collection whose kind is in the schema's table, its objects as messages. Out: the value that the
//! same object would have if it had come as JSON, byte for byte; nothing of one that has a field which the
//! table does not have, or is another kind's, or cannot be read. Never: a value from which something is
//! missing; one of more than an object may have.

use bytes::Bytes;
use forebay_apimachinery::Lease;
use forebay_apimachinery::resource::api_version;
use forebay_client::Collection;
use forebay_client::limits::OBJECT_BYTES_MAX;
use forebay_client::wire::{ObjectMessage, ObjectText, Projection, TypeMeta};
use forebay_object::Form;
use forebay_schema::builtin::protobuf::{UnknownFields, decode_known, is_message, stored_json};
use forebay_schema::builtin::{TypeId, codec, table};

use crate::change::kept;
use crate::limits::SCRATCH_BYTES_KEPT;

/// See the module's doc.
pub(crate) struct Transcoder {
    ty: TypeId,
    of: TypeMeta,
    // What a value begins with: of an event's object and of a list's item, as they are kept if they come as
    // JSON.
    front_of_event: Vec<u8>,
    front_of_item: Vec<u8>,
    scratch: Vec<u8>,
}

impl Transcoder {
    /// `None` when the kind is not built in, or has no messages.
    pub(crate) fn of(collection: &Collection) -> Option<Transcoder> {
        let (group, version) = (collection.group.as_str(), collection.version.as_str());
        let kind = table().resource(group, version, &collection.plural)?.kind;
        Transcoder::of_kind(group, version, kind)
    }

    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<Transcoder> {
        let ty = table().kind(group, version, kind)?.ty;
        let api_version = api_version(group, version);
        is_message(ty).then(|| Transcoder {
            ty,
            front_of_event: format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#).into_bytes(),
            front_of_item: format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","#).into_bytes(),
            of: TypeMeta { kind: kind.into(), api_version },
            scratch: Vec::new(),
        })
    }

    /// - `of`: the type of an object that says none.
    pub(crate) fn value(
        &mut self,
        object: &ObjectMessage,
        of: &TypeMeta,
        projection: &Projection,
    ) -> Option<Bytes> {
        let (said, front) = match object.type_meta() {
            Some(said) => (said, &self.front_of_event),
            None => (of, &self.front_of_item),
        };
        if *said != self.of {
            return None;
        }
        let out = &mut self.scratch;
        out.clear();
        out.shrink_to(SCRATCH_BYTES_KEPT);
        out.extend_from_slice(front);
        if stored_json(self.ty, object.message(), UnknownFields::Refused, out).is_none() {
            *out = by_value(self.ty, object.message(), front)?;
        }
        if out.len() <= OBJECT_BYTES_MAX { kept(out, projection) } else { None }
    }
}

/// The same of what is rare, by way of a tree.
fn by_value(ty: TypeId, message: &[u8], front: &[u8]) -> Option<Vec<u8>> {
    let value = decode_known(ty, message, &Lease::of_one_tree()).ok()?;
    let mut text = Vec::new();
    codec::write_json(ty, &value, &mut text).ok()?;
    // It has metadata at least.
    let members = text.strip_prefix(b"{").filter(|members| members.len() > 1)?;
    let whole = ObjectText::read(&[front, members].concat()).ok()?;
    Some(whole.into_value(Form::Whole, &TypeMeta::default()))
}
