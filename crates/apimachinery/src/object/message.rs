//! The protobuf messages of an object: each made when it is first asked for, then shared by whoever asks, and let go
//! when nobody does any more.
//!
//! Owner: the object. Whoever comes first makes a message while the others wait for it; the lock is held to find its
//! place, never while it is made. Never: knows what a message says.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Bytes of the messages of one resource that are in memory. Shared by all of them.
#[derive(Debug, Default)]
pub struct MessageBytes(AtomicU64);

impl MessageBytes {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// An object's message. Cheap to clone: it is the one that everybody has.
#[derive(Clone, Debug)]
pub struct Message(Arc<Made>);

#[derive(Debug)]
struct Made {
    // Which type it is a message of, in the schema's table.
    ty: u16,
    // Asked for since messages were let go of the last time.
    used: AtomicBool,
    bytes: OnceLock<Box<[u8]>>,
    counted: Arc<MessageBytes>,
}

/// What a message takes besides its bytes: itself, its counts, and its place in the object.
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
            self.counted.0.fetch_sub((bytes.len() + OVERHEAD_BYTES) as u64, Ordering::Relaxed);
        }
    }
}

/// An object's messages: of the type that it is stored as, of others that it is served as, of its metadata alone.
#[derive(Debug, Default)]
pub(super) struct Messages(Mutex<Option<Box<Held>>>);

/// Behind a pointer: most objects have none.
#[derive(Debug, Default)]
struct Held(Vec<Message>);

impl Messages {
    /// The message of type `ty`, which `make` makes unless it is there.
    pub(super) fn get_or_make(
        &self,
        ty: u16,
        counted: &Arc<MessageBytes>,
        make: impl FnOnce() -> Vec<u8>,
    ) -> Message {
        let message = self.place(ty, counted);
        message.0.bytes.get_or_init(|| {
            let bytes = make().into_boxed_slice();
            counted.0.fetch_add((bytes.len() + OVERHEAD_BYTES) as u64, Ordering::Relaxed);
            bytes
        });
        message
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
    pub(super) fn get(&self, ty: u16) -> Option<Message> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            held.as_ref()?.0.iter().find(|message| message.0.ty == ty && message.0.bytes.get().is_some())?;
        known.0.used.store(true, Ordering::Relaxed);
        Some(known.clone())
    }

    /// Lets go of those that nobody asked for since the last call.
    pub(super) fn let_go(&self) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(all) = held.as_mut() else { return };
        all.0.retain(|message| message.0.used.swap(false, Ordering::Relaxed));
        if all.0.is_empty() {
            *held = None;
        }
    }

    /// What they take now.
    pub(super) fn cost_bytes(&self) -> usize {
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
            let message = messages.get_or_make(7, &counted, || {
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
        assert_eq!(&*messages.get_or_make(8, &counted, || b"metadata".to_vec()), b"metadata");
        assert_eq!(messages.cost_bytes() as u64, counted.get());
    }

    #[test]
    fn what_nobody_asks_for_is_let_go_of_and_no_longer_counted() {
        let (messages, counted) = (Messages::default(), Arc::default());
        let ask = |ty| drop(messages.get_or_make(ty, &counted, || vec![0; 100]));
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
}
