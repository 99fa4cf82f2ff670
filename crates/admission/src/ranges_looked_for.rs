//! Which namespaces were found to have no limit ranges a moment ago.
//!
//! Owns when each was looked at, behind a lock of a few lines. In: a namespace, the time. Out: whether to
//! look again. Never: a range; a name, of which a number is kept.
//!
//! Source: kubernetes v1.36.3 `plugin/pkg/admission/limitranger` (`GetLimitRanges`).

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::{Mutex, PoisonError};

use forebay_rt::{Duration, Instant};

/// For how long a namespace without ranges is taken to have none but those in the cache, as upstream.
const LOOK_AGAIN: Duration = Duration::from_secs(30);
/// Namespaces that are known to have had none, as many as upstream's: 10,000 x 32 B = 320 kB. Beyond that all
/// are forgotten, and waited for once more.
const LOOKED_MAX: usize = 10_000;

/// Namespaces without ranges, by when that was looked at last.
#[derive(Default)]
pub struct RangesLookedFor {
    // hash of a namespace -> when, <= LOOKED_MAX
    at: Mutex<HashMap<u64, Instant>>,
    hasher: RandomState,
}

impl RangesLookedFor {
    pub(crate) fn is_due(&self, namespace: &str, now: Instant) -> bool {
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = at.get(&self.hasher.hash_one(namespace));
        looked.is_none_or(|looked| now.saturating_duration_since(*looked) >= LOOK_AGAIN)
    }

    pub(crate) fn looked(&self, namespace: &str, now: Instant) {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        if at.len() >= LOOKED_MAX {
            at.clear();
        }
        at.insert(self.hasher.hash_one(namespace), now);
    }
}

impl fmt::Debug for RangesLookedFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RangesLookedFor")
    }
}

#[cfg(test)]
mod tests {
    use forebay_rt::Clock;

    use super::*;

    #[test]
    fn a_namespace_without_ranges_is_looked_at_again_after_a_while() {
        let (looked_for, start) = (RangesLookedFor::default(), Clock::system().now());
        assert!(looked_for.is_due("a", start));
        looked_for.looked("a", start);
        assert!(!looked_for.is_due("a", start) && looked_for.is_due("b", start));
        assert!(!looked_for.is_due("a", start + Duration::from_secs(29)));
        assert!(looked_for.is_due("a", start + LOOK_AGAIN));
        (0..2 * LOOKED_MAX).for_each(|number| looked_for.looked(&number.to_string(), start));
        assert!(looked_for.at.lock().expect("no panic").len() <= LOOKED_MAX);
    }
}
