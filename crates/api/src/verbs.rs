//! The verbs, whoever answers them: this server's registry, or what stands for another server.
//!
//! In: a target, a body, options as `apimachinery` has them. Out: an object, an answer, a read that is in
//! order, or a `Status`. Never: knows how anything is served.
//!
//! Cost: dispatch is once a request; one box where the answer is not there at once.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use forebay_apimachinery::Status;
use forebay_apimachinery::options::{CreateOptions, DeleteOptions, ListOptions, PatchOptions, UpdateOptions};
use forebay_catalog::{Catalog, Target};
use forebay_object::Object;
use forebay_reads::{DeletionPlan, EventForm, Freshness, ListPlan, Planned, Shown, WatchPlan};
use serde_json::{Map, Value};

use crate::refusing::Refusing;
use crate::{Eventual, Permission};

/// What is said to a request, now or later.
pub type Awaited<'a, T> = Eventual<'a, Result<T, Status>>;

/// See the module's doc. What an implementation leaves out is answered by what it names as
/// [`Api::otherwise`], so that one that answers a single verb, or a single resource, in another way says
/// nothing of the rest.
pub trait Api: Send + Sync {
    /// Who answers what is not answered here: 405 where that is nobody.
    fn otherwise(&self) -> &dyn Api {
        &Refusing
    }

    /// What is served now, by which paths are resolved and discovery and OpenAPI are made.
    fn catalog(&self) -> Arc<Catalog> {
        self.otherwise().catalog()
    }

    /// One object, or one of its subresources in a form of its own.
    fn get<'a>(&'a self, target: &'a Target, freshness: Freshness) -> Awaited<'a, Read> {
        self.otherwise().get(target, freshness)
    }

    /// A LIST that is in order and has read nothing yet: a plan over a store's cache. Who answers LIST for a
    /// resource answers its WATCH as well, or clients take a revision of the one's history to the other's.
    ///
    /// # Errors
    /// 400, 405 and 422.
    fn list(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: Shown,
    ) -> Result<Planned<ListPlan, Shown>, Status> {
        self.otherwise().list(target, options, shown)
    }

    /// The same of a WATCH. It weighs what its initial state does.
    ///
    /// - `path_form`: the deprecated `/watch/` paths.
    ///
    /// # Errors
    /// 400, 405, 422 and 500.
    fn watch(
        &self,
        target: &Target,
        options: &ListOptions,
        shown: EventForm,
        path_form: bool,
    ) -> Result<Planned<WatchPlan, EventForm>, Status> {
        self.otherwise().watch(target, options, shown, path_form)
    }

    /// Creates an object, or does what a POST to a subresource means.
    fn create<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a CreateOptions,
    ) -> Awaited<'a, Answer> {
        self.otherwise().create(target, body, options)
    }

    /// Replaces an object, or one of its subresources.
    ///
    /// - `may_create`: asked before it creates; none where nobody is to be asked.
    fn update<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a UpdateOptions,
        may_create: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        self.otherwise().update(target, body, options, may_create)
    }

    /// Patches an object, or one of its subresources.
    fn patch<'a>(
        &'a self,
        target: &'a Target,
        kind: PatchKind,
        body: &'a [u8],
        options: &'a PatchOptions,
    ) -> Awaited<'a, Answer> {
        self.otherwise().patch(target, kind, body, options)
    }

    /// Makes of an object, or of one of its subresources, what a configuration says, and keeps who owns that;
    /// creates an object that is not there.
    ///
    /// - `may_create`: as of an update.
    fn apply<'a>(
        &'a self,
        target: &'a Target,
        config: &'a Body,
        options: &'a PatchOptions,
        may_create: Option<MayCreate>,
    ) -> Awaited<'a, Answer> {
        self.otherwise().apply(target, config, options, may_create)
    }

    /// Deletes an object, or begins to.
    fn delete<'a>(&'a self, target: &'a Target, options: &'a DeleteOptions) -> Awaited<'a, Answer> {
        self.otherwise().delete(target, options)
    }

    /// What the DELETE of a collection takes in, which is what a LIST of these options shows, and what that
    /// weighs.
    ///
    /// # Errors
    /// Options that are not in order.
    fn plan_deletion(&self, target: &Target, options: &ListOptions) -> Result<DeletionPlan, Status> {
        self.otherwise().plan_deletion(target, options)
    }

    /// Deletes what is selected.
    fn delete_collection<'a>(
        &'a self,
        target: &'a Target,
        selection: DeletionPlan,
        options: &'a DeleteOptions,
    ) -> Awaited<'a, DeletedCollection> {
        self.otherwise().delete_collection(target, selection, options)
    }

    /// Connects to what runs behind an object. Nobody does so yet: there is no answer but a refusal.
    fn connect<'a>(&'a self, target: &'a Target) -> Awaited<'a, Infallible> {
        self.otherwise().connect(target)
    }

    /// Asks whoever judges writes about such a connection; they may change what the request says of it.
    ///
    /// - `options`: that, as an object of the subresource's kind.
    fn admit_connection<'a>(&'a self, target: &'a Target, options: Value) -> Awaited<'a, AdmittedOptions> {
        self.otherwise().admit_connection(target, options)
    }

    /// Reads the body of a POST to what is answered and not stored: reviews of identity and of access,
    /// requests for tokens. The answer is made where it is known who asks.
    ///
    /// - `completes`: what its answerer fills in before anybody judges it; none where that is nothing.
    fn review<'a>(
        &'a self,
        target: &'a Target,
        body: &'a Body,
        options: &'a CreateOptions,
        completes: Option<Completes>,
    ) -> Awaited<'a, ReviewRequest> {
        self.otherwise().review(target, body, options, completes)
    }
}

