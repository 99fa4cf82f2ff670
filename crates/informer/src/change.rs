//! An object as it is kept: whole, cut, or in part.
//!
//! In: an object as it came. Out: its key and value. Never: knows why a part is enough.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::json::{Reader, Unexpected};
use forebay_apimachinery::{Key, Revision};
use forebay_backend::Change;
use forebay_client::wire::{ObjectText, Projection, TypeMeta, WireError};
use forebay_object::Form;
use forebay_view::PARTIAL_HEAD;

/// What is stored of an object.
#[derive(Clone)]
pub(crate) struct Stored {
    /// As it was asked for.
    pub(crate) whole: Arc<Projection>,
    /// Where that is too much.
    pub(crate) part: Arc<Projection>,
}

/// Which of it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Whole,
    Part,
}

/// The key of an object of this collection: `/namespace/name`, the namespace empty where there is none.
pub(crate) fn key(namespace: &str, name: &str) -> Key {
    Key::from(format!("/{namespace}/{name}"))
}

/// # Errors
/// When the object cannot be read so far.
pub(crate) fn change(
    object: ObjectText,
    revision: Revision,
    of: &TypeMeta,
    projection: &Projection,
    part: Of,
) -> Result<Change, WireError> {
    let key = key(&object.namespace(), &object.name());
    let mut value = object.into_projected(Form::Whole, of, projection)?;
    if part == Of::Part {
        value = partial(&value).map_err(|error| WireError::Garbled { what: error.what })?;
    }
    Ok(Change { key, revision, value: Some(Bytes::from(value)) })
}

/// A value of which metadata stays, and what else `projection` keeps: as a server has it that is asked for
/// metadata alone.
pub(crate) fn partial(value: &[u8]) -> Result<Vec<u8>, Unexpected> {
    let (mut text, mut out, mut passed) = (Reader::new(value), PARTIAL_HEAD.to_vec(), 0);
    text.begin(b'{')?;
    while let Some(name) = text.member(passed)? {
        passed += 1;
        let from = text.at();
        text.skip()?;
        if !matches!(&*name, b"kind" | b"apiVersion") {
            out.push(b',');
            forebay_apimachinery::json::write_string(&String::from_utf8_lossy(&name), &mut out);
            out.push(b':');
            out.extend_from_slice(&value[from..text.at()]);
        }
    }
    out.push(b'}');
    Ok(out)
}

/// A value that is kept.
pub(crate) fn kept(value: &[u8], projection: &Projection) -> Option<Bytes> {
    match *projection == Projection::default() {
        true => Some(Bytes::copy_from_slice(value)),
        false => projection.apply(value).ok().map(Bytes::from),
    }
}
