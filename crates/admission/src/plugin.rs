//! What a plugin is, what it is told of a write, and what it may read.

use std::sync::Arc;

use forebay_api::{Authorizer, Eventual};
use forebay_apimachinery::{Caller, Cause, Lease, Reason, ResourceAttributes, Status, Verb};
use forebay_object::Object;
use forebay_pod_security::{SecurityConfiguration, SecurityMetrics};
use forebay_rt::{Clock, Duration, Instant, Random};
use forebay_strategy::value::{Members, child_or_empty, text};
use serde_json::Value;

use crate::settings::PluginSettings;

/// What a plugin says, now or later.
pub type Admitted<'a> = Eventual<'a, Result<(), Status>>;

/// One concern between a write and the store. Whatever it does not say, it lets be.
///
/// `object` is what will be stored, whichever verb or subresource the write came by, and subresources are
/// asked about like whole objects:
///
/// | write | in `mutate` | in `causes` and `validate_by_policy` |
/// |---|---|---|
/// | create, update; a patch is an update | the object as sent, defaulted | the object as it would be stored |
/// | `status`, `ephemeralcontainers`, `resize` and their like: update | the object as sent | only what the subresource may write is new |
/// | `scale`: update | the whole object, its replicas changed, and not the Scale | the same |
/// | `binding`: create | the pod as it is | the pod, bound, with the labels and annotations of the Binding |
/// | `eviction`: create; delete, deletecollection | null | null; a delete that begins with a grace is a delete |
/// | reviews, requests for tokens: create | the review | the review |
///
/// What `mutate` fills in passes through *prepare* afterwards, where a kind takes back what only the server
/// writes. A bound that a policy sets stays with its plugin: `limits.rs` is for what the server holds. One
/// that refuses updates lets those through that take away what it objects to, and finalizers: else what is
/// stored already can never be deleted.
pub trait Plugin: Sync {
    /// Its name, as `--disable-admission-plugins` has it if it can be turned off.
    fn name(&self) -> &'static str;

    /// What turns it on and off.
    fn switch(&self) -> Switch {
        Switch::ByName
    }

    /// Whether it has anything to do with such a write.
    fn handles(&self, write: &WriteAttributes<'_>) -> bool;

    /// What it decides by. A refusal that was judged by caches, in `mutate` or in `validate_by_policy`, is
    /// judged again when these have all that was acknowledged before, so that a class counts from then on.
    /// What is filled in twice is what is filled in once. One that lets pass what it finds nothing about has
    /// to refuse where its cache is not filled, which is judged again as well.
    fn decides_by(&self) -> &'static [ReadFrom] {
        &[]
    }

    /// Fills in what the client leaves out, with 403 where it cannot; refuses only what makes no sense from
    /// here on, such as an object whose namespace is not there. Before the object is validated.
    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let _nothing = (write, object, tools);
        Eventual::Now(Ok(()))
    }

    /// What it adds to that which validation finds: the write is answered with 422.
    fn causes<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Eventual<'a, Vec<Cause>> {
        let _nothing = (write, object, tools);
        Eventual::Now(Vec::new())
    }

    /// Refuses what is valid and yet may not be, with [`WriteAttributes::forbidden`].
    fn validate_by_policy<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let _nothing = (write, object, tools);
        Eventual::Now(Ok(()))
    }

    /// What its client is told of a write that nobody refused.
    fn warnings<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Eventual<'a, Vec<String>> {
        let _nothing = (write, object, tools);
        Eventual::Now(Vec::new())
    }
}

/// What turns a plugin on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is on unless it is turned off by its name.
    ByName,
    /// It is off unless it is turned on by its name.
    IfEnabled,
    /// It is always on: kube-apiserver does the same in its registry.
    None,
}

