//! Puts blocks elsewhere than in memory, because all of them take too much.
//!
//! In: a state, where to put its blocks, and how much may be held. Out: the same state with less in memory;
//! its window likewise. Never: tells anybody, because nothing happened; puts elsewhere what is not at rest;
//! waits for a disk in the task.

use std::sync::Arc;

use forebay_apimachinery::Key;
use forebay_object::seal::Spiller;
use forebay_object::{Object, Spill};

use super::rewrite::page;
use super::{Ingest, State};
use crate::seal::put_in_place;

impl Ingest {
    /// Puts blocks to `to`, from the first key to the last, until no more than `goal_bytes` are in memory, or
    /// all blocks were put.
    pub(super) async fn spill(&self, state: &mut State, to: Arc<dyn Spill>, goal_bytes: usize) {
        let (mut at, mut spiller) = (Key::from(""), Spiller::new(to, self.inflated.clone()));
        while state.held_at_rest_bytes() > goal_bytes {
            let (page, next) = page(state, &at);
            let spilled = forebay_rt::blocking(move || {
                let put = |old: Arc<Object>| spiller.spill(&old).map(|new| (old, new));
                let spilled: Vec<_> = page.into_iter().filter_map(put).collect();
                (spilled, spiller)
            });
            let (spilled, more) = spilled.await.unwrap_or_else(|lost| panic!("a page was lost: {lost}"));
            spiller = more;
            state.renewed |= put_in_place(spilled, &mut state.window, &mut state.snapshot);
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        self.settle(state);
    }
}