/// What a GET of one object finds.
pub enum Read {
    /// The object, which its reader shows as the client wants it ([`Target::object`] makes one).
    Object(Arc<Object>),
    /// A subresource that is an object of another kind, as JSON.
    Other(Bytes),
}

/// Says whether whoever asks for an update may create as well, which is asked when it would: an update is
/// authorized by itself, and what is not there yet takes both rights. None where the server itself asks.
pub type MayCreate = Arc<dyn Permission>;

/// What whoever answers a review makes of it between those who fill in and those who judge: rules and
/// webhooks that refuse see what is answered.
pub type Completes = Arc<dyn Completion>;

/// See [`Completes`].
pub trait Completion: Send + Sync {
    /// Fills in what only who answers knows.
    ///
    /// # Errors
    /// What makes no sense, whoever may.
    fn complete<'a>(&'a self, target: &'a Target, review: &'a mut Value) -> Awaited<'a, ()>;
}

/// One that only looks.
impl<F: Fn(&Value) -> Result<(), Status> + Send + Sync> Completion for F {
    fn complete<'a>(&'a self, _: &'a Target, review: &'a mut Value) -> Awaited<'a, ()> {
        Eventual::Now(self(review))
    }
}

/// A write's body, read as far as its form goes.
#[derive(Clone, Debug)]
pub enum Body {
    /// JSON text: what members come twice can still be told.
    Json(Bytes),
    /// JSON text that came as YAML, and what is wrong with it to a strict reader of YAML: keys that a
    /// mapping has more than once. Its members come as if they were sorted.
    Yaml { json: Bytes, repeated: Option<String> },
    /// What came in a form that has no members twice.
    Value(Value),
    /// What is applied and could not be read: whether there is anything to apply it to is said before that.
    Unreadable(Box<Status>),
}

/// How a patch is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    Json,
    Merge,
    StrategicMerge,
}

/// The object of a review, checked as far as that takes nobody's identity.
pub struct ReviewRequest {
    pub value: Value,
    /// For `Warning` headers.
    pub warnings: Vec<String>,
    /// What of an access review's selectors is not understood, as its status says it; empty where all is.
    pub evaluation_error: String,
}

/// What is said of a connection that may be made.
#[derive(Debug)]
pub struct AdmittedOptions {
    pub value: Value,
    /// For `Warning` headers.
    pub warnings: Vec<String>,
}

/// What a single-object verb answers.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Outcome,
    /// For `Warning` headers, in order, without the code and quotes.
    pub warnings: Vec<String>,
}

/// What the DELETE of a collection answers.
#[derive(Clone, Debug)]
pub struct DeletedCollection {
    pub answer: Answer,
    /// Objects that were deleted for it, or were to be.
    pub objects: usize,
}

#[derive(Clone, Debug)]
pub enum Outcome {
    /// The object as it is now, whole.
    Object(Bytes),
    /// It did not exist before.
    Created(Bytes),
    /// Deletion has begun; the object as it is now.
    Accepted(Bytes),
    /// There is no object to show: a `Status` of success.
    Success(Success),
}

/// What a `Status` of success is about. Its code is chosen where it is written.
#[derive(Clone, Debug)]
pub struct Success {
    pub of: SuccessOf,
    /// As its `details` has them; none where it is empty.
    pub details: Map<String, Value>,
}

