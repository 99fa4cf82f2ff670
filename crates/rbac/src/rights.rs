//! The index: all roles and bindings, as questions are answered from them.
//!
//! In: roles and bindings as they come, change and go, in any order; questions. Out: decisions, and the rules
//! that somebody has. A copy shares all but what changes, so that one is published after each change. Never:
//! allocates to decide. What is not known gives no right.
//!
//! Source: kubernetes v1.36.3 `pkg/registry/rbac/validation/rule.go`.

use std::collections::HashSet;
use std::sync::Arc;

use forebay_apimachinery::json::go_quote;
use forebay_apimachinery::{Attributes, Caller};

use crate::binding::{RoleBinding, RoleRef, Through};
use crate::limits::{ABSENT_BYTES_MAX, ABSENT_MAX, MANY_GRANTS};
use crate::question::{Marks, Question};
use crate::role::{GROUP, PolicyRule, Role};
use crate::scopes::{Grant, Scopes};

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub struct Rights {
    // Where a role is that is there, or that a binding leads to.
    places: imbl::HashMap<RoleRef, u32>,
    roles: imbl::Vector<Known>,
    // Places in it that nothing is at.
    free: imbl::Vector<u32>,
    // By namespace, which is empty for those of the whole cluster, and name.
    bindings: imbl::HashMap<(Arc<str>, Arc<str>), Bound>,
    scopes: Scopes,
}

/// A role that is there, or that a binding leads to.
#[derive(Clone, Debug)]
struct Known {
    reference: RoleRef,
    role: Option<Arc<Role>>,
    // Of its rules; of everything where it is not there, so that this is noticed.
    marks: Marks,
    // Subjects of bindings that lead to it.
    subjects: usize,
}

/// A binding, through each subject that nobody before it is.
#[derive(Clone, Debug)]
struct Bound {
    role: u32,
    through: Arc<[Arc<Through>]>,
}

/// What is found for a question.
#[derive(Clone, Debug)]
pub enum Ruling {
    /// It is allowed through this.
    Allowed(Arc<Through>),
    NotAllowed {
        /// Whether there is a binding to a role that is not there.
        absent: bool,
    },
}

impl Rights {
    /// A role is there, or is another now.
    pub fn put_role(&mut self, reference: &RoleRef, role: Role) {
        let at = self.place(reference);
        if let Some(known) = self.roles.get_mut(at as usize) {
            known.marks = role.marks;
            known.role = Some(Arc::new(role));
        }
    }

    /// A role is gone.
    pub fn remove_role(&mut self, reference: &RoleRef) {
        let Some(at) = self.places.get(reference).copied() else { return };
        if let Some(known) = self.roles.get_mut(at as usize) {
            known.role = None;
            known.marks = Marks::EVERYTHING;
        }
        self.tidy(at);
    }

    /// A binding is there, or is another now.
    pub fn put_binding(&mut self, binding: RoleBinding) {
        self.remove_binding(&binding.namespace, &binding.name);
        let at = self.place(&binding.role);
        let binding = Arc::new(binding);
        let mut seen = HashSet::new();
        let all = binding.subjects.iter().enumerate();
        let first = all.filter(|(_, subject)| seen.insert((subject.is_group(), subject.called.clone())));
        let through: Arc<[Arc<Through>]> =
            first.map(|(subject, _)| Arc::new(Through { binding: binding.clone(), subject })).collect();
        for one in through.iter() {
            self.scopes.add(at, one);
        }
        if let Some(known) = self.roles.get_mut(at as usize) {
            known.subjects += through.len();
        }
        let key = (binding.namespace.clone(), binding.name.clone());
        self.bindings.insert(key, Bound { role: at, through });
        self.tidy(at);
    }

    /// A binding is gone.
    ///
    /// - `namespace`: empty for one of the whole cluster.
    pub fn remove_binding(&mut self, namespace: &str, name: &str) {
        let Some(Bound { role, through }) = self.bindings.remove(&(namespace.into(), name.into())) else {
            return;
        };
        for one in through.iter() {
            self.scopes.remove(role, one);
        }
        if let Some(known) = self.roles.get_mut(role as usize) {
            known.subjects -= through.len();
        }
        self.tidy(role);
    }

    /// Whether it is allowed.
    ///
    /// Cost: a look-up for the user and each group, and a look at each of their roles; no allocation.
    pub fn decide(&self, asked: &Attributes<'_>) -> Ruling {
        let question = Question::of(asked);
        let (mut absent, mut focus) = (false, None);
        for grants in self.held(asked.caller, question.namespace()) {
            // Many lie in the order of the table, of which a part is at hand at a time.
            let mut many = match grants.len() {
                MANY_GRANTS.. => Some(focus.get_or_insert_with(|| self.roles.focus())),
                _ => None,
            };
            for grant in grants {
                let at = grant.role as usize;
                let known = match &mut many {
                    Some(roles) => roles.get(at),
                    None => self.roles.get(at),
                };
                let Some(known) = known.filter(|known| question.may_match(known.marks)) else { continue };
                match &known.role {
                    Some(role) if role.allows(&question) => {
                        return Ruling::Allowed(self.named(asked.caller, grant.first()));
                    }
                    Some(_) => {}
                    None => absent = true,
                }
            }
        }
        Ruling::NotAllowed { absent }
    }

