//! Makes objects of stored values.
//!
//! In: a value of the store. Out: an object, or that there is none: for good, or for now. Each value that
//! cannot be read is counted, and told of by key in the log. Never: takes one that cannot be decrypted for
//! one that is malformed.

use std::sync::Arc;

use forebay_apimachinery::{Key, Revision};
use forebay_backend::why_undecrypted;
use forebay_object::{Object, ScanError};

use super::{Ingest, State};
use crate::counters::Counters;
use crate::unreadable::Undecrypted;

/// What was made of a value.
pub(super) enum Made {
    Object(Arc<Object>),
    /// Nobody can read it.
    Malformed,
    /// It may be read later.
    Undecrypted(Undecrypted),
}

impl Ingest {
    /// The object, where one that cannot be read is none.
    pub(super) fn decode(
        &self,
        state: &mut State,
        key: Key,
        revision: Revision,
        value: &[u8],
    ) -> Option<Arc<Object>> {
        match self.read(state, &key, revision, value) {
            Made::Object(object) => Some(object),
            Made::Malformed => None,
            Made::Undecrypted(what) => {
                state.snapshot.note_undecrypted(key, what);
                None
            }
        }
    }

    /// What `value` is. A malformed one is noted; what becomes of one that cannot be decrypted is the
    /// caller's.
    pub(super) fn read(&self, state: &mut State, key: &Key, revision: Revision, value: &[u8]) -> Made {
        let known = state.known.as_ref().and_then(|known| known.get(key));
        if let Some(known) = known.filter(|known| known.revision() == revision) {
            return Made::Object(known.clone());
        }
        if let Some(why) = why_undecrypted(value) {
            Counters::add(&self.counters.decode_errors, 1);
            tracing::error!(resource = self.resource.name, %key, %revision, %why, "a stored value cannot be decrypted");
            return Made::Undecrypted(Undecrypted::new(revision, &why));
        }
        let made = Object::decode(&self.resource.layout, key.clone(), revision, value, &mut state.interner);
        self.readable(state, key.clone(), revision, made).map_or(Made::Malformed, Made::Object)
    }

    /// The object, if it could be made; otherwise that is reported.
    pub(super) fn readable(
        &self,
        state: &mut State,
        key: Key,
        revision: Revision,
        made: Result<Object, ScanError>,
    ) -> Option<Arc<Object>> {
        match made {
            Ok(object) => Some(Arc::new(object)),
            Err(error) => {
                Counters::add(&self.counters.decode_errors, 1);
                tracing::error!(resource = self.resource.name, %key, %revision, %error, "a stored value cannot be read");
                state.snapshot.note_unreadable(key);
                None
            }
        }
    }
}