/// A write as plugins see it, whichever verb it came by.
#[derive(Clone, Copy)]
pub struct WriteAttributes<'a> {
    /// Create, update, delete, deletecollection or connect. A patch is an update once it is applied, and an
    /// update that creates is a create.
    pub verb: &'a Verb,
    /// Of what. The name is that of the path.
    pub of: ResourceAttributes<'a>,
    pub namespaced: bool,
    /// Who asks; none when the server itself does.
    pub caller: Option<&'a Caller>,
    pub dry_run: bool,
    /// Whether it is an update that came as a patch.
    pub is_patch: bool,
    /// The stored object, once it is known which that is.
    pub old: Option<&'a Value>,
    /// What the client sent where that is not the object, such as a Binding; null otherwise.
    pub sent: &'a Value,
}

/// A resource that plugins read, of version v1: its group and plural name.
pub type ReadFrom = (&'static str, &'static str);

/// What plugins may read.
pub trait Lookup: Send + Sync {
    /// An object as it is cached, however old that is; none as well while the cache is filled.
    fn cached(&self, from: ReadFrom, namespace: &str, name: &str) -> Option<Arc<Object>>;

    /// Whether there is a state of the cache, however old: it is being filled otherwise.
    fn is_filled(&self, from: ReadFrom) -> bool;

    /// An object as the store has it now.
    fn live<'a>(
        &'a self,
        from: ReadFrom,
        namespace: &'a str,
        name: &'a str,
    ) -> Eventual<'a, Result<Option<Arc<Object>>, Status>>;

    /// The cached objects at cluster scope that have `mark` in their JSON text, at which the caller looks
    /// more closely. None of what is not served.
    ///
    /// # Errors
    /// 429 while the cache is filled: that is not the same as nothing.
    fn marked(&self, from: ReadFrom, mark: &str) -> Result<Vec<Arc<Object>>, Status>;

    /// The cached objects of a namespace, by name. None of what is not served.
    ///
    /// # Errors
    /// As of `marked`.
    fn in_namespace(&self, from: ReadFrom, namespace: &str) -> Result<Vec<Arc<Object>>, Status>;

    /// A new object goes to `namespace`, which was found to take it: who stores the object looks at that
    /// again.
    fn goes_to(&self, namespace: &Arc<Object>);

    /// Waits until the cache has all that was acknowledged before the call; not for what is not served.
    fn fresh(&self, from: ReadFrom) -> Admitted<'_>;

    /// What is served of a kind in a version: `apps/v1`, `Deployment`.
    fn kind(&self, api_version: &str, kind: &str) -> Option<KindServed>;

    /// Makes a namespace, as the server itself; one that is there by now is as good.
    fn make_namespace<'a>(&'a self, name: &'a str) -> Admitted<'a>;
}

/// What is served of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindServed {
    pub resource: String,
    pub namespaced: bool,
}

/// In which of its two steps a plugin took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionStep {
    Mutate,
    Validate,
}

/// Hears how long plugins take.
pub trait PluginTimes: Send + Sync {
    /// - `place`: of the plugin among all, and its name.
    /// - `is_refused`: whether it refused the write.
    fn took(
        &self,
        place: (usize, &'static str),
        of: (AdmissionStep, &Verb),
        is_refused: bool,
        took: Duration,
    );
}

/// Notes a value by its key for an audit log.
pub type Note<'a> = &'a (dyn Fn(String, String) + Send + Sync);

/// What plugins work with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    pub lookup: &'a dyn Lookup,
    pub clock: &'a Clock,
    pub random: &'a Random,
    /// Who is asked what somebody may beside what they were let in for.
    pub authorizer: &'a dyn Authorizer,
    /// What an administrator says of pod security.
    pub security: &'a SecurityConfiguration,
    /// Who counts what is judged by it.
    pub security_metrics: &'a SecurityMetrics,
    /// What an administrator says of other plugins.
    pub settings: &'a PluginSettings,
    /// Where somebody asks what is to be noted of a write.
    pub audit: Option<Note<'a>>,
    /// Who hears how long each takes.
    pub times: &'a dyn PluginTimes,
    /// What is made of what is looked at is charged to it.
    pub lease: &'a Lease,
    /// When those that are asked on its behalf are to have answered.
    pub deadline: Option<Instant>,
}

