//! What other servers keep: for who ends a namespace, and for who follows owner references.
//!
//! In: a namespace, a kind, an object, and in whose name it is asked. Out: what can be deleted there, and
//! what is left of it; what is heard of objects, and what one of them is now. Never: decides that anything
//! goes.

use std::sync::Arc;
use std::task::{Context, Poll};

use forebay_apimachinery::options::DeleteOptions;
use forebay_apimachinery::{Caller, Status};
use serde_json::Value;

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

/// A kind that another server stores, in one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KindElsewhere {
    pub group: Box<str>,
    pub version: Box<str>,
    pub resource: Box<str>,
    pub kind: Box<str>,
    pub is_namespaced: bool,
    /// It can be listed, watched and deleted, and comes before its group's other versions with which that is
    /// so.
    pub is_followed: bool,
}

/// The kinds of other servers, as far as is known now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownElsewhere {
    /// By group, version and resource; each once.
    pub kinds: Vec<Arc<KindElsewhere>>,
    /// Every version, `group/version`, that another server serves in this one's place, whatever this one has
    /// of the same name.
    pub versions: Vec<String>,
    /// Those of which nobody knows now what they have.
    pub unknown: Vec<String>,
    /// Goes up when any of this changes: see [`ObjectsElsewhere::changed`].
    pub change: u64,
}

/// What is heard of an object: of its metadata what decides whether it goes. Of bounded length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectElsewhere {
    /// Empty where its kind is in none.
    pub namespace: Box<str>,
    pub name: Box<str>,
    pub uid: Box<str>,
    pub is_deleting: bool,
    pub finalizers: Vec<String>,
    pub owners: Vec<OwnerElsewhere>,
}

/// An owner that it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerElsewhere {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    /// Whether it blocks the owner's deletion.
    pub blocks: bool,
}

/// What is heard of the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeElsewhere {
    /// It has owners or is being deleted, or was and had when it was last heard of.
    Put(ObjectElsewhere),
    /// The one with this uid is gone, whatever it was.
    Gone(Box<str>),
    /// Everything that there was has been heard of.
    Synced,
    /// There is more than is held here. What was heard of counts no longer, and it begins anew much later.
    LetGo,
}

/// The objects of a kind, followed until this is dropped.
pub trait FollowElsewhere: Send {
    /// The next notice. While the server is not there, there is none; what was missed is heard of once it is.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<NoticeElsewhere>;
}

/// One object of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceElsewhere {
    pub of: Arc<KindElsewhere>,
    /// Empty where its kind is in none.
    pub namespace: Box<str>,
    pub name: Box<str>,
}

/// Single objects of other servers. Each request takes bounded time.
pub trait ObjectsElsewhere: Send + Sync {
    /// What they serve.
    ///
    /// # Errors
    /// Nobody knows yet which servers there are.
    fn known(&self) -> Result<KnownElsewhere, Status>;

    /// Waits until what is known is no longer what it was at `change`; of what is not known at all, that is
    /// 0. Cancel-safe.
    fn changed(&self, change: u64) -> BoxFuture<'_, ()>;

    /// Follows the objects of a kind, in the name of `caller`.
    fn follow(&self, caller: Arc<Caller>, of: Arc<KindElsewhere>) -> Box<dyn FollowElsewhere>;

    /// The metadata of an object as it is now. `None` where its server says of this very object that there is
    /// none, and in no other case.
    ///
    /// # Errors
    /// What the server says, or that it does not.
    fn metadata<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
    ) -> BoxFuture<'a, Result<Option<Value>, Status>>;

    /// Deletes an object; of `options` its preconditions and the policy count.
    ///
    /// # Errors
    /// The same; a conflict where it is not what `options` say, and that it is not found.
    fn delete<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
        options: &'a DeleteOptions,
    ) -> BoxFuture<'a, Result<(), Status>>;

    /// Merges `patch` into an object.
    ///
    /// # Errors
    /// As [`ObjectsElsewhere::delete`].
    fn merge<'a>(
        &'a self,
        caller: &'a Caller,
        at: &'a PlaceElsewhere,
        patch: &'a Value,
    ) -> BoxFuture<'a, Result<(), Status>>;
}
