//! What other servers keep in namespaces, for who ends one.
//!
//! In: a namespace, and in whose name it is asked. Out: what can be deleted there, and what is left of it.
//! Never: decides that it goes.

use forebay_apimachinery::{Caller, Status};

use crate::eventual::BoxFuture;

/// A resource in namespaces that another server stores, in the version that it is deleted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceElsewhere {
    pub group: Box<str>,
    pub version: Box<str>,
    pub resource: Box<str>,
    /// Whether a collection of it can be deleted as one.
    pub has_collections: bool,
}

/// What of a resource is left in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeftElsewhere {
    pub count: usize,
    /// Of those objects that were looked at, each of theirs.
    pub finalizers: Vec<String>,
}

/// What can be deleted on other servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedElsewhere {
    pub resources: Vec<ResourceElsewhere>,
    /// Versions, `group/version`, of which nobody knows now what they have.
    pub unknown: Vec<String>,
}

/// The other servers.
pub trait Elsewhere: Send + Sync {
    /// What they serve.
    ///
    /// # Errors
    /// Nobody knows yet which servers there are.
    fn served(&self) -> Result<ServedElsewhere, Status>;

    /// Deletes what there is of a resource in `namespace`, in the name of `caller`, and looks at what is
    /// left.
    ///
    /// # Errors
    /// What the server says, or that it does not.
    fn delete_all<'a>(
        &'a self,
        caller: &'a Caller,
        of: &'a ResourceElsewhere,
        namespace: &'a str,
    ) -> BoxFuture<'a, Result<LeftElsewhere, Status>>;
}
