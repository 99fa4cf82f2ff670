//! The protobuf messages of an object. Each is made when it is first asked for, shared by all who ask, and
//! dropped when nobody has asked for a while.
//!
//! Owner: the object. The first who asks makes the message while the others wait for it. The lock is held to
//! find the message's slot, never while it is made. A message for which there is no room is not kept: it
//! lives as long as those who asked hold it. Never: knows what a message says.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many more bytes of messages may be kept, of all resources of a server. Without a limit until one is
/// set.
#[derive(Debug)]
pub struct MessageRoom(AtomicU64);

impl Default for MessageRoom {
    fn default() -> MessageRoom {
        MessageRoom(AtomicU64::new(u64::MAX))
    }
}

impl MessageRoom {
    /// Sets how many more bytes may be kept from now on. Whoever sets it has counted the messages that are
    /// kept already, so a message that is dropped gives nothing back here.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    fn take(&self, bytes: u64) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes)).is_ok()
    }
}

/// Bytes of the messages of one resource that are in memory. Shared by all of them.
#[derive(Debug, Default)]
pub struct MessageBytes {
    bytes: AtomicU64,
    room: Arc<MessageRoom>,
}

impl MessageBytes {
    /// - `room`: how much more may be kept, for messages that are kept only where there is room.
    pub fn within(room: Arc<MessageRoom>) -> MessageBytes {
        MessageBytes { bytes: AtomicU64::new(0), room }
    }

    pub fn get(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// Whether an object keeps a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// In any case: many will ask for it soon, as for an event's.
    Always,
    /// While there is room: it is one of a whole state.
    IfRoom,
}

/// An object's message. Cheap to clone: all clones share it.
#[derive(Clone, Debug)]
pub struct Message(Arc<Made>);

#[derive(Debug)]
struct Made {
    // The type of the message, in the schema's table.
    ty: u16,
    // Whether it was asked for since unused messages were last dropped.
    used: AtomicBool,
    bytes: OnceLock<Box<[u8]>>,
    counted: Arc<MessageBytes>,
}

/// Memory that a message takes besides its bytes: itself, its counts, and its slot in the object.
const OVERHEAD_BYTES: usize = size_of::<Made>() + 2 * size_of::<usize>() + size_of::<Message>();

impl Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes.get().map_or(&[], |bytes| bytes)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.get() {
            self.counted.bytes.fetch_sub((bytes.len() + OVERHEAD_BYTES) as u64, Ordering::Relaxed);
        }
    }
}

/// An object's messages: as the type that it is stored as, as other types that it is served as, and of its
/// metadata alone.
#[derive(Debug, Default)]
pub(crate) struct Messages(Mutex<Option<Box<Held>>>);

/// Behind a pointer: most objects have none.
#[derive(Debug, Default)]
struct Held(Vec<Message>);

impl Messages {
    /// The message of type `ty`, which `make` makes unless it is there.
    pub(crate) fn get_or_make(
        &self,
        ty: u16,
        (counted, keep): (&Arc<MessageBytes>, Keep),
        make: impl FnOnce() -> Vec<u8>,
    ) -> Message {
        let message = self.place(ty, counted);
        let mut is_kept = true;
        message.0.bytes.get_or_init(|| {
            let bytes = make().into_boxed_slice();
            let cost = (bytes.len() + OVERHEAD_BYTES) as u64;
            counted.bytes.fetch_add(cost, Ordering::Relaxed);
            is_kept = keep == Keep::Always || counted.room.take(cost);
            bytes
        });
        if !is_kept {
            self.forget(&message);
        }
        message
    }

