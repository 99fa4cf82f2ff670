//! Replaces all objects by smaller ones at the same revisions: a part of each object, because the whole of
//! them takes too much memory.
//!
//! In: a state, and what makes the other values. Out: the same state with less in it, at rest; its window
//! likewise. Never: tells anybody, because nothing happened; holds more than a page of it in plain form.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_backend::Rewrite;
use forebay_object::seal::Sealer;
use forebay_object::{Object, Scratch};

use super::{Ingest, State};
use crate::limits;
use crate::seal::put_in_place;

impl State {
    /// Bytes of the objects that the state and its window hold at rest. Loose ones are not counted; their
    /// room is bounded by itself.
    pub(super) fn held_at_rest_bytes(&mut self) -> usize {
        let loose = self.loose_bytes();
        (self.snapshot.bytes() + self.window.usage().bytes).saturating_sub(loose)
    }
}

impl Ingest {
    /// Has each object rewritten, a page at a time, from the first key to the last.
    pub(super) async fn rewrite(&self, state: &mut State, rewrite: &Rewrite) {
        let mut at = Key::from("");
        loop {
            let (page, next) = page(state, &at);
            if page.is_empty() {
                break;
            }
            let rewrite = rewrite.clone();
            let made = forebay_rt::blocking(move || made(page, &rewrite)).await;
            let made = made.unwrap_or_else(|lost| panic!("a page was lost: {lost}"));
            let decoded: Vec<_> = made
                .into_iter()
                .filter_map(|(old, value)| {
                    Some((self.decode(state, old.key().clone(), old.revision(), &value)?, old))
                })
                .collect();
            let recent = self.inflated.clone();
            let sealed = forebay_rt::blocking(move || {
                let (new, old): (Vec<_>, Vec<_>) = decoded.into_iter().unzip();
                let sealed = Sealer::new(recent).seal(&new);
                old.into_iter().zip(sealed).collect::<Vec<(Arc<Object>, Arc<Object>)>>()
            });
            let sealed = sealed.await.unwrap_or_else(|lost| panic!("a page was lost: {lost}"));
            state.renewed |= put_in_place(sealed, &mut state.window, &mut state.snapshot);
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        self.inflated.clear();
        self.settle(state);
    }
}

/// The objects from `at` on, as many as may be in plain form at a time, and the key at which the next ones
/// begin.
pub(super) fn page(state: &State, at: &Key) -> (Vec<Arc<Object>>, Option<Key>) {
    let (mut page, mut bytes) = (Vec::new(), 0);
    for object in state.snapshot.around(at).0 {
        if bytes >= limits::FILL_BYTES || page.len() >= limits::FILL_PAGE {
            return (page, Some(object.key().clone()));
        }
        bytes += object.body_len();
        page.push(object.clone());
    }
    (page, None)
}

/// Each object of the page with the value that replaces it.
fn made(page: Vec<Arc<Object>>, rewrite: &Rewrite) -> Vec<(Arc<Object>, Vec<u8>)> {
    let mut scratch = Scratch::default();
    let made = page.into_iter().filter_map(|old| {
        let value = rewrite.apply(&scratch.try_bytes(&old).ok()?)?;
        Some((old, value))
    });
    made.collect()
}
