//! What all clients have in common: requests that end when the server does, and what they are about.

use std::rc::Rc;

use forebay_apimachinery::Status;
use forebay_apimachinery::options::{ListOptions, Query};
use forebay_registry::request::Target;
use forebay_registry::{As, ListBody, Registry, WatchBody};

use crate::life::Life;
use crate::resources::Resource;

/// The answer of `call`, or none: the server is gone.
pub async fn within<T>(life: &Life, call: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = life.ended.raised() => None,
        answer = call => Some(answer),
    }
}

pub fn target(
    registry: &Registry,
    resource: Resource,
    namespace: Option<&str>,
    name: Option<&str>,
) -> Target {
    at(registry, resource.plural(), namespace, name)
}

/// A resource of the core group.
pub fn at(registry: &Registry, plural: &str, namespace: Option<&str>, name: Option<&str>) -> Target {
    let served = registry.catalog().resource("", "v1", plural).expect("the core group is served").clone();
    let (namespace, name) = (namespace.map(String::from), name.map(String::from));
    Target { served, namespace, name, subresource: None, caller: None }
}

pub async fn list(life: &Rc<Life>, target: &Target, query: &str) -> Option<Result<ListBody, Status>> {
    let options = match ListOptions::from_query(&Query::parse(query)) {
        Ok(options) => options,
        Err(status) => return Some(Err(status)),
    };
    within(life, life.registry.list(target, &options, As::Object)).await
}

pub async fn watch(life: &Rc<Life>, target: &Target, query: &str) -> Option<Result<WatchBody, Status>> {
    let options = match ListOptions::from_query(&Query::parse(query)) {
        Ok(options) => options,
        Err(status) => return Some(Err(status)),
    };
    within(life, life.registry.watch(target, &options, As::Object, false)).await
}
