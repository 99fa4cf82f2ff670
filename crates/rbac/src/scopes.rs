//! Who has which role where: what a question is looked up in.
//!
//! In: bindings that come and go. Out: the roles that a user or a group has in a namespace, or everywhere.
//! A copy of the whole shares all but what changes. Never: what a role allows.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use equivalent::Equivalent;

use crate::binding::Through;

/// Whose, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Scope {
    is_group: bool,
    called: Arc<str>,
    /// Empty for the whole cluster.
    namespace: Arc<str>,
}

/// The same, borrowed.
struct ScopeRef<'a> {
    is_group: bool,
    called: &'a str,
    namespace: &'a str,
}

impl Hash for Scope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Scope { is_group, called, namespace } = self;
        ScopeRef { is_group: *is_group, called, namespace }.hash(state);
    }
}

impl Hash for ScopeRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.is_group, self.called, self.namespace).hash(state);
    }
}

impl Equivalent<Scope> for ScopeRef<'_> {
    fn equivalent(&self, key: &Scope) -> bool {
        (self.is_group, self.called, self.namespace) == (key.is_group, &*key.called, &*key.namespace)
    }
}

/// A role that is had, and by which bindings.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    /// The place of the role in its table.
    pub role: u32,
    // Never empty; by the name of the binding.
    by: Arc<Vec<Arc<Through>>>,
}

impl Grant {
    /// The first of the bindings, by name.
    pub fn first(&self) -> &Arc<Through> {
        &self.by[0]
    }
}

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scopes {
    // The roles of each, by their place.
    scopes: imbl::HashMap<Scope, Arc<Vec<Grant>>>,
}

impl Scopes {
    /// What a user or a group has in `namespace`, or, where that is empty, everywhere.
    pub fn of(&self, is_group: bool, called: &str, namespace: &str) -> &[Grant] {
        let grants = self.scopes.get(&ScopeRef { is_group, called, namespace });
        grants.map(|grants| grants.as_slice()).unwrap_or_default()
    }

    /// Notes that the role at `role` is had through `through`, whose subject is not there yet.
    pub fn add(&mut self, role: u32, through: &Arc<Through>) {
        let grants = self.scopes.entry(scope(through)).or_default();
        let grants = Arc::make_mut(grants);
        match grants.binary_search_by_key(&role, |grant| grant.role) {
            Err(at) => grants.insert(at, Grant { role, by: Arc::new(vec![through.clone()]) }),
            Ok(at) => {
                let by = Arc::make_mut(&mut grants[at].by);
                let at = by.partition_point(|other| other.binding.name < through.binding.name);
                by.insert(at, through.clone());
            }
        }
    }

    /// Forgets it.
    pub fn remove(&mut self, role: u32, through: &Through) {
        let scope = scope(through);
        let Some(grants) = self.scopes.get_mut(&scope) else { return };
        let grants = Arc::make_mut(grants);
        if let Ok(at) = grants.binary_search_by_key(&role, |grant| grant.role) {
            let by = Arc::make_mut(&mut grants[at].by);
            if let Ok(at) = by.binary_search_by(|other| other.binding.name.cmp(&through.binding.name)) {
                by.remove(at);
            }
            if by.is_empty() {
                grants.remove(at);
            }
        }
        if grants.is_empty() {
            self.scopes.remove(&scope);
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.scopes.len()
    }
}

fn scope(through: &Through) -> Scope {
    let binding = &through.binding;
    let subject = &binding.subjects[through.subject];
    let (is_group, called) = (subject.is_group(), subject.called.clone());
    Scope { is_group, called, namespace: binding.namespace.clone() }
}
