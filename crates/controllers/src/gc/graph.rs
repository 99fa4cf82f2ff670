//! Who depends on whom: objects with owners, and objects that wait for their dependents.
//!
//! In: objects as they are seen, and that they are gone. Out: the uids that something is to be done about.
//! Pure: no clock, no reads. Owned by the collector's task.
//!
//! An owner that waits for nothing is not in it: whether it is there is asked for when it matters.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use forebay_apimachinery::{Key, Seen};

use crate::meta::{FOREGROUND, Meta, ORPHAN};

/// Shared by everything in the graph that is about one object.
pub type Uid = Arc<str>;

/// The number of a resource that is followed.
pub type Followed = u32;

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectReference<'a> {
    pub resource: Followed,
    pub namespace: &'a str,
    pub name: &'a str,
}

/// Where the deletion of an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeletionState {
    Living,
    /// Somebody else ends it.
    Deleting,
    /// It goes once those of its dependents are gone that block it.
    WaitingForDependents,
    /// It goes once its dependents no longer name it.
    Orphaning,
}

/// One of these is there for each object with an owner, so that it is small: namespace and name are the end
/// of the key.
struct Node {
    uid: Uid,
    // (resource, storage key): the key is shared with the object.
    at: (Followed, Key),
    namespace_len: u16,
    name_len: u16,
    phase: DeletionState,
    // (owner, whether it waits for this one), in the order of the references.
    owners: Box<[(Uid, bool)]>,
}

/// A node, found by its uid.
struct ByUid(Arc<Node>);

/// A node, found by where it is.
struct ByPlace(Arc<Node>);

/// The graph.
#[derive(Default)]
pub struct Graph {
    // Pointers: a table has up to twice the room that is used.
    nodes: HashSet<ByUid>,
    // The same nodes.
    tracked: HashSet<ByPlace>,
    // owner -> those that name it; never empty
    dependents: HashMap<Uid, HashSet<Uid>>,
}

impl Graph {
    /// Whether the object at `key` is in the graph.
    pub fn tracks(&self, resource: Followed, key: &Key) -> bool {
        self.tracked.contains(&(resource, key.clone()))
    }

    /// Takes in the object at `key`, which ends with `reference`; `touched` gets what is to be looked at
    /// because of it.
    ///
    /// - `owned`: all its owners are known to be there, so that nobody need ask for them.
    pub fn put(
        &mut self,
        key: &Key,
        reference: ObjectReference<'_>,
        meta: &Meta,
        owned: bool,
        touched: &mut Vec<Uid>,
    ) {
        let resource = reference.resource;
        let known = self.tracked.get(&(resource, key.clone())).map(|known| &known.0.uid);
        if let Some(other) = known.filter(|known| ***known != *meta.uid).cloned() {
            self.remove(&other, touched);
        }
        let phase = phase(meta);
        let uid = self.uid(&meta.uid);
        let owners: Box<[(Uid, bool)]> =
            meta.owner_references.iter().map(|owner| (self.uid(&owner.uid), owner.blocks())).collect();
        let old = self.unlink(&uid);
        let (old_phase, old_owners) = match &old {
            Some(node) => (node.phase, &*node.owners),
            None => (DeletionState::Living, &[][..]),
        };
        let kept: Seen<&(Uid, bool)> = owners.iter().collect();
        let unblocked = old_owners.iter().filter(|old| old.1 && !kept.has(old));
        touched.extend(unblocked.map(|(owner, _)| owner).filter(|owner| self.waits(owner)).cloned());
        let newly_owned = *owners != *old_owners && !owners.is_empty();
        if phase == DeletionState::Living && newly_owned && !owned {
            touched.push(uid.clone());
        }
        if phase != old_phase {
            match phase {
                DeletionState::Orphaning => touched.push(uid.clone()),
                DeletionState::WaitingForDependents => {
                    touched.extend(self.naming(&uid).cloned());
                    touched.push(uid.clone());
                }
                DeletionState::Living | DeletionState::Deleting => {}
            }
        }
        if owners.is_empty() && matches!(phase, DeletionState::Living | DeletionState::Deleting) {
            return;
        }
        for (owner, _) in &owners {
            self.dependents.entry(owner.clone()).or_default().insert(uid.clone());
        }
        let (namespace_len, name_len) = (reference.namespace.len() as u16, reference.name.len() as u16);
        let at = (resource, key.clone());
        let node = Arc::new(Node { uid, at, namespace_len, name_len, phase, owners });
        self.tracked.insert(ByPlace(node.clone()));
        self.nodes.insert(ByUid(node));
    }

    /// Takes out the object with `uid`.
    pub fn remove(&mut self, uid: &str, touched: &mut Vec<Uid>) {
        touched.extend(self.naming(uid).cloned());
        if let Some(node) = self.unlink(uid) {
            touched.extend(
                node.owners.iter().map(|(owner, _)| owner).filter(|owner| self.waits(owner)).cloned(),
            );
        }
    }

