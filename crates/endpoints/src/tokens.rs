//! What service accounts' tokens stand on, looked up in the registry.

use forebay_apimachinery::Status;
use forebay_auth::tokens::{Found, Grounds};
use forebay_registry::Registry;

/// The objects that are stored.
pub struct Stored(pub Registry);

impl Grounds for Stored {
    async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Found, Status> {
        self.0.read(resource, namespace, name).await
    }
}
