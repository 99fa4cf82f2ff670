//! Policies with the bindings that put them in force.
//!
//! In: policies and bindings as they come and go. Out: hooks, in the order of the policies' names. Never: a
//! policy that no binding names; compiles one again that is as it was.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::binding::Binding;
use crate::policy::Policy;

/// A policy and its bindings, in the order of their names.
#[derive(Clone)]
pub struct Hook {
    pub policy: Arc<Policy>,
    pub bindings: Vec<Arc<Binding>>,
}

/// What there is. A change costs what it changes; [`Hooks::in_force`] all of it.
#[derive(Default)]
pub struct Hooks {
    // By name.
    policies: BTreeMap<Arc<str>, Arc<Policy>>,
    bindings: BTreeMap<Arc<str>, Arc<Binding>>,
}

impl Hooks {
    /// The policy is there, or is there now as it is.
    pub fn put_policy(&mut self, policy: Policy) {
        self.policies.insert(policy.name.clone(), Arc::new(policy));
    }

    pub fn remove_policy(&mut self, name: &str) {
        self.policies.remove(name);
    }

    /// The binding is there, or is there now as it is.
    pub fn put_binding(&mut self, binding: Binding) {
        self.bindings.insert(binding.name.clone(), Arc::new(binding));
    }

    pub fn remove_binding(&mut self, name: &str) {
        self.bindings.remove(name);
    }

    /// What is in force.
    pub fn in_force(&self) -> Vec<Hook> {
        let mut bound: BTreeMap<&str, Vec<Arc<Binding>>> = BTreeMap::new();
        for binding in self.bindings.values() {
            bound.entry(&binding.policy).or_default().push(binding.clone());
        }
        let hooks = self.policies.values().filter_map(|policy| {
            let bindings = bound.remove(&*policy.name)?;
            Some(Hook { policy: policy.clone(), bindings })
        });
        hooks.collect()
    }
}
