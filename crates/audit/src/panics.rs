//! What a thread panics with, for whoever notes it while that thread unwinds.
//!
//! In: the process's panics, from when it is listened to. Out: the last words of this thread. Never: keeps a
//! hook that was there before from being called.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

use crate::limits::PANIC_BYTES_MAX;

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Listens from now on. Once for a process, however many servers it has.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let text = info.payload_as_str().unwrap_or("it does not say why");
            let end = text.floor_char_boundary(PANIC_BYTES_MAX);
            SAID.with(|said| {
                // Whoever panics while this is read says nothing.
                if let Ok(mut said) = said.try_borrow_mut() {
                    text[..end].clone_into(&mut said);
                }
            });
            before(info);
        }));
    });
}

/// What this thread panicked with last.
pub(crate) fn said() -> String {
    SAID.with(|said| said.borrow().clone())
}
