//! Which services select a pod.
//!
//! In: services, as they are told of. Out: the names of those that select a pod. Each is found under one pair
//! of its selector, that which the fewest share: a pod is compared with few of its namespace. Owner: a
//! controller.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use forebay_object::Object;

use super::view::Service;

/// See the module's doc.
#[derive(Default)]
pub struct ServiceIndex {
    // namespace -> its services that select pods
    namespaces: HashMap<String, InNamespace>,
}

#[derive(Default)]
struct InNamespace {
    // service -> what it selects by
    selectors: BTreeMap<String, Selector>,
    // label -> value -> services that are found under it
    found: HashMap<String, HashMap<String, BTreeSet<String>>>,
}

struct Selector {
    pairs: BTreeMap<String, String>,
    /// The label under which it is found.
    under: String,
}

impl ServiceIndex {
    /// Takes in a service as it is now.
    pub fn put(&mut self, namespace: &str, name: &str, service: Service) {
        self.remove(namespace, name);
        if !service.selects() {
            return;
        }
        let pairs = service.spec.selector;
        let services = self.namespaces.entry(namespace.to_string()).or_default();
        let shared = |(label, value): &(&String, &String)| {
            services.found.get(*label).and_then(|values| values.get(*value)).map_or(0, BTreeSet::len)
        };
        let Some((label, value)) = pairs.iter().min_by_key(shared) else { return };
        let (under, value) = (label.clone(), value.clone());
        let values = services.found.entry(under.clone()).or_default();
        values.entry(value).or_default().insert(name.to_string());
        services.selectors.insert(name.to_string(), Selector { pairs, under });
    }

    pub fn remove(&mut self, namespace: &str, name: &str) {
        let Some(services) = self.namespaces.get_mut(namespace) else { return };
        let Some(Selector { pairs, under }) = services.selectors.remove(name) else { return };
        if let (Some(values), Some(value)) = (services.found.get_mut(&under), pairs.get(&under)) {
            if let Some(names) = values.get_mut(value) {
                names.remove(name);
                if names.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                services.found.remove(&under);
            }
        }
        if services.selectors.is_empty() {
            self.namespaces.remove(namespace);
        }
    }

    /// The services that select `pod`, each once.
    pub fn of<'i>(&'i self, pod: &'i Object) -> impl Iterator<Item = &'i str> {
        let services = self.namespaces.get(pod.namespace());
        services.into_iter().flat_map(move |services| {
            pod.labels().flat_map(move |(label, value)| {
                let names = services.found.get(label).and_then(|values| values.get(value));
                names.into_iter().flatten().map(String::as_str).filter(move |name| {
                    services.selectors.get(*name).is_some_and(|selector| selects(&selector.pairs, pod))
                })
            })
        })
    }
}

/// Whether a pod has every pair of a selector among its labels.
pub fn selects(selector: &BTreeMap<String, String>, pod: &Object) -> bool {
    let is_asked = |(label, value): &(&str, &str)| selector.get(*label).is_some_and(|asked| asked == value);
    pod.labels().filter(is_asked).count() == selector.len()
}
