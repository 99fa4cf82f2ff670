//! Who has which role where: what a question is looked up in.
//!
//! In: bindings that come and go. Out: the roles that a user or a group has in a namespace, or everywhere.
//! A copy of the whole shares all but what changes, however much one of them has. Never: what a role allows.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use equivalent::Equivalent;

use crate::binding::Through;
use crate::limits::GRANTS_OF_BLOCK_MAX;

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
    by: By,
}

/// Bindings of one namespace, by name.
#[derive(Clone, Debug)]
enum By {
    /// As most often.
    One(Arc<Through>),
    /// Two at least.
    Several(imbl::OrdMap<Arc<str>, Arc<Through>>),
}

/// The roles of somebody in one place.
#[derive(Clone, Debug, Default)]
struct Grants {
    // By their place in the table, in blocks that are never empty, <= GRANTS_OF_BLOCK_MAX each: a change
    // copies one of them.
    blocks: Arc<Vec<Arc<Vec<Grant>>>>,
}

impl Grant {
    /// The first of the bindings, by name.
    pub fn first(&self) -> &Arc<Through> {
        match &self.by {
            By::One(only) => only,
            By::Several(all) => &all.get_min().expect("two at least").1,
        }
    }
}

impl By {
    fn add(&mut self, through: &Arc<Through>) {
        let named = |through: &Arc<Through>| (through.binding.name.clone(), through.clone());
        match self {
            By::One(only) => *self = By::Several([named(only), named(through)].into_iter().collect()),
            By::Several(all) => drop(all.insert(through.binding.name.clone(), through.clone())),
        }
    }

    /// Whether none is left.
    fn remove(&mut self, through: &Through) -> bool {
        let name = &*through.binding.name;
        match self {
            By::One(only) => *only.binding.name == *name,
            By::Several(all) => {
                all.remove(name);
                if let (1, Some((_, last))) = (all.len(), all.get_min()) {
                    *self = By::One(last.clone());
                }
                false
            }
        }
    }
}

impl Grants {
    fn add(&mut self, role: u32, through: &Arc<Through>) {
        let grant = || Grant { role, by: By::One(through.clone()) };
        let blocks = Arc::make_mut(&mut self.blocks);
        let at = block_of(blocks, role);
        let Some(block) = blocks.get_mut(at) else { return blocks.push(Arc::new(vec![grant()])) };
        let block = Arc::make_mut(block);
        match block.binary_search_by_key(&role, |grant| grant.role) {
            Ok(found) => block[found].by.add(through),
            Err(place) => block.insert(place, grant()),
        }
        if block.len() > GRANTS_OF_BLOCK_MAX {
            let behind = block.split_off(block.len() / 2);
            blocks.insert(at + 1, Arc::new(behind));
        }
    }

    fn remove(&mut self, role: u32, through: &Through) {
        let blocks = Arc::make_mut(&mut self.blocks);
        let at = block_of(blocks, role);
        let Some(block) = blocks.get_mut(at) else { return };
        let block = Arc::make_mut(block);
        if let Ok(found) = block.binary_search_by_key(&role, |grant| grant.role)
            && block[found].by.remove(through)
        {
            block.remove(found);
        }
        if block.is_empty() {
            blocks.remove(at);
        }
    }
}

/// The place of the block that a role is in, or would be.
fn block_of(blocks: &[Arc<Vec<Grant>>], role: u32) -> usize {
    blocks.partition_point(|block| block[0].role <= role).saturating_sub(1)
}

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scopes {
    // The roles of each.
    scopes: imbl::HashMap<Scope, Grants>,
}

impl Scopes {
    /// What a user or a group has in `namespace`, or, where that is empty, everywhere: block by block.
    pub fn of<'s>(
        &'s self,
        is_group: bool,
        called: &str,
        namespace: &str,
    ) -> impl Iterator<Item = &'s [Grant]> + use<'s> {
        let grants = self.scopes.get(&ScopeRef { is_group, called, namespace });
        grants.into_iter().flat_map(|grants| grants.blocks.iter().map(|block| block.as_slice()))
    }

    /// Notes that the role at `role` is had through `through`, whose subject is not there yet.
    pub fn add(&mut self, role: u32, through: &Arc<Through>) {
        self.scopes.entry(scope(through)).or_default().add(role, through);
    }

    /// Forgets it.
    pub fn remove(&mut self, role: u32, through: &Through) {
        let scope = scope(through);
        let Some(grants) = self.scopes.get_mut(&scope) else { return };
        grants.remove(role, through);
        if grants.blocks.is_empty() {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use forebay_rt::Random;
    use serde_json::json;

    use super::*;
    use crate::binding::RoleBinding;

    fn through(name: &str) -> Arc<Through> {
        let object = json!({
            "metadata": { "name": name }, "roleRef": { "kind": "ClusterRole", "name": "r" },
            "subjects": [{ "kind": "User", "name": "bob" }],
        });
        let binding = RoleBinding::read(&object, "n").expect("a binding");
        Arc::new(Through { binding: Arc::new(binding), subject: 0 })
    }

    /// The roles of bob, each with the first of its bindings.
    fn told(scopes: &Scopes) -> Vec<(u32, String)> {
        let grants = scopes.of(false, "bob", "n").flatten();
        grants.map(|grant| (grant.role, grant.first().binding.name.to_string())).collect()
    }

    #[test]
    fn many_roles_and_many_bindings_of_one_come_and_go_in_order() {
        let random = Random::seeded(5);
        let (mut scopes, mut model) =
            (Scopes::default(), BTreeMap::<u32, BTreeMap<String, Arc<Through>>>::new());
        for step in 0..6_000 {
            let grows = (step / 1_000) % 2 == 0;
            let role = random.below(if step % 2 == 0 { 1_000 } else { 3 }) as u32;
            let of_role = model.entry(role).or_default();
            let name = format!("b{}", random.below(4));
            match of_role.remove(&name) {
                Some(there) => scopes.remove(role, &there),
                None if grows => {
                    let new = through(&name);
                    scopes.add(role, &new);
                    of_role.insert(name, new);
                }
                None => {}
            }
            if model[&role].is_empty() {
                model.remove(&role);
            }
            if step % 50 == 0 {
                let want: Vec<(u32, String)> =
                    model.iter().map(|(role, by)| (*role, by.keys().next().expect("one").clone())).collect();
                assert_eq!(told(&scopes), want);
            }
        }
        for (role, by) in model {
            by.values().for_each(|there| scopes.remove(role, there));
        }
        assert_eq!((scopes.len(), told(&scopes)), (0, Vec::new()));
    }

    #[test]
    fn a_change_copies_a_part_of_what_somebody_has_however_much_that_is() {
        let mut scopes = Scopes::default();
        for at in 0..20_000 {
            // Half of them bind one role.
            scopes.add(if at % 2 == 0 { 0 } else { at }, &through(&format!("b{at}")));
        }
        for role in [0, 30_000, 10_001] {
            let (published, more) = (scopes.clone(), through("more"));
            let cost = allocation_counter::measure(|| scopes.add(role, &more));
            // A list of ten thousand has 80 KB at least.
            assert!(cost.bytes_total < 40_000, "{cost:?}");
            assert_eq!(told(&published).len(), told(&scopes).len() - usize::from(role == 30_000));
        }
    }
}