    /// Takes out every object of `resource`, which is no longer served.
    pub fn forget(&mut self, resource: Followed, touched: &mut Vec<Uid>) {
        let gone: Vec<Uid> = self
            .tracked
            .iter()
            .map(|ByPlace(node)| node)
            .filter(|node| node.at.0 == resource)
            .map(|node| node.uid.clone())
            .collect();
        for uid in gone {
            self.remove(&uid, touched);
        }
    }

    pub fn phase(&self, uid: &str) -> Option<DeletionState> {
        self.node(uid).map(|node| node.phase)
    }

    pub fn reference(&self, uid: &str) -> Option<ObjectReference<'_>> {
        self.node(uid).map(Node::reference)
    }

    /// Those that `uid` owns.
    pub fn dependents_of(&self, uid: &str) -> impl Iterator<Item = &Uid> {
        self.naming(uid).filter(move |dependent| self.owns(uid, dependent))
    }

    /// Those of them that it has to wait for.
    pub fn blocking(&self, uid: &str) -> impl Iterator<Item = &Uid> {
        let blocks = move |dependent: &&Uid| {
            let owners = self.node(dependent).map(|node| &*node.owners).unwrap_or_default();
            // Nobody waits for itself.
            ***dependent != *uid && owners.iter().any(|(owner, blocks)| *blocks && **owner == *uid)
        };
        self.dependents_of(uid).filter(blocks)
    }

    /// Whether an owner of `uid` waits for it.
    pub fn is_awaited(&self, uid: &str) -> bool {
        let awaits = |owner: &Uid| self.waits(owner) && self.owns(owner, uid);
        self.node(uid).is_some_and(|node| node.owners.iter().any(|(owner, _)| awaits(owner)))
    }

    /// Those that name `uid` as an owner, wherever they are.
    fn naming(&self, uid: &str) -> impl Iterator<Item = &Uid> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Whether `dependent`, which names it, can have `owner`: one in a namespace owns there alone. A uid can
    /// be had by whoever reads it, so that otherwise anybody could hold an object of a namespace in which
    /// they have no rights.
    fn owns(&self, owner: &str, dependent: &str) -> bool {
        match (self.reference(owner), self.reference(dependent)) {
            (Some(owner), Some(dependent)) => {
                owner.namespace.is_empty() || owner.namespace == dependent.namespace
            }
            // It waits for nothing.
            _ => true,
        }
    }

    /// Every object with owners.
    pub fn owned(&self) -> impl Iterator<Item = &Uid> {
        self.nodes.iter().filter(|node| !node.0.owners.is_empty()).map(|node| &node.0.uid)
    }

    fn node(&self, uid: &str) -> Option<&Node> {
        self.nodes.get(uid).map(|node| &*node.0)
    }

    fn waits(&self, uid: &str) -> bool {
        self.phase(uid) == Some(DeletionState::WaitingForDependents)
    }

    /// The shared form of a uid.
    fn uid(&self, text: &str) -> Uid {
        let node = self.node(text).map(|node| &node.uid);
        let owner = || self.dependents.get_key_value(text).map(|(uid, _)| uid);
        node.or_else(owner).cloned().unwrap_or_else(|| Arc::from(text))
    }

    /// Takes out a node and what its owners know of it.
    fn unlink(&mut self, uid: &str) -> Option<Arc<Node>> {
        let ByUid(node) = self.nodes.take(uid)?;
        self.tracked.remove(&node.at);
        for (owner, _) in &node.owners {
            if let Some(dependents) = self.dependents.get_mut(owner) {
                dependents.remove(uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner);
                }
            }
        }
        Some(node)
    }
}

impl Node {
    fn reference(&self) -> ObjectReference<'_> {
        let (resource, key) = &self.at;
        let (before, name) = split_end(key.as_str(), self.name_len);
        let (_, namespace) = split_end(before.strip_suffix('/').unwrap_or(before), self.namespace_len);
        ObjectReference { resource: *resource, namespace, name }
    }
}

impl Borrow<str> for ByUid {
    fn borrow(&self) -> &str {
        &self.0.uid
    }
}

impl Hash for ByUid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid.hash(state);
    }
}

impl PartialEq for ByUid {
    fn eq(&self, other: &ByUid) -> bool {
        self.0.uid == other.0.uid
    }
}

impl Eq for ByUid {}

impl Borrow<(Followed, Key)> for ByPlace {
    fn borrow(&self) -> &(Followed, Key) {
        &self.0.at
    }
}

impl Hash for ByPlace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.at.hash(state);
    }
}

impl PartialEq for ByPlace {
    fn eq(&self, other: &ByPlace) -> bool {
        self.0.at == other.0.at
    }
}

impl Eq for ByPlace {}

