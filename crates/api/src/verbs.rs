//! The verbs on single objects and on collections to be deleted, whoever answers them: this server's registry, or what stands for
//! another server.
//!
//! In: a target by its name, a body, options as `apimachinery` has them. Out: an object or an answer, or a `Status`. Never: knows how
//! anything is served. Who implements it resolves a target, once a request.
//!
//! Cost: dispatch is once a request; one box where the answer is not there at once.

use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use forebay_apimachinery::{Caller, GroupVersionResource, Lease, Reason, Status};
use forebay_object::Object;
use serde_json::Value;

use crate::{Eventual, Permission};

/// What is said to a request, now or later.
pub type Awaited<'a, T> = Eventual<'a, Result<T, Status>>;

/// See the module's doc. A verb that is not implemented is answered with 405.
pub trait Api: Send + Sync {
    /// One object, as new as `resource_version` wants it; or one of its subresources, in a form of its own.
    fn get<'a>(&'a self, target: &'a ResourceTarget, resource_version: &'a str) -> Awaited<'a, Read> {
        let _nothing = resource_version;
        unsupported(target, "get")
    }

    /// Creates an object, or does what a POST to a subresource means.
    fn create<'a>(
        &'a self,
        target: &'a ResourceTarget,
        body: &'a Body,
        options: &'a CreateOptions,
    ) -> Awaited<'a, Answer> {
        let _nothing = (body, options);
        unsupported(target, "create")
    }

    /// Replaces an object, or one of its subresources.
    ///
    /// - `may_create`: asked before it creates; none where nobody is to be asked.
    fn update<'a>(
        &'a self,
        target: &'a ResourceTarget,
        body: &'a Body,
        options: &'a UpdateOptions,
        may_create: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        let _nothing = (body, options, may_create);
        unsupported(target, "update")
    }

    /// Patches an object, or one of its subresources.
    fn patch<'a>(
        &'a self,
        target: &'a ResourceTarget,
        kind: PatchKind,
        body: &'a [u8],
        options: &'a PatchOptions,
    ) -> Awaited<'a, Answer> {
        let _nothing = (kind, body, options);
        unsupported(target, "patch")
    }

    /// Deletes an object, or begins to.
    fn delete<'a>(&'a self, target: &'a ResourceTarget, options: &'a DeleteOptions) -> Awaited<'a, Answer> {
        let _nothing = options;
        unsupported(target, "delete")
    }

    /// Deletes what a LIST of `selection` shows. What is wrong with that is said at once; the rest begins when it is waited for.
    ///
    /// # Errors
    /// A selection that is not in order.
    fn delete_collection<'a>(
        &'a self,
        target: &'a ResourceTarget,
        selection: &'a ListOptions,
        options: &'a DeleteOptions,
    ) -> Result<Awaited<'a, Answer>, Status> {
        let _nothing = (selection, options);
        Err(method_not_supported(&target.resource, "deletecollection"))
    }
}

/// What is asked for, by name: a resource in a version, and the part of it that the path names.
#[derive(Clone)]
pub struct ResourceTarget {
    pub resource: GroupVersionResource,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// Who asks; none when the server itself does.
    pub caller: Option<Arc<Caller>>,
    /// What the request may hold: trees of what was sent, and what is made of them.
    pub lease: Lease,
}

/// What a GET of one object finds.
pub enum Read {
    /// The object, which its reader shows as the client wants it.
    Object(Arc<Object>),
    /// A subresource that is an object of another kind, as JSON.
    Other(Bytes),
}

/// Says whether whoever asks for an update may create as well, which is asked when it would: an update is authorized by itself, and
/// what is not there yet takes both rights. None where the server itself asks.
pub type MayCreate = Arc<dyn Permission>;

/// A write's body, in a form that does not say what it came as.
#[derive(Clone, Debug)]
pub enum Body {
    /// JSON text: what members come twice can still be told.
    Json(Bytes),
    /// What came in a form that has no members twice.
    Value(Value),
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    StrategicMerge,
}

/// What a single-object verb answers.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// For `Warning` headers, in order, without the code and quotes.
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// The object as it is now, whole.
    Object(Bytes),
    /// It did not exist before.
    Created(Bytes),
    /// Deletion has begun; the object as it is now.
    Accepted(Bytes),
    /// It is gone: a `Status` of success.
    Success(Bytes),
}

impl Answer {
    pub fn plain(outcome: Outcome) -> Answer {
        Answer { outcome, warnings: Vec::new() }
    }
}

/// 405 for a verb on `resource`.
pub fn method_not_supported(resource: &GroupVersionResource, verb: &str) -> Status {
    let of = resource.group_resource();
    let message = format!("{verb} is not supported on resources of kind {:?}", of.to_string());
    Status::new(Reason::MethodNotAllowed, message).about(&resource.group, &resource.resource, "")
}

fn unsupported<'a, T>(target: &ResourceTarget, verb: &str) -> Awaited<'a, T> {
    Eventual::Now(Err(method_not_supported(&target.resource, verb)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers every GET with the name that it is of, and nothing else.
    struct Echo;

    impl Api for Echo {
        fn get<'a>(&'a self, target: &'a ResourceTarget, _: &'a str) -> Awaited<'a, Read> {
            let name = target.name.clone().unwrap_or_default();
            Eventual::Now(Ok(Read::Other(name.into())))
        }
    }

    #[tokio::test]
    async fn a_double_says_what_it_has_to_and_405_for_the_rest() {
        let target = ResourceTarget {
            resource: GroupVersionResource {
                group: "apps".into(),
                version: "v1".into(),
                resource: "x".into(),
            },
            namespace: None,
            name: Some("it".into()),
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
        };
        let api: &dyn Api = &Echo;
        assert!(matches!(api.get(&target, "").wait().await, Ok(Read::Other(name)) if name == "it"));
        let options = DeleteOptions::default();
        let refused = api.delete(&target, &options).wait().await.expect_err("is refused");
        assert_eq!(refused.reason, Reason::MethodNotAllowed);
        assert_eq!(refused.message, "delete is not supported on resources of kind \"x.apps\"");
        let everything = ListOptions::default();
        assert!(api.delete_collection(&target, &everything, &options).is_err());
    }
}
