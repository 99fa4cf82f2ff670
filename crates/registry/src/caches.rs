//! The caches of what is served, as whoever watches over the process's memory sees them.

use forebay_api::{Caches, Relief};
use forebay_watchcache::window_cap;

use crate::registry::Registry;

impl Caches for Registry {
    fn unready(&self) -> usize {
        self.catalog().stores().iter().filter(|store| store.cacher.snapshot().is_err()).count()
    }

    fn keep_messages(&self, bytes: u64) {
        self.0.config.room.messages().set(bytes);
    }

    fn relieve(&self, relief: Relief) -> usize {
        let stores = self.catalog().stores();
        let cap = window_cap(stores.iter().map(|store| store.cacher.window()), relief);
        let shrunk = stores.iter().filter(|store| {
            store.cacher.relieve(relief);
            store.cacher.cap_window(cap)
        });
        shrunk.count()
    }
}
