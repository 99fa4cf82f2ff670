//! Takes in values that could not be decrypted, once they can be.
//!
//! Nothing was put meanwhile, so there is no change to tell: the state shows them from now on, as of the
//! revision that put them. Whoever watched them was told to end when they were put, and nobody was let in
//! since; a follower goes on with the differences from what it was told.
//!
//! In: what `look.rs` has found. Out: the same state with these objects in it. Never: an event; an object
//! that was put again, or deleted, since it was looked for.

use std::sync::Arc;

use forebay_object::Object;

use super::{Ingest, Made, State};
use crate::seal::Resting;

impl Ingest {
    pub(super) async fn reveal(&self, state: &mut State) {
        let mut found = self.commands.take_found();
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        let mut objects: Vec<Arc<Object>> = Vec::with_capacity(found.len());
        let mut is_other = false;
        for (key, value) in found {
            let noted = state.snapshot.unread().undecrypted_at(&key);
            if noted.is_none_or(|noted| noted.revision != value.revision) {
                continue;
            }
            match self.read(state, &key, value.revision, &value.value) {
                Made::Object(object) => objects.push(object),
                // It could be decrypted, and is no object: as if it had been put now.
                Made::Malformed => {
                    state.snapshot.remove(&key);
                    is_other = true;
                }
                Made::Undecrypted(what) => state.snapshot.note_undecrypted(key, what),
            }
        }
        if objects.is_empty() && !is_other {
            return;
        }
        tracing::info!(
            resource = self.resource.name,
            objects = objects.len(),
            "values can be decrypted again"
        );
        // Without an event nobody would put them at rest later.
        let mut resting = Resting::new(self.inflated.clone());
        let mut rested = resting.put(objects, None).await;
        while let Some(more) = resting.next().await {
            rested.extend(more);
        }
        for object in rested {
            state.snapshot.put(object);
        }
        state.revealed += 1;
        state.renewed = true;
    }
}
