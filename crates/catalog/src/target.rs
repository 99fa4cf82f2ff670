//! What a request is about: a resource that is served, and the part of it that the path names.
//!
//! In: what a path names, resolved once. Out: the same, to the verbs. Never: resolves anything.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use forebay_apimachinery::{Caller, Lease, Revision, Status};
use forebay_object::Object;
use serde_json::Value;

use crate::request_context::RequestContext;
use crate::served::Served;

/// See the module's doc.
#[derive(Clone)]
pub struct Target {
    pub served: Arc<Served>,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// Who asks; none when the server itself does.
    pub caller: Option<Arc<Caller>>,
    /// What the request may hold: trees of what was sent, and what is made of them.
    pub lease: Lease,
    /// What goes on beside it.
    pub context: RequestContext,
}

impl Target {
    /// What the server itself asks for: an object, or without a name a collection.
    pub fn of_server(served: Arc<Served>, namespace: Option<String>, name: Option<String>) -> Target {
        Target {
            served,
            namespace,
            name,
            subresource: None,
            caller: None,
            lease: Lease::of_server(),
            context: RequestContext::default(),
        }
    }

    /// What is charged for it, and what goes on beside it: what whoever waits in its name needs.
    pub fn in_its_name(&self) -> (&Lease, &RequestContext) {
        (&self.lease, &self.context)
    }

    /// The namespace of the path; empty at cluster scope.
    pub fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or("")
    }

    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("")
    }

    /// An object from elsewhere, as if it had been stored under the target's name: shown in each form like
    /// any other.
    ///
    /// # Errors
    /// What is not stored, and a value that does not fit its kind.
    pub fn object(&self, value: Value, revision: Revision) -> Result<Arc<Object>, Status> {
        let store = self.served.stored()?;
        store.decode(store.key(self.namespace(), self.name()), revision, &self.served.encode(value)?)
    }

    /// Whether the subresource is not an object, but a way to what runs behind one.
    pub fn is_connection(&self) -> bool {
        let subresource = self.subresource.as_deref().and_then(|name| self.served.subresource(name));
        subresource.is_some_and(|known| known.connect)
    }

    /// The object as it is cached, however old that is; nothing while the state is being read, and where
    /// there is no cache.
    pub fn cached(&self) -> Option<Arc<Object>> {
        let store = self.served.store.as_ref()?;
        Some(store.cached(&store.key(self.namespace(), self.name()))?.object)
    }

    /// Watchers that are sent every event of the resource.
    pub fn watchers(&self) -> usize {
        let counters = self.served.store.as_ref().map(|store| store.cacher.counters());
        counters.map_or(0, |counters| counters.watchers_of_all.load(Ordering::Relaxed) as usize)
    }

    /// Whether what it names is in the store now.
    ///
    /// # Errors
    /// The store's own failures; nothing is stored of it.
    pub async fn is_there(&self) -> Result<bool, Status> {
        let store = self.served.stored()?;
        Ok(store.live(&store.key(self.namespace(), self.name())).await?.is_some())
    }

    /// 404 for what it names.
    pub fn not_found(&self) -> Status {
        Status::not_found(self.served.group(), self.served.resource(), self.name())
    }
}
