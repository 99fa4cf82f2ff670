//! A handle to an object and what was decoded of it.
//!
//! In: an `Arc<Object>`. Out: the object as its type, decoded by whoever asks first and shared by the
//! handle's clones; it goes with the last of them, and the object stays as small as it was. Never: changes
//! the object.

use std::any::type_name;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use forebay_apimachinery::field_path::PathStep;
use forebay_apimachinery::{FieldPath, Revision};
use forebay_object::{Damaged, Object, Text};
use serde::de::DeserializeOwned;

use crate::error::{DecodeError, FieldError};
use crate::field::{Scalar, find};
use crate::metadata::Metadata;
use crate::partial::is_partial;
use crate::type_meta::{TypeMeta, is_whole};

/// An object that may be read as a `K`. A clone shares what was decoded.
///
/// `K` is any type that serde reads: one of k8s-openapi, `DynamicObject`, `PartialObjectMeta`,
/// `serde_json::Value`, or a struct for a custom resource.
pub struct Handle<K>(Arc<Inner<K>>);

struct Inner<K> {
    object: Arc<Object>,
    of: Arc<TypeMeta>,
    // Behind an Arc so that Checked has it without a way to fail.
    typed: OnceLock<Result<Arc<K>, DecodeError>>,
    metadata: OnceLock<Result<Metadata, DecodeError>>,
}

/// A handle whose object was decoded already.
pub struct Checked<K> {
    handle: Handle<K>,
    typed: Arc<K>,
}

impl<K> Handle<K> {
    /// - `of`: what the object is; its bytes may go without.
    ///
    /// Cost: one allocation; nothing is read.
    pub fn new(object: Arc<Object>, of: Arc<TypeMeta>) -> Handle<K> {
        Handle(Arc::new(Inner { object, of, typed: OnceLock::new(), metadata: OnceLock::new() }))
    }

    /// The same object as another type; what was decoded is not shared.
    pub fn cast<J>(&self) -> Handle<J> {
        Handle::new(self.0.object.clone(), self.0.of.clone())
    }

    /// The object's bytes as they are kept: the whole object, or without `{` and type.
    ///
    /// # Errors
    /// [`Damaged`] where they were put into a file and did not come back.
    pub fn body(&self) -> Result<Text<'_>, Damaged> {
        self.0.object.try_body()
    }

    /// `kind`. As what follows up to [`Handle::labels`], it reads no JSON.
    pub fn kind(&self) -> &str {
        self.0.of.kind()
    }

    /// `apiVersion`.
    pub fn api_version(&self) -> &str {
        self.0.of.api_version()
    }

    /// `metadata.name`.
    pub fn name(&self) -> &str {
        self.0.object.name()
    }

    /// `metadata.namespace`; empty for cluster scope.
    pub fn namespace(&self) -> &str {
        self.0.object.namespace()
    }

    /// `metadata.resourceVersion`.
    pub fn revision(&self) -> Revision {
        self.0.object.revision()
    }

    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.0.object.label(name)
    }

    /// The labels, each with its value.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.object.labels()
    }

    /// `metadata`, read the first time that a handle is asked for it; the rest of the object is not.
    ///
    /// # Errors
    /// [`DecodeError`] when it is not as the API has it.
    pub fn metadata(&self) -> Result<&Metadata, DecodeError> {
        let Inner { object, metadata, .. } = &*self.0;
        let read = || {
            let text = object.try_metadata().map_err(|lost| self.lost::<Metadata>(lost))?;
            serde_json::from_slice(&text).map_err(|cause| self.failed::<Metadata>(cause))
        };
        metadata.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// Whether no more than its metadata is held, and what there are indexes of: the informer may hold no
    /// more. [`Handle::metadata`] works as always; [`Handle::typed`] does for a type that any object reads
    /// as, which gets what there is, of kind `PartialObjectMetadata`, and is an error that says so for
    /// others.
    pub fn is_partial(&self) -> bool {
        let object = &self.0.object;
        // Nothing is both: it is told without reading it.
        !object.is_spilled() && object.try_body().is_ok_and(|body| is_partial(&body))
    }

    /// The scalar at a path: `spec.nodeName`, `spec.containers[0].image`, `metadata.labels['a.b/c']`. `None`
    /// when nothing is there, or null, an object or an array. Of members with one name the last one counts.
    ///
    /// Cost: the object's bytes are walked over once; no tree. Who asks often has a [`FieldPath`] and
    /// [`Handle::field_at`].
    ///
    /// # Errors
    /// [`FieldError`] when it is no path, the object no JSON on the way, or no more than metadata is held of
    /// it, or its bytes are lost.
    pub fn field(&self, path: &str) -> Result<Option<Scalar<'_>>, FieldError> {
        self.field_at(&path.parse()?)
    }

    /// As [`Handle::field`], with a path that was read before.
    ///
    /// # Errors
    /// [`FieldError`] when it has `[*]`, or the object is no JSON on the way.
    pub fn field_at(&self, path: &FieldPath) -> Result<Option<Scalar<'_>>, FieldError> {
        let Inner { object, of, .. } = &*self.0;
        let body = object.try_body()?;
        let is_held =
            !is_partial(&body) || matches!(path.steps(), [PathStep::Member(name), ..] if name == "metadata");
        let found = match body {
            Text::Held(bytes) => find(bytes, of, path)?,
            Text::Inflated(bytes) => find(&bytes, of, path)?.map(Scalar::into_owned),
        };
        if found.is_none() && !is_held { Err(FieldError::Partial) } else { Ok(found) }
    }

    /// Appends the object as a client gets it: JSON, with its type and its `resourceVersion`.
    ///
    /// # Errors
    /// [`Damaged`] where its bytes were put into a file and did not come back; then nothing is appended.
    pub fn write_json(&self, out: &mut Vec<u8>) -> Result<(), Damaged> {
        let Inner { object, of, .. } = &*self.0;
        let body = object.try_body()?;
        let head = of.head_of(&body);
        out.reserve(head.len() + body.len());
        out.extend_from_slice(head);
        out.extend_from_slice(&body);
        Ok(())
    }

    /// The object as a client gets it.
    ///
    /// # Errors
    /// As [`Handle::write_json`].
    pub fn to_json(&self) -> Result<Vec<u8>, Damaged> {
        let mut out = Vec::new();
        self.write_json(&mut out)?;
        Ok(out)
    }

    fn lost<J>(&self, lost: Damaged) -> DecodeError {
        DecodeError { is_damaged: true, ..self.failed::<J>(serde::de::Error::custom(lost)) }
    }

    fn failed<J>(&self, cause: serde_json::Error) -> DecodeError {
        DecodeError {
            kind: self.kind().into(),
            namespace: self.namespace().into(),
            name: self.name().into(),
            wanted: type_name::<J>(),
            is_partial: self.is_partial(),
            is_damaged: false,
            cause: Arc::new(cause),
        }
    }
}