/// Cuts off the last `len` bytes.
fn split_end(text: &str, len: u16) -> (&str, &str) {
    text.split_at_checked(text.len().saturating_sub(usize::from(len))).unwrap_or((text, ""))
}

fn phase(meta: &Meta) -> DeletionState {
    match () {
        () if !meta.is_deleting() => DeletionState::Living,
        () if meta.has_finalizer(ORPHAN) => DeletionState::Orphaning,
        () if meta.has_finalizer(FOREGROUND) => DeletionState::WaitingForDependents,
        () => DeletionState::Deleting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::OwnerReference;

    /// `name[!orphan|!fg|!] owner[*]...`: `!` deleting, `*` blocking; `-name` is gone. Says what is touched.
    fn feed(graph: &mut Graph, text: &str) -> String {
        let mut words = text.split(' ');
        let head = words.next().expect("a name");
        let mut touched = Vec::new();
        if let Some(gone) = head.strip_prefix('-') {
            graph.remove(gone, &mut touched);
        } else {
            let (name, finalizer) =
                head.split_once('!').map_or((head, None), |(name, rest)| (name, Some(rest)));
            let finalizers = match finalizer {
                Some("orphan") => vec![ORPHAN.to_string()],
                Some("fg") => vec![FOREGROUND.to_string()],
                _ => Vec::new(),
            };
            let owner_references = words
                .map(|owner| OwnerReference {
                    uid: owner.trim_end_matches('*').into(),
                    block_owner_deletion: owner.ends_with('*').then_some(true),
                    ..OwnerReference::default()
                })
                .collect();
            let deletion_timestamp = finalizer.map(|_| "t".to_string());
            let meta = Meta {
                uid: name.into(),
                deletion_timestamp,
                finalizers,
                owner_references,
                ..Meta::default()
            };
            let reference = ObjectReference { resource: 0, namespace: "n", name };
            graph.put(&key(name), reference, &meta, false, &mut touched);
        }
        let mut touched: Vec<&str> = touched.iter().map(|uid| &**uid).collect();
        touched.sort_unstable();
        touched.join(" ")
    }

    fn key(name: &str) -> Key {
        Key::from(format!("n/{name}"))
    }

    #[test]
    fn what_happens_touches_whom_it_concerns() {
        let mut graph = Graph::default();
        for (text, want) in [
            ("rs", ""),
            ("a rs*", "a"),
            ("a rs*", ""),
            ("b rs x", "b"),
            // An owner that waits has its dependents looked at, and itself.
            ("rs!fg", "a b rs"),
            ("rs!fg", ""),
            // A dependent that no longer blocks lets it be looked at again, and so does one that is gone.
            ("a rs", "a rs"),
            ("a rs*", "a"),
            ("a! rs*", ""),
            ("-a", "rs"),
            ("b x", "b"),
            ("-rs", ""),
            ("-x", "b"),
            ("b", ""),
            ("-x", ""),
            ("o!orphan", "o"),
            ("o!", ""),
        ] {
            assert_eq!(feed(&mut graph, text), want, "{text}");
        }
        assert_eq!((graph.nodes.len(), graph.tracked.len(), graph.dependents.len()), (0, 0, 0));
    }

    #[test]
    fn another_object_in_the_same_place_ends_the_first() {
        let mut graph = Graph::default();
        feed(&mut graph, "owner!fg");
        feed(&mut graph, "a owner*");
        let meta = Meta { uid: "a2".into(), ..Meta::default() };
        let reference = ObjectReference { resource: 0, namespace: "n", name: "a" };
        let mut touched = Vec::new();
        graph.put(&key("a"), reference, &meta, false, &mut touched);
        let there = ObjectReference { resource: 0, namespace: "n", name: "owner" };
        assert_eq!((graph.reference("owner"), graph.reference("a")), (Some(there), None));
        assert_eq!(touched, [Uid::from("owner")]);
        assert_eq!(graph.blocking("owner").count(), 0);
    }

    #[test]
    fn the_end_of_a_resource_ends_its_objects() {
        let mut graph = Graph::default();
        feed(&mut graph, "a owner");
        feed(&mut graph, "b a");
        let mut touched = Vec::new();
        graph.forget(1, &mut touched);
        assert_eq!((touched.len(), graph.nodes.len()), (0, 2), "nothing of another one");
        graph.forget(0, &mut touched);
        assert_eq!(graph.nodes.len(), 0);
    }

    #[test]
    fn blocking_is_told_for_each_owner_by_itself() {
        let mut graph = Graph::default();
        feed(&mut graph, "a one* two");
        feed(&mut graph, "b one two*");
        let blocking = |owner: &str| graph.blocking(owner).map(|uid| uid.to_string()).collect::<Vec<_>>();
        assert_eq!(
            (blocking("one"), blocking("two"), blocking("three")),
            (vec!["a".into()], vec!["b".into()], vec![])
        );
        assert!(!graph.is_awaited("a"));
    }
}
