//! The kinds of other servers, which owners may be of.
//!
//! In: a kind. Out: its resource, once somebody knows what others serve. Never: asks them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::plugin::KindServed;

type OfKind = Box<dyn Fn(&str, &str) -> Option<KindServed> + Send + Sync>;

/// See the module's doc. Those who share one know the same: it is told of once, when others are followed.
#[derive(Clone, Default)]
pub struct KindsElsewhere(Arc<OnceLock<OfKind>>);

impl KindsElsewhere {
    /// From now on `of_kind` says it, of a kind in a version: `wardle.example.com/v1`, `Fischer`. The first
    /// who says so is believed.
    pub fn are(&self, of_kind: impl Fn(&str, &str) -> Option<KindServed> + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(of_kind));
    }

    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<KindServed> {
        self.0.get()?(api_version, kind)
    }
}

impl fmt::Debug for KindsElsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_known = self.0.get().is_some();
        f.debug_struct("KindsElsewhere").field("is_known", &is_known).finish()
    }
}
