//! The rights in force: one publishes them, everybody who decides reads them.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use crate::rights::Rights;

/// See the module's doc. Nobody has any until some are published.
#[derive(Debug, Default)]
pub struct RightsInForce(ArcSwap<Rights>);

impl RightsInForce {
    /// As they are now, for as long as a decision takes.
    pub fn load(&self) -> Guard<Arc<Rights>> {
        self.0.load()
    }

    /// As they are now, for longer.
    pub fn load_full(&self) -> Arc<Rights> {
        self.0.load_full()
    }

    /// From now on these are. One owner: who follows roles and bindings.
    pub fn publish(&self, rights: Rights) {
        self.0.store(Arc::new(rights));
    }
}
