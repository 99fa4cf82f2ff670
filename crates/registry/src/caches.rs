//! The caches of what is served, as whoever watches over the process's memory sees them.

use forebay_api::{Caches, Relief, Relieved};
use forebay_watchcache::window_cap;

use crate::registry::Registry;

impl Caches for Registry {
    fn unready(&self) -> usize {
        self.catalog().stores().iter().filter(|store| store.cacher.snapshot().is_err()).count()
    }

    fn keep_messages(&self, bytes: u64) {
        self.0.config.room.messages().set(bytes);
    }

    fn relieve(&self, relief: Relief) -> Relieved {
        let catalog = self.catalog();
        let converted = || catalog.iter().filter_map(|served| served.converted.as_ref());
        let views = converted().filter(|converted| converted.relieve(relief)).count();
        let mut stores = catalog.stores();
        stores.extend(converted().filter_map(|converted| converted.viewed()));
        let cap = window_cap(stores.iter().map(|store| store.cacher.window()), relief);
        let shrunk = stores.iter().filter(|store| {
            store.cacher.relieve(relief);
            store.cacher.cap_window(cap)
        });
        Relieved { windows: shrunk.count(), views }
    }
}
