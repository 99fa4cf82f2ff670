//! Which objects lead to which node.
//!
//! In: pods, volumes, attachments and slices as they come, change and go, in any order. Out: whether an
//! object leads to a node. A copy shares all but what changes, so that one is published after each. It takes
//! as much as what is put in names: nothing of what is gone is kept. Never: allocates to look.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/auth/authorizer/node/graph.go`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use equivalent::Equivalent;

use crate::names::Names;
use crate::pods::PodLinks;
use crate::volumes::VolumeLinks;

/// What a pod names of its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Related {
    Claim,
    ConfigMap,
    ResourceClaim,
    Secret,
    ServiceAccount,
}

/// A namespace and a name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    namespace: Arc<str>,
    name: Arc<str>,
}

/// The same, borrowed.
struct PlaceRef<'a> {
    namespace: &'a str,
    name: &'a str,
}

/// An object that pods name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Thing {
    of: Related,
    at: Place,
}

/// The same, borrowed.
struct ThingRef<'a> {
    of: Related,
    at: PlaceRef<'a>,
}

impl Hash for Place {
    fn hash<H: Hasher>(&self, state: &mut H) {
        PlaceRef { namespace: &self.namespace, name: &self.name }.hash(state);
    }
}

impl Hash for PlaceRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.namespace, self.name).hash(state);
    }
}

impl Equivalent<Place> for PlaceRef<'_> {
    fn equivalent(&self, key: &Place) -> bool {
        (self.namespace, self.name) == (&*key.namespace, &*key.name)
    }
}

impl Hash for Thing {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
        self.at.hash(state);
    }
}

impl Hash for ThingRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
        self.at.hash(state);
    }
}

impl Equivalent<Thing> for ThingRef<'_> {
    fn equivalent(&self, key: &Thing) -> bool {
        self.of == key.of && self.at.equivalent(&key.at)
    }
}

/// A pod that is bound: where, and what it names.
#[derive(Clone, Debug)]
struct Pod {
    node: Arc<str>,
    named: Arc<[(Related, Arc<str>)]>,
}

/// The nodes that an object is named on, each with how many pods there name it; most are on one.
#[derive(Clone, Debug)]
enum Nodes {
    One(Arc<str>, usize),
    Many(imbl::OrdMap<Arc<str>, usize>),
}

/// A volume that is for a claim.
#[derive(Clone, Debug)]
struct Volume {
    claim: Place,
    secrets: Arc<[Place]>,
}

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub struct NodeGraph {
    // Of nodes and of namespaces, shared.
    names: Names,
    pods: imbl::HashMap<Place, Pod>,
    things: imbl::HashMap<Thing, Nodes>,
    volumes: imbl::HashMap<Arc<str>, Volume>,
    // The volumes that name a secret.
    by_secret: imbl::HashMap<Place, imbl::OrdSet<Arc<str>>>,
    // Attachments and slices, by name, with their nodes.
    attachments: imbl::HashMap<Arc<str>, Arc<str>>,
    slices: imbl::HashMap<Arc<str>, Arc<str>>,
}

impl NodeGraph {
    /// A pod is there, or is another now; `None` while it is not bound. Whether that changes anything.
    pub fn put_pod(&mut self, namespace: &str, name: &str, links: Option<&PodLinks>) -> bool {
        let known = self.pods.get(&PlaceRef { namespace, name });
        if let (Some(known), Some(links)) = (known, links)
            && known.is_as(links)
        {
            return false;
        }
        let was_there = self.remove_pod(namespace, name);
        let Some(links) = links else { return was_there };
        let at = Place { namespace: self.names.take(namespace), name: name.into() };
        let node = self.names.take(&links.node);
        let named = links.named.iter().map(|(of, name)| (*of, self.name(*of, &at.namespace, name, &node)));
        let named = named.collect();
        self.pods.insert(at, Pod { node, named });
        true
    }

    /// A pod is gone. Whether it was there.
    pub fn remove_pod(&mut self, namespace: &str, name: &str) -> bool {
        let Some(Pod { node, named }) = self.pods.remove(&PlaceRef { namespace, name }) else { return false };
        for (of, name) in named.iter() {
            self.forget(*of, namespace, name, &node);
        }
        self.names.give_back(&node);
        self.names.give_back(namespace);
        true
    }

    /// A volume is there, or is another now; `None` while it is for no claim.
    pub fn put_volume(&mut self, name: &str, links: Option<&VolumeLinks>) {
        self.remove_volume(name);
        let Some(VolumeLinks { claim, secrets }) = links else { return };
        let name: Arc<str> = name.into();
        let secrets: Arc<[Place]> = secrets.iter().map(|secret| self.take(secret)).collect();
        for secret in secrets.iter() {
            self.by_secret.entry(secret.clone()).or_default().insert(name.clone());
        }
        let claim = self.take(claim);
        self.volumes.insert(name, Volume { claim, secrets });
    }

    /// A volume is gone.
    pub fn remove_volume(&mut self, name: &str) {
        let Some(Volume { claim, secrets }) = self.volumes.remove(name) else { return };
        for secret in secrets.iter() {
            if let Some(volumes) = self.by_secret.get_mut(secret) {
                volumes.remove(name);
                if volumes.is_empty() {
                    self.by_secret.remove(secret);
                }
            }
            self.names.give_back(&secret.namespace);
        }
        self.names.give_back(&claim.namespace);
    }

    /// An attachment of a volume is there, or is another now.
    pub fn put_attachment(&mut self, name: &str, node: Option<&str>) {
        self.remove_attachment(name);
        if let Some(node) = node {
            let node = self.names.take(node);
            self.attachments.insert(name.into(), node);
        }
    }