    /// Those who have the message keep it.
    fn forget(&self, message: &Message) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = held.as_mut() else { return };
        all.0.retain(|known| !Arc::ptr_eq(&known.0, &message.0));
        if all.0.is_empty() {
            *held = None;
        }
    }

    fn place(&self, ty: u16, counted: &Arc<MessageBytes>) -> Message {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Held(all) = &mut **held.get_or_insert_default();
        if let Some(known) = all.iter().find(|message| message.0.ty == ty) {
            known.0.used.store(true, Ordering::Relaxed);
            return known.clone();
        }
        let made = Made { ty, used: true.into(), bytes: OnceLock::new(), counted: counted.clone() };
        let message = Message(Arc::new(made));
        // Most objects have one, a few have two.
        all.reserve_exact(1);
        all.push(message.clone());
        message
    }

    /// The message of type `ty`, if it is there.
    pub(crate) fn get(&self, ty: u16) -> Option<Message> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            held.as_ref()?.0.iter().find(|message| message.0.ty == ty && message.0.bytes.get().is_some())?;
        known.0.used.store(true, Ordering::Relaxed);
        Some(known.clone())
    }

    /// Drops the messages that nobody asked for since the last call.
    pub(crate) fn let_go(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = held.as_mut() else { return };
        all.0.retain(|message| message.0.used.swap(false, Ordering::Relaxed));
        if all.0.is_empty() {
            *held = None;
        }
    }

    /// What they take now.
    pub(crate) fn cost_bytes(&self) -> usize {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().flat_map(|held| &held.0).map(|message| message.len() + OVERHEAD_BYTES).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn a_message_is_made_once_and_shared() {
        let (messages, counted, made) = (Messages::default(), Arc::default(), AtomicUsize::new(0));
        let start = Barrier::new(8);
        let ask = || {
            start.wait();
            let message = messages.get_or_make(7, (&counted, Keep::IfRoom), || {
                made.fetch_add(1, Ordering::Relaxed);
                b"pod".to_vec()
            });
            message.as_ptr() as usize
        };
        let places: Vec<usize> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            all.into_iter().map(|one| one.join().expect("no panic")).collect()
        });
        assert!(places.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(made.into_inner(), 1);
        assert_eq!(messages.get(7).as_deref(), Some(&b"pod"[..]));
        assert!(messages.get(8).is_none());
        assert_eq!(&*messages.get_or_make(8, (&counted, Keep::IfRoom), || b"metadata".to_vec()), b"metadata");
        assert_eq!(messages.cost_bytes() as u64, counted.get());
    }

    #[test]
    fn what_nobody_asks_for_is_let_go_of_and_no_longer_counted() {
        let (messages, counted) = (Messages::default(), Arc::default());
        let ask = |ty| drop(messages.get_or_make(ty, (&counted, Keep::IfRoom), || vec![0; 100]));
        let one = (100 + OVERHEAD_BYTES) as u64;
        ask(1);
        ask(2);
        assert_eq!(counted.get(), 2 * one);
        messages.let_go();
        assert_eq!(counted.get(), 2 * one, "both were asked for before");
        ask(1);
        messages.let_go();
        assert_eq!((counted.get(), messages.get(2).is_none()), (one, true));
        let held = messages.get(1).expect("is there");
        messages.let_go();
        messages.let_go();
        assert_eq!(counted.get(), one, "somebody is still sending it");
        drop(held);
        assert_eq!((counted.get(), messages.cost_bytes()), (0, 0));
        ask(1);
        drop(messages);
        assert_eq!(counted.get(), 0, "the object is gone");
    }

    #[test]
    fn what_there_is_no_room_for_is_not_kept_and_an_events_is() {
        let room = Arc::<MessageRoom>::default();
        let counted = Arc::new(MessageBytes::within(room.clone()));
        let messages = Messages::default();
        let one = (100 + OVERHEAD_BYTES) as u64;
        room.set(one + one / 2);
        let ask = |ty, keep| messages.get_or_make(ty, (&counted, keep), || vec![ty as u8; 100]);
        assert_eq!(ask(1, Keep::IfRoom)[0], 1);
        assert!(messages.get(1).is_some());
        let second = ask(2, Keep::IfRoom);
        assert_eq!((second[0], messages.get(2).is_none(), counted.get()), (2, true, 2 * one));
        drop(second);
        assert_eq!((counted.get(), messages.cost_bytes() as u64), (one, one));
        assert_eq!(ask(3, Keep::Always)[0], 3);
        assert!(messages.get(3).is_some());
        room.set(one);
        assert_eq!(ask(2, Keep::IfRoom)[0], 2);
        assert!(messages.get(2).is_some(), "there is room again");
    }
}
