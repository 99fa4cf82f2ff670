//! What is done around a conversion: objects as upstream's storage decodes and encodes them.
//!
//! In: objects as they are stored or were written. Out: trees as a webhook is sent them, bytes of what it
//! made. Never: keeps an object.
//!
//! Source: apiextensions-apiserver v0.36.3 `pkg/apiserver/customresource_handler.go`
//! (`crdConversionRESTOptionsGetter`): what is stored is pruned and has the defaults of its version before
//! it is converted, and is pruned by the other version afterwards.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::json::{self, weight};
use forebay_apimachinery::resource::api_version;
use forebay_apimachinery::{Lease, Reason, Revision, Status};
use forebay_crd::{Definition, Version};
use forebay_object::Object;
use serde_json::Value;

use super::converts::Converts;
use crate::store::Store;

/// A version, and how objects come into it.
pub(super) struct Converter {
    pub(super) definition: Arc<Definition>,
    pub(super) version: usize,
    /// What was stored before may be as the definition was then.
    pub(super) since: Revision,
    pub(super) store: Arc<Store>,
    pub(super) converts: Arc<dyn Converts>,
}

impl Converter {
    fn version(&self) -> &Version {
        &self.definition.versions[self.version]
    }

    pub(super) fn api_version(&self) -> String {
        api_version(&self.definition.group, &self.version().name)
    }

    /// Whether objects are stored in this version now.
    pub(super) fn is_stored(&self) -> bool {
        self.definition.storage_version().name == self.version().name
    }

    /// Whether the object is in this version.
    pub(super) fn is_shown(&self, object: &Object) -> bool {
        object.stored_version() == &*self.version().name
    }

    /// The object as a webhook is sent it: in the version that it is stored in, without a revision.
    ///
    /// # Errors
    /// It is in no version of the definition; no room.
    pub(super) fn value(&self, object: &Object, lease: &Lease) -> Result<Value, Status> {
        let body = object.body();
        lease.charge(2 * weight::of_text(&body))?;
        let mut value = json::read(&body).map_err(Status::internal)?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("resourceVersion");
        }
        let stored = object.stored_version();
        // Few: a definition has few versions.
        let version = self.definition.versions.iter().find(|version| *version.name == *stored);
        let Some(version) = version else {
            let of = api_version(&self.definition.group, stored);
            let why = format!("request to convert CR from an invalid group/version: {of}");
            return Err(Status::new(Reason::Unknown, why));
        };
        if object.revision() < self.since || !version.storage {
            version.normalize(&mut value, lease).map_err(Status::internal)?;
        }
        Ok(value)
    }

    /// `objects` in another version; in their order.
    ///
    /// # Errors
    /// What the webhook says; what is wrong with that; no room.
    pub(super) async fn convert(
        &self,
        objects: Vec<Value>,
        to: impl AsRef<str>,
        lease: &Lease,
    ) -> Result<Vec<Value>, Status> {
        let count = objects.len();
        let made = self.converts.convert(objects, to.as_ref(), lease).await?;
        assert!(made.len() == count, "who converts says of each object what became of it");
        Ok(made)
    }

    /// The bytes of what a webhook made, in this version.
    pub(super) fn body(&self, mut made: Value) -> Bytes {
        self.version().prune(&mut made);
        bytes_of(&made)
    }

    /// The bytes that are stored for an object of this version.
    ///
    /// # Errors
    /// As [`Converter::convert`].
    pub(super) async fn stored(&self, body: &[u8], lease: &Lease) -> Result<Bytes, Status> {
        let storage = self.definition.storage_version();
        let to = api_version(&self.definition.group, &storage.name);
        lease.charge(2 * weight::of_text(body))?;
        let value = json::read(body).map_err(Status::internal)?;
        let mut made = self.convert(vec![value], to, lease).await?.pop().unwrap_or_default();
        // It is stored as it is read.
        storage.default_status(&mut made, lease)?;
        storage.prune(&mut made);
        Ok(bytes_of(&made))
    }
}

pub(super) fn bytes_of(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(1024);
    json::write_sorted(value, &mut out);
    Bytes::from(out)
}