    pub fn remove_attachment(&mut self, name: &str) {
        if let Some(node) = self.attachments.remove(name) {
            self.names.give_back(&node);
        }
    }

    /// A slice is there, or is another now.
    pub fn put_slice(&mut self, name: &str, node: Option<&str>) {
        self.remove_slice(name);
        if let Some(node) = node {
            let node = self.names.take(node);
            self.slices.insert(name.into(), node);
        }
    }

    pub fn remove_slice(&mut self, name: &str) {
        if let Some(node) = self.slices.remove(name) {
            self.names.give_back(&node);
        }
    }

    /// Whether the pod is bound to the node.
    pub fn has_pod(&self, node: &str, namespace: &str, name: &str) -> bool {
        self.pods.get(&PlaceRef { namespace, name }).is_some_and(|pod| &*pod.node == node)
    }

    /// Whether a pod of the node names the object, or, of a secret, a volume of such a pod does.
    pub fn leads_to(&self, node: &str, of: Related, namespace: &str, name: &str) -> bool {
        let things = self.things.get(&ThingRef { of, at: PlaceRef { namespace, name } });
        if things.is_some_and(|nodes| nodes.has(node)) {
            return true;
        }
        if of != Related::Secret {
            return false;
        }
        // As upstream: those that name one secret, which provisioners write and not their users.
        let volumes = self.by_secret.get(&PlaceRef { namespace, name });
        volumes.is_some_and(|volumes| volumes.iter().any(|volume| self.has_volume(node, volume)))
    }

    /// Whether a pod of the node has a claim that the volume is for.
    pub fn has_volume(&self, node: &str, name: &str) -> bool {
        let Some(Volume { claim, .. }) = self.volumes.get(name) else { return false };
        let at = PlaceRef { namespace: &claim.namespace, name: &claim.name };
        let claimed = self.things.get(&ThingRef { of: Related::Claim, at });
        claimed.is_some_and(|nodes| nodes.has(node))
    }

    /// Whether the volume is attached to the node, or is to be.
    pub fn has_attachment(&self, node: &str, name: &str) -> bool {
        self.attachments.get(name).is_some_and(|of| &**of == node)
    }

    /// Whether the slice is of the node.
    pub fn has_slice(&self, node: &str, name: &str) -> bool {
        self.slices.get(name).is_some_and(|of| &**of == node)
    }

    /// Pods, objects that they name, volumes, and secrets of these, as they are kept.
    #[cfg(test)]
    pub(crate) fn sizes(&self) -> [usize; 5] {
        let lengths = [self.pods.len(), self.things.len(), self.volumes.len(), self.by_secret.len()];
        [lengths[0], lengths[1], lengths[2], lengths[3], self.names.len()]
    }

    /// Notes that a pod of the node names it. Returns the one text of its name.
    fn name(&mut self, of: Related, namespace: &Arc<str>, name: &str, node: &Arc<str>) -> Arc<str> {
        let thing = ThingRef { of, at: PlaceRef { namespace, name } };
        if let Some((known, nodes)) = self.things.get_key_value_mut(&thing) {
            nodes.add(node);
            return known.at.name.clone();
        }
        let name: Arc<str> = name.into();
        let at = Place { namespace: namespace.clone(), name: name.clone() };
        self.things.insert(Thing { of, at }, Nodes::One(node.clone(), 1));
        name
    }

    /// A pod of the node names it no more.
    fn forget(&mut self, of: Related, namespace: &str, name: &str, node: &str) {
        let thing = ThingRef { of, at: PlaceRef { namespace, name } };
        if self.things.get_mut(&thing).is_some_and(|nodes| nodes.remove(node)) {
            self.things.remove(&thing);
        }
    }

    fn take(&mut self, (namespace, name): &(String, String)) -> Place {
        Place { namespace: self.names.take(namespace), name: name.as_str().into() }
    }
}

impl Pod {
    fn is_as(&self, links: &PodLinks) -> bool {
        let named = self.named.iter().map(|(of, name)| (*of, &**name));
        *self.node == *links.node && named.eq(links.named.iter().map(|(of, name)| (*of, name.as_str())))
    }
}

impl Nodes {
    fn has(&self, node: &str) -> bool {
        match self {
            Nodes::One(only, _) => **only == *node,
            Nodes::Many(all) => all.contains_key(node),
        }
    }

    fn add(&mut self, node: &Arc<str>) {
        match self {
            Nodes::One(only, count) if only == node => *count += 1,
            Nodes::One(only, count) => {
                let all = [(only.clone(), *count), (node.clone(), 1)];
                *self = Nodes::Many(all.into_iter().collect());
            }
            Nodes::Many(all) => *all.entry(node.clone()).or_default() += 1,
        }
    }

    /// Whether it is named by nobody then.
    fn remove(&mut self, node: &str) -> bool {
        match self {
            Nodes::One(only, count) if **only == *node => {
                *count -= 1;
                *count == 0
            }
            Nodes::One(..) => false,
            Nodes::Many(all) => {
                if let Some(count) = all.get_mut(node) {
                    *count -= 1;
                    if *count == 0 {
                        all.remove(node);
                    }
                }
                if all.len() == 1
                    && let Some((only, count)) = all.get_min()
                {
                    *self = Nodes::One(only.clone(), *count);
                }
                false
            }
        }
    }
}

#[cfg(test)]
#[path = "graph_tests.rs"]
mod tests;
