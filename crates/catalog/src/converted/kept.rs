//! Single objects that were converted a moment ago.
//!
//! In: an object as it is stored, and what was made of it. Out: the latter, for the same object. Never: more
//! than [`CONVERTED_KEPT_BYTES`] of them, but one.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_object::Object;

use crate::limits::CONVERTED_KEPT_BYTES;

/// An object at a revision. Where a store was put back there may be another by that name: its text counts.
type Identity = (Key, Revision, u64);

/// See the module's doc.
#[derive(Default)]
pub(super) struct KeptObjects {
    objects: HashMap<Identity, Arc<Object>>,
    // Oldest first: the same as in `objects`.
    order: VecDeque<Identity>,
    bytes: usize,
}

/// What tells its text from another's.
pub(super) fn identity(object: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(&object.body());
    hasher.finish()
}

fn bytes_of(object: &Object) -> usize {
    object.body_len() + object.header_bytes()
}

impl KeptObjects {
    pub(super) fn get(&self, object: &Object, identity: u64) -> Option<Arc<Object>> {
        self.objects.get(&(object.key().clone(), object.revision(), identity)).cloned()
    }

    /// Keeps `shown`, which was made of `object`.
    pub(super) fn put(&mut self, object: &Object, identity: u64, shown: Arc<Object>) {
        let key = (object.key().clone(), object.revision(), identity);
        let bytes = bytes_of(&shown);
        if self.objects.insert(key.clone(), shown).is_some() {
            return;
        }
        self.bytes += bytes;
        self.order.push_back(key);
        while self.bytes > CONVERTED_KEPT_BYTES && self.order.len() > 1 {
            let gone = self.order.pop_front().and_then(|oldest| self.objects.remove(&oldest));
            self.bytes -= gone.map_or(0, |gone| bytes_of(&gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use forebay_object::{Form, Interner, Layout, Scope};

    use super::*;

    fn object(name: &str, revision: u64, filler: usize) -> Arc<Object> {
        let layout = Layout {
            prefix_len: "/tabs/".len(),
            scope: Scope::Cluster,
            form: Form::Whole,
            fields: Vec::new(),
        };
        let body = format!(
            "{{\"apiVersion\":\"g.io/v1\",\"kind\":\"Tab\",\"metadata\":{{\"name\":\"{name}\"}},\"x\":\"{}\"}}",
            "x".repeat(filler)
        );
        let key = Key::from(format!("/tabs/{name}"));
        let revision = Revision::new(revision).expect("not 0");
        let decoded = Object::decode(&layout, key, revision, body.as_bytes(), &mut Interner::default());
        Arc::new(decoded.expect("an object"))
    }

    #[test]
    fn what_was_made_of_an_object_is_that_of_its_revision_and_text() {
        let (one, mut kept) = (object("a", 5, 10), KeptObjects::default());
        kept.put(&one, identity(&one), one.clone());
        let found = |of: &Object| kept.get(of, identity(of)).is_some();
        assert!(found(&object("a", 5, 10)));
        assert!(!found(&object("a", 6, 10)) && !found(&object("b", 5, 10)) && !found(&object("a", 5, 11)));
    }

    #[test]
    fn the_first_goes_first_and_the_last_stays() {
        let mut kept = KeptObjects::default();
        for number in 1..=10 {
            let one = object("a", number, CONVERTED_KEPT_BYTES / 3);
            kept.put(&one, identity(&one), one.clone());
            assert!(kept.objects.len() <= 2 && kept.objects.len() == kept.order.len());
        }
        let large = object("b", 11, 2 * CONVERTED_KEPT_BYTES);
        kept.put(&large, identity(&large), large.clone());
        assert_eq!(kept.objects.len(), 1);
        assert!(kept.get(&large, identity(&large)).is_some());
    }
}