/// What has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuccessOf {
    /// An object, or a collection, is gone.
    Deletion,
    /// A value that could not be read is gone.
    CorruptDeletion,
    /// A POST to a subresource that has no object of its own to show.
    Subresource,
}

impl Outcome {
    /// What is shown of it, as JSON: for somebody in this process, who has no codes.
    pub fn json(self) -> Bytes {
        match self {
            Outcome::Object(json) | Outcome::Created(json) | Outcome::Accepted(json) => json,
            Outcome::Success(success) => success.json(None),
        }
    }
}

impl Success {
    /// As a `Status`, with its code where one is shown; its members in kube-apiserver's order.
    pub fn json(self, code: Option<u16>) -> Bytes {
        let mut out = String::from(r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success""#);
        if !self.details.is_empty() {
            let known = DETAILS.into_iter().filter_map(|name| Some((name, self.details.get(name)?)));
            for (at, (name, value)) in known.enumerate() {
                out.push_str(if at == 0 { ",\"details\":{" } else { "," });
                out.push_str(&format!("\"{name}\":{}", forebay_catalog::compact(value)));
            }
            out.push('}');
        }
        if let Some(code) = code {
            out.push_str(&format!(",\"code\":{code}"));
        }
        out.push_str("}\n");
        Bytes::from(out)
    }
}

/// The members of `details` that a `Status` of success may have, in order.
const DETAILS: [&str; 4] = ["name", "group", "kind", "uid"];

impl Answer {
    pub fn plain(outcome: Outcome) -> Answer {
        Answer { outcome, warnings: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use forebay_apimachinery::{Lease, Reason};
    use forebay_catalog::table;
    use forebay_schema::builtin;

    use super::*;

    /// Answers every GET with the name that it is of, and nothing else.
    struct Echo;

    impl Api for Echo {
        fn get<'a>(&'a self, target: &'a Target, _: Freshness) -> Awaited<'a, Read> {
            let name = target.name.clone().unwrap_or_default();
            Eventual::Now(Ok(Read::Other(name.into())))
        }
    }

    /// Answers every GET of Deployments by itself, and leaves the rest to another.
    struct Elsewhere(Echo);

    impl Api for Elsewhere {
        fn otherwise(&self) -> &dyn Api {
            &self.0
        }

        fn get<'a>(&'a self, target: &'a Target, freshness: Freshness) -> Awaited<'a, Read> {
            match target.served.is("apps", "deployments") {
                true => Eventual::Now(Ok(Read::Other("from elsewhere".into()))),
                false => self.otherwise().get(target, freshness),
            }
        }
    }

    fn target(group: &str, plural: &str) -> Target {
        let found =
            builtin::table().resources().iter().find(|one| (one.group, one.plural) == (group, plural));
        let served = table::served(found.expect("known"), |_| None, None).expect("typed");
        Target {
            served: Arc::new(served),
            namespace: None,
            name: Some("it".into()),
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
            context: forebay_catalog::RequestContext::default(),
        }
    }

    async fn got(api: &dyn Api, target: &Target) -> Bytes {
        match api.get(target, Freshness::Latest).wait().await {
            Ok(Read::Other(text)) => text,
            _ => panic!("it is a text"),
        }
    }

    #[tokio::test]
    async fn a_double_says_what_it_has_to_and_405_for_the_rest() {
        let target = target("apps", "deployments");
        let api: &dyn Api = &Echo;
        assert_eq!(got(api, &target).await, "it");
        let options = DeleteOptions::default();
        let refused = api.delete(&target, &options).wait().await.expect_err("is refused");
        assert_eq!(refused.reason, Reason::MethodNotAllowed);
        assert_eq!(refused.message, "delete is not supported on resources of kind \"deployments.apps\"");
        let everything = ListOptions::default();
        assert!(api.plan_deletion(&target, &everything).is_err());
        assert!(api.list(&target, &everything, Shown::from(forebay_reads::As::Object)).is_err());
        assert!(api.connect(&target).wait().await.is_err());
        assert!(api.admit_connection(&target, Value::Null).wait().await.is_err());
        assert_eq!(api.catalog().iter().count(), 0);
    }

    #[tokio::test]
    async fn one_resource_is_answered_from_elsewhere_by_one_method() {
        let api: &dyn Api = &Elsewhere(Echo);
        assert_eq!(got(api, &target("apps", "deployments")).await, "from elsewhere");
        assert_eq!(got(api, &target("apps", "daemonsets")).await, "it");
    }
}
