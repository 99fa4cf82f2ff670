//! An index by a function of the objects, as client-go's `Indexer` has them.
//!
//! In: a function from an object to its values. Out: the objects with a value. It catches up when it is
//! asked, so that an answer is of the state that the informer shows by then, and costs nothing while nobody
//! asks. Never: decodes an object but as the function does, holds one: it has names and values.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use forebay_view::Handle;

use crate::informer::Informer;
use crate::subscription::{Notice, Subscription};

/// See the module's doc.
pub struct Index<K> {
    inner: Mutex<Inner<K>>,
}

/// Namespace and name.
type Place = (String, String);
type Values<K> = dyn Fn(&Handle<K>) -> Vec<String> + Send;

struct Inner<K> {
    subscription: Subscription<K>,
    values: Box<Values<K>>,
    // Where a value is found.
    found: HashMap<String, BTreeSet<Place>>,
    // The values of each object: another one of the same place may have others.
    of: HashMap<Place, Vec<String>>,
}

impl<K> Informer<K> {
    /// An index by the values that `values` finds in an object, none or several.
    pub fn index_by(&self, values: impl Fn(&Handle<K>) -> Vec<String> + Send + 'static) -> Index<K> {
        let (subscription, values) = (self.subscribe(), Box::new(values));
        Index { inner: Mutex::new(Inner { subscription, values, found: HashMap::new(), of: HashMap::new() }) }
    }
}

impl<K> Index<K> {
    /// The objects with `value`, by namespace and name. O(what has changed since the last call + what is
    /// found).
    pub fn get(&self, value: &str) -> Vec<Handle<K>> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.catch_up();
        let found = inner.found.get(value).into_iter().flatten();
        found.filter_map(|(namespace, name)| inner.subscription.told_of(namespace, name)).collect()
    }

    /// Every value that some object has, in no order.
    pub fn values(&self) -> Vec<String> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.catch_up();
        inner.found.keys().cloned().collect()
    }
}

impl<K> Inner<K> {
    fn catch_up(&mut self) {
        while let Some(notice) = self.subscription.try_next() {
            match notice {
                Notice::Added(new) | Notice::Updated { new, .. } => self.put(&new),
                Notice::Deleted(gone) => self.drop_values(&place(&gone)),
                Notice::LetGo { namespace: None } => (self.found, self.of) = Default::default(),
                Notice::LetGo { namespace: Some(namespace) } => self.let_go(&namespace),
                Notice::Synced | Notice::Relisted { .. } | Notice::Resync(_) | Notice::Ended => {}
            }
        }
    }

    fn put(&mut self, object: &Handle<K>) {
        let place = place(object);
        self.drop_values(&place);
        let values = (self.values)(object);
        for value in &values {
            self.found.entry(value.clone()).or_default().insert(place.clone());
        }
        if !values.is_empty() {
            self.of.insert(place, values);
        }
    }

    /// Nothing is known of a namespace any more.
    fn let_go(&mut self, namespace: &str) {
        let places: Vec<Place> = self.of.keys().filter(|(of, _)| of == namespace).cloned().collect();
        places.iter().for_each(|place| self.drop_values(place));
    }

    fn drop_values(&mut self, place: &Place) {
        for value in self.of.remove(place).unwrap_or_default() {
            if let Some(found) = self.found.get_mut(&value) {
                found.remove(place);
                if found.is_empty() {
                    self.found.remove(&value);
                }
            }
        }
    }
}

fn place<K>(object: &Handle<K>) -> Place {
    (object.namespace().to_owned(), object.name().to_owned())
}
