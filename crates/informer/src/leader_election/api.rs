//! The three requests that an elector makes, and what can become of them.
//!
//! In: Leases. Out: Leases, or why not. Never: tries again, waits longer than the request does, or looks into
//! a Lease.

use std::error::Error;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{Api, PostParams};

/// Where the Lease is. A request that is dropped may still be carried out.
pub trait LeaseApi: Send + Sync {
    /// The Lease as it is now.
    ///
    /// # Errors
    /// [`LeaseError::NotFound`] when there is none.
    fn get(&self, namespace: &str, name: &str) -> impl Future<Output = Result<Lease, LeaseError>> + Send;

    /// Makes a Lease that is not there, and says what it became.
    ///
    /// - `lease`: with name and namespace.
    ///
    /// # Errors
    /// [`LeaseError::Conflict`] when there is one.
    fn create(&self, lease: Lease) -> impl Future<Output = Result<Lease, LeaseError>> + Send;

    /// Puts a Lease in the place of the one it was made from, and says what it became.
    ///
    /// - `lease`: with name, namespace and the `resourceVersion` of the one it replaces.
    ///
    /// # Errors
    /// [`LeaseError::Conflict`] when there is another one meanwhile, [`LeaseError::NotFound`] when there is
    /// none.
    fn update(&self, lease: Lease) -> impl Future<Output = Result<Lease, LeaseError>> + Send;
}

/// Why there is no answer that helps.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// 404: there is no such Lease, or no such namespace.
    #[error("there is no such lease")]
    NotFound,
    /// 409: somebody else wrote first.
    #[error("somebody else wrote the lease first")]
    Conflict,
    /// 401, 403: not allowed. It may be later.
    #[error("not allowed: {message}")]
    Forbidden { message: String },
    /// Not answered in time; it may have been carried out.
    #[error("not answered in time")]
    Timeout,
    /// Everything else; it may have been carried out.
    #[error("the request failed")]
    Other(#[source] Box<dyn Error + Send + Sync>),
}

impl LeaseApi for kube::Client {
    async fn get(&self, namespace: &str, name: &str) -> Result<Lease, LeaseError> {
        Ok(leases(self, namespace).get(name).await?)
    }

    async fn create(&self, lease: Lease) -> Result<Lease, LeaseError> {
        let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
        Ok(leases(self, namespace).create(&PostParams::default(), &lease).await?)
    }

    async fn update(&self, lease: Lease) -> Result<Lease, LeaseError> {
        let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        Ok(leases(self, namespace).replace(name, &PostParams::default(), &lease).await?)
    }
}

fn leases(client: &kube::Client, namespace: &str) -> Api<Lease> {
    Api::namespaced(client.clone(), namespace)
}

impl From<kube::Error> for LeaseError {
    fn from(error: kube::Error) -> LeaseError {
        match error {
            kube::Error::Api(status) if status.code == 404 => LeaseError::NotFound,
            kube::Error::Api(status) if status.code == 409 => LeaseError::Conflict,
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => {
                LeaseError::Forbidden { message: status.message }
            }
            kube::Error::Api(status) if matches!(status.code, 408 | 504) => LeaseError::Timeout,
            other => LeaseError::Other(Box::new(other)),
        }
    }
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
