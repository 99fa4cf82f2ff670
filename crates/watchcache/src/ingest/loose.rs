//! Keeps loose bytes within the server's budget: before changes are taken in the task waits for room, and
//! seals objects meanwhile.
//!
//! In: changes, in parts. Out: nothing; the state has less behind it. Never: waits longer than
//! [`limits::ROOM_WAIT`].

use std::pin::pin;

use forebay_apimachinery::Revision;

use super::{Ingest, State};
use crate::counters::Counters;
use crate::limits;
use crate::room::Share;
use crate::seal::Haste;

impl State {
    /// Bytes of objects of the state and of the window that are in plain form and not at rest yet.
    pub(super) fn loose_bytes(&mut self) -> usize {
        self.snapshot.loose_bytes() + self.sealing.loose_bytes(&self.window)
    }

    /// Whether there are objects to seal once somebody is short of room.
    pub(super) fn may_hasten(&mut self) -> bool {
        !self.through && self.sealing.is_idle() && self.loose_bytes() > 0
    }
}

impl Ingest {
    /// Gives back the room that is no longer needed.
    pub(super) fn settle(&self, state: &mut State) {
        let loose = state.loose_bytes();
        self.counters.note_loose(loose);
        if let Some(share) = &mut state.share {
            share.shrink_to(loose);
        }
    }

    /// How soon loose objects are to be sealed.
    pub(super) fn haste(&self, state: &mut State) -> Haste {
        let (room, loose) = (&self.resource.room, state.loose_bytes());
        let is_short = room.is_short() && loose > 0;
        let is_pressed = room.is_pressed() && loose >= limits::HASTE_BYTES_MIN;
        if is_short || is_pressed { Haste::Now } else { Haste::None }
    }

    /// Called between two parts: where there is little room, the sealing threads are given more work before
    /// more is taken in.
    pub(super) fn go_on_in_haste(&self, state: &mut State) {
        let has_time = state.sealing.is_idle() || state.sealing.is_finished();
        if has_time && !state.through && self.haste(state) == Haste::Now {
            self.seal(state, Haste::Now);
        }
    }

    /// Takes in objects that were sealed, and begins to seal more.
    pub(super) fn seal(&self, state: &mut State, haste: Haste) {
        let now_ms = self.clock.unix_ms();
        state.renewed |= state.sealing.go_on(&mut state.window, &mut state.snapshot, haste, now_ms);
        state.through = haste == Haste::Now && state.sealing.is_idle();
        state.seal_at = self.clock.now() + self.resource.pace.period;
        self.settle(state);
    }

    /// Waits until there is room for so much more.
    pub(super) async fn make_room(&self, state: &mut State, bytes: usize, shown_from: Option<Revision>) {
        self.settle(state);
        let held = state.share.as_ref().map_or(0, Share::bytes);
        let missing = (state.loose_bytes() + bytes).saturating_sub(held);
        if missing == 0 {
            return;
        }
        let mut more = pin!(self.room_for(missing));
        let more = loop {
            tokio::select! {
                biased;
                more = &mut more => break more,
                () = state.sealing.finished() => {}
                () = self.resource.room.short(), if !state.through && state.sealing.is_idle() => {}
            }
            self.seal(state, Haste::Now);
            // The published snapshot still has the plain objects: publish the sealed ones, so that the memory
            // is free.
            self.show(state, shown_from);
        };
        match (&mut state.share, more) {
            (Some(share), Some(more)) => share.add(more),
            (share @ None, more) => *share = more,
            (Some(_), None) => {}
        }
    }

    /// Takes room for `bytes`; `None` when there was none for too long. Cancel-safe.
    pub(super) async fn room_for(&self, bytes: usize) -> Option<Share> {
        tokio::select! {
            biased;
            share = self.resource.room.take(bytes) => share,
            () = self.clock.sleep(self.resource.room.wait()) => {
                Counters::add(&self.counters.rooms_overdrawn, 1);
                None
            }
        }
    }
}
