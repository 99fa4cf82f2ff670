//! Who asks, as the chain of authenticators found it.

use std::sync::Arc;

use forebay_apimachinery::Caller;
use forebay_apimachinery::caller::{ANONYMOUS, UNAUTHENTICATED};

/// Who asks.
#[derive(Clone, Debug)]
pub enum Asker {
    Known(Arc<Caller>),
    /// There were no credentials.
    Anonymous,
}

impl Asker {
    /// The user, be it the one whom nobody knows.
    pub fn caller(&self) -> Arc<Caller> {
        match self {
            Asker::Known(caller) => caller.clone(),
            Asker::Anonymous => Arc::new(Caller::anonymous()),
        }
    }

    /// The name, as messages have it.
    pub fn name(&self) -> &str {
        match self {
            Asker::Known(caller) => &caller.name,
            Asker::Anonymous => ANONYMOUS,
        }
    }

    pub fn is_in(&self, group: &str) -> bool {
        match self {
            Asker::Known(caller) => caller.is_in(group),
            Asker::Anonymous => group == UNAUTHENTICATED,
        }
    }
}