impl<K: DeserializeOwned> Handle<K> {
    /// The whole object, decoded the first time that one of the handle's clones is asked for it. Others who
    /// ask meanwhile wait.
    ///
    /// # Errors
    /// [`DecodeError`] when it does not read as a `K`; then no clone of the handle tries it again.
    pub fn typed(&self) -> Result<&K, DecodeError> {
        self.shared().map(|typed| &**typed)
    }

    /// The same for keeps: it outlives the handle.
    ///
    /// # Errors
    /// As [`Handle::typed`].
    pub fn to_arc(&self) -> Result<Arc<K>, DecodeError> {
        self.shared().cloned()
    }

    /// A handle that is its object, as it was decoded by then.
    ///
    /// # Errors
    /// As [`Handle::typed`].
    pub fn check(&self) -> Result<Checked<K>, DecodeError> {
        let typed = self.to_arc()?;
        Ok(Checked { handle: self.clone(), typed })
    }

    /// Whether it was decoded already, or failed to.
    pub fn is_decoded(&self) -> bool {
        self.0.typed.get().is_some()
    }

    fn shared(&self) -> Result<&Arc<K>, DecodeError> {
        self.0.typed.get_or_init(|| self.decode()).as_ref().map_err(Clone::clone)
    }

    fn decode(&self) -> Result<Arc<K>, DecodeError> {
        let body = self.0.object.try_body().map_err(|lost| self.lost::<K>(lost))?;
        let read = match is_whole(&body) {
            true => serde_json::from_slice(&body),
            // A copy costs a hundredth of what is read from it.
            false => serde_json::from_slice(&[self.0.of.head_of(&body), &body].concat()),
        };
        read.map(Arc::new).map_err(|cause| self.failed::<K>(cause))
    }
}

impl<K> Checked<K> {
    /// The handle that it came from.
    pub fn handle(&self) -> &Handle<K> {
        &self.handle
    }

    /// The object for keeps.
    pub fn into_arc(self) -> Arc<K> {
        self.typed
    }
}

impl<K> Deref for Checked<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.typed
    }
}

impl<K> Clone for Handle<K> {
    fn clone(&self) -> Handle<K> {
        Handle(self.0.clone())
    }
}

impl<K> Clone for Checked<K> {
    fn clone(&self) -> Checked<K> {
        Checked { handle: self.handle.clone(), typed: self.typed.clone() }
    }
}

/// Who it is; not what it says.
impl<K> fmt::Debug for Handle<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}/{} @{}", self.kind(), self.namespace(), self.name(), self.revision())
    }
}

impl<K> fmt::Debug for Checked<K> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(to)
    }
}
