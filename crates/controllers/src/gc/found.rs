//! Owners that were found, so that the next dependent of theirs need not ask for them again.
//!
//! A ReplicaSet is found for its first pod, and is there for the thousandth: until it is seen to be deleted,
//! which touches all who name it. In: references whose owners were found, and what is seen to be deleted,
//! whether or not anybody names it then: somebody may later. Out: whether all owners of a dependent are known
//! to be there. Never: that an owner is gone; what is not known here is asked for. Owned by the collector's
//! task.

use std::collections::{HashMap, HashSet};

use super::graph::Uid;
use crate::limits;
use crate::meta::OwnerReference;

/// What was found, and from whose namespace it was named: all of it is what an owner is asked for by.
#[derive(PartialEq, Eq)]
struct Place {
    namespace: String,
    api_version: String,
    kind: String,
    name: String,
}

/// The owners.
#[derive(Default)]
pub struct FoundOwners {
    // <= FOUND_OWNERS_MAX
    by_uid: HashMap<Uid, Place>,
    // Uids of what was deleted last: whoever asked for one of them before may have found it. None of them
    // comes back. <= FOUND_OWNERS_MAX
    gone: HashSet<Uid>,
    // What was asked for before the last loss may have been lost since, and is not in `gone`.
    losses: u64,
}

/// When somebody began to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AskedWhen(u64);

impl FoundOwners {
    /// Whether every owner of a dependent in `namespace` was found as it is named now.
    pub fn has_all(&self, namespace: &str, references: &[OwnerReference]) -> bool {
        references.iter().all(|reference| {
            self.by_uid.get(&*reference.uid).is_some_and(|place| place.is_named(namespace, reference))
        })
    }

    pub fn begin(&self) -> AskedWhen {
        AskedWhen(self.losses)
    }

    /// The owners that `references` name from `namespace` were there when they were asked for, which began at
    /// `asked`. Nothing is kept of those that are gone since.
    pub fn keep(&mut self, asked: AskedWhen, namespace: &str, references: Vec<OwnerReference>) {
        if asked != self.begin() {
            return;
        }
        for reference in references.into_iter().filter(|reference| !self.gone.contains(&*reference.uid)) {
            if self.by_uid.len() >= limits::FOUND_OWNERS_MAX {
                self.by_uid.clear();
            }
            let OwnerReference { api_version, kind, name, uid, .. } = reference;
            self.by_uid
                .insert(uid.into(), Place { namespace: namespace.to_owned(), api_version, kind, name });
        }
    }

    /// Something is gone, or on its way: an owner, if anybody names it.
    pub fn lose(&mut self, uid: &str) {
        self.by_uid.remove(uid);
        if self.gone.contains(uid) {
            return;
        }
        if self.gone.len() >= limits::FOUND_OWNERS_MAX {
            self.gone.clear();
            self.losses += 1;
        }
        self.gone.insert(uid.into());
    }

    /// Owners may be gone of which nothing was seen.
    pub fn lose_all(&mut self) {
        self.losses += 1;
        self.by_uid.clear();
        self.gone.clear();
    }
}

impl Place {
    fn is_named(&self, namespace: &str, reference: &OwnerReference) -> bool {
        self.namespace == namespace
            && self.name == reference.name
            && self.kind == reference.kind
            && self.api_version == reference.api_version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(uid: &str, name: &str) -> OwnerReference {
        let (uid, name) = (uid.to_owned(), name.to_owned());
        OwnerReference {
            uid,
            name,
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            ..OwnerReference::default()
        }
    }

    #[test]
    fn an_owner_is_known_by_all_that_it_is_named_by() {
        let mut found = FoundOwners::default();
        found.keep(found.begin(), "a", vec![reference("1", "one"), reference("2", "two")]);
        assert!(found.has_all("a", &[reference("2", "two"), reference("1", "one")]));
        for (namespace, named) in [
            ("b", reference("1", "one")),
            ("a", reference("1", "two")),
            ("a", reference("3", "one")),
            ("a", OwnerReference { kind: "Deployment".into(), ..reference("1", "one") }),
            ("a", OwnerReference { api_version: "apps/v2".into(), ..reference("1", "one") }),
        ] {
            assert!(
                !found.has_all(namespace, &[reference("2", "two"), named.clone()]),
                "{namespace} {named:?}"
            );
        }
    }

    #[test]
    fn what_was_asked_for_before_a_loss_is_not_kept() {
        let mut found = FoundOwners::default();
        found.keep(found.begin(), "a", vec![reference("1", "one"), reference("2", "two")]);
        let asked = found.begin();
        found.lose("1");
        found.keep(asked, "a", vec![reference("1", "one"), reference("3", "three")]);
        assert!(!found.has_all("a", &[reference("1", "one")]));
        assert!(found.has_all("a", &[reference("2", "two"), reference("3", "three")]));
        let asked = found.begin();
        found.lose_all();
        found.keep(asked, "a", vec![reference("2", "two")]);
        assert!(!found.has_all("a", &[reference("2", "two")]));
    }

    #[test]
    fn what_was_asked_for_before_more_losses_than_are_remembered_is_not_kept() {
        let mut found = FoundOwners::default();
        let asked = found.begin();
        found.lose("1");
        for number in 0..=limits::FOUND_OWNERS_MAX {
            found.lose(&format!("other-{number}"));
            assert!(found.gone.len() <= limits::FOUND_OWNERS_MAX);
        }
        assert!(!found.gone.contains("1"), "it is forgotten");
        found.keep(asked, "a", vec![reference("1", "one")]);
        assert!(!found.has_all("a", &[reference("1", "one")]));
    }

    #[test]
    fn no_more_are_kept_than_the_limit() {
        let mut found = FoundOwners::default();
        for number in 0..=limits::FOUND_OWNERS_MAX {
            found.keep(found.begin(), "a", vec![reference(&number.to_string(), "one")]);
        }
        assert_eq!(found.by_uid.len(), 1);
    }
}
