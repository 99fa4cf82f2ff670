//! What a plugin is, what it is told of a write, and what it may read.

use std::sync::Arc;

use forebay_api::Eventual;
use forebay_apimachinery::{Caller, Cause, Reason, ResourceAttributes, Status, Verb};
use forebay_object::Object;
use forebay_rt::{Clock, Random};
use forebay_strategy::value::{Members, child_or_empty, text};
use serde_json::Value;

/// What a plugin says, now or later.
pub type Admitted<'a> = Eventual<'a, Result<(), Status>>;

/// One concern between a write and the store. Whatever it does not say, it lets be.
pub trait Plugin: Sync {
    /// Its name, as `--disable-admission-plugins` has it if it can be turned off.
    fn name(&self) -> &'static str;

    /// What turns it on and off.
    fn switch(&self) -> Switch {
        Switch::ByName
    }

    /// Whether it has anything to do with such a write.
    fn handles(&self, write: &WriteAttributes<'_>) -> bool;

    /// What it decides by. A refusal that was judged by caches is judged again when these have all that was acknowledged before,
    /// so that a class counts from then on. What is filled in twice is what is filled in once.
    fn decides_by(&self) -> &'static [ReadFrom] {
        &[]
    }

    /// Fills in what the client leaves out, or refuses: before the object is validated.
    fn mutate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a mut Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let _nothing = (write, object, tools);
        Eventual::Now(Ok(()))
    }

    /// What it adds to that which validation finds.
    fn causes(&self, write: &WriteAttributes<'_>, object: &Value, tools: &Tools<'_>) -> Vec<Cause> {
        let _nothing = (write, object, tools);
        Vec::new()
    }

    /// Refuses what is valid and yet may not be.
    fn validate<'a>(
        &'a self,
        write: &'a WriteAttributes<'a>,
        object: &'a Value,
        tools: &'a Tools<'a>,
    ) -> Admitted<'a> {
        let _nothing = (write, object, tools);
        Eventual::Now(Ok(()))
    }
}

/// What turns a plugin on and off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// It is on unless it is turned off by its name.
    ByName,
    /// A setting of its own: service accounts of pods.
    ServiceAccounts,
    /// It is always on: kube-apiserver does the same in its registry.
    None,
}

/// A write as plugins see it, whichever verb it came by.
#[derive(Clone, Copy)]
pub struct WriteAttributes<'a> {
    /// Create, update, delete, deletecollection or connect. A patch is an update once it is applied, and an update that creates is a
    /// create.
    pub verb: &'a Verb,
    /// Of what. The name is that of the path.
    pub of: ResourceAttributes<'a>,
    pub namespaced: bool,
    /// Who asks; none when the server itself does.
    pub caller: Option<&'a Caller>,
    pub dry_run: bool,
    /// The stored object, once it is known which that is.
    pub old: Option<&'a Value>,
}

/// A resource that plugins read, of version v1: its group and plural name.
pub type ReadFrom = (&'static str, &'static str);

/// What plugins may read.
pub trait Lookup: Send + Sync {
    /// An object as it is cached, however old that is.
    fn cached(&self, from: ReadFrom, namespace: &str, name: &str) -> Option<Arc<Object>>;

    /// An object as the store has it now.
    fn live<'a>(
        &'a self,
        from: ReadFrom,
        namespace: &'a str,
        name: &'a str,
    ) -> Eventual<'a, Result<Option<Arc<Object>>, Status>>;

    /// The cached objects at cluster scope that have `mark` in their JSON text, at which the caller looks more closely.
    fn marked(&self, from: ReadFrom, mark: &str) -> Vec<Arc<Object>>;

    /// Waits until the cache has all that was acknowledged before the call.
    fn fresh(&self, from: ReadFrom) -> Admitted<'_>;
}

/// What plugins work with.
#[derive(Clone, Copy)]
pub struct Tools<'a> {
    pub lookup: &'a dyn Lookup,
    pub clock: &'a Clock,
    pub random: &'a Random,
}

impl Tools<'_> {
    /// The class of a name.
    pub(crate) fn class(&self, from: ReadFrom, name: &str) -> Option<Value> {
        value_of(&*self.lookup.cached(from, "", name)?)
    }

    /// The classes that have `mark` in their text. There are few classes, and fewer that are marked: only these are decoded.
    pub(crate) fn marked_classes(&self, from: ReadFrom, mark: &str) -> Vec<Value> {
        self.lookup.marked(from, mark).iter().filter_map(|class| value_of(class)).collect()
    }
}

impl WriteAttributes<'_> {
    /// Whether it is about whole objects of this resource.
    pub fn is_of(&self, group: &str, resource: &str) -> bool {
        self.of.group == group && self.of.resource == resource && self.of.subresource.is_empty()
    }

    pub fn creates(&self) -> bool {
        *self.verb == Verb::Create
    }

    pub fn updates(&self) -> bool {
        *self.verb == Verb::Update
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

    /// 403 for what is called `name`.
    pub fn forbidden_as(&self, name: &str, why: &str) -> Status {
        let message = format!("{} {name:?} is forbidden: {why}", self.qualified());
        Status::new(Reason::Forbidden, message).about(self.of.group, self.of.resource, name)
    }

    /// `deployments.apps`, `pods`.
    fn qualified(&self) -> String {
        match self.of.group {
            "" => self.of.resource.to_string(),
            group => format!("{}.{group}", self.of.resource),
        }
    }

    /// What `fill` does to the object's members, which needs nobody to be asked.
    pub(crate) fn filled<'a>(
        &self,
        object: &mut Value,
        fill: impl FnOnce(&mut Members) -> Result<(), String>,
    ) -> Admitted<'a> {
        let filled = object.as_object_mut().map_or(Ok(()), fill);
        Eventual::Now(filled.map_err(|why| self.forbidden(object, &why)))
    }

    /// What `judge` says of the object's members.
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
fn value_of(object: &Object) -> Option<Value> {
    serde_json::from_slice(&json_of(object)).ok()
}

/// Its JSON, without what says its kind.
pub(crate) fn json_of(object: &Object) -> Vec<u8> {
    let mut json = Vec::with_capacity(object.body_len() + 1);
    json.push(b'{');
    object.write_body(None, None, &mut json);
    json
}
