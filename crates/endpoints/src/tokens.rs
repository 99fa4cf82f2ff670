//! Objects that an answer stands on: those that a token names, and what service accounts' tokens stand on.
//!
//! In: the name of a core resource. Out: what is wanted of the object, as fresh as a GET of it; that a
//! Secret's token was used is passed on. Never: keeps one.

use std::sync::Arc;

use forebay_api::{Api, Read};
use forebay_apimachinery::Status;
use forebay_auth::tokens::{Found, Grounds, UsedSecret};
use forebay_catalog::Target;
use forebay_reads::Freshness;
use serde::de::DeserializeOwned;

use crate::used_tokens::UsedTokens;

/// The objects that are stored.
#[derive(Clone)]
pub struct Stored {
    pub api: Arc<dyn Api>,
    /// Hears of tokens that Secrets keep.
    pub used: Arc<UsedTokens>,
}

impl Grounds for Stored {
    async fn find(&self, resource: &str, namespace: &str, name: &str) -> Result<Found, Status> {
        read(&*self.api, resource, namespace, name).await
    }

    fn used(&self, secret: UsedSecret) {
        self.used.note(secret);
    }
}

/// What `T` takes from an object of a core resource, as fresh as a GET of it.
///
/// # Errors
/// 404, and what keeps it from being read.
pub async fn read<T: DeserializeOwned>(
    api: &dyn Api,
    resource: &str,
    namespace: &str,
    name: &str,
) -> Result<T, Status> {
    let served = api.catalog().resource("", "v1", resource).cloned();
    let served = served.ok_or_else(|| Status::internal(format!("{resource} are not served")))?;
    let namespace = served.namespaced.then(|| namespace.to_string());
    let target = Target::of_server(served, namespace, Some(name.to_string()));
    let Read::Object(object) = api.get(&target, Freshness::Latest).wait().await? else {
        return Err(Status::internal(format!("{resource} are shown as something else")));
    };
    serde_json::from_slice(&object.untyped_json()).map_err(Status::internal)
}
