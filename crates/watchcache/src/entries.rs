//! Objects as entries of trees: ordered by their key, or by a field's value.

use std::cmp::Ordering;
use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_object::Object;

use crate::tree::Entry;

/// An object in the index of a field: ordered by the field's value, then by the object's key. An absent value
/// counts as an empty one.
#[derive(Clone, Debug)]
pub(crate) struct ByField {
    pub(crate) object: Arc<Object>,
    pub(crate) field: usize,
}

impl ByField {
    fn place(&self) -> (&str, &Key) {
        (self.object.field(self.field).unwrap_or(""), self.object.key())
    }
}

/// Ordered by storage key. Its weight is the number of its plain bytes.
impl Entry for Arc<Object> {
    type Key = Key;

    fn to_key(&self) -> Key {
        self.key().clone()
    }

    fn cmp_key(&self, key: &Key) -> Ordering {
        self.key().cmp(key)
    }

    fn cmp_entry(&self, other: &Arc<Object>) -> Ordering {
        self.key().cmp(other.key())
    }

    fn weight(&self) -> usize {
        self.body_len()
    }
}

impl Entry for ByField {
    type Key = (Box<str>, Key);

    fn to_key(&self) -> (Box<str>, Key) {
        let (value, key) = self.place();
        (value.into(), key.clone())
    }

    fn cmp_key(&self, (value, key): &(Box<str>, Key)) -> Ordering {
        self.place().cmp(&(value, key))
    }

    fn cmp_entry(&self, other: &ByField) -> Ordering {
        self.place().cmp(&other.place())
    }
}
