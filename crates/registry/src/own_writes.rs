//! What a stage of a write, or work that follows one, has the verbs do, which stand above it: a write of the
//! server's own.
//!
//! In: the verbs, once they are put together. Out: the write, done. Never: a client's write.

use std::pin::Pin;
use std::sync::OnceLock;

use forebay_apimachinery::Status;
use forebay_catalog::Target;
use serde_json::Value;

/// A write of the server's own, under way.
pub(crate) type OwnWrite = Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>;

/// Who writes for the server itself.
pub(crate) trait WritesForServer: Send + Sync {
    /// Creates an object in the collection that `target` names.
    fn create(&self, target: Target, value: Value) -> OwnWrite;

    /// Replaces the object that `target` names.
    fn replace(&self, target: Target, value: Value) -> OwnWrite;
}

/// See the module's doc.
#[derive(Default)]
pub(crate) struct OwnWrites(OnceLock<Box<dyn WritesForServer>>);

impl OwnWrites {
    /// From now on `verbs` write. Once.
    pub(crate) fn begin(&self, verbs: impl WritesForServer + 'static) {
        self.0.get_or_init(|| Box::new(verbs));
    }

    /// Who writes.
    ///
    /// # Errors
    /// The verbs are not put together yet.
    pub(crate) fn verbs(&self) -> Result<&dyn WritesForServer, Status> {
        self.0.get().map(|verbs| &**verbs).ok_or_else(|| Status::internal("nothing can be written yet"))
    }
}
