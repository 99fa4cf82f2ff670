//! Objects that another server sent packed: neighbours in the deflated text that they came in.
//!
//! The first state keeps them as they came, unless one of them is there already. Of a later state only the
//! objects that differ are taken, one by one and in plain form; the others are not even read.
//!
//! In: [`Packed`]s. Out: objects of the state. Never: deflates.

use std::sync::Arc;

use forebay_object::{Came, Object, Packed, ScanError};

use super::told::{Cache, First};
use super::{Ingest, State};
use crate::limits;

impl Ingest {
    /// Puts objects of the first state in their places.
    pub(super) async fn take_first_packed(&self, state: &mut State, first: &mut First, packed: &Packed) {
        let is_held = |came: &Came| state.snapshot.get(&came.key).is_some();
        if !packed.objects().iter().any(is_held) {
            let (layout, recent) = (&self.resource.layout, self.inflated.clone());
            if let Ok(objects) = packed.at_rest(layout, recent, &mut state.interner) {
                objects.into_iter().for_each(|object| drop(state.snapshot.place(Arc::new(object))));
                return;
            }
        }
        for came in packed.objects() {
            if first.is_empty() {
                first.share = self.room_for(limits::FILL_BYTES).await;
            }
            if let Some(object) = self.unpack(state, packed, came) {
                self.add_first(state, first, object).await;
            }
        }
    }

    /// Takes objects of a state that arrives.
    pub(super) async fn merge_packed(&self, cache: &mut Cache, packed: &Packed) {
        self.make_room(&mut cache.state, packed.plain_len(), None).await;
        for came in packed.objects() {
            let make = |state: &mut State| self.unpack(state, packed, came);
            self.merge(cache, came.key.clone(), came.revision, Some(make));
        }
        self.settle(&mut cache.state);
        self.go_on_in_haste(&mut cache.state);
    }

    fn unpack(&self, state: &mut State, packed: &Packed, came: &Came) -> Option<Arc<Object>> {
        let made: Result<Object, ScanError> = packed.plain(&self.resource.layout, came, &mut state.interner);
        self.readable(state, came.key.clone(), came.revision, made)
    }
}
