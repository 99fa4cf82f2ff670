//! The budget for loose bytes: those of objects that the caches of a server hold in plain form and have not
//! put at rest yet.
//!
//! A cache takes room for objects before it takes them in, and gives it back once they are sealed, dropped,
//! or found to be better left plain. At the limit a cache waits, and seals its objects meanwhile: so loose
//! bytes are bounded, however fast changes come. A cache that waits can always free the room that it holds,
//! so no two wait for each other.
//!
//! The budget for protobuf messages is kept here, too. A message for which there is no room is not kept, and
//! nobody waits.
//!
//! In: bytes. Out: shares. Never: waits longer than its limit. Owner: whoever puts the caches of a server
//! together.

use std::sync::Arc;

use forebay_object::MessageRoom;
use forebay_rt::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::limits;

const KIB: usize = 1 << 10;

/// See the module's doc.
#[derive(Debug)]
pub struct Room {
    // A permit for each KiB.
    free: Arc<Semaphore>,
    kib: usize,
    // How long a cache waits for room.
    wait: Duration,
    // Caches that wait.
    waiting: watch::Sender<usize>,
    messages: Arc<MessageRoom>,
}

/// The room that one cache has taken. Dropping it gives the room back.
#[derive(Debug)]
pub(crate) struct Share(OwnedSemaphorePermit);

impl Room {
    pub fn new(bytes: usize) -> Room {
        Room::waited_for(bytes, limits::ROOM_WAIT)
    }

    /// - `wait`: how long a cache waits for room before it goes on without.
    pub(crate) fn waited_for(bytes: usize, wait: Duration) -> Room {
        let kib = bytes.div_ceil(KIB).min(u32::MAX as usize >> 3);
        let (free, waiting) = (Arc::new(Semaphore::new(kib)), watch::Sender::new(0));
        Room { free, kib, wait, waiting, messages: Arc::default() }
    }

    /// The budget for the protobuf messages of all caches.
    pub fn messages(&self) -> &Arc<MessageRoom> {
        &self.messages
    }

    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// Bytes of the room that are taken.
    pub fn taken_bytes(&self) -> usize {
        (self.kib - self.free.available_permits()) * KIB
    }

    /// Whether more than half of the room is taken.
    pub(crate) fn is_pressed(&self) -> bool {
        self.taken_bytes() > self.kib / 2 * KIB
    }

    /// Whether a cache waits for room.
    pub(crate) fn is_short(&self) -> bool {
        *self.waiting.borrow() > 0
    }

    /// Waits until a cache waits for room. Cancel-safe.
    pub(crate) async fn short(&self) {
        // The channel cannot be closed, as this holds its sender.
        let _waiting = self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await.map(drop);
    }

    /// Takes `bytes` of the room if they are free now.
    pub(crate) fn try_take(&self, bytes: usize) -> Option<Share> {
        self.free.clone().try_acquire_many_owned(self.permits(bytes)).ok().map(Share)
    }

    /// Takes `bytes` of the room, or all of it when that is less, once they are free. Served in the order of
    /// asking. Cancel-safe. Never `None`, because the semaphore is not closed.
    pub(crate) async fn take(&self, bytes: usize) -> Option<Share> {
        if let Some(share) = self.try_take(bytes) {
            return Some(share);
        }
        let _waits = Waits::new(&self.waiting);
        self.free.clone().acquire_many_owned(self.permits(bytes)).await.ok().map(Share)
    }

    fn permits(&self, bytes: usize) -> u32 {
        bytes.div_ceil(KIB).min(self.kib) as u32
    }
}

impl Share {
    pub(crate) fn bytes(&self) -> usize {
        self.0.num_permits() * KIB
    }

    pub(crate) fn add(&mut self, other: Share) {
        self.0.merge(other.0);
    }

    /// Gives back what is more than `bytes`.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let more = self.0.num_permits().saturating_sub(bytes.div_ceil(KIB));
        drop(self.0.split(more));
    }
}

/// Counts a cache as waiting until this is dropped.
struct Waits<'a>(&'a watch::Sender<usize>);

impl<'a> Waits<'a> {
    fn new(waiting: &'a watch::Sender<usize>) -> Waits<'a> {
        waiting.send_modify(|waiting| *waiting += 1);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_taken_is_never_more_than_there_is_and_comes_back() {
        let room = Room::new(10 * KIB);
        let mut held = room.try_take(4 * KIB - 1).expect("free");
        assert_eq!((held.bytes(), room.taken_bytes(), room.is_pressed()), (4 * KIB, 4 * KIB, false));
        let other = room.try_take(6 * KIB).expect("free");
        assert!(room.try_take(1).is_none() && room.is_pressed());
        drop(other);
        assert!(!room.is_pressed());
        held.add(room.try_take(2 * KIB).expect("free"));
        held.shrink_to(KIB + 1);
        assert_eq!((held.bytes(), room.taken_bytes()), (2 * KIB, 2 * KIB));
        held.shrink_to(5 * KIB);
        assert_eq!(held.bytes(), 2 * KIB, "it does not grow");
        drop(held);
        let all = room.take(100 * KIB).await.expect("more than there is: all of it");
        assert_eq!((all.bytes(), room.taken_bytes()), (10 * KIB, 10 * KIB));
    }

    #[tokio::test]
    async fn who_waits_is_seen_and_served_in_order() {
        let room = Room::new(2 * KIB);
        let held = room.try_take(2 * KIB).expect("free");
        let mut first = Box::pin(room.take(2 * KIB));
        let mut second = Box::pin(room.take(KIB));
        let now = std::future::ready(());
        tokio::select! { biased; _ = &mut first => panic!("full"), _ = &mut second => panic!("full"), () = now => {} }
        assert!(room.is_short());
        room.short().await;
        drop(held);
        let now = std::future::ready(());
        let share = tokio::select! { biased; _ = &mut second => panic!("not yet"), share = &mut first => share, () = now => panic!("free") };
        drop(share);
        assert!(second.await.is_some());
        assert!(!room.is_short());
    }

    #[tokio::test]
    async fn who_gives_up_waiting_holds_nobody_up() {
        let room = Room::new(2 * KIB);
        let held = room.try_take(KIB).expect("free");
        let mut large = Box::pin(room.take(2 * KIB));
        tokio::select! { biased; _ = &mut large => panic!("full"), () = std::future::ready(()) => {} }
        drop(large);
        assert!(!room.is_short() && room.try_take(KIB).is_some());
        drop(held);
        assert_eq!(room.taken_bytes(), 0);
    }
}
