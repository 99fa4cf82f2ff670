//! Objects as entries of trees: by their key, and by a field's value.

use std::cmp::Ordering;
use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_object::Object;

use crate::tree::Entry;

/// An object, in the order of its value of a field of the layout, then of its key. No value is as an empty one.
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

/// By storage key; weighs what its bytes are in plain form.
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