impl Tools<'_> {
    /// The class of a name.
    pub(crate) fn class(&self, from: ReadFrom, name: &str) -> Option<Value> {
        value_of(&*self.lookup.cached(from, "", name)?)
    }

    /// The classes that have `mark` in their text. There are few classes, and fewer that are marked: only
    /// these are decoded.
    ///
    /// # Errors
    /// 429 while they are not known.
    pub(crate) fn marked_classes(&self, from: ReadFrom, mark: &str) -> Result<Vec<Value>, Status> {
        Ok(self.lookup.marked(from, mark)?.iter().filter_map(|class| value_of(class)).collect())
    }
}

impl WriteAttributes<'_> {
    /// Whether it is about whole objects of this resource.
    pub fn is_of(&self, group: &str, resource: &str) -> bool {
        self.of.group == group && self.of.resource == resource && self.of.subresource.is_empty()
    }

    /// Whether it is about this subresource of this resource.
    pub fn is_of_part(&self, group: &str, resource: &str, subresource: &str) -> bool {
        self.of.group == group && self.of.resource == resource && self.of.subresource == subresource
    }

    pub fn creates(&self) -> bool {
        *self.verb == Verb::Create
    }

    pub fn updates(&self) -> bool {
        *self.verb == Verb::Update
    }

    /// The verb that its client was let in by, of an update.
    pub fn asked_as(&self) -> &'static str {
        if self.is_patch { "patch" } else { "update" }
    }

    /// Whether it leaves an object.
    pub fn stores(&self) -> bool {
        self.creates() || self.updates()
    }

    pub fn deletes(&self) -> bool {
        *self.verb == Verb::Delete
    }

    /// 403 for `object`.
    pub fn forbidden(&self, object: &Value, why: &str) -> Status {
        let empty = Members::new();
        let meta = child_or_empty(object.as_object().unwrap_or(&empty), "metadata");
        let name = match (text(meta, "name"), text(meta, "generateName")) {
            ("", "") => "Unknown",
            ("", base) => base,
            (name, _) => name,
        };
        self.forbidden_as(name, why)
    }

    /// 403 for what is called `name`, which may be nothing.
    pub fn forbidden_as(&self, name: &str, why: &str) -> Status {
        let message = match name {
            "" => format!("{} is forbidden: {why}", self.qualified()),
            name => format!("{} {name:?} is forbidden: {why}", self.qualified()),
        };
        Status::new(Reason::Forbidden, message).about(self.of.group, self.of.resource, name)
    }

    /// `deployments.apps`, `pods`.
    fn qualified(&self) -> String {
        match self.of.group {
            "" => self.of.resource.to_string(),
            group => format!("{}.{group}", self.of.resource),
        }
    }

    /// What `fill` does to the object's members, which needs nobody to be asked; 403 for what it has against
    /// them.
    pub(crate) fn filled<'a>(
        &self,
        object: &mut Value,
        fill: impl FnOnce(&mut Members) -> Result<(), String>,
    ) -> Admitted<'a> {
        let filled = object.as_object_mut().map_or(Ok(()), fill);
        Eventual::Now(filled.map_err(|why| self.forbidden(object, &why)))
    }

    /// What `judge` says of the object's members; 403 for what it has against them.
    pub(crate) fn judged<'a>(
        &self,
        object: &Value,
        judge: impl FnOnce(&Members) -> Result<(), String>,
    ) -> Admitted<'a> {
        let judged = object.as_object().map_or(Ok(()), judge);
        Eventual::Now(judged.map_err(|why| self.forbidden(object, &why)))
    }
}

/// A stored object of a built-in kind as a tree.
pub(crate) fn value_of(object: &Object) -> Option<Value> {
    serde_json::from_slice(&object.untyped_json()).ok()
}