    /// The rules that somebody has, those of each role once. Of a namespace, or, where that is empty, of the
    /// whole cluster.
    pub fn rules<'r>(
        &'r self,
        caller: &'r Caller,
        namespace: &'r str,
    ) -> impl Iterator<Item = &'r PolicyRule> {
        let mut seen = HashSet::new();
        let grants = self.grants(caller, namespace).filter(move |grant| seen.insert(grant.role));
        let roles = grants.filter_map(move |grant| self.roles.get(grant.role as usize)?.role.as_ref());
        roles.flat_map(|role| role.rules())
    }

    /// The rules of a role; none where it is not there.
    pub fn role(&self, reference: &RoleRef) -> Option<&Arc<Role>> {
        let at = self.places.get(reference)?;
        self.roles.get(*at as usize)?.role.as_ref()
    }

    /// The roles that bindings of somebody lead to and that are not there, as errors that are told: the first
    /// of them.
    ///
    /// - `word`: how a kind of role is called there, `clusterrole`.
    pub fn absent<'w>(
        &self,
        caller: &Caller,
        namespace: &str,
        word: impl Fn(&RoleRef) -> &'w str,
    ) -> Vec<String> {
        let mut seen = HashSet::new();
        let grants = self.grants(caller, namespace).filter(|grant| seen.insert(grant.role));
        let known = grants.filter_map(|grant| self.roles.get(grant.role as usize));
        let absent = known.filter(|known| known.role.is_none()).take(ABSENT_MAX);
        let mut bytes = 0;
        let told = absent.map(|known| {
            let Known { reference, .. } = known;
            format!("{}.{GROUP} {} not found", word(reference), go_quote(&reference.name))
        });
        told.take_while(|line| {
            bytes += line.len();
            bytes <= ABSENT_BYTES_MAX
        })
        .collect()
    }

    /// What somebody has, everywhere and then in `namespace`.
    fn grants<'r>(&'r self, caller: &'r Caller, namespace: &'r str) -> impl Iterator<Item = &'r Grant> {
        self.held(caller, namespace).flatten()
    }

    /// The same in parts, none of which has something of the user and of a group, or of two groups.
    fn held<'r>(&'r self, caller: &'r Caller, namespace: &'r str) -> impl Iterator<Item = &'r [Grant]> {
        let everywhere = Some("");
        let there = Some(namespace).filter(|namespace| !namespace.is_empty());
        everywhere.into_iter().chain(there).flat_map(move |namespace| {
            let own = self.scopes.of(false, &caller.name, namespace);
            let groups = caller.groups.iter();
            own.chain(groups.flat_map(move |group| self.scopes.of(true, group, namespace)))
        })
    }

    /// `through`, or the same binding through the subject that upstream names.
    fn named(&self, caller: &Caller, through: &Arc<Through>) -> Arc<Through> {
        let first = through.first_subject(caller);
        if first == through.subject {
            return through.clone();
        }
        let key = (through.binding.namespace.clone(), through.binding.name.clone());
        // Few: no more subjects than are looked at for the first.
        let named = self
            .bindings
            .get(&key)
            .and_then(|bound| bound.through.iter().find(|through| through.subject == first));
        named.unwrap_or(through).clone()
    }

    /// The place of a role, be it there or not.
    fn place(&mut self, reference: &RoleRef) -> u32 {
        if let Some(at) = self.places.get(reference) {
            return *at;
        }
        let known = Known { reference: reference.clone(), role: None, marks: Marks::EVERYTHING, subjects: 0 };
        let at = match self.free.pop_back() {
            Some(at) => {
                self.roles.set(at as usize, known);
                at
            }
            None => {
                self.roles.push_back(known);
                u32::try_from(self.roles.len() - 1).expect("fewer roles than the store has keys for")
            }
        };
        self.places.insert(reference.clone(), at);
        at
    }

    /// Gives a place back where nothing is any more.
    fn tidy(&mut self, at: u32) {
        let Some(known) = self.roles.get(at as usize) else { return };
        if known.role.is_none() && known.subjects == 0 && self.places.get(&known.reference) == Some(&at) {
            self.places.remove(&known.reference);
            self.free.push_back(at);
        }
    }
}

#[cfg(test)]
#[path = "rights_tests.rs"]
mod tests;
